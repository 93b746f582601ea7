"""The simulated world: nodes, links, stores, one coordinator at a time, and time itself.

It carries the core's effects out, reports what happens to an observer, and can be disturbed.  Nothing in it is left to
chance: the same job, settings, schedule perturbations and director give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from .. import observed as o
from ..core.decisions.parts import Parts
from ..core.extensions.sinks.direct_sink import Identity
from ..core.job.config import Config
from ..core.job.split_log import SplitLog
from ..core.job.topology import JobGraph
from ..core.lifecycle.coordinator import Coordinator
from ..core.protocol.barrier_alignment import OnTransition
from ..core.vocabulary.causes import AnyCause, CoordinatorDied, NoCoordinator
from ..core.vocabulary.effects import EndJob, Return
from ..core.vocabulary.events import (
    Claims,
    Commanded,
    CommandKind,
    CompletedCheckpoint,
    CoordinatorStarted,
    JobRecord,
    TaskLost,
)
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.vocabulary.status_changes import AnyStatusChange, AttemptStarted, CheckpointAborted, CheckpointTriggered
from ..driver.arms import Arms
from ..driver.coordination import CoordinatorRunner
from ..driver.durable.records import Records
from ..driver.durable.sessions import Sessions
from ..driver.durable.spills import Spills
from ..driver.durable.stores import Stores
from ..driver.machines import Job, Unmade, numbered, passing
from ..driver.perturbations import Perturbations
from ..driver.points import Points
from ..driver.ports import Attempt
from ..driver.runner import TaskRunner
from ..driver.settings import Settings
from ..trace import Observer
from .clearing import Clearing
from .control import ControlPlane
from .director import Director
from .external import TransactionStore
from .forking import Copied, copied
from .links import DataChannel
from .local_assembly import assembly_of
from .logs import LogShelf
from .loop import Loop
from .phases import phase_of
from .sharing import Sharing
from .storage import JobStore, SnapshotFiles


class Submission(msgspec.Struct, frozen=True):
    """How a job is submitted: a coordinator that takes over knows this too."""

    first_attempt: AttemptId = AttemptId(1)
    first_checkpoint: CheckpointId = CheckpointId(1)
    initial: tuple[CompletedCheckpoint, ...] = ()
    """the snapshots of the job that it resumes, as far as they still exist"""
    had_snapshot: bool = False
    """that job had one"""
    named: CheckpointId | None = None
    """the one from which it begins; None: the newest"""
    claims: Claims = {}
    """of the snapshots from which this job and former ones were resumed"""


class World:
    """One run.

    `graphs` are those of its jobs, one after the other (further jobs have the last one); `logs` are the rewindable
    splits; `identity` is how upserts replace rows.  The stores are empty, or hold what was copied from another world.
    """

    def __init__(
        self,
        graphs: Sequence[JobGraph],
        config: Config,
        settings: Settings,
        logs: Sequence[SplitLog],
        *,
        observer: Observer,
        perturbations: Perturbations,
        parts: Parts,
        identity: Identity | None = None,
        begins_from: Copied | None = None,
        on_transition: OnTransition | None = None,
    ) -> None:
        self.graph = graphs[0]
        self.config = config
        self.settings = settings
        self.observer = observer
        self.perturbations = perturbations
        self.parts = parts
        self.detailed = observer.detailed
        self.loop = Loop()
        self.loop.now = begins_from.at_us if begins_from is not None else 0
        self.points = Points()
        self.control = ControlPlane(self)
        self.files = SnapshotFiles()
        self.jobs = JobStore()
        stored = TransactionStore() if begins_from is None else begins_from.external
        self.external = stored.also_passing(passing(graphs))
        arms = Arms()
        self.stores = Stores(self, self.files, self.jobs, arms)
        self.records = Records(self, self.files, self.jobs, arms)
        self.sessions = Sessions(self, self.external, arms)
        by_itself = config.spill_store == "log"
        self.channel_logs = LogShelf(whole_files=not by_itself) if begins_from is None else begins_from.logs
        self.spills = Spills(self, self.channel_logs, arms, by_itself=by_itself)
        self.coordinator: CoordinatorRunner | None = None
        self._coordinators: list[CoordinatorRunner] = []
        """all that there were"""
        self.job_number = 0
        self.job_over = True
        self.quiet = False
        self.newest: CompletedCheckpoint | None = None
        """the newest complete checkpoint"""
        self.busy_until = 0
        """until then faults end by themselves, and commands are due"""
        self.retained: list[CompletedCheckpoint] = []
        self.freezing = False
        """nothing more will happen by itself: no checkpoint is triggered any more"""
        self._notified_by = 0
        """when the coordinator was last notified of something that was written"""
        self._clearing = Clearing(self.loop, self.files)
        self._at_trigger: dict[int, tuple[int, int]] = {}
        """what had happened when each checkpoint was triggered"""
        self._endless = not all(spec.bounded for spec in self.graph.operators)
        self._job = Job(
            graph=self.graph,
            config=config,
            parts=parts,
            logs=logs,
            identity=identity,
            later=tuple(graphs[1:]),
            on_transition=on_transition,
        )
        self._assembly = assembly_of(self, self._job)
        self._runners: dict[tuple[TaskId, AttemptId], TaskRunner] = {}
        self._latest: dict[TaskId, TaskRunner] = {}
        self.nodes = {task: number % settings.nodes for task, number in numbered(graphs).items()}
        self._director: Director | None = None
        self._phase: str | None = None
        """the phase that was reported last, if any was"""
        self._attempts = 0
        self._submission = Submission()
        self._commands: dict[int, int] = {}
        self._injections: dict[TaskId, Callable[[TaskRunner], None]] = {}

    # -- running ---------------------------------------------------------------------

    def direct(self, director: Director) -> None:
        self._director = director
        self.points.watch(director.points, director.reached)

    def run(self) -> None:
        """Submit the job and run until nothing is under way, or a limit of time or steps is reached."""
        self.submit()
        self.quiet = self.loop.run(self.settings.limit_us, self._watch_phase, self.settings.limit_steps)

    def fork(self, stores: Copied) -> None:
        """Submit a job from the snapshot that was copied from another world, and run until nothing is under way."""
        self.job_number = stores.job
        self.files.files, self.files.sharing = stores.files, stores.sharing
        self.jobs.trimmed.update(stores.trimmed)
        self.jobs.save(stores.record)
        for snapshot in () if self.settings.memory else stores.retained:
            self.files.store(snapshot)
        self._submission = Submission(claims=stores.claims)
        self.submit(stores.retained, stores.snapshot.checkpoint if stores.sharing is not None else None)
        limit_us = stores.at_us + self.settings.limit_us
        self.quiet = self.loop.run(limit_us, self._watch_phase, self.settings.limit_steps)

    def submit(
        self,
        initial: Sequence[CompletedCheckpoint] = (),
        named: CheckpointId | None = None,
        claimed: bool | None = None,
    ) -> None:
        """Start a job: from nothing, or from the snapshots of the one before, the newest one unless another is named.
        `claimed`: whether the job claims the named one (`Claims`); None: nothing is said of it."""
        claims = dict(self._submission.claims)
        if named is not None and claimed is not None:
            claims[named] = claimed
        previous = self.jobs.load(self.job_number)
        if self.coordinator is not None:
            self.coordinator.alive = False  # from here on timers and answers of a former job have no effect in this one
        self.job_number += 1
        self.job_over = False
        self._lay_out(self._job.graph_of(self.job_number))
        self._submission = Submission(
            AttemptId(previous.attempt + 2) if previous else AttemptId(1),
            CheckpointId(previous.next_checkpoint + 8) if previous else CheckpointId(1),
            tuple(initial),
            bool(initial),
            named,
            claims,
        )
        self.coordinator = self._new_coordinator()
        self.coordinator.feed(CoordinatorStarted(None))

    def _lay_out(self, graph: JobGraph) -> None:
        """Another job begins; failures of a task that it does not have do not matter."""
        self.graph = graph
        self._assembly.lay_out(self.job_number)
        there = {task for task, _, _ in graph.tasks()}
        self._latest = {task: runner for task, runner in self._latest.items() if task in there}

    def _new_coordinator(self) -> CoordinatorRunner:
        """A coordinator that knows how the job was submitted, and nothing else."""
        job = self._submission
        machine = Coordinator(
            self.job_number,
            self.graph,
            self.config,
            self.parts,
            first_attempt=job.first_attempt,
            first_checkpoint=job.first_checkpoint,
            initial=job.initial,
            had_snapshot=job.had_snapshot,
            named=job.named,
            claims=job.claims,
        )
        self._coordinators.append(CoordinatorRunner(self, machine))
        return self._coordinators[-1]

    def resumable(self) -> list[CompletedCheckpoint]:
        """The snapshots with which a resumed job can begin: every complete one that still exists."""
        return list(self.retained if self.settings.memory else self.files.listed())

    def copies(self, written: Callable[[CheckpointId], Sequence[bool]]) -> list[Copied]:
        """A copy of the stores for each retained snapshot, oldest first.

        `written` says which of the rows that were written outside of a transaction belong to a snapshot, in their
        order.
        """
        retained = sorted(self.retained_now(), key=lambda one: one.checkpoint)
        files = self.files.files
        claims = self._submission.claims
        return [self._copied(retained[: number + 1], files, claims, written) for number in range(len(retained))]

    def copies_for_users(self, written: Callable[[CheckpointId], Sequence[bool]], *, forgets: bool) -> list[Copied]:
        """The same for each snapshot that a user has had copied or moved, from the user's own files alone, which no job
        has claimed.  If the sources' logs `forget`, only for those that are retained as well."""
        still = [one.checkpoint for one in self.retained_now()]
        return [
            self._copied([one], self.files.copies, {}, written)
            for one in self.files.copied()
            if one.checkpoint in still or not forgets
        ]

    def _copied(
        self,
        retained: Sequence[CompletedCheckpoint],
        files: dict[Handle, bytes],
        claims: Claims,
        written: Callable[[CheckpointId], Sequence[bool]],
    ) -> Copied:
        return copied(
            retained=tuple(retained),
            at_us=self.loop.now,
            job=self.job_number,
            record=self.jobs.load(self.job_number) or self._first_record(),
            files=files,
            trimmed=self.jobs.trimmed,
            external=self.external,
            claims=claims,
            logs=self.channel_logs,
            written=written(retained[-1].checkpoint),
        )

    def sharing(self) -> Sharing:
        """The references of this job, and of those that are forked from it, to the files of its snapshots."""
        if self.files.sharing is None:
            self.files.sharing = Sharing(self.parts.references, self.files.files)
        return self.files.sharing

    def _first_record(self) -> JobRecord:
        """What the job's first record will say: none may be durable yet."""
        first = self._submission
        return JobRecord(job=self.job_number, attempt=first.first_attempt, next_checkpoint=first.first_checkpoint)

    def retained_now(self) -> list[CompletedCheckpoint]:
        """The complete snapshots, as far as anybody knows them at this moment."""
        if self.job_over:
            return self.resumable()
        coordinator = self.coordinator
        lives = coordinator is not None and coordinator.alive
        return list(coordinator.machine.retained) if coordinator is not None and lives else []

    def take_over(self) -> None:
        """Another coordinator starts and learns what is durable."""
        if self.job_over or (self.coordinator is not None and self.coordinator.alive):
            return
        self.coordinator = self._new_coordinator()
        self.observer.saw(o.CoordinatorChanged(True, None))
        record = self.jobs.load(self.job_number)
        self.coordinator.feed(CoordinatorStarted(record))

    def command(
        self, command: int, kind: CommandKind, drain: bool, how: str | None, snapshot: CheckpointId | None = None
    ) -> None:
        """A user requests something of the coordinator; while there is none the request is refused.  `how`: the format
        of the snapshot that is asked for, None for the job's own; `snapshot`: the one that is to be deleted."""
        self.observer.saw(o.CommandIssued(command, kind, drain, snapshot=snapshot, format=how))
        if self.coordinator is None or not self.coordinator.alive:
            self.observer.saw(o.command_returned(command, None, NoCoordinator()))
            return
        self._commands[command] = self.job_number
        if self.points.reach("savepoint-requested", None, "before", self.coordinator):
            self.coordinator.feed(Commanded(command, kind, drain, how, snapshot))
            self.points.reach("savepoint-requested", None, "after", self.coordinator)

    def command_returned(self, effect: Return) -> None:
        self._commands.pop(effect.command, None)
        self.observer.saw(o.command_returned(effect.command, effect.checkpoint, effect.cause))

    def job_ended(self, effect: EndJob) -> None:
        self.job_over = True
        self.freezing = False  # a resumed job is not freezing
        for runner in self._latest.values():
            runner.end_in_order()
        for runner in self._runners.values():
            runner.end(o.RunEnd.CANCELLED)
        assert self.coordinator is not None
        self.newest = self.coordinator.machine.newest or self.newest
        self.retained = list(self.coordinator.machine.retained)
        self.observer.saw(o.job_ended(self.job_number, effect.status, effect.checkpoint, effect.cause))
        if self._director is not None:
            self._director.job_ended(self.job_number, effect.status)

    def let_go(self) -> None:
        """Take the world apart once it is done with.  Its parts refer to each other, so that else only the collector of
        garbage could free them."""
        for runner in self._runners.values():
            runner.let_go()
        for coordinator in self._coordinators:
            coordinator.let_go()
        self.loop.clear()
        vars(self).clear()

    # -- tasks -----------------------------------------------------------------------

    def runner(self, task: TaskId, attempt: AttemptId) -> TaskRunner | None:
        return self._runners.get((task, attempt))

    def attempt_of(self, task: TaskId) -> AttemptId | None:
        """The newest attempt of a task that lives; None: none does."""
        runner = self._latest.get(task)
        return runner.attempt if runner is not None and runner.alive else None

    def latest(self, task: str) -> TaskRunner | None:
        """The newest attempt of a task, alive or not."""
        return self._latest.get(TaskId(task))

    def channel(self, name: str, attempt: AttemptId) -> DataChannel | None:
        """A channel of an attempt, if it has been opened."""
        return self._assembly.channel(name, attempt)

    def live(self) -> list[TaskRunner]:
        """The newest attempt of each task that is alive."""
        return [runner for runner in self._latest.values() if runner.alive]

    def node_of(self, attempt: Attempt) -> int:
        return self.nodes[attempt.name]

    def on_node(self, node: int) -> list[TaskRunner]:
        """Every live attempt on a node, zombies included."""
        return [runner for runner in self._runners.values() if runner.alive and self.nodes[runner.name] == node]

    def come_up(self, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None = None) -> None:
        """A node makes room for an attempt; an older attempt of the task that still answers is cancelled."""
        if (task, attempt) in self._runners or self.job_over:
            return
        before = self._latest.get(task)
        if before is not None and before.attempt > attempt:
            return
        if before is not None and before.alive and not before.paused:
            before.end(o.RunEnd.CANCELLED)
        try:
            runner = self._assembly.runner(task, attempt, self.job_number, channels_of)
        except Unmade as error:
            self.observer.saw(o.task_failed(task, attempt, error.cause, None))
            self.loop.after(
                self.settings.detection_us, self._lose, TaskLost(task, attempt, error.cause), self.job_number
            )
            return
        self._runners[(task, attempt)] = runner
        self._latest[task] = runner
        inject_exception = self._injections.get(task)
        if inject_exception is not None:
            inject_exception(runner)

    # -- failures ----------------------------------------------------------------------

    def task_failed(self, runner: TaskRunner, cause: AnyCause, fault: int | None) -> None:
        """An attempt of a task failed by itself; the end of a superseded one does not matter."""
        if not runner.alive:
            return
        runner.end(o.RunEnd.FAILED)
        if self.runner(runner.name, runner.attempt) is self._latest.get(runner.name) and not self.is_superseded(runner):
            self.observer.saw(o.task_failed(runner.name, runner.attempt, cause, fault))
        self.loop.after(self.settings.detection_us, self.lose, runner, cause)

    def kill(self, runner: TaskRunner, cause: AnyCause, fault: int) -> bool:
        """A task's attempt dies; whether it was alive."""
        if not runner.alive:
            return False
        superseded = self.is_superseded(runner)
        runner.end(o.RunEnd.KILLED)
        if not superseded:
            self.observer.saw(o.task_failed(runner.name, runner.attempt, cause, fault))
        if self.detailed:
            self.observer.saw(o.Timed("killed", runner.name, runner.attempt, detail=str(cause)))
        self.loop.after(self.settings.detection_us, self.lose, runner, cause)
        return True

    def is_superseded(self, runner: TaskRunner) -> bool:
        """A zombie: the coordinator has given its attempt up."""
        coordinator = self.coordinator
        if self.job_over or coordinator is None:
            return True
        newest = coordinator.machine.attempt_of(runner.name)
        return newest is not None and newest > runner.attempt

    def lose(self, runner: TaskRunner, cause: AnyCause) -> None:
        """Notify the coordinator, if there is one, that an attempt of a task is lost."""
        self._lose(TaskLost(runner.name, runner.attempt, cause), runner.task.spec.job)

    def _lose(self, lost: TaskLost, job: int) -> None:
        if self.coordinator is not None and self.coordinator.machine.job == job:
            self.coordinator.feed(lost)

    def lose_coordinator(self, fault: int | None, down_us: int, cause: AnyCause | None = None) -> None:
        """The coordinator has died, of a fault or by itself; another takes over after a while."""
        coordinator = self.coordinator
        if coordinator is None or not coordinator.alive:
            return
        coordinator.alive = False
        if self.settings.memory:  # the snapshots die with it, also those of the job that this one resumes
            self._submission = msgspec.structs.replace(self._submission, initial=())
        self.observer.saw(o.CoordinatorChanged(False, fault, str(cause) if cause is not None else None))
        for command in list(self._commands):
            del self._commands[command]
            self.observer.saw(o.command_returned(command, None, CoordinatorDied()))
        self.loop.after(down_us, lambda *_: self.take_over())

    def inject_exception(self, task: TaskId, inject: Callable[[TaskRunner], None]) -> None:
        """Do something to each attempt of this task that starts from now on."""
        self._injections[task] = inject

    # -- observation ---------------------------------------------------------------------

    @property
    def phase(self) -> str:
        return phase_of(self)

    def _watch_phase(self) -> bool:
        """Report another phase; returns whether the director still waits for one."""
        director = self._director
        if director is None or not director.phases:
            return False
        phase = self.phase
        if phase != self._phase:
            self._phase = phase
            director.entered(phase)
        return True

    def fired(self, fault: int, detail: str, attempt: int | None, struck: o.AnyStruck | None = None) -> None:
        self.observer.saw(o.FaultFired(fault, self.phase, detail, attempt, struck))

    def expire(self, fault: int, name: str, attempt: int | None) -> bool:
        if not self.external.expire(name):
            return False
        self.observer.saw(o.Expired(fault, name))
        self.fired(fault, f"the commit of {name}: expired", attempt, o.StruckCommit((name,), "expired"))
        return True

    def status_changed(self, job: int, change: AnyStatusChange) -> None:
        if isinstance(change, AttemptStarted):
            self._attempts += 1
        elif isinstance(change, CheckpointAborted):
            self.freezing = False  # the files that the checkpoint leaves are deleted when the next one completes
            self._clearing.aborted()
        elif isinstance(change, CheckpointTriggered) and self._endless:
            self._at_trigger[change.checkpoint] = self._so_far()
        self.observer.saw(o.StatusChanged(job, change))

    @property
    def attempts(self) -> int:
        return self._attempts

    def complete(self, snapshot: CompletedCheckpoint) -> None:
        """The store made a checkpoint complete."""
        self.newest = snapshot
        self._clearing.completed()
        self.observer.saw(o.CheckpointCompleted(snapshot))
        if self._endless:
            self.loop.after(self.settings.control_latency_us * 8, self._rest_if_settled, snapshot.checkpoint)

    def read_sink(self) -> None:
        """A read-committed reader looks at the sink."""
        self.observer.saw(o.Looked(self.observer.order(), len(self.external.visible)))

    # -- coming to rest ------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Something is still to come by itself, or came so lately that its consequences are under way."""
        settings = self.settings
        return self.loop.now < self.busy_until + 4 * (settings.snapshot_write_us + settings.control_latency_us)

    def _so_far(self) -> tuple[int, int]:
        """Zombies count: the coordinator must be notified of what one writes late, or nobody deletes it."""
        return self._attempts, sum(runner.done for runner in self._runners.values() if runner.alive)

    def _rest_if_settled(self, checkpoint: int, _: object) -> None:
        """Freeze a job that nothing ends, once a complete checkpoint covers everything that there was."""
        if self.job_over:
            return
        whole = all(one.alive and not one.awaits_more for one in self._latest.values())
        idle = whole and self._so_far() == self._at_trigger.get(checkpoint)
        if idle and not self.is_busy and not self.freezing:
            self.freezing = True
            self._freeze()

    def _freeze(self, *_: object) -> None:
        """Trigger no more checkpoints; stop when the last one has ended and everything that nobody needs is deleted."""
        if self.job_over or not self.freezing:
            return
        if self.stores.writing:
            self._notified_by = self.loop.now + 4 * self.settings.control_latency_us
        if not all(one.alive for one in self._latest.values()):
            self.freezing = False
        elif self.loop.now < self._notified_by or self.sessions.has_sent or self.records.is_deleting:
            self.loop.after(200, self._freeze)
        elif self.phase == "running":
            self.freezing = self.loop.stopped = self._clearing.is_done
        elif self.is_busy or self.phase == "recovering":
            self.freezing = False
        else:
            self.loop.after(200, self._freeze)
