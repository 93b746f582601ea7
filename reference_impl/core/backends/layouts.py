"""How operators lay their state out by key, and how a layout becomes what a snapshot holds.

A layout is a value, so a snapshot that is yet to be written needs nothing of its operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from ..vocabulary.state import TaskState
from ..vocabulary.views import OWN, Entry, Held, Pane

ORIGIN = ""
"""the name under which a snapshot has the origin of a key's greatest record, of a user function"""

Items = Iterable[tuple[Any, Any]]
"""(key, value) pairs"""


class Layout(ABC):
    """Keys and values of one kind of operator; `of` is the type of the values."""

    of: ClassVar[Any]

    @property
    def name(self) -> str:
        """As manifests of snapshots name it."""
        return type(self).__name__.lower()

    @abstractmethod
    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        """The entries of a state, in its order."""

    def panes(self, state: Mapping[Any, Any]) -> list[Pane]:
        """What the entries of windows do not hold, in the same order."""
        return []

    def held(self, state: Mapping[Any, Any]) -> list[Held]:
        """What a user function holds."""
        return []

    @abstractmethod
    def items(self, state: TaskState) -> Items:
        """The state that a snapshot holds."""


class Single(Layout):
    """A number, or NULL, by key."""

    of = int | None

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return [(0, key, value, 0) for key, value in state.items()]

    def items(self, state: TaskState) -> Items:
        return [(key, value) for _, key, value, _ in state.entries]


class Seen(Layout):
    """Keys alone; their value is None."""

    of = None

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return [(0, key, 0, 0) for key in state]

    def items(self, state: TaskState) -> Items:
        return [(key, None) for _, key, _, _ in state.entries]


class Pair(Layout):
    """Two numbers by key; the first may be NULL."""

    of = tuple[int | None, int]

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return [(0, key, first, second) for key, (first, second) in state.items()]

    def items(self, state: TaskState) -> Items:
        return [(key, (first, second)) for _, key, first, second in state.entries]


class Rows(Layout):
    """Rows (value, tag) by (side, key)."""

    of = list[tuple[int | None, int]]

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return [(side, key, value, tag) for (side, key), rows in state.items() for value, tag in rows]

    def items(self, state: TaskState) -> Items:
        rows: dict[tuple[int, int | None], list[tuple[int | None, int]]] = {}
        for side, key, value, tag in state.entries:
            rows.setdefault((side, key), []).append((value, tag))
        return rows.items()


class Panes(Layout):
    """Panes (end, aggregate, sum of tags, origin) by (key, start)."""

    of = tuple[int, int | None, int, int]

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return [(start, key, value, tags) for (key, start), (_, value, tags, _) in state.items()]

    def panes(self, state: Mapping[Any, Any]) -> list[Pane]:
        return [(end, origin) for end, _, _, origin in state.values()]

    def items(self, state: TaskState) -> Items:
        return [
            ((key, start), (end, value, tags, origin))
            for (start, key, value, tags), (end, origin) in zip(state.entries, state.panes, strict=False)
        ]


class Bursts(Layout):
    """The open burst (start, end, aggregate, sum of tags, origin) by key."""

    of = tuple[int, int, int | None, int, int]

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return [(start, key, value, tags) for key, (start, _, value, tags, _) in state.items()]

    def panes(self, state: Mapping[Any, Any]) -> list[Pane]:
        return [(end, origin) for _, end, _, _, origin in state.values()]

    def items(self, state: TaskState) -> Items:
        return [
            (key, (start, end, value, tags, origin))
            for (start, key, value, tags), (end, origin) in zip(state.entries, state.panes, strict=False)
        ]


class Declared(Layout):
    """What a user function declares, as JSON text by (key, name), and the origin of each key's greatest record, a
    number by (key, ORIGIN)."""

    of = int | str

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return []

    def held(self, state: Mapping[Any, Any]) -> list[Held]:
        texts = [(key, name, text) for (key, name), text in state.items() if name != ORIGIN]
        return texts + [(key, name, str(origin)) for (key, name), origin in state.items() if name == ORIGIN]

    def items(self, state: TaskState) -> Items:
        return [((key, name), int(text) if name == ORIGIN else text) for key, name, text in state.held if name != OWN]


class Unlisted(Layout):
    """State that is in no entry: the operator has none by key, or a snapshot holds it as a union or as broadcast
    state (OPS-2)."""

    of = Any

    def entries(self, state: Mapping[Any, Any]) -> list[Entry]:
        return []

    def items(self, state: TaskState) -> Items:
        return ()


SINGLE, SEEN, PAIR, ROWS, PANES, BURSTS = Single(), Seen(), Pair(), Rows(), Panes(), Bursts()
DECLARED, UNLISTED = Declared(), Unlisted()
LAYOUTS: dict[str, Layout] = {
    layout.name: layout for layout in (SINGLE, SEEN, PAIR, ROWS, PANES, BURSTS, DECLARED, UNLISTED)
}
"""by name"""
