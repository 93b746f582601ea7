"""Each planted defect has a scenario that tells it from the correct engine, run both ways.

*Caught* means: with the defect its named invariant is violated and the wrong code
itself ran; without it the same scenario holds and that invariant is exercised.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.shrink.shrink import size_of
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.reference_impl.defects import DEFECTS
from defects.differences import SIMULATED

CORPUS = Path(__file__).parents[1] / "corpus"


@cache
def with_defect(defect: str) -> Result:
    return run(SimulatedSubject(defect), read_scenario(CORPUS / f"{defect}.json"))


def test_the_corpus_has_a_scenario_for_every_planted_defect() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.json")) == sorted(DEFECTS) == sorted(SIMULATED)


@pytest.mark.parametrize("defect", DEFECTS)
def test_its_invariant_is_violated_with_the_defect_in_the_way_expected(defect: str) -> None:
    result = with_defect(defect)
    verdict = result.judgement.verdicts[DEFECTS[defect].invariant]
    assert result.scenario.expects == DEFECTS[defect].invariant
    assert result.history.defect_reached
    assert isinstance(verdict, Violated)
    assert verdict.difference == SIMULATED[defect]


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_witness_reports_what_and_where(defect: str) -> None:
    """In words, and with a place: the events that led there, or the tasks and the checkpoint that it shows at."""
    verdict = with_defect(defect).judgement.verdicts[DEFECTS[defect].invariant]
    assert isinstance(verdict, Violated)
    assert verdict.message
    assert verdict.events or (verdict.tasks and verdict.checkpoint is not None)


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_correct_engine_holds_and_is_exercised(defect: str) -> None:
    result = run(SimulatedSubject(), read_scenario(CORPUS / f"{defect}.json"))
    assert not result.judgement.violated
    assert isinstance(result.judgement.verdicts[DEFECTS[defect].invariant], Holds)
    assert not result.history.defect_reached


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_story_is_short(defect: str) -> None:
    """Tasks, records and faults together, and commands beside them."""
    scenario = read_scenario(CORPUS / f"{defect}.json")
    assert sum(size_of(scenario)) <= 12
    assert len(scenario.faults) + len(scenario.commands) <= 4
