"""Processing time: bursts by hand and by their definition, and what the judge makes of a clock that is not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.faults.plan import AtTime, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.parts.clocks import OVERDUE_US, misclocked, overdue
from cutproof.properties.model.history import History, TaskRun
from cutproof.properties.model.verdict import Violated
from cutproof.properties.model.workload import END_OF_TIME, Burst, Edge, Input, Node, Row, Topology, Workload
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.semantics.bursts import BurstMachine
from cutproof.properties.semantics.timed import redistributed
from cutproof.reference_impl.core.extensions.operator_work import OperatorWork

WAITING = Scenario(
    workload=Workload(
        name="clocked",
        inputs=(Input(name="source", splits=(((0, 1, 1000), (0, 1, 1001)),), bounded=False),),
        nodes=(Node(name="burst", operator=Burst(gap_us=10_000), inputs=("source",)),),
    ),
    topology=Topology(
        parallelism={"source": 1, "burst": 1, "sink": 1},
        edges=(
            Edge(sender="source", receiver="burst", partitioning="hash"),
            Edge(sender="burst", receiver="sink", partitioning="forward"),
        ),
    ),
    engine=Engine(checkpoint_interval_us=2_000),
    faults=(KillTask(trigger=AtTime(at_us=7_000), task="burst-0"),),
)
"""A task is killed while its timer is pending, and no record is to come."""

taken = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from([None, 0, 1]), st.one_of(st.none(), st.integers(-9, 9))), max_size=20
)
"""(µs since the record before, key, value) of each record"""


@given(taken, st.integers(1, 8), st.sampled_from(["count", "sum"]))
def test_bursts_are_those_of_the_definition(
    records: list[tuple[int, int | None, int | None]], gap: int, of: str
) -> None:
    machine, now, emitted = BurstMachine(Burst(gap_us=gap, of=of)), 100, list[Row]()
    moments: dict[int | None, list[tuple[int, int | None, int]]] = {}
    for tag, (later, key, value) in enumerate(records, 1):
        now += later
        emitted += [row for _, row in machine.advance(now)]
        machine.take_at((key, value, tag, 0), 0, tag << 8)
        moments.setdefault(key, []).append((now, value, tag))
    emitted += [row for _, row in machine.advance(END_OF_TIME)]
    assert Counter(emitted) == Counter(
        _row(key, burst, of) for key, mine in moments.items() for burst in _apart(mine, gap)
    )
    assert (machine.entries(), machine.timers()) == ([], [])


def _apart(records: list[tuple[int, int | None, int]], gap: int) -> list[list[tuple[int, int | None, int]]]:
    """Cut where the distance is the gap or more."""
    cuts = [at for at in range(1, len(records)) if records[at][0] - records[at - 1][0] >= gap]
    bounds = [0, *cuts, len(records)]
    return [records[first:last] for first, last in pairwise(bounds)]


def _row(key: int | None, burst: list[tuple[int, int | None, int]], of: str) -> Row:
    values = [value for _, value, _ in burst if value is not None]
    total = len(burst) if of == "count" else sum(values) if values else None
    return key, total, sum(tag for _, _, tag in burst), burst[0][0]


def test_a_subtask_of_another_layout_has_the_bursts_of_its_keys() -> None:
    old = BurstMachine(Burst(gap_us=10))
    old.advance(100)
    for key in (1, 2, 3):
        old.take_at((key, 1, key, 0), 0, key << 8)
    new = redistributed(Burst(gap_us=10), [old], lambda key: key != 2)
    assert [(time, key) for time, key, _ in new.timers()] == [(110, 1), (110, 3)]
    new.take_at((1, 1, 9, 0), 0, 9 << 8)
    assert len(old.open[1]) == 1


@pytest.fixture
def waited() -> Result:
    """A task restored with a timer, and no record to come."""
    return run(SimulatedSubject(), WAITING)


def bursts(history: History) -> list[TaskRun]:
    return [one for one in history.runs if one.operator == "burst"]


def test_a_timer_fires_once_after_a_restore(waited: Result) -> None:
    before, after = bursts(waited.history)
    assert [time for _, time in after.ticks] == [before.ticks[-1][1] + 10_000]
    assert misclocked(waited.case) is None
    assert overdue(waited.case) is None
    assert len(waited.history.committed) == 1


def _back(run_of: TaskRun) -> None:
    run_of.ticks.append((run_of.ticks[-1][0], run_of.ticks[-1][1] - 1))


def _ended(run_of: TaskRun) -> None:
    run_of.ticks.append((len(run_of.applies), END_OF_TIME))


@pytest.mark.parametrize(
    ("mutation", "words"),
    [(_back, "received the time"), (_ended, "took its input as ended after 0 records of 0")],
)
def test_a_clock_that_is_not_kept_is_seen(waited: Result, mutation: Callable[[TaskRun], None], words: str) -> None:
    mutation(bursts(waited.history)[-1])
    found = misclocked(Case(waited.scenario.workload, waited.scenario.topology, waited.history))
    assert found is not None
    assert words in found.message


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Result:
    """A timer is in the restored state, and the task does not register for its time."""
    monkeypatch.setattr(OperatorWork, "on_restored", lambda self: self.task.open_inputs())
    return run(SimulatedSubject(), WAITING)


def test_a_restored_timer_that_nobody_asks_for_is_seen(stuck: Result) -> None:
    verdict = stuck.judgement.verdicts["progress"]
    assert isinstance(verdict, Violated)
    assert verdict.difference == "timer overdue"


def test_a_timer_that_waits_is_not_overdue_before_its_bound(stuck: Result) -> None:
    """The task received no time; its snapshots are later by the given amount."""
    result = stuck
    after = bursts(result.history)[-1]
    last = result.history.completed[-1].checkpoint
    ((due, _, _),) = result.case.expected.timers(last)
    since = max(due, result.history.completed[2].at_us)
    for late_us, accused in ((OVERDUE_US, False), (OVERDUE_US + 1, True)):
        for mark in after.marks:
            mark.at_us = since + late_us if mark.checkpoint == last else min(mark.at_us, since)
        found = overdue(Case(result.scenario.workload, result.scenario.topology, result.history))
        assert (found is not None) is accused
