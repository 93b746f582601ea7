"""Protocol points: the places in a run at which faults and commands can strike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..core.vocabulary.ids import TaskId


class Mortal(Protocol):
    """Who can die at a point."""

    @property
    def alive(self) -> bool: ...


class Points:
    """The points that somebody waits for; at all others nothing happens.

    A caller on the hot path looks into `watched` itself.
    """

    def __init__(self) -> None:
        self.watched: frozenset[str] = frozenset()
        self._announce: Callable[[str, TaskId | None, str], None] = lambda point, task, side: None

    def watch(self, points: frozenset[str], announce: Callable[[str, TaskId | None, str], None]) -> None:
        """From now on `announce(point, task, side)` is called at these points."""
        self.watched = points
        self._announce = announce

    def reach(self, point: str, task: TaskId | None, side: str, actor: Mortal | None) -> bool:
        """A point is reached; returns whether the actor is alive afterwards."""
        if point not in self.watched:
            return True
        self._announce(point, task, side)
        return actor is None or actor.alive
