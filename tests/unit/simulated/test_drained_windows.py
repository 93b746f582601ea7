"""Windows at the end of a job: all are emitted at its natural end and at a drain, none at a stop."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults.plan import AtPoint
from cutproof.harness.scenario.model import Resume, Scenario, StopWithSavepoint
from cutproof.properties.invariants.judge import judge
from cutproof.properties.invariants.parts.timekeeping import mistimed
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import END_OF_TIME, Tumbling
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.snapshots import decode_state
from unit.simulated.worlds import ended, job, run


def windowed(*commands: object, size: int = 10_000) -> Scenario:
    """Forty records, 10 apart in event time, in one window a key unless told otherwise."""
    scenario = job(40, Tumbling(size=size), commands=commands)
    source = scenario.workload.inputs[0]
    times = tuple(tuple(10 * offset for offset in range(len(split))) for split in source.splits)
    inputs = (msgspec.structs.replace(source, times=times),)
    return msgspec.structs.replace(scenario, workload=msgspec.structs.replace(scenario.workload, inputs=inputs))


HALFWAY = AtPoint(point="record-read", occurrence=20)


def open_windows(history: History) -> int:
    """How many the last snapshot of the window holds."""
    last = [one for one in history.stored if one.task == "op0-0"][-1]
    state = decode_state(last.state)
    assert state is not None
    assert len(state.timers) == len(state.entries)
    return len(state.entries)


def drain_holds(scenario: Scenario, history: History) -> bool:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    assert isinstance(verdicts["consistent-cut"], Holds)
    return isinstance(verdicts["drain"], Holds)


def test_the_natural_end_lets_every_window_go() -> None:
    history = run(windowed())
    assert ended(history)[0] == "finished"
    assert sorted(row[:2] for row in history.committed) == [(0, 14), (1, 13), (2, 13)]
    assert open_windows(history) == 0
    assert drain_holds(windowed(), history)


def test_a_drain_lets_every_window_go() -> None:
    scenario = windowed(StopWithSavepoint(trigger=HALFWAY, drain=True))
    history = run(scenario)
    assert ended(history)[0] == "drained"
    assert 0 < sum(row[1] or 0 for row in history.committed) < 40
    assert open_windows(history) == 0
    assert drain_holds(scenario, history)


def test_a_stop_keeps_open_windows_in_the_savepoint() -> None:
    scenario = windowed(StopWithSavepoint(trigger=HALFWAY))
    history = run(scenario)
    assert ended(history)[0] == "stopped"
    assert history.committed == []
    assert open_windows(history) == 3
    assert drain_holds(scenario, history)


def test_a_resumed_job_goes_on_with_them() -> None:
    scenario = windowed(StopWithSavepoint(trigger=HALFWAY), Resume(trigger=HALFWAY))
    history = run(scenario)
    assert ended(history)[0] == "finished"
    assert sorted(row[:2] for row in history.committed) == [(0, 14), (1, 13), (2, 13)]


# -- what the judge must see -------------------------------------------------------------------------------------


def difference(scenario: Scenario, history: History, invariant: str = "drain") -> str:
    verdict = judge(scenario.workload, scenario.topology, history).verdicts[invariant]
    assert isinstance(verdict, Violated)
    return verdict.difference


def test_a_row_of_an_open_window_that_shows_is_seen() -> None:
    scenario = windowed(StopWithSavepoint(trigger=HALFWAY))
    history = run(scenario)
    state = decode_state([one for one in history.stored if one.task == "op0-0"][-1].state)
    assert state is not None
    start, key, value, tags = state.entries[0]
    history.committed.append((key, value, tags, start))
    assert difference(scenario, history) == "open window shown"


def test_an_end_of_data_that_nobody_asked_for_is_seen() -> None:
    scenario = windowed(StopWithSavepoint(trigger=HALFWAY))
    ending, timing = run(scenario), run(scenario)
    source = next(one for one in ending.runs if one.operator == "source")
    source.end_of_data = True
    assert difference(scenario, ending) == "end of data too early"
    source = next(one for one in timing.runs if one.operator == "source")
    source.watermarks.append((len(source.reads), END_OF_TIME))
    assert difference(scenario, timing) == "end of data too early"


def test_a_transaction_that_a_finished_job_left_is_seen() -> None:
    scenario = windowed()
    history = run(scenario)
    last = [one for one in history.transactions if one.rows][-1]
    last.status, last.committed = "prepared", None
    assert difference(scenario, history) == "transaction pending"


def loose() -> Scenario:
    """With lateness nobody promised to keep: every second record is behind its neighbours."""
    scenario = windowed(size=50)
    source = scenario.workload.inputs[0]
    times = tuple(tuple(time - 40 * (offset % 2) for offset, time in enumerate(split)) for split in source.times)
    inputs = (msgspec.structs.replace(source, times=times),)
    return msgspec.structs.replace(scenario, workload=msgspec.structs.replace(scenario.workload, inputs=inputs))


@pytest.mark.parametrize("operator", ["source", "op0"])
def test_a_watermark_that_what_was_received_belies_is_seen(operator: str) -> None:
    scenario = loose()
    history = run(scenario)
    case = Case(scenario.workload, scenario.topology, history)
    assert case.class_ == "W"
    assert mistimed(case) is None
    assert len(history.committed) > 0
    one = next(one for one in history.runs if one.operator == operator)
    before, time = one.watermarks[1]
    one.watermarks[1] = (before, time + 5)
    assert mistimed(Case(scenario.workload, scenario.topology, history)) is not None


@pytest.mark.parametrize("operator", ["source", "op0"])
def test_a_watermark_that_stood_still_is_seen(operator: str) -> None:
    scenario = loose()
    history = run(scenario)
    one = next(one for one in history.runs if one.operator == operator)
    del one.watermarks[1:4]
    found = mistimed(Case(scenario.workload, scenario.topology, history))
    assert found is not None
    assert found.tasks == (one.task,)
