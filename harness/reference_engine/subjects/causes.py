"""The engine's causes of failures, as a history names them."""

from __future__ import annotations

from ....properties.model import causes as h
from ....reference_impl.core.vocabulary import causes as c


def translated(cause: c.AnyCause | None) -> h.AnyCause | None:
    """What the history says of a cause: what a chain of causes began with."""
    if cause is None:
        return None
    match c.root(cause):
        case c.HeartbeatMissed():
            return h.NoHeartbeat()
        case c.StoreRefused(transaction=transaction) if transaction:
            return h.TransactionRefused(transaction=transaction)
        case c.SnapshotUnreadable(checkpoint=checkpoint):
            return h.SnapshotUnreadable(checkpoints=(checkpoint,) if checkpoint is not None else ())
        case c.RecordsUnreadable(checkpoints=checkpoints):
            return h.SnapshotUnreadable(checkpoints=checkpoints)
        case c.Incompatible(operators=operators):
            return h.IncompatibleJob(operators=operators)
    return h.OtherCause()
