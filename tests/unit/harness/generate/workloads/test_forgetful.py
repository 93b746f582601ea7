"""Inputs that cannot rewind: drawn in at-most-once jobs alone; what was read of them is gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, TaskFailed
from cutproof.properties.model.verdict import Holds, Violated
from defects.on_processes import CORPUS

SIMULATED = subject_called("simulated").capabilities
MODEST = replace(SIMULATED, guarantees=frozenset({"at-most-once"}), sinks=frozenset({"plain"}))


def drawn(number: int, **changes: object) -> list[Scenario]:
    draw = scenario_of(Drawing(capabilities=replace(MODEST, **changes)))
    return [draw(19, index) for index in range(number)]


def forgetful(scenario: Scenario) -> bool:
    return not all(source.rewindable for source in scenario.workload.inputs)


def test_they_are_drawn_in_more_than_half_of_the_jobs_that_allow_it() -> None:
    scenarios = drawn(200)
    assert 90 < sum(map(forgetful, scenarios)) < 150
    assert any(forgetful(one) and any(source.rewindable for source in one.workload.inputs) for one in scenarios)


def test_a_stronger_guarantee_never_has_them() -> None:
    draw = scenario_of(Drawing(capabilities=SIMULATED))
    found = [one for one in (draw(19, index) for index in range(800)) if forgetful(one)]
    assert found
    assert {one.engine.guarantee for one in found} == {"at-most-once"}


def test_an_engine_that_does_not_declare_them_gets_none() -> None:
    assert not any(map(forgetful, drawn(60, sources=frozenset({"bounded", "unbounded"}))))


def test_restarts_lose_records_and_repeat_none() -> None:
    results = [run(subject_called("simulated"), one) for one in drawn(150) if forgetful(one)]
    assert not any(isinstance(one, Violated) for result in results for one in result.judgement.verdicts.values())
    assert sum(isinstance(result.judgement.verdicts["at-most-once"], Holds) for result in results) > 20
    assert any(_restarts(result) for result in results)


def _restarts(result: Result) -> bool:
    return sum(isinstance(one, AttemptStarted) for one in result.history.journal) > 1


@pytest.mark.parametrize("rewindable", [True, False])
def test_a_position_behind_repeats_a_record_or_is_refused_by_name(rewindable: bool) -> None:
    scenario = read_scenario(CORPUS.parent / "K12.json")
    inputs = tuple(replace(source, rewindable=rewindable) for source in scenario.workload.inputs)
    scenario = replace(scenario, workload=replace(scenario.workload, inputs=inputs))
    result = run(subject_called("simulated", "K12"), scenario)
    assert isinstance(result.judgement.verdicts["at-most-once"], Violated) is rewindable
    refused = [one for one in result.history.journal if isinstance(one, TaskFailed) and one.fault is None]
    assert bool(refused) is not rewindable
    assert all("split 0 has been discarded up to record 1" in one.reason for one in refused)
