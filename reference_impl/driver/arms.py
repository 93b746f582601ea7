"""Faults that wait for the next event of their kind: armed, then taken once."""

from __future__ import annotations

from collections.abc import Mapping

FAILING: Mapping[str, str] = {
    "write": "fail-write",
    "delete-file": "delete-file",
    "delete-record": "delete-record",
    "copy-file": "copy-file",
    "copy-record": "copy-record",
}
"""By what fails in a store: the kind for which the fault is armed."""
TEARING: Mapping[str, str] = {"torn": "tear-write", "lost-link": "lost-link", "copy": "torn-copy"}
"""By how a write is torn: the kind for which the fault is armed."""


class Arms:
    """(kind, target) → the faults armed for it, in order; the target None is a target of its own."""

    def __init__(self) -> None:
        self._armed: dict[tuple[str, str | None], list[int]] = {}

    def arm(self, kind: str, target: str | None, fault: int, times: int = 1) -> None:
        self._armed.setdefault((kind, target), []).extend([fault] * times)

    def waits(self, kind: str) -> bool:
        """Whether a fault of this kind is armed that has no target."""
        return bool(self._armed) and bool(self._armed.get((kind, None)))

    def take(self, kind: str, target: str | None) -> int | None:
        """The fault armed for this event, which is used up; None if there is none."""
        if not self._armed:
            return None
        waiting = self._armed.get((kind, target))
        if not waiting:
            return None
        fault = waiting.pop(0)
        if not waiting:
            del self._armed[(kind, target)]
        return fault

    def disarm(self, fault: int) -> None:
        """The fault has struck elsewhere."""
        for waiting in self._armed.values():
            waiting[:] = [one for one in waiting if one != fault]

    def remaining(self) -> list[int]:
        """The faults that were armed and did not strike."""
        return [fault for faults in self._armed.values() for fault in faults]
