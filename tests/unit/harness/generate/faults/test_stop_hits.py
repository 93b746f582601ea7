"""Faults are brought to cancels, to resumes and to the refusal of jobs that do not fit, and meet them."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import Phase, given, settings

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, InPhase
from cutproof.harness.generate import strategies
from cutproof.harness.generate.choices import Choices, built
from cutproof.harness.generate.faults.stop_hits import with_hits
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Cancel, Resume, Scenario
from cutproof.harness.search.stops import INCOMPATIBLE, stops_of
from cutproof.harness.subject.run import Result, run
from unit.harness.scenarios import chain

replace = msgspec.structs.replace
TEMPLATES = ("S4", "S5", "S9", "part-finished", "laid-out-anew")
SCENARIOS = 200


def drawn(many: int, **how: object) -> list[Scenario]:
    drawing = replace(Drawing(capabilities=SimulatedSubject().capabilities, templates=TEMPLATES), **how)
    draw = scenario_of(drawing)
    return [draw(4, index) for index in range(many)]


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """Those with a cancel or a resume, run and judged."""
    subject = SimulatedSubject()
    return [run(subject, one) for one in drawn(SCENARIOS) if any(isinstance(c, Cancel | Resume) for c in one.commands)]


def _unhit(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    return scenario


def hits(results: list[Result], kind: str) -> Counter[tuple[str, str]]:
    """By kind of fault and the point that set it off, how often it hit such a stop."""
    stops = [stop for one in results for stop in stops_of(one.scenario, one.history) if stop.kind == kind]
    return Counter((hit.fault, hit.point) for stop in stops for hit in stop.hits)


def share(results: list[Result], kind: str) -> float:
    stops = [stop for one in results for stop in stops_of(one.scenario, one.history) if stop.kind == kind]
    return sum(bool(stop.hits) for stop in stops) / len(stops)


def test_each_is_hit_often(results: list[Result]) -> None:
    assert share(results, "cancel") > 0.2
    assert share(results, "resume") > 0.12
    assert share(results, INCOMPATIBLE) > 0.12


def test_a_cancel_is_hit_by_whoever_learns_of_it_and_whoever_is_notified(results: list[Result]) -> None:
    kinds = Counter(kind for kind, _ in hits(results, "cancel").elements())
    assert kinds.keys() >= {"kill-task", "kill-node", "kill-coordinator", "pause-task", "cut-channel", "lose-message"}
    assert ("kill-coordinator", "") in hits(results, "cancel"), "some while after it was asked"


def test_a_resume_is_hit_at_each_step_of_its_deployment(results: list[Result]) -> None:
    found = hits(results, "resume")
    assert {point for _, point in found} >= {"task-deployed", "state-loaded", "task-running", "savepoint-requested"}
    kinds = {kind for kind, _ in found}
    assert kinds >= {"kill-task", "kill-node", "kill-coordinator", "pause-task", "lose-message", "late-message"}
    assert "fail-read" in kinds


def test_a_refusal_is_hit_by_the_death_of_its_coordinator_alone(results: list[Result]) -> None:
    assert {kind for kind, _ in hits(results, INCOMPATIBLE)} <= {"kill-coordinator", "fail-read"}
    durable = [one for one in results if one.history.snapshots == "files"]
    assert share(durable, INCOMPATIBLE) > 0.1
    stops = [stop for one in durable for stop in stops_of(one.scenario, one.history) if stop.kind == INCOMPATIBLE]
    assert all(stop.finished for stop in stops if stop.hits), "the next coordinator refuses it too"


def test_nothing_is_violated(results: list[Result]) -> None:
    assert [one.scenario.seed for one in results if one.judgement.violated] == []


@pytest.mark.parametrize("most", [1, 2, 4])
def test_they_are_added_to_what_is_drawn_already_where_there_is_room(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = (*TEMPLATES, "S1", "S8")
    monkeypatch.setattr(strategies, "with_few_tolerated", _unhit)
    monkeypatch.setattr(strategies, "with_stragglers", _unhit)  # what comes late goes by the faults that are there
    for later in ("with_older_snapshots", "with_forks", "with_forgetful_inputs"):
        monkeypatch.setattr(strategies, later, lambda choices, scenario: scenario)
    monkeypatch.setattr(strategies, "with_deletions", _unhit)
    monkeypatch.setattr(strategies, "with_file_faults", _unhit)
    monkeypatch.setattr(strategies, "with_state_in_files", _unhit)
    companions = drawn(120, max_faults=most, templates=templates)
    monkeypatch.setattr(strategies, "with_hits", _unhit)
    without = drawn(120, max_faults=most, templates=templates)
    more = 0
    for one, plain in zip(companions, without, strict=True):
        assert list(problems_of(one)) == []
        assert one.faults[: len(plain.faults)] == plain.faults
        assert len(one.faults) <= max(most, len(plain.faults))
        assert replace(one, faults=()) == replace(plain, faults=())
        if one.faults != plain.faults:
            more += 1
            assert any(isinstance(command, Cancel | Resume) for command in one.commands)
    assert more > 10


@pytest.mark.parametrize("real_time", [False, True])
def test_where_times_are_the_machines_they_are_brought_to_points_alone(real_time: bool) -> None:
    stopped = replace(
        chain(),
        faults=(),
        commands=(
            Cancel(trigger=AtTime(at_us=900)),
            Resume(trigger=AtTime(at_us=0), inserted={"more": "map"}),
            Resume(trigger=AtTime(at_us=0)),
        ),
    )
    brought: list[AnyFault] = []

    @settings(max_examples=200, database=None, derandomize=True, phases=[Phase.generate])
    @given(built(lambda choices: with_hits(choices, stopped, 4, real_time=real_time)))
    def bring(scenario: Scenario) -> None:
        brought.extend(scenario.faults)

    bring()
    asked = {fault.trigger.point for fault in brought if isinstance(fault.trigger, AtPoint)}
    assert asked >= {"savepoint-requested", "task-deployed", "state-loaded", "task-running"}
    assert {type(fault.trigger) for fault in brought} == ({AtPoint} if real_time else {AtPoint, AtTime, InPhase})


def test_scenarios_in_real_time_have_some(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = {"capabilities": ProcessesSubject().capabilities, "max_records": 40}
    for later in ("with_older_snapshots", "with_forks", "with_forgetful_inputs"):
        monkeypatch.setattr(strategies, later, lambda choices, scenario: scenario)
    monkeypatch.setattr(strategies, "with_deletions", _unhit)
    monkeypatch.setattr(strategies, "with_state_in_files", _unhit)
    companions = drawn(200, **drawing)
    monkeypatch.setattr(strategies, "with_hits", _unhit)
    without = drawn(200, **drawing)
    asked = [one for one in without if any(isinstance(command, Cancel | Resume) for command in one.commands)]
    more = [one for one, plain in zip(companions, without, strict=True) if len(one.faults) > len(plain.faults)]
    assert len(more) > len(asked) // 4
