"""The templates around a job's end: what S8 and S9 draw, and that it happens."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.faults.plan import AtPoint, AtTime, InPhase, LateMessage, LoseMessage, RepeatMessage
from cutproof.harness.generate.situations.endings import ENDS, LAST_WORDS
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import (
    AnyCommand,
    Cancel,
    CopySnapshot,
    Fork,
    MoveSnapshot,
    Resume,
    Scenario,
    StopWithSavepoint,
    kind_of,
)
from cutproof.harness.subject.port import Capabilities
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, CheckpointAborted, FaultFired, JobEnded

SCENARIOS = 200
RUNS = 60


def drawn(template: str) -> list[Scenario]:
    draw = scenario_of(Drawing(templates=(template,)))
    return [draw(5, index) for index in range(SCENARIOS)]


@pytest.fixture(scope="module")
def apart() -> list[Scenario]:
    return drawn("S8")


@pytest.fixture(scope="module")
def stopped() -> list[Scenario]:
    return drawn("S9")


def results(scenarios: list[Scenario]) -> list[Result]:
    return [run(SimulatedSubject(), scenario) for scenario in scenarios[:RUNS]]


@pytest.fixture(scope="module")
def apart_results(apart: list[Scenario]) -> list[Result]:
    return results(apart)


@pytest.fixture(scope="module")
def stopped_results(stopped: list[Scenario]) -> list[Result]:
    return results(stopped)


def uneven(scenario: Scenario) -> bool:
    lengths = [len(records) for _, _, records in scenario.workload.splits()]
    return min(lengths) * 2 <= max(lengths)


def test_inputs_end_at_different_times(apart: list[Scenario]) -> None:
    assert sum(map(uneven, apart)) > SCENARIOS * 7 // 10
    kinds = Counter(frozenset(source.bounded for source in one.workload.inputs) for one in apart)
    assert min(kinds[frozenset({True})], kinds[frozenset({False})], kinds[frozenset({True, False})]) > 10
    bounded_first = [one for one in apart if len({source.bounded for source in one.workload.inputs}) == 2]
    assert all(one.workload.inputs[0].bounded for one in bounded_first)


def test_subtasks_of_one_source_end_apart_over_forward_edges(apart: list[Scenario]) -> None:
    forward = [
        one
        for one in apart
        if uneven(one) and any(edge.partitioning == "forward" and one.topology.parallelism[edge.sender] > 1
                               for edge in one.topology.edges)
    ]  # fmt: skip
    assert len(forward) > 10


def test_each_of_the_last_words_is_lost_late_and_doubled(apart: list[Scenario]) -> None:
    wrong = {
        (type(fault), fault.message)
        for one in apart
        for fault in one.faults
        if isinstance(fault, LoseMessage | LateMessage | RepeatMessage)
    }
    assert wrong == {(kind, message) for kind in (LoseMessage, LateMessage, RepeatMessage) for message in LAST_WORDS}


def test_something_dies_at_the_ends(apart: list[Scenario], apart_results: list[Result]) -> None:
    points = {fault.trigger.point for one in apart for fault in one.faults if isinstance(fault.trigger, AtPoint)}
    assert points >= {*ENDS, "checkpoint-completed", "checkpoint-triggered", "checkpoint-acknowledged"}
    assert any(isinstance(fault.trigger, InPhase) for one in apart for fault in one.faults)
    fired = {entry.phase for one in apart_results for entry in one.history.journal if isinstance(entry, FaultFired)}
    assert "finishing" in fired


def test_checkpoints_complete_after_tasks_finished_and_are_restored(apart_results: list[Result]) -> None:
    partly = [one for one in apart_results if any(completed.finished for completed in one.history.completed)]
    assert len(partly) > RUNS // 5
    restored = [
        entry.restores
        for one in apart_results
        for entry in one.history.journal
        if isinstance(entry, AttemptStarted) and entry.restores in one.case.lineages.completed
        and one.case.lineages.completed[entry.restores or 0].finished
    ]  # fmt: skip
    assert restored


def ending_of(scenario: Scenario) -> tuple[str, ...]:
    """What its users ask for before they resume, in the order of the commands."""
    return tuple(
        "drain" if isinstance(one, StopWithSavepoint) and one.drain else kind_of(one)
        for one in scenario.commands
        if not isinstance(one, Resume | Fork)
    )


def test_every_job_is_stopped_or_drained_and_mostly_resumed(stopped: list[Scenario]) -> None:
    ended = [one for one in stopped if set(ending_of(one)) & {"stop-with-savepoint", "drain", "cancel"}]
    assert len(ended) == SCENARIOS
    stops = [[command for command in one.commands if isinstance(command, StopWithSavepoint)] for one in stopped]
    assert sum(map(bool, stops)) > SCENARIOS * 85 // 100
    drains = sum(command.drain for commands in stops for command in commands)
    assert SCENARIOS // 4 < drains < SCENARIOS * 3 // 4
    resumed = sum(any(isinstance(command, Resume) for command in one.commands) for one in stopped)
    assert SCENARIOS * 6 // 10 < resumed < SCENARIOS
    assert any(isinstance(command, Cancel) for one in stopped for command in one.commands)
    assert {one.engine.sink for one in stopped} == {"transactional", "idempotent"}


def test_all_commands_that_can_race_do_so_in_either_order() -> None:
    draw = scenario_of(Drawing(templates=("S9",)))
    pairs = Counter(ending_of(draw(6, index)) for index in range(600))
    kinds = ("stop-with-savepoint", "drain", "cancel", "savepoint")
    assert min(pairs[first, second] for first in kinds for second in kinds if first != second) >= 5
    assert 150 < sum(number for pair, number in pairs.items() if len(pair) == 2) < 300


def test_races_come_at_once_at_a_step_and_later_and_often_with_an_endless_input(stopped: list[Scenario]) -> None:
    races = [one for one in stopped if len(ending_of(one)) == 2 and not any(map(is_copy, one.commands))]
    gaps = Counter(_gap(*one.commands[:2]) for one in races)
    assert min(gaps[gap] for gap in ("at once", "at a step", "later")) > 5
    mixed = [one for one in races if len({source.bounded for source in one.workload.inputs}) == 2]
    assert len(mixed) > len(races) // 4


def is_copy(command: AnyCommand) -> bool:
    """Those are drawn for any scenario, with a savepoint of their own."""
    return isinstance(command, CopySnapshot | MoveSnapshot)


def _gap(first: AnyCommand, second: AnyCommand) -> str:
    if first.trigger == second.trigger:
        return "at once"
    if isinstance(second.trigger, AtPoint):
        return "at a step"
    assert isinstance(first.trigger, AtTime)
    assert isinstance(second.trigger, AtTime)
    assert second.trigger.at_us > first.trigger.at_us
    return "later"


def test_stops_end_in_every_way(stopped_results: list[Result]) -> None:
    """By the savepoint, by the input's own end before it, and after a savepoint that was given up."""
    statuses = {entry.status for one in stopped_results for entry in one.history.journal if isinstance(entry, JobEnded)}
    assert statuses >= {"stopped", "drained", "finished"}
    given_up = [
        entry for one in stopped_results for entry in one.history.journal if isinstance(entry, CheckpointAborted)
    ]
    assert given_up
    again = [one for one in stopped_results if len({run.job for run in _starts(one)}) > 1]
    assert len(again) > RUNS // 4


def _starts(result: Result) -> list[AttemptStarted]:
    return [entry for entry in result.history.journal if isinstance(entry, AttemptStarted)]


def test_nothing_is_violated(apart_results: list[Result], stopped_results: list[Result]) -> None:
    violated = [one.scenario.seed for one in (*apart_results, *stopped_results) if one.judgement.violated]
    assert violated == []


def test_a_subject_without_transactions_gets_a_sink_that_it_has() -> None:
    draw = scenario_of(Drawing(templates=("S9",), capabilities=Capabilities(sinks=frozenset({"plain"}))))
    assert {draw(5, index).engine.sink for index in range(10)} == {"plain"}
