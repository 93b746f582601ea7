"""A copy of all stores as they would be if one snapshot were the last that completed: a forked job begins with it.

The job that is forked goes on, and shares nothing with the copy, except the files of its snapshots if the fork is one
by reference.  So the fork shows what the snapshot is worth: whether all that it refers to is there, and whether the
sources can still read what follows it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from ..core.vocabulary.events import Claims, CompletedCheckpoint, JobRecord
from ..core.vocabulary.ids import Handle
from .external import TransactionStore
from .logs import LogShelf
from .sharing import Sharing


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """The stores at a moment."""

    retained: tuple[CompletedCheckpoint, ...]
    """up to the snapshot that is forked, which is the last"""
    at_us: int
    job: int
    """the number of the job that is forked"""
    record: JobRecord
    files: dict[Handle, bytes]
    trimmed: dict[int, int]
    """split: the first offset that its log still has"""
    external: TransactionStore
    """without what came behind the snapshot"""
    claims: Claims
    """of the snapshots from which jobs were resumed before"""
    logs: LogShelf
    sharing: Sharing | None = None
    """if the files are not copies, but those of the origin: the references to them"""

    @property
    def snapshot(self) -> CompletedCheckpoint:
        return self.retained[-1]


def copied(
    *,
    retained: tuple[CompletedCheckpoint, ...],
    at_us: int,
    job: int,
    record: JobRecord,
    files: dict[Handle, bytes],
    trimmed: dict[int, int],
    external: TransactionStore,
    claims: Claims,
    logs: LogShelf,
    written: Sequence[bool],
) -> Copied:
    """Copy what a world's stores hold.  `written` says which rows that were written outside of a transaction belong to
    the snapshot, in their order."""
    return Copied(
        retained=tuple(one.in_another_place() for one in retained),
        at_us=at_us,
        job=job,
        record=record,
        files=dict(files),
        trimmed=dict(trimmed),
        external=external.up_to(retained[-1].checkpoint, written),
        claims=claims,
        logs=copy.deepcopy(logs),
    )
