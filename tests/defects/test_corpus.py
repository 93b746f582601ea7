"""Each planted defect has a scenario that tells it from the correct engine, run both ways.

*Caught* means: with the defect its named invariant is violated and the wrong code
itself ran; without it the same scenario holds and that invariant is exercised.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cutproof.harness.files import read_scenario
from cutproof.harness.run import Result, run
from cutproof.harness.shrink import size_of
from cutproof.harness.subjects.simulated import SimulatedSubject
from cutproof.properties.verdict import Holds, Violated
from cutproof.reference_impl.defects import DEFECTS

CORPUS = Path(__file__).parents[1] / "corpus"

DIFFERENCES = {
    "A01": "sent after, applied before",
    "A03": "state differs",
    "A05": "input before state",
    "A07": "lost row",
    "A14": "another snapshot restored",
    "A15": "snapshot missing",
    "A16": "no rest",
    "D16": "loaded state differs",
    "E03": "file left",
    "E04": "unexplained failure",
    "E05": "unexplained failure",
    "E07": "command not obeyed",
    "E09": "unexplained failure",
    "E10": "command never returned",
    "E11": "input not covered",
    "E13": "job failed",
    "F01": "another snapshot restored",
    "F03": "unexpected row",
    "F07": "unexplained failure",
    "F08": "another snapshot restored",
    "F09": "file missing",
    "F12": "file missing",
    "F13": "unexplained failure",
    "F16": "record never read",
    "H01": "state differs",
    "H04": "state differs",
    "I01": "transaction differs",
    "I03": "commit outstanding",
    "I05": "commit outstanding",
    "I06": "transaction left",
    "I09": "abort outstanding",
    "I10": "unexplained failure",
    "I11": "commit outstanding",
    "I12": "lost row",
    "I18": "repeated row",
    "I19": "lost row",
    "I22": "commit outstanding",
    "I27": "transaction differs",
    "I32": "unexplained failure",
    "I35": "wrong row",
    "I37": "lost row",
    "I38": "unexplained failure",
    "J05": "transaction left",
    "J06": "snapshot missing",
    "J07": "job never ended",
    "J08": "no rest",
    "J10": "no rest",
    "J11": "window left",
    "J17": "commit before completion",
    "J18": "no rest",
    "J23": "repeated row",
    "J25": "no rest",
    "J26": "job failed",
    "J29": "input not covered",
    "K01": "split held twice",
    "K04": "repeated row",
    "K07": "repeated row",
    "K09": "record never read",
    "K10": "repeated row",
    "K11": "split held by nobody",
    "L02": "watermark differs",
    "L06": "timer differs",
    "L07": "timer differs",
    "L08": "unexpected row",
    "L10": "time differs",
    "M14": "sent before, applied after",
    "X03": "input not covered",
}
"""How each shows.  What has deleted or lost a snapshot shows as the failure of the task that misses it."""


@cache
def with_defect(defect: str) -> Result:
    return run(SimulatedSubject(defect), read_scenario(CORPUS / f"{defect}.json"))


def test_the_corpus_has_a_scenario_for_every_planted_defect() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.json")) == sorted(DEFECTS) == sorted(DIFFERENCES)


@pytest.mark.parametrize("defect", DEFECTS)
def test_its_invariant_is_violated_with_the_defect_in_the_way_expected(defect: str) -> None:
    result = with_defect(defect)
    verdict = result.judgement.verdicts[DEFECTS[defect].invariant]
    assert result.scenario.expects == DEFECTS[defect].invariant
    assert result.history.defect_reached
    assert isinstance(verdict, Violated)
    assert verdict.difference == DIFFERENCES[defect]


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_witness_tells_what_and_where(defect: str) -> None:
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
