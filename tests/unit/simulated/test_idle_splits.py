"""Splits that are idle, told with their moments, and what the judge makes of a watermark that left one out."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults.plan import AtTime
from cutproof.harness.scenario.model import Cancel, Scenario
from cutproof.properties.invariants.parts.idleness import idle_too_soon
from cutproof.properties.invariants.parts.timekeeping import mistimed
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Tumbling
from cutproof.properties.quick_checker.case import Case
from unit.simulated.worlds import job, run

IDLE_AFTER_US = 1_000


def one_runs_dry(width: int) -> Scenario:
    """Two unbounded splits, the second with five records only: read by one source, or by one each."""
    scenario = job(
        80, Tumbling(size=50), width=width, splits=2, bounded=False, commands=(Cancel(trigger=AtTime(at_us=12_000)),)
    )
    source = scenario.workload.inputs[0]
    splits = (source.splits[0], source.splits[1][:5])
    times = tuple(tuple(10 * offset for offset in range(len(split))) for split in splits)
    changed = msgspec.structs.replace(source, splits=splits, times=times, idle_after_us=IDLE_AFTER_US)
    workload = msgspec.structs.replace(scenario.workload, inputs=(changed,))
    return msgspec.structs.replace(scenario, workload=workload)


def case(scenario: Scenario, history: History) -> Case:
    return Case(scenario.workload, scenario.topology, history)


@pytest.mark.parametrize("width", [1, 2])
def test_a_split_that_ran_dry_is_left_out_after_its_time_out(width: int) -> None:
    scenario = one_runs_dry(width)
    history = run(scenario)
    assert mistimed(case(scenario, history)) is None
    for one in history.runs:
        if one.operator == "source":
            assert len(one.read_at) == len(one.reads)
            assert len(one.advanced_at) == len(one.watermarks)
    window = next(one for one in history.runs if one.task == "op0-0")
    assert max(time for _, time in window.watermarks) > 40  # as far as the dry one came


@pytest.mark.parametrize("width", [1, 2])
def test_a_split_that_is_left_out_too_soon_is_seen(width: int) -> None:
    """The same, but its last record came shortly before: the source goes on without it, or calls itself idle."""
    scenario = one_runs_dry(width)
    history = run(scenario)
    source = next(one for one in history.runs if one.reads and one.reads[-1 if width > 1 else 1][0] == 1)
    last = max(number for number, (split, _) in enumerate(source.reads) if split == 1)
    outputs = [channel for channel in history.channels if channel.name.startswith(f"{source.task}>")]
    moments = [at for channel in outputs for at in channel.idle_at] or source.advanced_at[-1:]
    for number in range(last, len(source.reads)):
        source.read_at[number] = max(source.read_at[number], moments[0] - 1)
    found = next(idle_too_soon(case(scenario, history), source, scenario.workload.inputs[0]))
    assert found.difference == "idle too soon"
    assert found.tasks == (source.task,)


def test_a_channel_is_waited_for_from_its_next_record_on() -> None:
    """What is let go while a channel is idle may not be let go once it was idle, and is not any more."""
    scenario = one_runs_dry(2)
    history = run(scenario)
    idle = [channel for channel in history.channels if channel.idle_at and channel.sent]
    assert idle
    for channel in idle:
        channel.watermarks = [(time, before - (time is None)) for time, before in channel.watermarks]
    found = mistimed(case(scenario, history))
    assert found is not None
    assert found.difference == "watermark differs"


def test_no_moments_are_reported_where_nothing_can_be_idle() -> None:
    history = run(job(20))
    assert not any(one.read_at or one.advanced_at for one in history.runs)
    assert not any(channel.idle_at for channel in history.channels)
