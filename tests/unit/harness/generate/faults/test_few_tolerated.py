"""Few tolerated failures of checkpoints are drawn in a fair share, and used up in some of it."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.forecast import behind_all_us, forecast
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.scenario.promises import FEW, can_show
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import AttemptStarted, CheckpointAborted, JobEnded, TaskFailed
from cutproof.properties.model.verdict import Unknown, Violated


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing(capabilities=subject_called("simulated").capabilities))
    return [draw(19, index) for index in range(1_000)]


def few(scenarios: list[Scenario]) -> list[Scenario]:
    return [one for one in scenarios if one.engine.tolerated_failures < FEW]


def test_few_are_tolerated_in_a_fair_share(drawn: list[Scenario]) -> None:
    by_number = Counter(one.engine.tolerated_failures for one in few(drawn))
    assert sorted(by_number) == [0, 1, 2]
    assert 200 < by_number.total() < 450
    assert all(number > 20 for number in by_number.values())


def test_no_scenario_gets_more_faults_than_it_may_have(drawn: list[Scenario]) -> None:
    assert max(len(one.faults) for one in drawn) == 4


def test_without_checkpoints_or_faults_none_can_fail(drawn: list[Scenario]) -> None:
    assert all(one.faults and one.engine.guarantee != "at-most-once" for one in few(drawn))


def test_the_tolerance_is_used_up_and_judged(drawn: list[Scenario]) -> None:
    subject = subject_called("simulated")
    restarts = failures = 0
    for scenario in few(drawn):
        result = run(subject, scenario)
        assert not any(isinstance(one, Violated) for one in result.judgement.verdicts.values())
        journal = result.history.journal
        quiet = not any(isinstance(one, TaskFailed) for one in journal)
        aborted = sum(isinstance(one, CheckpointAborted) for one in journal)
        started = sum(isinstance(one, AttemptStarted) for one in journal)
        restarts += quiet and aborted > scenario.engine.tolerated_failures and started > 1
        failed = [one for one in journal if isinstance(one, JobEnded) and one.status == "failed"]
        if failed and "too many checkpoints failed" in failed[0].reason:
            failures += 1
            assert isinstance(result.judgement.verdicts["progress"], Unknown)
            assert "progress" not in can_show(scenario)
    assert restarts >= 5
    assert failures >= 2


def test_no_barrier_waits_behind_all_records_until_it_times_out(drawn: list[Scenario]) -> None:
    """A job that tolerates hardly any failure would fail, and no fault would explain that."""
    impatient = [one for one in drawn if one.engine.tolerated_failures <= 2]
    behind = [behind_all_us(one.workload, forecast(one.workload, one.topology, one.engine)) for one in impatient]
    assert sum(us > 10_000 for us in behind) > 1
    for one, us in zip(impatient, behind, strict=True):
        assert one.engine.checkpoint_timeout_us >= us
