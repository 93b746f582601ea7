"""The judge over all invariants."""

from __future__ import annotations

import pytest

from cutproof.properties.invariants import exactly_once, judge
from cutproof.properties.invariants.judge import CHECKERS, Judgement
from cutproof.properties.model.verdict import INVARIANTS, Holds, Reason, Unknown, Verdict, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.histories import correct_runs, counting, recovered


def test_every_invariant_has_one_checker_in_the_documents_order() -> None:
    assert tuple(CHECKERS) == INVARIANTS
    toy = recovered(counting())
    assert tuple(judge.judge(toy.workload, toy.topology, toy.history()).verdicts) == INVARIANTS


def test_correct_runs_are_held_or_unknown() -> None:
    outcomes = {judge.judge(*case, history).outcome for case, history in correct_runs(range(2))}
    assert "held" in outcomes
    assert "violated" not in outcomes


def test_a_checker_that_raises_leaves_its_invariant_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Case) -> Verdict:
        raise KeyError("count-7")

    monkeypatch.setitem(CHECKERS, "order", broken)
    toy = recovered(counting(per_split=8))
    found = judge.judge(toy.workload, toy.topology, toy.history())
    verdict = found.verdicts["order"]
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "checker failed"
    assert verdict.detail.startswith("KeyError: 'count-7' (line")
    assert "broken" in verdict.detail
    assert isinstance(found.verdicts["exactly-once"], Holds)


def test_one_violation_decides() -> None:
    toy = recovered(counting(per_split=8))
    toy.finish()
    history = toy.history()
    history.committed.append(history.committed[0])
    found = judge.judge(toy.workload, toy.topology, history)
    assert found.outcome == "violated"
    assert "exactly-once" in found.violated
    assert isinstance(exactly_once.check(Case(toy.workload, toy.topology, history)), Violated)


def test_nothing_but_unknown_is_no_pass() -> None:
    unknown = Unknown(reason=Reason.NOT_EXERCISED)
    assert Judgement(verdicts={"order": unknown}).outcome == "unknown"
    assert Judgement(verdicts={"order": unknown, "drain": Holds(exercised=1)}).outcome == "held"
