"""Schedule perturbations: the one port through which a scenario makes events late.

By default nothing in the schedule is chosen.  A scenario names a few events ("the second
ack of task count-1") that come late, and by how much.  Every event that can be late asks
here under its name.  Names are stable under shrinking: they count the occurrences of one
kind of event of one task or channel, over all attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Lateness:
    """The perturbations of one name, and how often the event has occurred so far."""

    __slots__ = ("_by_occurrence", "_count", "_happened", "_name")

    def __init__(self, name: str, happened: Callable[[str], None] | None = None) -> None:
        self._name = name
        self._happened = happened
        self._count = 0
        self._by_occurrence: dict[int, int] = {}

    def add(self, occurrence: int, by_us: int) -> None:
        self._by_occurrence[occurrence] = by_us

    def next(self) -> int:
        """How late the next occurrence is, in µs."""
        self._count += 1
        if self._happened is not None:
            self._happened(self._name)
        return self._by_occurrence.pop(self._count, 0)

    def remaining(self) -> list[str]:
        return [f"{self._name}, occurrence {occurrence}" for occurrence in self._by_occurrence]


class Perturbations:
    """All schedule perturbations of a run, by the name of the event."""

    def __init__(
        self, perturbations: Iterable[tuple[str, int, int]], happened: Callable[[str], None] | None = None
    ) -> None:
        """`happened(name)` is called at each occurrence, so that it can be counted over several processes."""
        self._late: dict[str, Lateness] = {}
        for what, occurrence, by_us in perturbations:
            self._late.setdefault(what, Lateness(what, happened)).add(occurrence, by_us)
        self.any = bool(self._late)
        """if not, nothing is ever late, and nobody needs to ask"""

    def of(self, what: str) -> Lateness | None:
        """The perturbations of one name; None: it is never late."""
        return self._late.get(what)

    def late(self, what: str) -> int:
        lateness = self._late.get(what)
        return lateness.next() if lateness is not None else 0

    def unapplied(self) -> list[str]:
        """Perturbations whose event never occurred."""
        return [name for lateness in self._late.values() for name in lateness.remaining()]
