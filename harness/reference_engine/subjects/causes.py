"""The engine's causes of failures, and what its faults struck, as a history names them."""

from __future__ import annotations

from ....properties.model import causes as h
from ....properties.model import struck as s
from ....reference_impl import observed as o
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
        case c.NeededForRecovery(checkpoint=checkpoint):
            return h.NeededForRecovery(checkpoint=checkpoint)
        case c.TimedOut():
            return h.CheckpointTimedOut()
        case c.NotCopied(checkpoint=checkpoint):
            return h.NotCopied(checkpoint=checkpoint)
    return h.OtherCause()


def struck_by(struck: o.AnyStruck | None) -> s.AnyStruck | None:
    match struck:
        case o.TornWrite(handle=handle):
            return s.TornWrite(handle=handle)
        case o.StruckDelete(handle=handle):
            return s.StruckDelete(handle=handle)
        case o.StruckCopy(checkpoint=checkpoint):
            return s.StruckCopy(checkpoint=checkpoint)
        case o.StruckCommit(transactions=transactions, how=how):
            return s.StruckCommit(transactions=transactions, how=how)
        case o.StruckChannel(channel=channel):
            return s.StruckChannel(channel=channel)
    return None
