"""P28 to P30: how the references of two jobs to one file are counted."""

from __future__ import annotations

from ...core.decisions.snapshots.references import References
from ..registry import Defect


class CountedOnceForTwo(References):
    """P28: a job that is forked by reference is not counted: what its origin needs no more is deleted."""

    def added(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        self.reached = True
        return jobs


class TakenForItsOwn(References):
    """P29: a job that was forked by reference deletes files that it needs no more, whoever else needs them."""

    def removed(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        left = super().removed(jobs, job)
        self.reached = self.reached or (job > 0 and bool(left))
        return left if job == 0 else ()


class NeverTheLast(References):
    """P30: a file to which two jobs have referred stays: each of them leaves it to the other."""

    def removed(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        left = super().removed(jobs, job)
        self.reached = self.reached or not left
        return left or (job,)


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
