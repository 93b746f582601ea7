"""The decisions of a two-phase commit (ABS-11); see `parts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..vocabulary.effects import Effect
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..vocabulary.state import Sealed
from ..vocabulary.transactions import Commit, Denied, Done, Fence, Outcome
from .part import Part

if TYPE_CHECKING:
    from ..protocol.sink import TransactionalSink


class PreCommitting(Part):
    """How a sink seals its transaction at a barrier."""

    def seal(self, sink: TransactionalSink, checkpoint: CheckpointId) -> list[Effect]:
        """Send the gathered rows, seal the transaction, and open the next one, in one step."""
        return [*sink.flush(), *sink.seal_current(checkpoint), *sink.begin_transaction()]

    def seals_empty(self) -> bool:
        """Whether a transaction without rows is sealed too.  It need not be, and a store may forget it."""
        return False


class Committing(Part):
    """Which transactions a completed checkpoint commits, and what an answer means."""

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId) -> list[Sealed]:
        """All that were sealed for this checkpoint or an older one: a notification may have been lost (I03)."""
        return [transaction for transaction in sealed if transaction.checkpoint <= checkpoint]

    def verdict(self, outcome: Outcome, recovering: bool) -> str:
        """`done`, `retry`, or `fail`: only a definite answer settles a commit."""
        if isinstance(outcome, Done):
            return "done"
        return "fail" if isinstance(outcome, Denied) else "retry"

    def request(self, writer: TaskId, attempt: AttemptId, name: str) -> Commit:
        return Commit(writer=writer, attempt=attempt, name=name)


class GlobalCommitting(Part):
    """When a global committer publishes (ABS-11)."""

    def up_to(self, settled: Sequence[CheckpointId], notified: CheckpointId) -> CheckpointId:
        """Up to the checkpoint for which every committer has sent, in its channel, that it has sent all its
        committables.

        `notified` is the newest checkpoint that the coordinator reported as complete; it proves nothing
        of what the committers have sent.
        """
        return min(settled)


class SinkRecovery(Part):
    """What a restored sink does with the transactions it finds."""

    def fence(self, writer: TaskId, attempt: AttemptId) -> Fence:
        """Shut out older attempts before anything is listed."""
        return Fence(writer=writer, attempt=attempt)

    def taken_over(self, restored: Sequence[Sealed]) -> list[Sealed]:
        """Which of the restored snapshot's transactions this sink takes over: all of them."""
        return list(restored)

    def to_commit(self, restored: Sequence[Sealed]) -> list[Sealed]:
        """Everything in the restored snapshot: its checkpoint is complete."""
        return list(restored)

    def to_abort(self, restored: Sequence[Sealed], unfinished: Sequence[tuple[str, CheckpointId | None]]) -> list[str]:
        """Everything else that the writer left unfinished."""
        kept = [transaction.name for transaction in restored]
        return [name for name, _ in unfinished if name not in kept]
