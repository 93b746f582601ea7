"""Windows at the end of a job: all are emitted at its natural end and at a drain, none at a stop."""

from __future__ import annotations

import msgspec
from worlds import ended, job, run

from cutproof.faults.plan import AtPoint
from cutproof.harness.scenario import Resume, Scenario, StopWithSavepoint
from cutproof.properties.history import History
from cutproof.properties.judge import judge
from cutproof.properties.line import decode_state
from cutproof.properties.verdict import Holds
from cutproof.properties.workload import Tumbling


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
