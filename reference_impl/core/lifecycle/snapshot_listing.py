"""The listing of a job's snapshots for its user: who refers to which files, and how many bytes would go with each
(SNAP-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ..vocabulary.events import CompletedCheckpoint, files_of
from ..vocabulary.ids import CheckpointId, Handle


class ListedSnapshot(msgspec.Struct, frozen=True):
    """A retained snapshot, and the files to which it refers."""

    checkpoint: CheckpointId
    files: tuple[Handle, ...]
    own_bytes: int
    """of the files to which no other snapshot refers: they would go with it"""
    shared_bytes: int


def listed(retained: Sequence[CompletedCheckpoint], sizes: Mapping[Handle, int]) -> tuple[ListedSnapshot, ...]:
    """The snapshots in their order; a file that is not there has no bytes."""
    needed = [tuple(dict.fromkeys(files_of([one]))) for one in retained]
    holders = Counter(name for names in needed for name in names)
    return tuple(
        ListedSnapshot(
            checkpoint=one.checkpoint,
            files=names,
            own_bytes=sum(sizes.get(name, 0) for name in names if holders[name] == 1),
            shared_bytes=sum(sizes.get(name, 0) for name in names if holders[name] > 1),
        )
        for one, names in zip(retained, needed, strict=True)
    )
