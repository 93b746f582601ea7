"""Working state in a log-structured merge tree (O'Neil et al. 1996; RocksDB): more than the memtable holds.

Changes go to a memtable of bounded size, deletes as tombstones.  A full memtable is flushed: it becomes an immutable
sorted file, and a fresh one takes its place.  A key is looked up in the memtable, then in the files from the newest to
the oldest.  A compaction merges the newest files into one.  It has a beginning, which chooses its inputs, and an end,
which replaces them; flushes and views come between.

Values are bytes from the moment they are put, so a value that its operator changes afterwards changes nothing here.
A snapshot flushes the memtable and takes the files that there are.  So its synchronous part is short (ABS-8).
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any

import msgspec

from ..decisions.snapshots.state_files import StateFiles
from ..vocabulary.state import TaskState
from ..vocabulary.views import SortedFile
from .keyed_state import FiledState
from .keys import as_bytes, from_bytes
from .laid_out_view import LaidOutView
from .layouts import Layout
from .sorted_runs import Pairs, Run, merged


class Limits(msgspec.Struct, frozen=True):
    """How large the memtable grows, and when files are merged."""

    memtable_entries: int
    compaction_files: int
    """with so many files a compaction is due; it merges at least as many"""


class Codec:
    """Keys and values of a layout as bytes."""

    __slots__ = ("_decoder", "layout")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(layout.of)

    encode = staticmethod(msgspec.json.encode)

    def decode(self, value: bytes) -> Any:
        return self._decoder.decode(value)

    def state(self, pairs: Pairs) -> dict[Any, Any]:
        """The living keys and values, in key order."""
        return {from_bytes(key): self.decode(value) for key in sorted(pairs) if (value := pairs[key]) is not None}


class LsmState(FiledState):
    """The names of its files begin with `prefix`, which no other store of the job has."""

    __slots__ = ("_codec", "_decisions", "_files", "_flushes", "_limits", "_made", "_memtable", "_merging",
                 "_numbers", "_order", "_prefix")  # fmt: skip

    def __init__(self, layout: Layout, prefix: str, decisions: StateFiles, limits: Limits) -> None:
        self._codec = Codec(layout)
        self._prefix = prefix
        """of the names of its files, which their numbers follow"""
        self._decisions = decisions
        self._limits = limits
        self._memtable: Pairs = {}
        self._files: dict[str, Run] = {}
        """the store's files by name"""
        self._order: list[str] = []
        """their names, the newest last"""
        self._merging: tuple[str, ...] = ()
        """the inputs of the compaction under way"""
        self._made: dict[int, bool] = {}
        """by number of each file that it has made: whether it still has it"""
        self._numbers: dict[str, int] = {}
        """those of its files"""
        self._flushes = 0

    # -- as a mapping ------------------------------------------------------------------

    def _find(self, key: bytes) -> bytes | None:
        """The value of a key; None: it has none, or was deleted."""
        if key in self._memtable:
            return self._memtable[key]
        for name in reversed(self._order):
            pairs = self._files[name].pairs
            if key in pairs:
                return pairs[key]
        return None

    def __getitem__(self, key: Any) -> Any:
        value = self._find(as_bytes(key))
        if value is None:
            raise KeyError(key)
        return self._codec.decode(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._change(as_bytes(key), self._codec.encode(value))

    def __delitem__(self, key: Any) -> None:
        found = as_bytes(key)
        if self._find(found) is None:
            raise KeyError(key)
        self._change(found, None)

    def __iter__(self) -> Iterator[Any]:
        """In key order."""
        pairs = self._all()
        return (from_bytes(key) for key in sorted(pairs) if pairs[key] is not None)

    def __len__(self) -> int:
        return sum(value is not None for value in self._all().values())

    def items(self) -> ItemsView[Any, Any]:
        """In key order."""
        return self._codec.state(self._all()).items()

    def _all(self) -> Pairs:
        return merged([*(self._files[name].pairs for name in self._order), self._memtable])

    def _change(self, key: bytes, value: bytes | None) -> None:
        self._memtable[key] = value
        if len(self._memtable) >= self._limits.memtable_entries:
            self.flush()

    # -- files -------------------------------------------------------------------------

    def flush(self) -> None:
        """Make a file of the memtable, if anything is in it."""
        if not self._memtable:
            return
        sealed, self._memtable = self._decisions.sealed(self._memtable)
        self._add(sealed)
        self._flushes += 1

    def _add(self, pairs: Pairs) -> None:
        number = self._decisions.number(self._made)
        name = f"{self._prefix}-{number}"
        self._made[number] = True
        self._files[name] = Run(name, pairs)
        self._numbers[name] = number
        self._order.append(name)

    def take_flushes(self) -> int:
        flushes, self._flushes = self._flushes, 0
        return flushes

    def begin_compaction(self) -> bool:
        """Its inputs are the newest files, and older ones for as long as the next is not larger than all of them
        together."""
        first = len(self._order) - self._limits.compaction_files
        if self._merging or first < 0:
            return False
        size = sum(self._size(name) for name in self._order[first:])
        while first > 0 and self._size(self._order[first - 1]) <= size:
            first -= 1
            size += self._size(self._order[first])
        self._merging = tuple(self._order[first:])
        return True

    def _size(self, name: str) -> int:
        return len(self._files[name].pairs)

    def end_compaction(self) -> None:
        inputs, self._merging = self._merging, ()
        place = self._order.index(inputs[0])
        pairs = merged(self._files[name].pairs for name in inputs)
        if self._decisions.drops_tombstones(inputs, self._order):
            pairs = {key: value for key, value in pairs.items() if value is not None}
        for name in inputs:
            del self._files[name]
            self._made[self._numbers.pop(name)] = False
        newer = self._order[place + len(inputs) :]
        del self._order[place:]
        if pairs:
            self._add(pairs)
        self._order += newer

    # -- snapshots -----------------------------------------------------------------------

    def snapshot(self) -> LsmView:
        self.flush()
        return LsmView(self._codec, self._decisions.linked(self._files, self._order))

    def restore(self, state: TaskState) -> None:
        self._memtable = {}
        self._files = {}
        self._numbers = {}
        self._made = dict.fromkeys(self._made, False)
        self._order = []
        self._merging = ()
        for key, value in self._codec.layout.items(state):
            self[key] = value


class LsmView(LaidOutView):
    """The files of one moment."""

    __slots__ = ("_codec", "_files", "_read")

    def __init__(self, codec: Codec, files: Mapping[str, Run]) -> None:
        super().__init__(codec.layout)
        self._codec = codec
        self._files = files
        self._read: dict[Any, Any] | None = None

    def _state(self) -> dict[Any, Any]:
        if self._read is None:
            self._read = self._codec.state(merged(run.pairs for run in self._files.values()))
        return self._read

    def files(self) -> tuple[SortedFile, ...]:
        return tuple(run.file for run in self._files.values())

    @property
    def layout(self) -> str:
        return self._layout.name
