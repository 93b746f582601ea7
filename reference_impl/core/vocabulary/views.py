"""Working state by key as a snapshot sees it: a view, and files, that never change (ABS-8, ABS-10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

Entry = tuple[int, int | None, int | None, int]
"""(side, key, a, b): one entry of keyed state.  count (0, key, n, 0), sum (0, key,
sum, sum of tags), greater (0, key, last value, 0), dedup (0, key, 0, 0), join (0
left or 1 right, key, value, tag), a window (its start, key, aggregate, sum of tags)."""

Pane = tuple[int, int]
"""(end, origin) of a window, which its entry does not hold"""

Held = tuple[int | None, str, str]
"""(key, name, JSON) of the state of a user function"""

OWN = "*"
"""the name under which a snapshot has a key's part of a user function's own state"""


class SortedFile(msgspec.Struct, frozen=True):
    """An immutable run of entries in key order, tombstones included.  Its name is unique in the job."""

    name: str
    data: bytes


class SstFile(Protocol):
    """A file of RocksDB, which has it on disk: immutable too, and with a name that is unique in the job."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str:
        """Where it is on this machine, as long as the view is there and its attempt lives."""
        ...

    @property
    def data(self) -> bytes: ...


class View(Protocol):
    """The working state by key of one moment.  It is read when the snapshot is written, which is later."""

    def entries(self) -> list[Entry]:
        """The entries as every backend gives them, in the order of the state."""
        ...

    def panes(self) -> list[Pane]:
        """Of windows: what entries do not hold, in the order of `entries`."""
        ...

    def held(self) -> list[Held]:
        """Of a user function: its state by key, which is in no entry."""
        ...

    def files(self) -> Sequence[SortedFile | SstFile]:
        """The files that hold it, the newest last; none of a state on the heap."""
        ...

    @property
    def layout(self) -> str | None:
        """The layout of the keys and values in its files, by name; None if it has none."""
        ...


class Nothing:
    """The view of a task without working state by key."""

    def entries(self) -> list[Entry]:
        return []

    def panes(self) -> list[Pane]:
        return []

    def held(self) -> list[Held]:
        return []

    def files(self) -> tuple[SortedFile, ...]:
        return ()

    @property
    def layout(self) -> None:
        return None


NOTHING = Nothing()
