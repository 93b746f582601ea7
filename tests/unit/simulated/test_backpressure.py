"""Channels are bounded, so backpressure is real (ABS-12)."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.faults.plan import AtTime, StallChannel
from unit.simulated.worlds import job, rows, run, started

STALL = StallChannel(trigger=AtTime(at_us=2_000), sender="op1-0", receiver="sink-0", for_us=20_000)


def read_by(until_us: int, capacity: int) -> int:
    """Records read by a time while nothing leaves the channel into the sink from 2,000 µs on."""
    world = started(job(80, faults=(STALL,), channel_capacity=capacity, checkpoint_interval_us=50_000), until_us)
    source = world.latest("source-0")
    assert source is not None
    return len(source.log.reads)


@pytest.mark.parametrize("capacity", [1, 3])
def test_the_source_stops_reading_when_the_sink_stalls(capacity: int) -> None:
    """What is on its way fits the channels, and one record waits in each of three tasks for room."""
    before = read_by(2_000, capacity)
    assert before < read_by(15_000, capacity) <= before + 3 * capacity + 3
    assert read_by(15_000, capacity) == read_by(21_000, capacity)
    assert read_by(25_000, capacity) > read_by(21_000, capacity), "and goes on when it is over"


def test_wide_channels_take_more_before_they_are_full() -> None:
    assert read_by(15_000, 1) < read_by(15_000, 4) < read_by(15_000, 64)


def test_no_channel_ever_holds_more_than_it_may() -> None:
    world = started(job(80, faults=(STALL,), channel_capacity=2), 0)
    longest = 0
    for until_us in range(0, 40_000, 50):
        world.loop.run(until_us)
        longest = max([longest, *(len(channel.queue) for runner in world.live() for channel in runner.inputs)])
    assert longest == 2


def test_everything_arrives_in_the_end() -> None:
    scenario = job(80, faults=(STALL,), channel_capacity=1)
    history = run(scenario)
    assert Counter(history.committed) == rows(scenario)
    assert history.quiet
