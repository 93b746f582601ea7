"""Checkpoints: their ids, who takes part, when they are complete, which are kept and restored (ABS-3 to ABS-6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..vocabulary.causes import Incompatible
from ..vocabulary.events import CompletedSnapshot
from ..vocabulary.ids import CheckpointId, Handle, TaskId
from ..vocabulary.messages import Ack
from .part import Part

if TYPE_CHECKING:
    from ..protocol.checkpoints import Checkpoints, Pending
    from ..protocol.coordinator import Coordinator


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

    def despite_incompatible(self, reason: Incompatible) -> bool:
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
