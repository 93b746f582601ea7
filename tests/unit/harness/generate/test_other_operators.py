"""Changes of a job's operators are drawn in a modest share; each can be run, and some are refused."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.scenario.upgrades import absent_of, is_refused, keeping_state, upgrade_of
from cutproof.harness.subject.needs import needs
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds

SEED = 6
FULL = SimulatedSubject().capabilities


@pytest.fixture(scope="module")
def changed() -> list[Result]:
    """Runs of the template that changes the operators."""
    draw = scenario_of(Drawing(capabilities=FULL, max_records=60, templates=("other-operators",)))
    found = [run(SimulatedSubject(), draw(SEED, index)) for index in range(100)]
    changed = [one for one in found if any(absent_of(one.scenario))]
    assert len(changed) > 50
    return changed


def test_every_one_can_be_run_and_none_is_violated(changed: list[Result]) -> None:
    assert [problem for one in changed for problem in problems_of(one.scenario)] == []
    assert [one.judgement.violated for one in changed if one.judgement.violated] == []
    assert all(needs(one.scenario).changes_operators for one in changed)


def test_operators_with_and_without_state_are_added_and_removed_and_come_back(changed: list[Result]) -> None:
    found: Counter[str] = Counter()
    for one in changed:
        keeping, absent = keeping_state(one.scenario.workload), absent_of(one.scenario)
        for before, now in pairwise(absent):
            for what, names in (("removed", set(now) - set(before)), ("added", set(before) - set(now))):
                for name in names:
                    found[f"{what} {'with' if name in keeping else 'without'} state"] += 1
            found["both"] += bool(set(now) - set(before) and set(before) - set(now))
        changes_of = [before != now for before, now in pairwise(absent)]
        found["back"] += len(set(absent)) <= sum(changes_of)
        found["refused"] += any(is_refused(command, one.scenario.workload) for command in one.scenario.commands)
    kinds = ("removed with state", "removed without state", "added with state", "added without state")
    assert min(found[kind] for kind in (*kinds, "both", "back", "refused")) >= 4, found


def test_what_the_jobs_owe_is_judged(changed: list[Result]) -> None:
    for name in ("no-data-loss", "restored-state", "consistent-cut"):
        held = [one for one in changed if isinstance(one.judgement.verdicts[name], Holds)]
        assert len(held) > len(changed) // 2, name


def changes(scenario: Scenario) -> bool:
    upgrades = [upgrade for upgrade in map(upgrade_of, scenario.commands) if upgrade is not None]
    return any(upgrade.added or upgrade.removed for upgrade in upgrades)


def test_a_share_of_all_scenarios_changes_the_operators() -> None:
    draw = scenario_of(Drawing(capabilities=FULL, max_records=60))
    assert 3 <= sum(changes(draw(SEED, index)) for index in range(700)) <= 30


@pytest.mark.parametrize("missing", ["changes_operators", "upgrades"])
def test_a_subject_that_knows_none_gets_none(missing: str) -> None:
    fewer = {name: getattr(FULL, name) for name in FULL.__struct_fields__ if name != missing}
    draw = scenario_of(Drawing(capabilities=type(FULL)(**fewer), max_records=60))
    drawn = [draw(SEED, index) for index in range(300)]
    assert not any(changes(scenario) or any(absent_of(scenario)) for scenario in drawn)


def test_a_given_workload_gets_no_other_operators() -> None:
    given = scenario_of(Drawing(capabilities=FULL, max_records=60, templates=("S5",)))(SEED, 1).workload
    draw = scenario_of(Drawing(workload=given, capabilities=FULL, templates=("other-operators", "S5")))
    drawn = [draw(SEED, index) for index in range(60)]
    assert {scenario.name for scenario in drawn} == {"other-operators", "S5"}
    assert all(scenario.workload == given for scenario in drawn)
    assert not any(changes(scenario) for scenario in drawn)
