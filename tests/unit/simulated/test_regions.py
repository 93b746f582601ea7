"""Failover by region in the simulated world: who dies, who goes on, and what the judge makes of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtTime, KillNode, KillTask, PauseTask
from cutproof.harness.generate.situations.regional import forward_only
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.judge import judge_case
from cutproof.properties.model.history import AttemptStarted, History, TaskFailed
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Input, Workload
from cutproof.properties.quick_checker.case import Case

RECORDS = 40
FAULT_AT = 5_000

Fault = KillTask | KillNode | PauseTask


def scenario(*faults: Fault, splits: int = 2, failover: str = "region") -> Scenario:
    records = tuple(
        tuple((offset % 3, offset, 1 + split * RECORDS + offset) for offset in range(RECORDS))
        for split in range(splits)
    )
    workload = Workload(name="chain", inputs=(Input(name="source", splits=records),), nodes=())
    engine = Engine(checkpoint_interval_us=2_000, failover=failover, nodes=2)
    return Scenario(workload=workload, topology=forward_only(workload, splits), engine=engine, faults=faults)


def result_of(planned: Scenario) -> Result:
    return run(subject_called("simulated", None), planned)


@cache
def killed() -> Result:
    return result_of(scenario(KillTask(trigger=AtTime(at_us=FAULT_AT), task="sink-1")))


def attempts(history: History, task: str) -> list[int]:
    return [one.attempt for one in history.runs if one.task == task]


def starts(history: History) -> list[tuple[int, list[str]]]:
    return [(one.attempt, one.tasks) for one in history.journal if isinstance(one, AttemptStarted)]


def violated(result: Result) -> dict[str, Violated]:
    return {name: one for name, one in result.judgement.verdicts.items() if isinstance(one, Violated)}


def test_the_survivors_go_on_and_only_the_region_comes_up_again() -> None:
    history = killed().history
    assert starts(history) == [(1, []), (2, ["source-1", "sink-1"])]
    assert attempts(history, "source-0") == attempts(history, "sink-0") == [1]
    assert attempts(history, "source-1") == attempts(history, "sink-1") == [1, 2]
    source = next(one for one in history.runs if one.task == "source-0")
    assert len(source.reads) == RECORDS, "nothing is read twice there"


def test_the_invariants_hold_and_are_exercised() -> None:
    verdicts = killed().judgement.verdicts
    for name in ("exactly-once", "no-data-loss", "consistent-cut", "restored-state", "visibility", "no-leaks", "order"):
        assert isinstance(verdicts[name], Holds), name
    assert not violated(killed())


def test_a_full_failover_restarts_all() -> None:
    fault = KillTask(trigger=AtTime(at_us=FAULT_AT), task="sink-1")
    history = result_of(scenario(fault, failover="full")).history
    assert starts(history) == [(1, []), (2, [])]
    assert attempts(history, "source-0") == [1, 2]


def test_survivors_commit_what_they_have_open_and_what_the_region_had_open_is_aborted() -> None:
    transactions = killed().history.transactions
    of_survivor = [one for one in transactions if one.task == "sink-0" and one.rows]
    assert of_survivor
    assert all(one.status == "committed" for one in of_survivor)
    assert any(one.task == "sink-1" and one.attempt == 1 and one.aborted is not None for one in transactions)


def test_a_zombie_of_the_region_is_shut_out() -> None:
    """It is paused, given up and comes back: its fence is newer, that of the survivors is not."""
    pause = PauseTask(trigger=AtTime(at_us=FAULT_AT), task="source-1", for_us=60_000)
    kill = KillTask(trigger=AtTime(at_us=FAULT_AT + 500), task="sink-1")
    result = result_of(scenario(pause, kill))
    assert not violated(result)
    assert starts(result.history)[1] == (2, ["source-1", "sink-1"])


def test_two_regions_lost_with_their_node_restart_together_and_a_third_goes_on() -> None:
    """Tasks are distributed to the nodes in turn: source-0, source-2 and sink-1 lie on node 0."""
    first = KillTask(trigger=AtTime(at_us=FAULT_AT), task="sink-0")
    second = KillTask(trigger=AtTime(at_us=FAULT_AT + 300), task="sink-1")
    result = result_of(scenario(first, second, splits=3))
    assert starts(result.history)[1:] == [(2, ["source-0", "source-1", "sink-0", "sink-1"])]
    assert not violated(result)


def test_a_second_failure_in_another_region_while_the_first_comes_up() -> None:
    first = KillTask(trigger=AtTime(at_us=FAULT_AT), task="sink-0")
    second = KillTask(trigger=AtPoint(point="state-loaded", task="sink-0"), task="sink-1")
    result = result_of(scenario(first, second, splits=3))
    assert [tasks for _, tasks in starts(result.history)[1:]] == [
        ["source-0", "sink-0"],
        ["source-0", "source-1", "sink-0", "sink-1"],
    ]
    assert not violated(result)


# -- the judge ----------------------------------------------------------------------------------------------------


def _unnamed_part(history: History) -> None:
    """The attempt is said to restart all, and only a part of them came up."""
    entry = next(one for one in history.journal if isinstance(one, AttemptStarted) and one.tasks)
    entry.tasks = []


def _survivor_off(history: History) -> None:
    """A survivor's newest snapshot says that it has read more than it had."""
    of_survivor = [one for one in history.stored if one.task == "source-0"]
    entry = of_survivor[-1]
    entry.state = entry.state.replace('"positions":{"0":', '"positions":{"0":1')


def _read_on(history: History) -> None:
    """The region read on where it was lost, not from what it restored."""
    restarted = [one for one in history.runs if one.task == "source-1"][-1]
    del restarted.reads[0]


def _no_reason(history: History) -> None:
    """The region restarted, and none of its tasks had failed."""
    for entry in history.journal:
        if isinstance(entry, TaskFailed):
            entry.fault = None


@pytest.mark.parametrize(
    ("mutate", "invariant"),
    [
        (_unnamed_part, "no-data-loss"),
        (_survivor_off, "consistent-cut"),
        (_read_on, "restored-state"),
        (_no_reason, "progress"),
    ],
)
def test_what_is_wrong_outside_a_part_that_restarted_is_seen(mutate: Callable[[History], None], invariant: str) -> None:
    planned = killed()
    history = msgspec.json.decode(msgspec.json.encode(planned.history), type=History)
    mutate(history)
    verdict = judge_case(Case(planned.case.workload, planned.case.submitted, history)).verdicts[invariant]
    assert isinstance(verdict, Violated)


def drawn(template: str) -> list[Result]:
    draw = scenario_of(Drawing(templates=(template,), max_records=40))
    return [result_of(draw(11, number)) for number in range(12)]


def test_no_drawn_run_is_accused_and_parts_do_restart() -> None:
    results = drawn("regional")
    assert [result.scenario.seed for result in results if violated(result)] == []
    assert sum(any(tasks for _, tasks in starts(result.history)) for result in results) >= 3


def test_no_run_that_is_hit_amid_a_stop_is_accused_and_all_restart() -> None:
    """Where some had finished already nothing goes on alone."""
    results = drawn("partly-stopped")
    assert [result.scenario.seed for result in results if violated(result)] == []
    hit = [result.history for result in results if hit_amid_a_stop(result.history)]
    assert len(hit) >= 3
    assert all(not tasks for history in hit for _, tasks in starts(history))


def hit_amid_a_stop(history: History) -> bool:
    """Whether the second attempt came when some tasks of the first had finished, and one was killed."""
    first = {one.how for one in history.runs if one.attempt == 1}
    return first >= {"finished", "killed"} and 2 in {attempt for attempt, _ in starts(history)}
