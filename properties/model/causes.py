"""The causes of failures that some judgement depends on, as a history names them.

An engine may name the cause of each failed task and of a failed job.  Where it does, its
sentences decide nothing.  Histories of other engines, and those of older runs, have the
sentences alone: only there the cause is read from them, in `Why`.  docs/format.md says what
is read, and a sentence that says it otherwise says nothing.
"""

from __future__ import annotations

import re
from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Cause(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of the causes."""


class NoHeartbeat(Cause, tag="no-heartbeat"):
    """A task gave no sign of life in time; on a machine that is too slow it may be alive."""


class TransactionRefused(Cause, tag="transaction-refused"):
    """The external store does not have a transaction any more, or does not carry out what was asked of it."""

    transaction: str = ""


class SnapshotUnreadable(Cause, tag="snapshot-unreadable"):
    """The snapshots of these checkpoints could not be read."""

    checkpoints: tuple[int, ...] = ()


class IncompatibleJob(Cause, tag="incompatible-job"):
    """A job cannot begin with its snapshot, because of these operators."""

    operators: tuple[str, ...] = ()


class NeededForRecovery(Cause, tag="needed-for-recovery"):
    """A snapshot is not deleted: after a failure the job would restore it."""

    checkpoint: int


class CheckpointTimedOut(Cause, tag="checkpoint-timed-out"):
    """More checkpoints failed than are tolerated, and the last of them was not complete in time."""


class NotCopied(Cause, tag="not-copied"):
    """A snapshot is not copied for its user: one of its files is missing, altered, or could not be written."""

    checkpoint: int


class OtherCause(Cause, tag="other"):
    """Any cause on which no judgement depends."""


AnyCause = (
    NoHeartbeat
    | TransactionRefused
    | SnapshotUnreadable
    | IncompatibleJob
    | NeededForRecovery
    | NotCopied
    | CheckpointTimedOut
    | OtherCause
)


_TRANSACTION = re.compile("transaction", re.IGNORECASE)
_NUMBER = r"[0-9]{1,18}"
_CHECKPOINTS = re.compile(
    rf"(?<!\w)(?:(?:checkpoint|savepoint|snapshot)s?[ #:-]{{1,3}}(?:id:? )?|chk-)"
    rf"({_NUMBER}(?:(?:, and |, | and ){_NUMBER})*)(?!\w|[.-]\d)",
    re.IGNORECASE,
)


class Why(msgspec.Struct, frozen=True):
    """What is known of a failure's cause: the cause itself, or only the sentence about it."""

    cause: AnyCause | None
    sentence: str

    @property
    def is_silence(self) -> bool:
        return isinstance(self.cause, NoHeartbeat) if self.cause is not None else self.sentence == "no heartbeat"

    @property
    def is_timeout(self) -> bool:
        return isinstance(self.cause, CheckpointTimedOut)

    @property
    def is_lost_transaction(self) -> bool:
        if self.cause is not None:
            return isinstance(self.cause, TransactionRefused)
        return _TRANSACTION.search(self.sentence) is not None

    def names(self, transaction: str) -> bool:
        """Whether this is the transaction that was refused; of a sentence, whether it has the name as a word."""
        if self.cause is not None:
            return isinstance(self.cause, TransactionRefused) and self.cause.transaction == transaction
        return re.search(rf"(?<![\w/-]){re.escape(transaction)}(?![\w/-])", self.sentence) is not None

    @property
    def unreadable(self) -> tuple[int, ...]:
        """The checkpoints that could not be read; of a sentence those that it names as checkpoints or snapshots."""
        if self.cause is not None:
            return self.cause.checkpoints if isinstance(self.cause, SnapshotUnreadable) else ()
        named = " ".join(_CHECKPOINTS.findall(self.sentence))
        return tuple(int(number) for number in re.findall(_NUMBER, named))

    def blames(self, operator: str) -> bool:
        """Whether a job was refused because of this operator.

        A sentence has to have its name as a word of its own, not as part of another word or of a task's name.
        """
        if self.cause is not None:
            return isinstance(self.cause, IncompatibleJob) and operator in self.cause.operators
        return re.search(rf"(?<![\w-]){re.escape(operator)}(?![\w-])", self.sentence) is not None
