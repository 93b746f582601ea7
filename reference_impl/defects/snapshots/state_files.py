"""Group H: state in sorted files, of which a snapshot or a deletion is not safe from flushes and compactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from ...core.decisions.snapshots.state_files import File, Memtable, StateFiles
from ..registry import Defect

Named = TypeVar("Named")


class DropsTombstones(StateFiles):
    """H08: a compaction drops every tombstone, also if an older file that it does not merge has the key."""

    def drops_tombstones(self, inputs: Sequence[str], files: Sequence[str]) -> bool:
        self.reached = self.reached or not super().drops_tombstones(inputs, files)
        return True


class ByName(Mapping[str, Named]):
    """What there is now of files with some names."""

    def __init__(self, files: Mapping[str, Named], names: Sequence[str]) -> None:
        self._files = files
        self._names = tuple(names)

    def __getitem__(self, name: str) -> Named:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name in self._files)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class NotLinked(StateFiles):
    """H09: a snapshot notes the names of its files, and writes those that it still finds."""

    def linked(self, files: Mapping[str, File], names: Sequence[str]) -> Mapping[str, File]:
        self.reached = True
        return ByName(files, names)


class SameMemtable(StateFiles):
    """H10: a flush writes the memtable that goes on taking changes, so they get into a snapshot taken before."""

    def sealed(self, memtable: Memtable) -> tuple[Memtable, Memtable]:
        self.reached = True
        return memtable, memtable


class FillsGaps(StateFiles):
    """G18: a new file takes the number behind those that are there: a snapshot may have another file of that name."""

    def number(self, made: Mapping[int, bool]) -> int:
        number = max((number for number, there in made.items() if there), default=-1) + 1
        self.reached = self.reached or number in made
        return number


DEFECTS = (
    Defect(
        id="G18",
        upstream="SPARK-43404 / 49770 / 47036",
        title="a file of the same name with other content is taken for one that is stored",
        invariant="consistent-cut",
        replacements=lambda: {"state_files": FillsGaps()},
    ),
    Defect(
        id="H08",
        upstream="leveldb#184 / rocksdb#2722",
        title="a compaction drops a tombstone that an older file still needs",
        invariant="consistent-cut",
        replacements=lambda: {"state_files": DropsTombstones()},
    ),
    Defect(
        id="H09",
        upstream="yugabyte-db#904 / SPARK-55892",
        title="a compaction deletes files of a snapshot that is being written",
        invariant="consistent-cut",
        replacements=lambda: {"state_files": NotLinked()},
    ),
    Defect(
        id="H10",
        upstream="rocksdb#215",
        title="a snapshot shares the memtable with the live state",
        invariant="consistent-cut",
        replacements=lambda: {"state_files": SameMemtable()},
    ),
)
