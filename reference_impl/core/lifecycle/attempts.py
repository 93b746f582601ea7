"""How attempts of the dataflow start, fail, and are followed by others (ABS-6).

This is one half of the coordinator.  The other, `coordinator.Coordinator`, has what
happens while an attempt runs, and how the job ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ..decisions.parts import Parts
from ..extensions.local_recovery import check as check_local
from ..extensions.rescale import deployment_from, layout_of, with_unions
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.checkpoints import Checkpoints, Pending
from ..vocabulary.causes import AnyCause, Incompatible, RestartsUsedUp
from ..vocabulary.effects import Effect, Note, Return, SaveJob, SendToTask, SetTimer, Sweep
from ..vocabulary.errors import expect
from ..vocabulary.events import Commanded, CompletedSnapshot, JobRecord, JobSaved
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId, task_id
from ..vocabulary.messages import Cancel, Deploy, Running
from ..vocabulary.timeouts import CheckpointInterval, DeployTimeout, RestartDelay
from .enumerator import Enumerators
from .stages import Deploying, Listing, PartialFailover, Restarting, Saving, Stage, Terminating, Working


class Attempts(ABC):
    """One attempt at a time; its number is durable before it is deployed.

    `attempt` is the newest number.  Tasks that a partial failover did not restart keep an older one.
    """

    def __init__(self, job: int, graph: JobGraph, config: Config, parts: Parts, attempt: AttemptId) -> None:
        """`attempt` is the number of the latest attempt so far."""
        config.check([spec.name for spec in graph.operators if not spec.rewindable])
        check_local(graph, config)
        self.job = job
        self.config = config
        self.parts = parts
        self.tasks = tuple(task for task, _, _ in graph.tasks())
        self.writers = tuple(task for task, spec, _ in graph.tasks() if spec.must_be_shut_out(config.sink))
        """the tasks that are shut out of the external store, and their transactions settled, when the job is closed"""
        self.graph = graph
        self.checkpoints = Checkpoints(job, config, parts, graph)
        self.attempt = attempt
        self.stage: Stage = Listing()
        self._version = 0
        self._had_snapshot = False
        self._after_save: dict[int, Callable[[], list[Effect]]] = {}
        self._waiting_commands: list[Commanded] = []
        self._ended_inputs: tuple[TaskId, ...] = ()
        self._terminating: dict[TaskId, CheckpointId] = {}
        """tasks that were ordered to finish, and the checkpoint that covers all their work"""
        self._restarts = 0
        self._failed_checkpoints = 0
        self._put_off: list[Pending] = []
        """checkpoints that are triggered when every reader has confirmed what its enumerator assigned"""

    @property
    def is_running(self) -> bool:
        return isinstance(self.stage, Working)

    @property
    def is_working(self) -> bool:
        """All tasks run, or all but those of a partial failover."""
        return isinstance(self.stage, Working | PartialFailover)

    @property
    def is_ending(self) -> bool:
        """A stop, a drain or the final checkpoint is under way."""
        checkpoints = self.checkpoints
        return any(one.ending for one in (*checkpoints.pending.values(), *checkpoints.storing))

    def attempt_of(self, task: TaskId) -> AttemptId:
        return self.checkpoints.survivors.get(task, self.attempt)

    def channels_of(self, task: TaskId) -> AttemptId:
        """The attempt to which a task's input channels belong."""
        return self.attempt_of(task)

    @property
    def takes_checkpoints(self) -> bool:
        """Whether a checkpoint other than the final one may be triggered (FIN-7)."""
        return self.config.goes_on or not self._ended_inputs

    @property
    def is_live(self) -> bool:
        """An attempt is starting or running: the loss of a task matters."""
        return isinstance(self.stage, Deploying | Working | PartialFailover | Terminating)

    # -- coming up -----------------------------------------------------------------

    def _start_attempt(self, cause: str) -> list[Effect]:
        self._renumber({})
        restores = self.checkpoints.newest() if self.config.rewinds else None
        reason = refusal(self.graph, restores) if restores is not None else None
        if reason is not None and not self.parts.restore_choice.despite_incompatible(reason):
            return self._close("failed", reason)
        self.stage = Saving(restores)
        self._ended_inputs = self.checkpoints.finished_tasks = self._finished_before(restores)
        self.checkpoints.reported_finished = {}
        self._terminating = {}
        self._put_off = []
        self.checkpoints.enumerators = Enumerators(self.job, self.graph, self.config, self.parts, restores)

        def when_saved() -> list[Effect]:
            return self._deploy(restores, cause) if isinstance(self.stage, Saving) else []

        return self._save(when_saved)

    def _renumber(self, survivors: dict[TaskId, AttemptId]) -> None:
        """Give a new attempt number to all tasks but the survivors."""
        self.attempt = AttemptId(self.attempt + 1)
        self.checkpoints.survivors = survivors

    def _finished_before(self, restores: CompletedSnapshot | None) -> tuple[TaskId, ...]:
        """The tasks of the operators that the snapshot counts as finished as a whole."""
        if restores is None:
            return ()
        whole = layout_of(self.graph, restores).whole(restores.finished)
        return tuple(task for task, spec, _ in self.graph.tasks() if spec.name in whole)

    def _deploy(self, restores: CompletedSnapshot | None, cause: str) -> list[Effect]:
        self.stage = Deploying(restores, self.tasks)
        note = Note("attempt-started", restores.checkpoint if restores else None, self.attempt, cause)
        orders = self._orders(self.tasks, restores)
        return [
            note,
            *self._clear_logs(),
            *orders,
            SetTimer(DeployTimeout(self.attempt), self.config.deploy_timeout_us),
        ]

    def _clear_logs(self) -> list[Effect]:
        """Delete the logs of persistent channels that no snapshot refers to and no current attempt uses."""
        naming = self.parts.naming
        return self.checkpoints.clear_logs(naming.logs(self.job, task, self.channels_of(task)) for task in self.tasks)

    def _orders(
        self, tasks: Sequence[TaskId], restores: CompletedSnapshot | None, *, suspends: bool = True
    ) -> list[Effect]:
        """The deployments of these tasks, each with the state that it restores."""
        finished = self._finished_before(restores)
        before = layout_of(self.graph, restores) if restores is not None else self.graph
        if restores is not None and before is not self.graph:
            in_flight = self.config.alignment != "aligned"
            return deployment_from(before, tasks, self.attempt, self.job, restores, finished, in_flight)
        orders = deployment(tasks, self.attempt, self.job, restores, finished, suspends=suspends)
        return with_unions(self.graph, orders, restores)

    def _on_running(self, message: Running) -> list[Effect]:
        if not isinstance(self.stage, Deploying):
            return []
        self.checkpoints.enumerators.take_back(message.task, message.returned)
        waiting = tuple(task for task in self.stage.waiting if task != message.task)
        restores = self.stage.restores
        self.stage = Deploying(restores, waiting)
        if waiting:
            return []
        if restores is not None and restores.ending and restores.job == self.job:
            up = Note("attempt-running", None, self.attempt)
            return [up, *self._terminate(restores.checkpoint, restores.ending)]
        return self._up()

    def _up(self) -> list[Effect]:
        """All tasks run now."""
        self.stage = Working()
        up: list[Effect] = [Note("attempt-running", None, self.attempt)]
        if len(self._ended_inputs) == len(self.tasks):
            up.extend(self._finish())
        commands, self._waiting_commands = self._waiting_commands, []
        timer = [SetTimer(CheckpointInterval(), self.config.checkpoint_interval_us)] if self.config.rewinds else []
        return [*up, *timer, *(effect for command in commands for effect in self._on_command(command))]

    def _fail_over(self, cause: AnyCause) -> list[Effect]:
        """The attempt has failed: give up its pending checkpoints, and start another attempt after a delay."""
        stops = [one.command for one in self.checkpoints.pending.values() if one.command is not None]
        effects = [
            *self.checkpoints.abandon(f"the attempt failed: {cause}"),
            *(self.checkpoints.message_to(task, Cancel(job=self.job, attempt=self.attempt)) for task in self.tasks),
            *(Return(command, error=f"the attempt failed: {cause}") for command in stops),
        ]
        self._restarts += 1
        self._failed_checkpoints = 0
        if self._restarts > self.config.restart_attempts:
            return [*effects, *self._close("failed", RestartsUsedUp(self.config.restart_attempts, cause))]
        sweep = [Sweep(())] if self.parts.cleanup.on_failure() else []
        self.stage = Restarting(str(cause))
        return [*effects, *sweep, SetTimer(RestartDelay(), self.config.restart_delay_us)]

    def _restart(self) -> list[Effect]:
        stage = expect(self.stage, Restarting)
        self.stage = Restarting(stage.cause, delayed=False)
        if self.checkpoints.storing and self.parts.failover.awaits_store():
            return []
        return self._start_attempt(stage.cause)

    def _resume_restart(self) -> list[Effect]:
        """A restart that waited for a record to be stored goes on."""
        if isinstance(self.stage, Restarting) and not self.stage.delayed and not self.checkpoints.storing:
            return self._start_attempt(self.stage.cause)
        return []

    # -- splits that an enumerator assigns (OPS-3) -----------------------------------

    def _begin(self, pending: Pending) -> list[Effect]:
        """A checkpoint's id is durable: trigger it, at once or when the enumerators are settled."""
        if not self.checkpoints.enumerators:
            return self.checkpoints.trigger(pending)
        self._put_off.append(pending)
        return []

    def _distribute_splits(self) -> list[Effect]:
        """Assign splits to the readers that asked, and trigger the checkpoints that waited for that."""
        if not self.is_running:
            return []
        book = self.checkpoints
        effects = book.enumerators.distribute(self.attempt, book.pending.values())
        while self._put_off and book.enumerators.is_settled:
            pending = self._put_off.pop(0)
            if book.pending.get(pending.checkpoint) is pending:
                effects.extend(book.trigger(pending))
        return effects

    # -- the job's record ------------------------------------------------------------

    def _save(self, then: Callable[[], list[Effect]], closing: str = "", cause: AnyCause | None = None) -> list[Effect]:
        """Make the job's record durable, and go on only then."""
        self._version += 1
        self._after_save[self._version] = then
        record = JobRecord(
            job=self.job,
            attempt=self.attempt,
            next_checkpoint=self.checkpoints.next_id,
            version=self._version,
            had_snapshot=self._had_snapshot or bool(self.checkpoints.retained),
            closing=closing,
            cause=cause,
        )
        return [SaveJob(record)]

    def _on_saved(self, event: JobSaved) -> list[Effect]:
        then = self._after_save.pop(event.version, None)
        return then() if then is not None else []

    # -- what `Coordinator` does -----------------------------------------------------

    @abstractmethod
    def _terminate(self, checkpoint: CheckpointId | None, ending: str) -> list[Effect]: ...

    @abstractmethod
    def _finish(self) -> list[Effect]: ...

    @abstractmethod
    def _close(self, status: str, cause: AnyCause | None, command: int | None = None) -> list[Effect]: ...

    @abstractmethod
    def _on_command(self, event: Commanded) -> list[Effect]: ...


def refusal(graph: JobGraph, restores: CompletedSnapshot) -> Incompatible | None:
    """Why a job cannot start from a snapshot; None when it can (FIN-2; FLIP-147).

    As in Flink without `allowNonRestoredState`, a job is refused if it would drop state of the snapshot.  It is also
    refused, other than in Flink, if an operator would begin without state.
    """
    if reason := _other_than_it_was(graph, restores) or _with_new_operators(graph, restores):
        return reason
    graph = layout_of(graph, restores)
    whole = graph.whole(restores.finished)
    for name in whole:
        before = [edge.sender for edge in graph.spec(name).inputs if edge.sender not in whole]
        if before:
            return _before_a_finished(restores, name, before)
    tasks = [task for task, spec, _ in graph.tasks() if spec.name not in whole]
    lost = ", ".join(task for task in tasks if task not in restores.handles)
    return Incompatible((), f"checkpoint {restores.checkpoint} holds no state of {lost}") if lost else None


def _before_a_finished(restores: CompletedSnapshot, name: str, before: Sequence[str]) -> Incompatible:
    detail = (
        f"checkpoint {restores.checkpoint} counts {name} as finished, but not all that sends to it: rows of"
        f" {', '.join(before)} would be lost"
    )
    return Incompatible((name, *before), detail)


def _with_new_operators(graph: JobGraph, restores: CompletedSnapshot) -> Incompatible | None:
    """Why a job with operators that the snapshot does not have cannot start from it; None when it has none.

    This goes by the recorded parallelism, in which a new operator is missing.  A new operator in front of a finished
    one is reported first.
    """
    old = restores.parallelism
    new = [spec.name for spec in graph.operators if old and spec.name not in old]
    for spec in graph.operators:
        before = [edge.sender for edge in spec.inputs if edge.sender in new]
        subtasks = [task_id(spec.name, subtask) for subtask in range(old.get(spec.name, 0))]
        if before and subtasks and all(task in restores.finished for task in subtasks):
            return _before_a_finished(restores, spec.name, before)
    if not new:
        return None
    names = ", ".join(new)
    detail = f"checkpoint {restores.checkpoint} holds no state of {names}: its job had no such operator"
    return Incompatible(tuple(new), detail)


def _other_than_it_was(graph: JobGraph, restores: CompletedSnapshot) -> Incompatible | None:
    """Whether the job lacks an operator that it had, or has another number of key groups."""
    tasks = (*restores.handles, *restores.finished)
    before = dict.fromkeys((*restores.parallelism, *(task.rpartition("-")[0] for task in tasks)))
    lacking = [name for name in before if name not in graph.parallelism]
    if lacking:
        detail = (
            f"checkpoint {restores.checkpoint} holds state of {', '.join(lacking)}, which the job no longer has:"
            " nobody would take it"
        )
        return Incompatible(tuple(lacking), detail)
    if restores.key_groups not in (0, graph.key_groups):
        keyed = [spec.name for spec in graph.operators if spec.role == "operator"]
        detail = (
            f"checkpoint {restores.checkpoint} holds the state of {', '.join(keyed) or 'its operators'} by"
            f" {restores.key_groups} key groups, and the job has {graph.key_groups}"
        )
        return Incompatible(tuple(keyed), detail)
    return None


def deployment(
    tasks: Sequence[TaskId],
    attempt: AttemptId,
    job: int,
    restores: CompletedSnapshot | None,
    finished: Sequence[TaskId] = (),
    *,
    suspends: bool = True,
) -> list[Effect]:
    """The orders that deploy tasks, each with its part of the snapshot.

    If this job has already ended with the snapshot, the attempt only finishes the job's commits, and its sources are
    suspended (not so with `suspends` False: a part of a running job goes on reading).  Tasks of a finished operator
    start as finished.
    """
    if restores is None:
        return [SendToTask(task, Deploy(job=job, attempt=attempt)) for task in tasks]
    suspended = suspends and restores.ending != "" and restores.job == job
    return [
        SendToTask(
            task,
            Deploy(
                job=job,
                attempt=attempt,
                checkpoint=restores.checkpoint,
                handle=None if task in restores.states else restores.handles.get(task),
                state=restores.states.get(task),
                suspended=suspended,
                finished=task in finished,
            ),
        )
        for task in tasks
    ]
