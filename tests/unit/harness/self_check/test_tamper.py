"""`verify --tamper`: every mutation is made and found; a judge without teeth is found out."""

from __future__ import annotations

import pytest

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.slices import Draw
from cutproof.harness.search.worker import Plan, drawer
from cutproof.harness.self_check import tamper as module
from cutproof.harness.self_check.tamper import TamperReport, tamper
from cutproof.harness.subject.port import SubjectFailed
from cutproof.properties.invariants.judge import Judgement, judge
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Topology, Workload
from cutproof.properties.mutations.tampering import MUTATIONS
from unit.harness.subjects import Broken, Failing

SUBJECT = SimulatedSubject()


@pytest.fixture(scope="module")
def draw() -> Draw:
    return drawer(Plan(), SUBJECT)


def _tamper(draw: Draw, scenarios: int = 6) -> TamperReport:
    return tamper(SUBJECT, draw, seed=5, scenarios=scenarios)


def test_every_mutation_that_is_made_is_seen(draw: Draw) -> None:
    """That 90 scenarios reach every mutation is shown end to end, in `test_verbs`."""
    report = _tamper(draw, 12)
    assert [mutation.name for mutation in report.tamperings] == list(MUTATIONS)
    assert report.caught == sum(mutation.tried for mutation in report.tamperings) > 60
    assert (report.scenarios, report.missed) == (12, 0)
    reached = [mutation.name for mutation in report.tamperings if mutation.tried]
    assert sorted([*reached, *report.not_reached]) == sorted(MUTATIONS)
    assert report.has_teeth == (report.not_reached == [])


def test_a_judge_that_never_finds_a_violation_has_no_teeth(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    def toothless(workload: Workload, topology: Topology, history: History) -> Judgement:
        verdicts = judge(workload, topology, history).verdicts
        return Judgement(
            verdicts={
                name: Holds(exercised=1) if isinstance(verdict, Violated) else verdict
                for name, verdict in verdicts.items()
            }
        )

    monkeypatch.setattr(module, "judge", toothless)
    report = _tamper(draw)
    assert report.caught == 0
    assert report.missed > 30
    assert not report.has_teeth
    assert all(mutation.missed == [] or mutation.missed[0].startswith("5 ") for mutation in report.tamperings)
    assert max(len(mutation.missed) for mutation in report.tamperings) == module.MISSES_KEPT


def test_a_mutation_that_no_history_has_a_place_for_is_not_reached(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "tamperings", lambda case: [])
    report = _tamper(draw, 2)
    assert report.not_reached == list(MUTATIONS)
    assert not report.has_teeth


def test_a_scenario_that_cannot_be_run_is_reported_and_ends_nothing(draw: Draw) -> None:
    report = tamper(Broken(), draw, seed=6, scenarios=6)
    assert report.scenarios == 6
    odd = [number for number in range(6) if draw(6, number).workload.records() % 2]
    assert [one.number for one in report.not_run if one.number < 6] == odd != []
    assert report.not_run[0].reason.startswith("RuntimeError: no connection at all (run, line")
    assert report.caught > 30


def test_nothing_more_is_searched_where_nothing_could_be_run(draw: Draw) -> None:
    report = tamper(Failing(0, SubjectFailed("no port")), draw, seed=5, scenarios=3)
    assert [one.reason for one in report.not_run] == ["no port"] * 3
    assert report.searched == 0


def test_an_interruption_keeps_what_was_done(draw: Draw) -> None:
    def interrupted(seed: int, index: int) -> object:
        if index == 3:
            raise KeyboardInterrupt
        return draw(seed, index)

    report = _tamper(interrupted)  # type: ignore[arg-type]
    assert (report.scenarios, report.interrupted) == (3, True)
    assert report.caught > 0


def test_time_ends_it(draw: Draw) -> None:
    report = tamper(SUBJECT, draw, seed=5, scenarios=10_000, time_s=0.05)
    assert 1 <= report.scenarios < 10_000
