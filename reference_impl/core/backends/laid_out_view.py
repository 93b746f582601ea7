"""A view of keys and values, whatever backend keeps them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..vocabulary.views import Entry, Held, Pane, SortedFile, SstFile
from .layouts import Layout


class LaidOutView(ABC):
    """Says as entries, panes and held state what the backend kept at one moment; no files hold it unless it says so."""

    __slots__ = ("_layout",)

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @abstractmethod
    def _state(self) -> Mapping[Any, Any]:
        """The keys and values of that moment, in the order of the state."""

    def entries(self) -> list[Entry]:
        return self._layout.entries(self._state())

    def panes(self) -> list[Pane]:
        return self._layout.panes(self._state())

    def held(self) -> list[Held]:
        return self._layout.held(self._state())

    def files(self) -> Sequence[SortedFile | SstFile]:
        return ()

    @property
    def layout(self) -> str | None:
        return None
