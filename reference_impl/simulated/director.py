"""The port through which a plan of faults and commands watches a world."""

from __future__ import annotations

from typing import Protocol

from ..core.vocabulary.ends import Status


class Director(Protocol):
    """Receives points, phases and the start; it acts on the world in return."""

    points: frozenset[str]
    """the protocol points that it waits for: no other is reported"""

    @property
    def phases(self) -> bool:
        """Whether it still waits for a phase: if not, none is reported."""

    def reached(self, point: str, task: str | None, side: str) -> None: ...

    def entered(self, phase: str) -> None: ...

    def job_ended(self, job: int, status: Status) -> None: ...
