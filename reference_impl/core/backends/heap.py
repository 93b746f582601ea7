"""Working state on the heap: a dictionary, copied as a whole when a snapshot is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..decisions.tasks import Copying
from ..vocabulary.state import TaskState
from .keyed_state import KeyedState
from .laid_out_view import LaidOutView
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


class HeapView(LaidOutView):
    """A copy of the state."""

    __slots__ = ("_copy",)

    def __init__(self, layout: Layout, copy: Mapping[Any, Any]) -> None:
        super().__init__(layout)
        self._copy = copy

    def _state(self) -> Mapping[Any, Any]:
        return self._copy
