"""Working state on the heap: a dictionary, copied as a whole at a snapshot (the simplest copy-on-write)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..decisions.tasks import Copying
from ..vocabulary.state import TaskState
from ..vocabulary.views import Entry, Held, Pane, SortedFile
from .keyed_state import KeyedState
from .layouts import Layout


class HeapState(dict[Any, Any], KeyedState):
    """In the order in which keys came.  Values may be mutable (the rows of a join are), so a snapshot copies them."""

    __slots__ = ("_copying", "_layout")

    def __init__(self, layout: Layout, copying: Copying) -> None:
        super().__init__()
        self._layout = layout
        self._copying = copying

    def snapshot(self) -> HeapView:
        return HeapView(self._layout, self._copying.copy(self))

    def restore(self, state: TaskState) -> None:
        self.clear()
        self.update(self._layout.items(state))


class HeapView:
    """A copy of the state."""

    __slots__ = ("_copy", "_layout")

    def __init__(self, layout: Layout, copy: Mapping[Any, Any]) -> None:
        self._layout = layout
        self._copy = copy

    def entries(self) -> list[Entry]:
        return self._layout.entries(self._copy)

    def panes(self) -> list[Pane]:
        return self._layout.panes(self._copy)

    def held(self) -> list[Held]:
        return self._layout.held(self._copy)

    def files(self) -> tuple[SortedFile, ...]:
        return ()

    @property
    def layout(self) -> str:
        return ""
