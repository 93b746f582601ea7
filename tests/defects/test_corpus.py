"""Each planted defect has a scenario that tells it from the correct engine, run both ways.

*Caught* means: with the defect its named invariant is violated and the wrong code
itself ran; without it the same scenario holds and that invariant is exercised.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.files import read_scenario
from cutproof.harness.run import run
from cutproof.harness.subjects.simulated import SimulatedSubject
from cutproof.properties.verdict import Holds, Violated
from cutproof.reference_impl.defects import DEFECTS

CORPUS = Path(__file__).parents[1] / "corpus"


def test_the_corpus_has_a_scenario_for_every_planted_defect() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.json")) == sorted(DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS)
def test_its_invariant_is_violated_with_the_defect(defect: str) -> None:
    scenario = read_scenario(CORPUS / f"{defect}.json")
    result = run(SimulatedSubject(defect), scenario)
    assert scenario.expects == DEFECTS[defect].invariant
    assert result.history.defect_reached
    assert isinstance(result.judgement.verdicts[DEFECTS[defect].invariant], Violated)


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_correct_engine_holds_and_is_exercised(defect: str) -> None:
    result = run(SimulatedSubject(), read_scenario(CORPUS / f"{defect}.json"))
    assert not result.judgement.violated
    assert isinstance(result.judgement.verdicts[DEFECTS[defect].invariant], Holds)
    assert not result.history.defect_reached


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_story_is_short(defect: str) -> None:
    scenario = read_scenario(CORPUS / f"{defect}.json")
    assert len(scenario.faults) + len(scenario.commands) <= 4
