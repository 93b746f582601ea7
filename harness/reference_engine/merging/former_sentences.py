"""Causes in journals of older runs, which have the engine's sentences alone.

The sentences are those that the engine wrote then; how it words a cause today does not matter.
"""

from __future__ import annotations

import re

from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary.causes import (
    AnyCause,
    ConnectionBroke,
    HeartbeatMissed,
    ProcessGone,
    StoreRefused,
)
from ....reference_impl.core.vocabulary.ids import TaskId

_CONNECTION_BROKE = re.compile(r"its connection from (\S+) broke")
_STORE_REFUSED = re.compile(r"(\S+: )?the external store refused: (.*)")
_TRANSACTION = re.compile(r"transaction (\S+?):?(?: |$)")


def cause_of(entry: o.TaskFailed) -> AnyCause | None:
    """The recorded cause of a failure, or else what the sentence of a former engine says, as far as blame depends on
    it."""
    if entry.cause is not None:
        return entry.cause
    if entry.reason == "no heartbeat":
        return HeartbeatMissed()
    if entry.reason == "its process is gone":
        return ProcessGone()
    if found := _CONNECTION_BROKE.match(entry.reason):
        return ConnectionBroke(TaskId(found[1]))
    if found := _STORE_REFUSED.match(entry.reason):
        named = _TRANSACTION.search(found[2])
        return StoreRefused(entry.task, named[1] if named is not None else None, found[2])
    return None
