"""A coordinator of source-0 → op-0 → sink-0 to step by hand, with the world's answers as short words.

Nothing is answered by itself: what the coordinator waits for, a test says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.coordinator import Coordinator
from cutproof.reference_impl.core.protocol.attempts import Attempts
from cutproof.reference_impl.core.vocabulary.causes import AnyCause, Killed, SnapshotNotWritten, WhyDeclined
from cutproof.reference_impl.core.vocabulary.effects import (
    Discard,
    Effect,
    EndJob,
    Return,
    SaveJob,
    SendToTask,
    SetTimer,
    Store,
)
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import (
    Answered,
    Commanded,
    CommandKind,
    CompletedCheckpoint,
    CoordinatorStarted,
    Event,
    JobRecord,
    JobSaved,
    Received,
    RecordStored,
    SnapshotsListed,
    StoreFailed,
    TaskLost,
    TimerFired,
)
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import (
    Ack,
    Cancel,
    Control,
    Decline,
    Deploy,
    Finished,
    InputEnded,
    Running,
)
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.status_changes import StatusChange
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval, RestartDelay, Timeout
from cutproof.reference_impl.core.vocabulary.transactions import Done, NoAnswer

T = TypeVar("T", bound=Effect)
M = TypeVar("M", bound=Control)

NO_ROOM = SnapshotNotWritten("no room")

SOURCE, OP, SINK = TASKS = (TaskId("source-0"), TaskId("op-0"), TaskId("sink-0"))
KILLED = Killed()
GRAPH = JobGraph(
    (
        OperatorSpec(name="source", parallelism=1, splits=(0,), role="source"),
        OperatorSpec(name="op", parallelism=1, inputs=(EdgeSpec(sender="source", partitioning="hash"),)),
        OperatorSpec(name="sink", parallelism=1, inputs=(EdgeSpec(sender="op", partitioning="hash"),), role="sink"),
    ),
    16,
)


def savepoint(of: JobGraph, *finished: str, stateless: tuple[str, ...] | None = None) -> CompletedCheckpoint:
    """Of a job that was stopped with it.  `finished` tasks had ended, and those of `stateless` (None: the same) left
    nothing."""
    finished_tasks = finished if stateless is None else stateless
    return CompletedCheckpoint(
        checkpoint=CheckpointId(5),
        job=1,
        attempt=AttemptId(2),
        savepoint=True,
        ending=JobEnd.STOP,
        handles={task: Handle(f"of {task}") for task, _, _ in of.tasks() if task not in finished_tasks},
        finished=tuple(TaskId(name) for name in finished),
        parallelism=of.parallelism,
        key_groups=of.key_groups,
    )


def handle(checkpoint: int, task: str, attempt: int = 1, job: int = 1) -> Handle:
    return Handle(f"job-{job}/chk-{checkpoint}/{task}-{attempt}")


def handles(checkpoint: int, attempt: int = 1, tasks: Sequence[TaskId] = TASKS) -> tuple[Handle, ...]:
    return tuple(handle(checkpoint, task, attempt) for task in tasks)


def complete_snapshot(checkpoint: int, attempt: int = 1, **more: Any) -> CompletedCheckpoint:
    fields = {
        "job": 1,
        "savepoint": False,
        "ending": None,
        "handles": dict(zip(TASKS, handles(checkpoint, attempt), strict=True)),
        "parallelism": GRAPH.parallelism,
        "key_groups": GRAPH.key_groups,
    }
    return CompletedCheckpoint(checkpoint=CheckpointId(checkpoint), attempt=AttemptId(attempt), **{**fields, **more})


class CoordinatorRig:
    """Feeds one coordinator.  Every method returns the effects of its event."""

    def __init__(
        self,
        *,
        job: int = 1,
        graph: JobGraph = GRAPH,
        config: Config | None = None,
        coordinator: dict[str, Any] | None = None,
        parts: Parts | None = None,
        **settings: Any,
    ):
        self.config = config or Config(**settings)
        self.machine = Coordinator(job, graph, self.config, parts or Parts(), **(coordinator or {}))
        self.unsaved: list[JobRecord] = []

    def feed(self, event: Event) -> list[Effect]:
        effects = self.machine.step(event)
        self.unsaved.extend(save.record for save in of(SaveJob, effects))
        return effects

    @property
    def closed_for(self) -> str:
        """Why the job is closed, as its newest unsaved record has it; empty if it is not."""
        closure = self.unsaved[-1].closure
        return str(closure.cause) if closure is not None else ""

    # -- the world answers -------------------------------------------------------------

    def start(self, record: JobRecord | None = None) -> list[Effect]:
        return self.feed(CoordinatorStarted(record))

    def listed(self, *retained: CompletedCheckpoint, unreadable: tuple[int, ...] = ()) -> list[Effect]:
        return self.feed(SnapshotsListed(retained, tuple(CheckpointId(one) for one in unreadable)))

    def saved(self) -> list[Effect]:
        """The oldest record that waits is durable."""
        return self.feed(JobSaved(self.unsaved.pop(0).version))

    def stored(self, checkpoint: int) -> list[Effect]:
        return self.feed(RecordStored(CheckpointId(checkpoint)))

    def store_fails(self, checkpoint: int) -> list[Effect]:
        return self.feed(StoreFailed(CheckpointId(checkpoint), "disk full"))

    def timer(self, timeout: Timeout) -> list[Effect]:
        return self.feed(TimerFired(timeout))

    def lose(self, task: str = OP, attempt: int | None = None, cause: AnyCause = KILLED) -> list[Effect]:
        return self.feed(TaskLost(TaskId(task), AttemptId(attempt or self.machine.attempts.newest), cause))

    def store_answers(self, number: int, outcome: Done | NoAnswer) -> list[Effect]:
        return self.feed(Answered(number, outcome))

    def command(
        self, kind: str, *, drain: bool = False, number: int = 9, format_name: str | None = None
    ) -> list[Effect]:
        return self.feed(Commanded(number, CommandKind(kind), drain, format_name))

    def delete(self, checkpoint: int, number: int = 9) -> list[Effect]:
        return self.feed(Commanded(number, CommandKind.DELETE, snapshot=CheckpointId(checkpoint)))

    # -- the tasks speak ---------------------------------------------------------------

    def report(self, kind: type[Control], task: str, attempt: int | None = None, **more: Any) -> list[Effect]:
        fields = {
            "job": self.machine.job,
            "attempt": AttemptId(attempt or self.machine.attempts.newest),
            "task": TaskId(task),
        }
        return self.feed(Received(kind(**{**fields, **more})))

    def running(self, *tasks: str) -> list[Effect]:
        return [effect for task in tasks or self.machine.tasks for effect in self.report(Running, task)]

    def ack(
        self,
        checkpoint: int,
        *tasks: str,
        attempt: int | None = None,
        state: TaskState | None = None,
        ended: bool = False,
        logs: tuple[str, ...] = (),
        in_flight: bool = False,
    ) -> list[Effect]:
        attempt = attempt or self.machine.attempts.newest
        return [
            effect
            for task in tasks or self.machine.tasks
            for effect in self.report(
                Ack,
                task,
                attempt,
                checkpoint=CheckpointId(checkpoint),
                handle=handle(checkpoint, task, attempt, self.machine.job),
                state=state,
                ended=ended,
                logs=logs,
                in_flight=in_flight,
            )
        ]

    def decline(
        self,
        checkpoint: int,
        task: str = OP,
        attempt: int | None = None,
        *,
        cause: WhyDeclined = NO_ROOM,
    ) -> list[Effect]:
        return self.report(Decline, task, attempt, checkpoint=CheckpointId(checkpoint), cause=cause)

    def ended(self, *tasks: str) -> list[Effect]:
        return [effect for task in tasks or self.machine.tasks for effect in self.report(InputEnded, task)]

    def finished(self, *tasks: str) -> list[Effect]:
        return [effect for task in tasks or self.machine.tasks for effect in self.report(Finished, task)]

    # -- whole passages ----------------------------------------------------------------

    def up(self) -> CoordinatorRig:
        """Submitted, deployed, running."""
        self.start()
        self.saved()
        self.running()
        return self

    def trigger(self) -> list[Effect]:
        """The interval passes, and the checkpoint's id becomes durable."""
        self.timer(CheckpointInterval())
        return self.saved()

    def checkpoint(self, checkpoint: int) -> list[Effect]:
        """Triggered, acknowledged by all, stored; the effects of its completion."""
        self.trigger()
        self.ack(checkpoint)
        return self.stored(checkpoint)

    def savepoint(self, checkpoint: int, number: int = 9) -> list[Effect]:
        self.command("savepoint", number=number)
        self.saved()
        self.ack(checkpoint)
        return self.stored(checkpoint)

    def again(self) -> list[Effect]:
        """The delay of a restart passes, and the attempt's number becomes durable."""
        self.timer(RestartDelay())
        return self.saved()


# -- what goes out -----------------------------------------------------------------------------------------------


def of(kind: type[T], effects: list[Effect]) -> list[T]:
    return [effect for effect in effects if isinstance(effect, kind)]


def sent_to_tasks(kind: type[M], effects: list[Effect]) -> list[tuple[str, M]]:
    """(task, message) of a kind, in order."""
    return [(order.task, order.message) for order in of(SendToTask, effects) if isinstance(order.message, kind)]


def addressed(kind: type[M], effects: list[Effect]) -> list[str]:
    return [task for task, _ in sent_to_tasks(kind, effects)]


def deployed(effects: list[Effect]) -> dict[str, Deploy]:
    return dict(sent_to_tasks(Deploy, effects))


def cancels(attempt: int) -> list[SendToTask]:
    """What every task of an attempt that is given up is told."""
    return [SendToTask(task, Cancel(job=1, attempt=AttemptId(attempt))) for task in TASKS]


def changes(effects: list[Effect]) -> list[tuple[type[StatusChange], int | None]]:
    """The type of each change, and the checkpoint that it is about or that is restored."""
    return [
        (type(change), getattr(change, "checkpoint", getattr(change, "restores", None)))
        for change in of(StatusChange, effects)
    ]


def discarded(effects: list[Effect]) -> list[Handle]:
    return [one for discard in of(Discard, effects) for one in discard.handles]


def timers(effects: list[Effect]) -> list[Timeout]:
    return [timer.timeout for timer in of(SetTimer, effects)]


def answer(effects: list[Effect]) -> tuple[int, int | None, str]:
    """The one answer to a command: (command, checkpoint, error)."""
    (returned,) = of(Return, effects)
    return returned.command, returned.checkpoint, str(returned.cause or "")


def stored(effects: list[Effect]) -> list[CompletedCheckpoint]:
    return [store.snapshot for store in of(Store, effects)]


def end(effects: list[Effect]) -> tuple[str, int | None, str]:
    (ending,) = of(EndJob, effects)
    return ending.status.value, ending.checkpoint, str(ending.cause or "")


def attempts_up_to(newest: int, *, channels_stay: bool = False) -> Attempts:
    """The numbers of a job whose newest attempt started all tasks."""
    attempts = Attempts(AttemptId(newest), channels_stay=channels_stay)
    attempts.begin()
    attempts.all_deployed()
    return attempts
