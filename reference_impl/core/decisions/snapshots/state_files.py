"""The files of an LSM store: what a flush takes, what compaction may drop, what a view keeps (ABS-8, ABS-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..part import Part

File = TypeVar("File")
Memtable = dict[bytes, bytes | None]
"""values by key, both as bytes; None is a tombstone"""


class StateFiles(Part):
    """The decisions of an LSM store."""

    def number(self, made: Mapping[int, bool]) -> int:
        """The number of a new file: how many the store has made.  `made` says of the number of each whether the store
        still has the file; a snapshot may have others, by name."""
        return len(made)

    def sealed(self, memtable: Memtable) -> tuple[Memtable, Memtable]:
        """The memtable that a flush writes, and the one that takes the next changes."""
        return memtable, {}

    def drops_tombstones(self, inputs: Sequence[str], files: Sequence[str]) -> bool:
        """Whether a compaction of some files drops tombstones: only with the oldest among its `inputs`, since an older
        one may still have the key.  Both are names, the oldest first."""
        return inputs[0] == files[0]

    def linked(self, files: Mapping[str, File], names: Sequence[str]) -> Mapping[str, File]:
        """The files that a view reads later, of those that the store has now: links of its own, because a compaction
        may delete the store's meanwhile."""
        return {name: files[name] for name in names}
