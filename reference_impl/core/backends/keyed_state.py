"""The working state by key of one operator, whatever keeps it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import MutableMapping
from typing import Any

from ..vocabulary.state import TaskState
from ..vocabulary.views import View


class KeyedState(MutableMapping[Any, Any]):
    """A mapping from keys to values, as the operator's layout has them.

    A value that is changed after it was put changes the state on the heap, and no other: put it again.
    """

    __slots__ = ()

    @abstractmethod
    def snapshot(self) -> View:
        """A view of this moment, which no later change alters (ABS-8)."""

    @abstractmethod
    def restore(self, state: TaskState) -> None:
        """Replace all of it by what a snapshot holds."""


class FiledState(KeyedState):
    """State in a memtable and immutable sorted files.  Its files are merged in the background, one compaction at a
    time."""

    __slots__ = ()

    @abstractmethod
    def take_flushes(self) -> int:
        """How often the memtable was flushed since this was asked last."""

    @abstractmethod
    def begin_compaction(self) -> bool:
        """Choose the inputs of a compaction; False: none is due, or one is under way."""

    @abstractmethod
    def end_compaction(self) -> None:
        """Put the merged file in the place of its inputs, and delete these."""
