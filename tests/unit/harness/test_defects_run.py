"""The hunt for planted defects: what counts as caught, and what is told."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.harness.defects_run import HINTS, Catch, DefectRun, Hunter, Named, hunt, report_of, run_defects
from cutproof.harness.run import run
from cutproof.harness.strategies.templates import TEMPLATES
from cutproof.harness.subjects.simulated import SimulatedSubject
from cutproof.reference_impl.defects import DEFECTS
from cutproof.reports.model import Size

LEAK = Named(id="I06", upstream="FLINK-40626", invariant="no-leaks")
WRONGLY_NAMED = Named(id="I06", upstream="FLINK-40626", invariant="order")


@pytest.fixture(scope="module")
def found() -> DefectRun:
    return hunt(LEAK, seed=0, scenarios=60)


def test_a_defect_is_reached_caught_and_shrunk(found: DefectRun) -> None:
    assert (found.id, found.reached, found.caught, found.invariant) == ("I06", True, True, "no-leaks")
    assert 1 <= found.scenarios_tried <= 60
    assert found.size.tasks + found.size.records + found.size.faults <= 12
    assert found.scenario is not None
    assert (found.scenario.defect, found.scenario.expects) == ("I06", "no-leaks")


def test_its_scenario_is_violated_with_the_defect_and_not_without(found: DefectRun) -> None:
    assert found.scenario is not None
    faulty, sound = SimulatedSubject("I06"), SimulatedSubject()
    catch = Catch.of(run(faulty, found.scenario), "no-leaks")
    assert catch is not None
    assert catch.difference == found.difference
    assert Hunter(faulty, sound, catch)(found.scenario)
    assert not Hunter(sound, sound, catch)(found.scenario)
    assert not Hunter(faulty, faulty, catch)(found.scenario)
    other = msgspec.structs.replace(catch, difference="another difference")
    assert not Hunter(faulty, sound, other)(found.scenario)
    nothing_else = msgspec.structs.replace(catch, violated=frozenset())
    assert not Hunter(faulty, sound, nothing_else)(found.scenario)


def test_a_defect_that_does_not_violate_what_it_is_named_for_is_missed() -> None:
    missed = hunt(WRONGLY_NAMED, seed=0, scenarios=10)
    assert (missed.reached, missed.caught, missed.scenarios_tried) == (True, False, 10)
    assert "no-leaks" in missed.violated_instead


def test_the_report_counts_and_leaves_the_scenarios_out(found: DefectRun) -> None:
    missed = msgspec.structs.replace(found, id="A99", caught=False, size=Size(), scenario=None)
    report = report_of([found, missed])
    assert (report.format, report.caught, report.missed) == ("cutproof-defects/1", 1, 1)
    assert [row["id"] for row in report.defects] == ["A99", "I06"]
    assert "scenario" not in report.defects[0]


def test_one_worker_hunts_in_this_process() -> None:
    (run,) = run_defects([LEAK], seed=0, scenarios=60)
    assert run.caught


def test_hints_name_defects_and_templates() -> None:
    assert set(HINTS) <= set(DEFECTS)
    assert {template for templates in HINTS.values() for template in templates} <= set(TEMPLATES)
