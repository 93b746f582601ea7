"""The orchestrator of one run: starts the processes, receives their frames, applies the faults, replaces processes
that ended, and decides when the run is over.

Single-threaded: one loop waits for frames, for ends of processes and for timed
actions.  Nothing else blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....faults.plan import kind_of as fault_kind
from ....properties.model.history import Residue
from ....properties.model.workload import Row
from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary.causes import AnyCause, ProcessEnded, SnapshotTorn
from ....reference_impl.core.vocabulary.ids import CheckpointId, newest
from ....reference_impl.processes.loop import monotonic_us
from ....reference_impl.processes.network import frames as f
from ....reference_impl.processes.stores.readers import Unreachable
from ....reference_impl.processes.stores.sinks import DATABASE
from ...runtime.exit_codes import HarnessFailed
from ...scenario.model import Scenario
from ...subject.port import SubjectFailed
from ..snapshots.beginning import Behind
from ..subjects import process_job
from .bound import Bound
from .context import Context
from .copies import Copies
from .evidence import Copied, Evidence
from .facts import Facts
from .injectors.process_faults import Disturbances
from .injectors.steering import Steering
from .jobs import Jobs
from .layout import COORDINATOR
from .opening import UP_WITHIN_S, Opened
from .processes import Exit, Member, Processes
from .rest import Rest

READY_WITHIN_US = 30_000_000
PARTING_US = 3_000_000
"""how long the orchestrator waits for the last attempts to end when the job has ended"""
POLL_US = 50_000
ECHOES = 2
"""how many echoes the orchestrator waits for: with the first, all messages that were on their way have arrived"""
CHECK_PROXIES_US = 500_000
"""of the machine's clock, between two checks of Toxiproxy's proxies; a check takes some ms"""
MOST_DEATHS = 12
"""after this many processes have died by themselves, none is replaced any more"""


class Orchestrator:
    """One run: call `run`, then `evidence`, then `close`."""

    def __init__(self, opened: Opened, scenario: Scenario, begins: Behind | None = None) -> None:
        self._opened = opened
        self._begins = begins
        self._scenario = scenario
        self._services = opened.services
        kinds = [fault_kind(fault) for fault in scenario.faults]
        self.context = context = Context(opened.services, opened.placement, opened.config, kinds)
        context.facts = Facts(lambda phase: self._steering.triggers.entered(phase))
        context.processes = Processes(
            opened.services.launcher, opened.placement, opened.config, context.outbox, self._receive, self._miss
        )
        self._environment = Disturbances(context, self._replace)
        self._jobs = Jobs(context, scenario, lambda: context.processes.current(COORDINATOR), begins)
        self.copies = Copies(context, scenario, self._jobs)
        past = begins.past if begins is not None else None
        self._steering = Steering(context, scenario, self._environment, self._jobs, self.copies, past)
        self._rest = Rest(context, not all(source.bounded for source in scenario.workload.inputs))
        self._bound = Bound(context, scenario)
        self._newest: CheckpointId | None = None
        """the newest complete checkpoint, if there is one"""
        self._deaths = 0
        self._over_us = 0
        self._echoes = 0
        self._awaits_echo = False
        self._quiet = False
        self._has_begun = False
        self._foreign = 0
        self._take: dict[type, Callable[[Member, Any], None]] = {
            f.Ready: lambda member, frame: None,
            f.Reached: self._reached,
            f.Expiring: self._expire,
            f.Fired: self._fired,
            f.Felt: lambda member, frame: self._environment.channels.felt(frame),
            f.Broke: lambda member, frame: self._environment.channels.broke(frame),
            f.Up: self._up,
            f.Down: self._down,
            f.TaskFacts: self._task_facts,
            f.JobFacts: lambda member, frame: context.facts.job(frame),
            f.Completed: self._completed,
            f.Ended: lambda member, frame: self._jobs.ended(frame),
            f.Returned: lambda member, frame: self._jobs.returned(frame),
            f.Lost: self._lost,
            f.Happened: lambda member, frame: self._steering.happened(frame.what),
            f.Foreign: self._met_foreign,
            f.Echo: self._echoed,
            f.Count: self._counted,
        }

    # -- from the beginning to the end -------------------------------------------------

    def run(self) -> None:
        """Run until the job is at rest or its time is over.  Raises SubjectFailed, CutproofError."""
        processes = self.context.processes
        self._check_proxies()
        for name in (COORDINATOR, *self._opened.placement.processes):
            processes.spawn(name, self._steering.perturbations())
        if not self._wait_for(lambda: not processes.missing(), READY_WITHIN_US):
            missing = processes.missing()
            raise SubjectFailed(f"{', '.join(missing)} did not come up: {processes.last_words(missing[0])}")
        self._has_begun = True
        self.context.begun_us = self.context.clock.tick()
        self.context.facts.coordinator(True)
        self._steering.set_out()
        self._jobs.begin()
        self._bound.begin()
        while not self._quiet and self._comes_to_its_end():
            if self._is_hopeless:
                break
            processes.stand_still()
            self._quiet = self._is_over()
            if not self._quiet:
                processes.move_again()
        if not self._quiet:
            processes.stand_still()
        self.copies.at_the_end(is_at_rest=self._quiet)
        self._services.check_proxies(is_last=True)
        self.context.journal.saw(o.Closing())
        self.context.journal.flush()

    def _check_proxies(self, *_: object) -> None:
        self._services.check_proxies()
        self.context.loop.at(monotonic_us() + CHECK_PROXIES_US, self._check_proxies)

    def _comes_to_its_end(self) -> bool:
        """Wait until the run is over; False if it is ended before that."""
        while not self._wait_for(self._is_over, self._bound.remaining_us()):
            if self._bound.is_reached(self._newest):
                return False
        return True

    def _wait_for(self, done: Callable[[], bool], within_us: int) -> bool:
        """Let the loop run until `done` or the deadline; whether `done` is true."""
        context = self.context
        deadline = monotonic_us() + within_us
        context.loop.at(deadline, lambda *_: None)

        def step() -> None:
            if context.processes.poll():
                self._services.watch()
            if done() or monotonic_us() >= deadline:
                context.loop.stopped = True
            context.journal.flush()
            context.outbox.flush()

        context.loop.stopped = False
        context.loop.before_wait = step
        context.loop.run()
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
            self.context.loop.at(self._over_us + PARTING_US, lambda *_: None)
        too_late = monotonic_us() >= self._over_us + PARTING_US
        parted = not any(member.attempts for member in self.context.processes.living())
        return self.context.healing == 0 and (too_late or (parted and self._has_received_all()))

    def _has_received_all(self) -> bool:
        """Whether the coordinator has received every message of the last attempts.  A late acknowledgement matters: the
        coordinator deletes its snapshot."""
        member = self.context.processes.current(COORDINATOR)
        if member is None or self._echoes >= ECHOES:
            return True
        if not self._awaits_echo:
            self._awaits_echo = True
            member.send(f.Echo(self.context.clock.tick(), self._echoes + 1))
        return False

    def _echoed(self, member: Member, frame: f.Echo) -> None:
        if frame.number < 0:
            self.copies.echoed(-1 - frame.number)
        else:
            self._echoes, self._awaits_echo = frame.number, False

    # -- frames of processes ------------------------------------------------------------

    def _receive(self, member: Member, frame: f.Frame) -> None:
        take = self._take.get(type(frame))
        if take is None:
            raise SubjectFailed(f"{member.name} sent a frame that it must not send: {type(frame).__name__}")
        take(member, frame)

    def _reached(self, member: Member, frame: f.Reached) -> None:
        """A process waits at a protocol point: apply the faults and commands that this point triggers, then let it
        go."""
        if not member.has_ended:
            self._steering.triggers.reached(frame.point, frame.task, frame.side)
            self.context.journal.flush()
            member.send(f.Go(self.context.clock.tick()))

    def _expire(self, member: Member, frame: f.Expiring) -> None:
        """A process waits before a commit: have the store expire that transaction, then let the process commit."""
        if not member.has_ended:
            expired = self._environment.expire(frame.fault, frame.name, frame.attempt, member)
            self.context.journal.flush()
            member.send(f.Go(self.context.clock.tick(), expired))
            if not expired and not self._environment.orders.waits(frame.fault):
                member.send(f.Disarm(self.context.clock.tick(), frame.fault))

    def _fired(self, member: Member, frame: f.Fired) -> None:
        kind = self.context.kinds[frame.fault]
        if kind == "tear-write":
            member.blame = frame.fault
        if kind == "fail-commit":
            self._environment.orders.met_in(frame.fault, member)
        self.context.fired(frame.fault, frame.detail, frame.attempt, frame.struck, stamp=frame.stamp)

    def _up(self, member: Member, frame: f.Up) -> None:
        member.attempts[frame.task] = frame.attempt
        self._bound.came_up(frame.attempt)
        if self.context.processes.is_current(member):
            self.context.facts.up(frame.task, frame.attempt)

    def _down(self, member: Member, frame: f.Down) -> None:
        if member.attempts.get(frame.task) == frame.attempt:
            del member.attempts[frame.task]
        if self.context.processes.is_current(member):
            self.context.facts.down(frame.task, frame.attempt)

    def _task_facts(self, member: Member, frame: f.TaskFacts) -> None:
        if self.context.processes.is_current(member):
            self.context.facts.task(frame)

    def _counted(self, member: Member, frame: f.Count) -> None:
        self._bound.counted(frame)
        self._rest.counted(frame)

    def _completed(self, member: Member, frame: f.Completed) -> None:
        self._newest = newest([self._newest, frame.checkpoint])
        if not self._jobs.is_over:
            self._rest.completed(frame.checkpoint)

    def _lost(self, member: Member, frame: f.Lost) -> None:
        """The coordinator has declared a node lost: a new process replaces it.  The old one may come back as a
        zombie."""
        lost = self.context.processes.current(frame.process)
        if lost is not None and lost.incarnation == frame.incarnation:
            self._forget(lost)
            self._come_up(frame.process)

    def _met_foreign(self, member: Member, frame: f.Foreign) -> None:
        """A program that is not part of the run connected to a process and was refused.  The job is not affected."""
        self._foreign += frame.count

    # -- ends and beginnings -----------------------------------------------------------

    def _miss(self, member: Member, end: Exit) -> None:
        """A process has ended without being killed by the harness."""
        if not self._has_begun:
            raise SubjectFailed(
                f"{member.name} ended with {end.how} at its start: {self.context.processes.last_words(member.name)}"
            )
        if end.code == 0 and not self.context.processes.is_current(member):
            return  # the process was replaced, and ordered to end
        if member.blame is not None:
            cause: AnyCause = SnapshotTorn()
        else:
            self._deaths += 1
            cause = ProcessEnded(end.how, self.context.processes.last_words(member.name))
        self.context.journal.saw(o.died(member.name, member.incarnation, cause, member.blame))
        down_us = self._opened.config.settings.takeover_us if member.name == COORDINATOR else 0
        self._replace(member, self.context.real(down_us))

    def _replace(self, member: Member, down_us: int) -> None:
        """Start the replacement of a dead process `down_us` of the machine's clock later."""
        self._forget(member)
        if not self.context.processes.is_current(member) or self._is_hopeless:
            return
        if member.name == COORDINATOR:
            self.context.facts.coordinator(False)
        if down_us:
            self.context.after_real(down_us, lambda: self._come_up(member.name))
        else:
            self._come_up(member.name)

    def _forget(self, member: Member) -> None:
        """The attempts in a process no longer count as live."""
        for task, attempt in member.attempts.items():
            self.context.facts.down(task, attempt)
        if member.has_ended:
            member.attempts.clear()

    def _come_up(self, name: str) -> None:
        member = self.context.processes.spawn(name, self._steering.perturbations())
        if name == COORDINATOR:
            self.context.facts.coordinator(True)
            self._jobs.take_over(member)
        self._environment.orders.order_again(member)

    # -- evidence --------------------------------------------------------------------

    def evidence(self, copied: Copied | None = None) -> Evidence:
        """The evidence of the run, collected while every process is stopped; `copied` if it is that of a forked
        job.  Raises HarnessFailed.

        If a fault still keeps the database down, this starts it again.
        """
        sink = self._opened.config.sink
        if sink.store == DATABASE and not self._services.database.answers():
            self._services.database.wait_until_up(UP_WITHIN_S)
        reader = sink.reader()
        try:
            unfinished = reader.unfinished()
            if self._scenario.engine.sink == "idempotent":
                committed: list[tuple[str | None, Row]] = [(None, row) for row in reader.table().values()]
            else:
                committed = reader.committed()
            passing = reader.passing()
        except Unreachable as error:
            raise HarnessFailed(f"the committed rows cannot be read: {error}") from error
        finally:
            reader.close()
        facts = self.context.facts
        copies, files_of_copies = self._jobs.copies()
        residue = Residue(
            copies=copies,
            copied=files_of_copies,
            open_transactions=[name for name, status, _ in unfinished if status == "open"],
            prepared_transactions=[name for name, status, _ in unfinished if status == "prepared"],
            files=self._jobs.handles(),
            logs=self._jobs.logs(),
            retained=self._jobs.retained(),
            live_sinks=sum(facts.attempt_of(sink) is not None for sink in self._opened.placement.sinks),
        )
        return Evidence(
            scenario=self._scenario,
            committed=committed,
            passing=passing,
            residue=residue,
            quiet=self._quiet,
            cut_short=self._bound.is_short,
            lasting=sorted(set(self.context.lasting)),
            unapplied=self._steering.unapplied(),
            foreign=self._foreign,
            short_timeout=process_job.has_short_timeout(self._scenario, self._opened.config.scale),
            rolls_back=sink.store == DATABASE,
            begun=self.context.begun_us,
            timeline=self._opened.config.detailed,
            past=self._begins.past if self._begins is not None else None,
            copied=copied,
        )

    def close(self) -> None:
        """End every process of the run."""
        self.context.processes.close()
        self.context.journal.close()
