"""The decisions of a two-phase commit (ABS-11); `protocol.sink` and `extensions.sinks.committing` ask them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from ..vocabulary.ids import AttemptId, CheckpointId, TaskId, is_newer, oldest
from ..vocabulary.state import Sealed
from ..vocabulary.transactions import Commit, Denied, Done, Fence, Outcome, Unfinished
from .part import Part
from .postponed import Postponed


class SealStep(Enum):
    """One of the steps in which a sink pre-commits at a barrier."""

    flush = "flush"
    """send the gathered rows"""
    seal = "seal"
    """seal the open transaction"""
    begin = "begin"
    """open the next one"""


class PreCommitting(Part):
    """How a sink seals its transaction at a barrier."""

    def steps(self) -> tuple[SealStep | Postponed[SealStep], ...]:
        """The steps in order, all at once and before the snapshot: the rows so far belong to the transaction that is
        sealed for this checkpoint, and the rows behind the barrier to the next one."""
        return (SealStep.flush, SealStep.seal, SealStep.begin)

    def seals(self, rows: int) -> bool:
        """Whether an open transaction with so many rows is sealed: an empty one stays open, since a store may forget
        it."""
        return rows > 0


class Succeeded(msgspec.Struct, frozen=True):
    """The request was carried out."""


class RetryLater(msgspec.Struct, frozen=True):
    """It may have been carried out or not: the request is repeated."""


class Rejected(msgspec.Struct, frozen=True):
    """It never will be: the task fails."""

    reason: str
    transaction: str | None = None
    """the one that it is about, as in `Denied`"""


Verdict = Succeeded | RetryLater | Rejected
"""What an answer of the store means for a request."""


def verdict_on(outcome: Outcome) -> Verdict:
    """What an answer means: only a definite one settles a request."""
    if isinstance(outcome, Done):
        return Succeeded()
    return Rejected(outcome.reason, outcome.transaction) if isinstance(outcome, Denied) else RetryLater()


class Committing(Part):
    """Which transactions a completed checkpoint commits, and what an answer means."""

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        """All that were sealed for this checkpoint or an older one: a notification may have been lost (I03)."""
        return [transaction for transaction in sealed if not is_newer(transaction.checkpoint, checkpoint)]

    def verdict(self, outcome: Outcome) -> Verdict:
        """What the answer to a commit means."""
        return verdict_on(outcome)

    def request(self, writer: TaskId, attempt: AttemptId, name: str) -> Commit:
        return Commit(writer=writer, attempt=attempt, name=name)


class GlobalCommitting(Part):
    """When a global committer publishes (ABS-11)."""

    def up_to(self, settled: Sequence[CheckpointId | None], notified: CheckpointId | None) -> CheckpointId | None:
        """Up to the checkpoint for which every committer has sent, in its channel, that it has sent all its
        committables.

        `notified` is the newest checkpoint that the coordinator reported as complete; it proves nothing
        of what the committers have sent.
        """
        return oldest(settled)


class SinkRecovery(Part):
    """What a restored sink does with the transactions it finds."""

    def fence(self, writer: TaskId, attempt: AttemptId) -> Fence:
        """Shut out older attempts before anything is listed."""
        return Fence(writer=writer, attempt=attempt)

    def to_commit(self, restored: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        """Which transactions of the restored snapshot are committed: all that were sealed for its checkpoint or an
        older one, since it is complete (None: the job begins without a snapshot)."""
        return [one for one in restored if not is_newer(one.checkpoint, checkpoint)]

    def verdict(self, outcome: Outcome) -> Verdict:
        """What the answer to a commit of a restored transaction means: the same as after a notification."""
        return verdict_on(outcome)

    def to_abort(self, restored: Sequence[Sealed], unfinished: Sequence[Unfinished]) -> list[str]:
        """The transactions that the writer left unfinished and that the restored snapshot does not have."""
        kept = [transaction.name for transaction in restored]
        return [name for name, _ in unfinished if name not in kept]
