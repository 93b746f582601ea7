"""Conducts one run: starts its processes, hears them, has them disturbed and replaced, and decides when it is over.

Single-threaded: one loop waits for what processes say, for their ends, and for
what is due; nothing else is ever slept for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....faults.plan import kind_of as fault_kind
from ....properties.model.history import Residue
from ....reference_impl.processes import frames as f
from ....reference_impl.processes.database_reader import Unreachable
from ....reference_impl.processes.loop import monotonic_us
from ....reference_impl.processes.sinks import DATABASE
from ...runtime.exit_codes import HarnessFailed
from ...scenario.model import Scenario
from ...subject.port import SubjectFailed
from .bound import Bound
from .context import Scene
from .disturbing import Disturbances
from .evidence import Evidence
from .facts import Facts
from .jobs import Jobs
from .layout import COORDINATOR
from .opening import UP_WITHIN_S, Opened
from .processes import Crew, Exit, Member
from .rest import Rest
from .steering import Steering

READY_WITHIN_US = 30_000_000
PARTING_US = 3_000_000
"""for how long the last attempts are waited for when the job has ended"""
LOOK_AGAIN_US = 50_000
ECHOES = 2
"""after the first, what was on its way when it was asked for has arrived"""
LOOK_AT_PROXIES_US = 500_000
"""of the machine's clock, between two looks at what Toxiproxy has; one takes some ms"""
MOST_DEATHS = 12
"""of processes by themselves: after so many nobody is replaced any more"""


class Conductor:
    """One run; `conduct`, then `evidence`, then `close`."""

    def __init__(self, opened: Opened, scenario: Scenario) -> None:
        self._opened = opened
        self._scenario = scenario
        self._services = opened.services
        kinds = [fault_kind(fault) for fault in scenario.faults]
        self.scene = scene = Scene(opened.services, opened.placement, opened.told, kinds)
        scene.facts = Facts(lambda phase: self._steering.triggers.entered(phase))
        scene.crew = Crew(opened.services.launcher, opened.placement, opened.told, scene.outbox, self._hear, self._miss)
        self._environment = Disturbances(scene, self._replace)
        self._jobs = Jobs(scene, scenario, lambda: scene.crew.current(COORDINATOR))
        self._steering = Steering(scene, scenario, self._environment, self._jobs)
        self._rest = Rest(scene, not all(source.bounded for source in scenario.workload.inputs))
        self._bound = Bound(scene, scenario)
        self._newest = 0
        self._deaths = 0
        self._over_us = 0
        self._echoes = 0
        self._awaits_echo = False
        self._quiet = False
        self._has_begun = False
        self._foreign = 0
        self._take: dict[type, Callable[[Member, Any], None]] = {
            f.Ready: lambda member, told: None,
            f.Reached: self._reached,
            f.Expiring: self._expire,
            f.Fired: self._fired,
            f.Felt: lambda member, told: self._environment.channels.felt(told),
            f.Broke: lambda member, told: self._environment.channels.broke(told),
            f.Up: self._up,
            f.Down: self._down,
            f.TaskFacts: self._task_facts,
            f.JobFacts: lambda member, told: scene.facts.job(told),
            f.Completed: self._completed,
            f.Returned: lambda member, told: None,
            f.Ended: lambda member, told: self._jobs.ended(told),
            f.Lost: self._lost,
            f.Happened: lambda member, told: self._steering.happened(told.what),
            f.Foreign: self._met_foreign,
            f.Echo: self._echoed,
            f.Count: self._counted,
        }

    # -- from the beginning to the end -------------------------------------------------

    def conduct(self) -> None:
        """Run it until it is at rest, or its time is over.  Raises SubjectFailed, CutproofError."""
        crew = self.scene.crew
        self._look_at_proxies()
        for name in (COORDINATOR, *self._opened.placement.processes):
            crew.spawn(name, self._steering.deviations())
        if not self._wait_for(lambda: not crew.missing(), READY_WITHIN_US):
            missing = crew.missing()
            raise SubjectFailed(f"{', '.join(missing)} did not come up: {crew.last_words(missing[0])}")
        self._has_begun = True
        self.scene.begun_us = self.scene.clock.tick()
        self.scene.facts.coordinator(True)
        self._steering.set_out()
        self._jobs.submit()
        self._bound.begin()
        while not self._quiet and self._comes_to_its_end():
            if self._is_hopeless:
                break
            crew.stand_still()
            self._quiet = self._is_over()
            if not self._quiet:
                crew.move_again()
        if not self._quiet:
            crew.stand_still()
        self._services.look(is_last=True)
        self.scene.journal.closing()
        self.scene.journal.flush()

    def _look_at_proxies(self, *_: object) -> None:
        self._services.look()
        self.scene.loop.at(monotonic_us() + LOOK_AT_PROXIES_US, self._look_at_proxies)

    def _comes_to_its_end(self) -> bool:
        """Wait until the run is over; False when it is cut off before."""
        while not self._wait_for(self._is_over, self._bound.left_us()):
            if self._bound.is_reached(self._newest):
                return False
        return True

    def _wait_for(self, done: Callable[[], bool], within_us: int) -> bool:
        """Let the loop run until something is so; whether it is."""
        scene = self.scene
        deadline = monotonic_us() + within_us
        scene.loop.at(deadline, lambda *_: None)

        def turn() -> None:
            if scene.crew.poll():
                self._services.watch()
            if done() or monotonic_us() >= deadline:
                scene.loop.stopped = True
            scene.journal.flush()
            scene.outbox.flush()

        scene.loop.stopped = False
        scene.loop.before_wait = turn
        scene.loop.run()
        return done()

    @property
    def _is_hopeless(self) -> bool:
        return self._deaths > MOST_DEATHS

    def _is_over(self) -> bool:
        if self._is_hopeless:
            return True
        if not self._jobs.is_all_over:
            self._over_us = self._echoes = 0
            return self._rest.is_at_rest
        if not self._over_us:
            self._over_us = monotonic_us()
            self.scene.loop.at(self._over_us + PARTING_US, lambda *_: None)
        too_late = monotonic_us() >= self._over_us + PARTING_US
        parted = not any(member.attempts for member in self.scene.crew.living())
        return self.scene.healing == 0 and (too_late or (parted and self._has_heard_all()))

    def _has_heard_all(self) -> bool:
        """Whether the coordinator has taken what the last attempts said to it: an acknowledgement that comes
        late still has its snapshot deleted."""
        member = self.scene.crew.current(COORDINATOR)
        if member is None or self._echoes >= ECHOES:
            return True
        if not self._awaits_echo:
            self._awaits_echo = True
            member.send(f.Echo(self.scene.clock.tick(), self._echoes + 1))
        return False

    def _echoed(self, member: Member, told: f.Echo) -> None:
        self._echoes, self._awaits_echo = told.number, False

    # -- what processes say ------------------------------------------------------------

    def _hear(self, member: Member, frame: f.Frame) -> None:
        take = self._take.get(type(frame))
        if take is None:
            raise SubjectFailed(f"{member.name} said what is not its to say: {type(frame).__name__}")
        take(member, frame)

    def _reached(self, member: Member, told: f.Reached) -> None:
        """It stands still at a point: do what waited for that, then let it go, if it still lives."""
        if not member.is_gone:
            self._steering.triggers.reached(told.point, told.task, told.side)
            self.scene.journal.flush()
            member.send(f.Go(self.scene.clock.tick()))

    def _expire(self, member: Member, told: f.Expiring) -> None:
        """It stands still before a commit: have the store give that transaction up, then let it ask."""
        if not member.is_gone:
            gone = self._environment.expire(told.fault, told.name, told.attempt, member)
            self.scene.journal.flush()
            member.send(f.Go(self.scene.clock.tick(), gone))
            if not gone and not self._environment.orders.waits(told.fault):
                member.send(f.Disarm(self.scene.clock.tick(), told.fault))

    def _fired(self, member: Member, told: f.Fired) -> None:
        kind = self.scene.kinds[told.fault]
        if kind == "tear-write":
            member.blame = told.fault
        if kind == "fail-commit":
            self._environment.orders.met_in(told.fault, member)
        self.scene.fired(told.fault, told.detail, told.attempt, stamp=told.stamp)

    def _up(self, member: Member, told: f.Up) -> None:
        member.attempts[told.task] = told.attempt
        self._bound.came_up(told.attempt)
        if self.scene.crew.is_current(member):
            self.scene.facts.up(told.task, told.attempt)

    def _down(self, member: Member, told: f.Down) -> None:
        if member.attempts.get(told.task) == told.attempt:
            del member.attempts[told.task]
        if self.scene.crew.is_current(member):
            self.scene.facts.down(told.task, told.attempt)

    def _task_facts(self, member: Member, told: f.TaskFacts) -> None:
        if self.scene.crew.is_current(member):
            self.scene.facts.task(told)

    def _counted(self, member: Member, told: f.Count) -> None:
        self._bound.counted(told)
        self._rest.counted(told)

    def _completed(self, member: Member, told: f.Completed) -> None:
        self._newest = max(self._newest, told.checkpoint)
        if not self._jobs.is_over:
            self._rest.completed(told.checkpoint)

    def _lost(self, member: Member, told: f.Lost) -> None:
        """The coordinator has given a node up: another comes in its place, and it may come back as a zombie."""
        lost = self.scene.crew.current(told.process)
        if lost is not None and lost.incarnation == told.incarnation:
            self._forget(lost)
            self._come_up(told.process)

    def _met_foreign(self, member: Member, told: f.Foreign) -> None:
        """Somebody connected to a process who is not of the run, and was closed unheard: nothing of the job changes."""
        self._foreign += told.count

    # -- ends and beginnings -----------------------------------------------------------

    def _miss(self, member: Member, end: Exit) -> None:
        """A process has ended that nobody had killed."""
        if not self._has_begun:
            raise SubjectFailed(
                f"{member.name} ended with {end.how} at its start: {self.scene.crew.last_words(member.name)}"
            )
        if end.code == 0 and not self.scene.crew.is_current(member):
            return  # another has its place, and it was told to go
        if member.blame is not None:
            reason = "it died while it wrote a snapshot"
        else:
            self._deaths += 1
            reason = f"its process ended with {end.how}: {self.scene.crew.last_words(member.name)}"
        self.scene.journal.died(member.name, member.incarnation, reason, member.blame)
        down_us = self._opened.told.settings.takeover_us if member.name == COORDINATOR else 0
        self._replace(member, self.scene.real(down_us))

    def _replace(self, member: Member, down_us: int) -> None:
        """A process is dead; another takes its place `down_us` of the machine's clock later."""
        self._forget(member)
        if not self.scene.crew.is_current(member) or self._is_hopeless:
            return
        if member.name == COORDINATOR:
            self.scene.facts.coordinator(False)
        if down_us:
            self.scene.after_real(down_us, lambda: self._come_up(member.name))
        else:
            self._come_up(member.name)

    def _forget(self, member: Member) -> None:
        """Its attempts live no more, as far as the job is concerned."""
        for task, attempt in member.attempts.items():
            self.scene.facts.down(task, attempt)
        if member.is_gone:
            member.attempts.clear()

    def _come_up(self, name: str) -> None:
        member = self.scene.crew.spawn(name, self._steering.deviations())
        if name == COORDINATOR:
            self.scene.facts.coordinator(True)
            self._jobs.take_over(member)
        self._environment.orders.tell_again(member)

    # -- what is left --------------------------------------------------------------------

    def evidence(self) -> Evidence:
        """Everything but the journals, while every process stands still.  Raises HarnessFailed.

        Nobody gives the database back any more that a fault still holds down: it is started here.
        """
        sink = self._opened.told.sink
        if sink.store == DATABASE and not self._services.database.answers():
            self._services.database.wait_until_up(UP_WITHIN_S)
        reader = sink.reader()
        try:
            unfinished = reader.unfinished()
            if self._scenario.engine.sink == "idempotent":
                committed = [("", row) for row in reader.table().values()]
            else:
                committed = reader.committed()
            passing = reader.passing()
        except Unreachable as error:
            raise HarnessFailed(f"what was committed cannot be read: {error}") from error
        finally:
            reader.close()
        facts = self.scene.facts
        residue = Residue(
            open_transactions=[name for name, status, _ in unfinished if status == "open"],
            prepared_transactions=[name for name, status, _ in unfinished if status == "prepared"],
            files=self._jobs.handles(),
            logs=self._jobs.logs(),
            retained=self._jobs.retained(self._newest),
            live_sinks=sum(facts.attempt_of(sink) > 0 for sink in self._opened.placement.sinks),
        )
        return Evidence(
            scenario=self._scenario,
            committed=committed,
            passing=passing,
            residue=residue,
            quiet=self._quiet,
            cut_short=self._bound.is_short,
            lasting=sorted(set(self.scene.lasting)),
            unapplied=self._steering.unapplied(),
            foreign=self._foreign,
            rolls_back=sink.store == DATABASE,
            begun=self.scene.begun_us,
            timeline=self._opened.told.detailed,
        )

    def close(self) -> None:
        """End every process of the run."""
        self.scene.crew.close()
        self.scene.journal.close()
