"""What witnesses make judgeable agrees with the judge's own verdicts."""

from __future__ import annotations

import pytest

from cutproof import history
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.subject_kit.judgeable import judgeable, judged_of
from cutproof.harness.subject_kit.template.adapter import Engine
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.verdict import INVARIANTS, Unknown

SETS = [
    ("reader",),
    ("journal",),
    ("reader", "journal"),
    ("reader", "journal", "listing"),
    ("tasks", "network", "snapshots", "journal"),
    ("tasks", "snapshots", "store", "journal"),
    ("tasks", "snapshots", "store", "journal", "listing"),
    ("tasks", "network", "snapshots", "store", "reader", "journal"),
    tuple(history.WITNESSES),
]


@pytest.mark.parametrize("witnesses", SETS, ids=",".join)
def test_what_cannot_be_judged_is_never_judged(witnesses: tuple[str, ...]) -> None:
    engine = Engine()
    engine.witnesses = witnesses
    draw = scenario_of(Drawing(max_records=40, max_faults=2, capabilities=engine.capabilities))
    how = {one.invariant: one.how for one in judgeable(witnesses)}
    unseen: set[str] = set()
    for index in range(30):
        scenario = draw(5, index)
        seen = engine.run(scenario)
        for invariant, verdict in judge(scenario.workload, scenario.topology, seen).verdicts.items():
            if isinstance(verdict, Unknown) and verdict.reason == "not promised":
                continue
            is_blind = isinstance(verdict, Unknown) and verdict.detail.startswith("the history has no witness of")
            assert is_blind == (how[invariant] == "no"), (invariant, verdict)
            unseen |= {invariant} if is_blind else set()
    promised = set(judged_of(history.WITNESSES, ["exactly-once"], ["transactional"]))
    assert {name for name in promised if how[name] == "no"} <= unseen


def test_all_witnesses_lack_nothing() -> None:
    assert [(one.how, one.lacks) for one in judgeable(history.WITNESSES)] == [("in full", ())] * 12
    assert [one.invariant for one in judgeable(())] == list(INVARIANTS)


def test_what_a_subject_does_not_promise_is_not_judged_of_it() -> None:
    assert judged_of(history.WITNESSES, ["at-most-once"], ["plain"]) == ("at-most-once", "progress", "no-leaks")
    assert judged_of(["reader", "journal"], ["at-least-once"], ["plain"]) == (
        "no-data-loss",
        "at-least-once",
        "progress",
    )
    assert judged_of(history.WITNESSES, ["at-most-once"], ["transactional"]) == ()
