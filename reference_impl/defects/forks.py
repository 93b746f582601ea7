"""P28 to P30: how the references of two jobs to one file are counted."""

from __future__ import annotations

from ..core.decisions.references import References
from .registry import Defect


class CountedOnceForTwo(References):
    """P28: a job that is forked by reference is not counted: what its origin needs no more is deleted."""

    def added(self, count: int) -> int:
        self.reached = True
        return count


class TakenForItsOwn(References):
    """P29: a job that was forked by reference deletes files that it needs no more, whoever else needs them."""

    def removed(self, count: int, *, forked: bool) -> int:
        if not forked:
            return super().removed(count, forked=forked)
        self.reached = self.reached or count > 1
        return 0


class NeverTheLast(References):
    """P30: a file to which two jobs have referred stays: each of them leaves it to the other."""

    def removed(self, count: int, *, forked: bool) -> int:
        self.reached = self.reached or count == 1
        return max(1, super().removed(count, forked=forked))


DEFECTS = (
    Defect(
        id="P28",
        upstream="FLIP-193 (claim)",
        title="a file to which two jobs refer is counted once, and goes with the first of them",
        invariant="restorable",
        replacements=lambda: {"references": CountedOnceForTwo()},
    ),
    Defect(
        id="P29",
        upstream="FLIP-193 (claim)",
        title="a forked job deletes files that its origin still needs",
        invariant="restored-state",
        replacements=lambda: {"references": TakenForItsOwn()},
    ),
    Defect(
        id="P30",
        upstream="FLIP-193 (claim)",
        title="a file to which two jobs have referred stays once nobody needs it",
        invariant="no-leaks",
        replacements=lambda: {"references": NeverTheLast()},
    ),
)
