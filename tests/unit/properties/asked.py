"""The verdict of an invariant's check on a toy's run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Unknown, Verdict, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.toy import Toy


@dataclass(frozen=True)
class Asked:
    """One check; each method takes another history than the toy's own where a test has altered it."""

    check: Callable[[Case], Verdict]

    def judged(self, toy: Toy, history: History | None = None) -> Verdict:
        return self.check(Case(toy.workload, toy.topology, history or toy.history()))

    def difference(self, toy: Toy, history: History | None = None) -> str:
        """Of a run that is violated."""
        verdict = self.judged(toy, history)
        assert isinstance(verdict, Violated), verdict
        return verdict.difference

    def reason(self, toy: Toy, history: History | None = None) -> str:
        """Of a run that is unknown."""
        verdict = self.judged(toy, history)
        assert isinstance(verdict, Unknown), verdict
        return verdict.reason
