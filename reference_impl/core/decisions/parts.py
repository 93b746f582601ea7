"""The decisions of the engine, each an object of its own that can be replaced.

`Parts` gathers them for one run.  With the parts as they are here the engine is correct.
`reference_impl.defects` has variants that override one method, so that the core has no
switch for any defect.  A variant sets `reached` where its wrong code runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..extensions.in_flight import Capture
from ..extensions.local_recovery import LocalRecovery
from ..extensions.persistent import Persisting
from ..extensions.rescale import Redistribution
from ..lifecycle.enumerator import Enumerating
from ..operators.timers import Timer, Timers
from ..operators.watermarks import END_OF_TIME, InputTimes, SplitTimes
from ..protocol.barrier_alignment import Alignment
from ..vocabulary.effects import Effect, Open
from ..vocabulary.events import CompletedSnapshot
from ..vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..vocabulary.messages import Ack, Complete, Control, Record, Terminate, Trigger
from ..vocabulary.transactions import EPOCH, Row
from .commits import Committing as Committing
from .commits import GlobalCommitting as GlobalCommitting
from .commits import PreCommitting as PreCommitting
from .commits import SinkRecovery as SinkRecovery
from .fencing import Fencing as Fencing
from .part import Part as Part
from .processing_time import ProcessingTime

if TYPE_CHECKING:
    from ..job.topology import JobGraph
    from ..lifecycle.attempts import Attempts
    from ..lifecycle.regions import Regional
    from ..protocol.checkpoints import Checkpoints, Pending
    from ..protocol.coordinator import Coordinator
    from ..protocol.sink import TransactionalSink
    from ..protocol.source import SourceTask
    from ..protocol.task import Task


class Startup(Part):
    """When a task that starts takes input."""

    def on_deploy(self) -> list[Effect]:
        """Before its state is restored: not yet."""
        return []

    def on_restored(self) -> list[Effect]:
        return [Open()]


class SourceCut(Part):
    """How a source records its position and emits its barrier in one step (ABS-1)."""

    def cut(self, source: SourceTask, checkpoint: CheckpointId) -> list[Effect]:
        return [*source.record(checkpoint), *source.barrier(checkpoint)]


class StartPosition(Part):
    """The position at which a restored source reads on."""

    def position(self, split: int, restored: int, length: int) -> int:
        return restored


class Trimming(Part):
    """The position up to which a source's log may be discarded (ABS-15)."""

    def up_to(self, complete: Complete) -> CheckpointId | None:
        """The checkpoint whose position is meant: the oldest that can still be restored."""
        return complete.oldest


class HeldOutput(Part):
    """When rows that an operator holds back are emitted (ABS-2: before the barrier)."""

    def before_barrier(self, held: list[Record]) -> bool:
        """Whether held rows are emitted before the barrier."""
        return True

    def by_itself(self) -> bool:
        """Whether the task sends itself a mail, so that held rows are emitted even if nothing else happens."""
        return True

    def at_end(self, restored: bool) -> bool:
        """Whether the end of the data emits the rows in an operator's list; `restored`: they come from a snapshot, and
        no row came since."""
        return True


class Watermarks(Part):
    """How event time advances (OPS-1), and which part of it a snapshot holds."""

    def of_inputs(self, inputs: InputTimes) -> int | None:
        """A task's watermark: the least of the channels that it waits for; None when it is idle."""
        return None if inputs.is_idle else min(inputs.waited_for(), default=END_OF_TIME)

    def at_end(self, time: int) -> int:
        """A source's watermark, now at `time`, once its input has ended: it ends every window."""
        return END_OF_TIME

    def of_read(self, times: SplitTimes, split: int) -> None:
        """A record of a split was read: the split is not idle."""
        times.wakes(split)

    def of_arrival(self, inputs: InputTimes, channel: int) -> None:
        """An element came from an input channel: the channel is not idle any more."""
        inputs.wakes(channel)

    def of_channels(self, inputs: InputTimes) -> list[int]:
        """The watermarks of channels that a snapshot holds: all, or records would be late after a restore."""
        return list(inputs.times)

    def of_splits(self, times: SplitTimes) -> dict[int, int]:
        """The part of a source's event time that a snapshot holds: the greatest time of each split."""
        return dict(times.maxima)


class Firing(Part):
    """When windows are emitted."""

    def due(self, timers: Timers, time: int) -> list[Timer]:
        """The timers that the watermark has reached, taken out in the step that fires them."""
        return timers.take(time)

    def kept(self, timers: Timers) -> list[Timer]:
        """The timers that a snapshot holds."""
        return timers.pending()


class Copying(Part):
    """How working state is copied for a snapshot that is written later (ABS-8)."""

    def copy(self, heap: dict[Any, Any]) -> dict[Any, Any]:
        return {key: list(value) if isinstance(value, list) else value for key, value in heap.items()}


class Naming(Part):
    """Names in the stores: of snapshots, of transactions, of rows."""

    def handle(self, job: int, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId) -> Handle:
        return Handle(f"job-{job}/chk-{checkpoint}/{task}-{attempt}")

    def logs(self, job: int, task: TaskId, attempt: AttemptId) -> str:
        """The folder of the logs of an attempt's input channels; each is named by its number."""
        return f"job-{job}/log/{task}-{attempt}"

    def transaction(self, job: int, task: TaskId, attempt: AttemptId, serial: int, last: CheckpointId) -> str:
        """`serial` counts the attempt's transactions, `last` is the checkpoint sealed before."""
        return f"job-{job}/{task}/{attempt}-{serial}"

    def pooled(self, job: int, task: TaskId, number: int, attempt: AttemptId, serial: int) -> str:
        """The name of a transaction that uses the `number`-th transactional id of its task again; it has an epoch."""
        return f"job-{job}/{task}/id-{number}{EPOCH}{attempt}-{serial}"

    def identity(self, row: Row, by_key: bool, attempt: AttemptId) -> tuple[int | None, ...]:
        """The identity by which an idempotent sink's rows replace each other; no replay may change it."""
        return row[:1] if by_key else row


class Finishing(Part):
    """How a task finishes, and how a finished task is deployed again (FIN-1, FIN-3)."""

    def on_deploy(self, task: Task) -> list[Effect]:
        """The task had finished before the snapshot that is restored: send the ends again, and nothing else."""
        return task.stay_finished()

    def begins_another(self, sink: TransactionalSink) -> bool:
        """Whether a sink opens one more transaction: not once it is terminating."""
        return not sink.terminating

    def drops_open(self, sink: TransactionalSink) -> bool:
        """Whether a sink that finishes aborts its open transaction; no other task would."""
        return True

    def after_finish(self, task: Task, message: Control) -> list[Effect]:
        """The answer of a finished task to a message: the coordinator may not have received that it has finished."""
        return task.finish() if isinstance(message, Trigger | Terminate) else []

    def kept(self, graph: JobGraph, finished: Sequence[TaskId]) -> list[TaskId]:
        """The finished tasks whose last state later snapshots hold: those of operators that have unfinished tasks."""
        whole = graph.whole(finished)
        return [task for task, spec, _ in graph.tasks() if task in finished and spec.name not in whole]

    def may_finish(self, ended: Sequence[TaskId], finished: Sequence[TaskId]) -> list[TaskId]:
        """The tasks that may finish: they acknowledged a complete checkpoint after all their input."""
        return [task for task in ended if task not in finished]

    def excuses(self, pending: Pending, task: TaskId) -> bool:
        """Whether a pending checkpoint goes on without a task that has finished: an older one covers all its work
        (FIN-8)."""
        return True


class Ending(Part):
    """How a job comes to its end (FIN-3, FIN-4)."""

    def sends_again(self) -> bool:
        """Whether the order to finish is sent again until the task has finished: the last message must not be lost."""
        return True

    def ends_input(self, ending: str) -> bool:
        """Whether a source's input ends before its last barrier: in a drain alone (FIN-4, FIN-5)."""
        return ending == "drain"


class CheckpointIds(Part):
    """How ids are given out; two checkpoints never share one."""

    def allocate(self, checkpoints: Checkpoints) -> CheckpointId:
        checkpoint = checkpoints.next_id
        checkpoints.next_id = CheckpointId(checkpoint + 1)
        return checkpoint

    def first_of_attempt(self, checkpoints: Checkpoints) -> None:
        """A new attempt begins: ids go on increasing."""


class Triggering(Part):
    """When a checkpoint may be triggered, which tasks take part in it, and when it is given up."""

    def allowed(self, coordinator: Coordinator) -> bool:
        """Only while every task runs and nothing is ending."""
        return coordinator.is_running and not coordinator.is_ending and coordinator.takes_checkpoints

    def asked(self, tasks: Sequence[TaskId], finished: Sequence[TaskId]) -> tuple[TaskId, ...]:
        """The tasks that take part: those that have not finished (FIN-1)."""
        return tuple(task for task in tasks if task not in finished)

    def expected(self, tasks: Sequence[TaskId], sources: Sequence[TaskId]) -> tuple[TaskId, ...]:
        """The tasks that must acknowledge: all that take part; the sinks alone are not enough (ABS-4)."""
        return tuple(tasks)

    def times_out(self) -> bool:
        return True


class Completion(Part):
    """When a checkpoint is complete, and what happens to acknowledgements that come too late."""

    def find(self, checkpoints: Checkpoints, ack: Ack) -> Pending | None:
        """The pending checkpoint that an acknowledgement is for."""
        return checkpoints.pending.get(ack.checkpoint)

    def finished(self, checkpoints: Checkpoints, pending: Pending) -> list[Pending]:
        """The checkpoints to complete after an acknowledgement, in order."""
        return [pending] if pending.is_acknowledged else []

    def claim(self, checkpoints: Checkpoints, pending: Pending) -> None:
        """Take the checkpoint out of the pending ones, so that it is completed once."""
        checkpoints.pending.pop(pending.checkpoint, None)

    def rejected(self, ack: Ack) -> list[Handle]:
        """The handles that a rejected acknowledgement leaves to be discarded: its state's."""
        return [ack.handle]


class Failover(Part):
    """What a failure of a task restarts, and what is kept of the failed attempt."""

    def reset(self, checkpoints: Checkpoints) -> None:
        """Nothing of the failed attempt is kept but checkpoints whose records are being stored."""
        checkpoints.under_way = sum(not pending.savepoint for pending in checkpoints.storing)

    def awaits_store(self) -> bool:
        """Whether a restart waits for a checkpoint whose record is being stored: it may become the newest."""
        return True

    def lost_with(self, coordinator: Regional, task: TaskId) -> tuple[TaskId, ...]:
        """The tasks that restart when a task is lost: its region, if the job has failover by region.  All tasks once
        the job is about to end: a part that has finished would not come back (J21)."""
        return coordinator.region_of(task) if coordinator.may_fail_over_in_part else coordinator.tasks

    def restored_by_part(self, newest: CompletedSnapshot | None) -> CompletedSnapshot | None:
        """The snapshot that a partial failover restores: the newest complete checkpoint, as for the whole job."""
        return newest

    def restarts_again(self, coordinator: Attempts) -> bool:
        """Whether the failure of an attempt starts another attempt: not twice for the same one."""
        return coordinator.is_live


class RestoreChoice(Part):
    """Which snapshot a new attempt restores (ABS-6)."""

    def eligible(self, snapshot: CompletedSnapshot) -> bool:
        """Whether the snapshot may be restored: savepoints too, since they commit side effects."""
        return True

    def choose(self, retained: Sequence[CompletedSnapshot]) -> CompletedSnapshot | None:
        """The latest completed snapshot, checkpoint or savepoint."""
        candidates = [snapshot for snapshot in retained if self.eligible(snapshot)]
        return max(candidates, key=lambda snapshot: snapshot.checkpoint, default=None)

    def despite_unreadable(self, unreadable: Sequence[CheckpointId]) -> bool:
        """Whether to go on although the records of these snapshots could not be read."""
        return False

    def despite_incompatible(self, reason: str) -> bool:
        """Whether a job starts from an incompatible snapshot, for which `reason` would refuse it (FIN-2)."""
        return False


class Cleanup(Part):
    """Which snapshots may be deleted, and when."""

    def subsumed(self, retained: Sequence[CompletedSnapshot], keep: int) -> list[CompletedSnapshot]:
        """The oldest checkpoints beyond `keep`; never a user's savepoint."""
        own = [snapshot for snapshot in retained if not snapshot.savepoint]
        return own[: max(0, len(own) - keep)]

    def on_takeover(self, listed: bool) -> bool:
        """Whether to delete what no record refers to: only once the records were listed."""
        return listed

    def on_failure(self) -> bool:
        """Whether a failed attempt ends the life of the job's snapshots: no."""
        return False


class Parts:
    """The decisions of one run; every field is the correct part unless it is replaced."""

    def __init__(self, **replaced: Part | Alignment | Redistribution) -> None:
        self.alignment = Alignment()
        self.startup = Startup()
        self.source_cut = SourceCut()
        self.start_position = StartPosition()
        self.enumerating = Enumerating()
        self.trimming = Trimming()
        self.held_output = HeldOutput()
        self.watermarks = Watermarks()
        self.firing = Firing()
        self.processing_time = ProcessingTime()
        self.copying = Copying()
        self.capture = Capture()
        self.local_recovery = LocalRecovery()
        self.persisting = Persisting()
        self.naming = Naming()
        self.pre_committing = PreCommitting()
        self.committing = Committing()
        self.global_committing = GlobalCommitting()
        self.sink_recovery = SinkRecovery()
        self.finishing = Finishing()
        self.ending = Ending()
        self.checkpoint_ids = CheckpointIds()
        self.triggering = Triggering()
        self.completion = Completion()
        self.failover = Failover()
        self.fencing = Fencing()
        self.restore_choice = RestoreChoice()
        self.cleanup = Cleanup()
        self.redistribution = Redistribution()
        for name, part in replaced.items():
            if not hasattr(self, name):
                raise AttributeError(f"no decision is called {name!r}")
            setattr(self, name, part)

    @property
    def reached(self) -> bool:
        """Whether the wrong code of any replaced part has run."""
        return any(part.reached for part in vars(self).values())
