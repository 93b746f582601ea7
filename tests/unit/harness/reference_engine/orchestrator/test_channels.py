"""Faults on channels fire by what a receiver feels, and by nothing else; each undoes itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.injectors.toxics import Latency, Limit, Reset, Slice, Stall, Timeout
from cutproof.faults.plan import AtTime
from cutproof.harness.reference_engine.orchestrator.channel_faults import (
    ANY,
    GRACE_US,
    LEAST_PIECES,
    LIMITED_US,
    SHARE_FELT,
    ChannelFaults,
)
from cutproof.harness.reference_engine.orchestrator.process_faults import Disturbances
from cutproof.reference_impl.core.ids import AttemptId
from cutproof.reference_impl.processes import entries as e
from cutproof.reference_impl.processes import frames as f
from unit.harness.scenarios import chain
from unit.harness.stage import Stage, planned

NAME = "map-0>count-1"
OTHER = "map-1>count-0"
ENDS = ("map-0", "count-1")
FAULT = plan.CutChannel(trigger=AtTime(at_us=1), sender="map-0", receiver="count-1")


class Channels:
    """The faults on channels of a run whose tasks all live in attempt 1."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.faults = ChannelFaults(stage.context)
        stage.comes_up()
        stage.pass_us(1_000)

    def felt(self, transit_us: int = 0, pieces: int = 0, *, channel: str = NAME, attempt: int = 1) -> list[int]:
        """A receiver tells what it felt now; the faults that fired of it."""
        before = len(self.fired)
        self.faults.felt(f.Felt(self.stage.now_us, channel, AttemptId(attempt), transit_us, pieces))
        return self.fired[before:]

    def broke(self, *, channel: str = NAME, attempt: int = 1) -> list[int]:
        before = len(self.fired)
        self.faults.broke(f.Broke(self.stage.now_us, channel, AttemptId(attempt), "it was closed"))
        return self.fired[before:]

    @property
    def fired(self) -> list[int]:
        return [entry.fault for entry in self.stage.entries(e.FaultFired)]

    @property
    def healed(self) -> list[int]:
        return [entry.fault for entry in self.stage.entries(e.FaultHealed)]

    @property
    def breaks(self) -> list[tuple[int, str]]:
        return [(entry.fault, entry.channel) for entry in self.stage.entries(e.Breaks)]

    @property
    def done(self) -> list[str]:
        return self.stage.proxies.done


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Channels:
    return Channels(Stage(monkeypatch, tmp_path, planned(chain(), *[FAULT] * 5), felt=[NAME, OTHER]))


# -- what passes late, or in pieces ------------------------------------------------------------------------------------


def test_a_delay_fires_when_something_came_as_late(channels: Channels) -> None:
    assert channels.faults.delay(2, *ENDS, 1_000, 5_000)
    assert channels.stage.proxies.toxics == {"fault-2": Latency(ms=20)}
    channels.stage.pass_us(30_000)
    assert channels.felt(int(20_000 * SHARE_FELT) - 1) == []
    assert channels.felt(25_000, channel=OTHER) == []
    assert channels.felt(25_000) == [2]
    assert channels.felt(25_000) == [], "once"


def test_what_was_sent_before_the_delay_does_not_count(channels: Channels) -> None:
    channels.stage.pass_us(1_000_000)
    channels.faults.delay(2, *ENDS, 1_000, 5_000)
    assert channels.felt(900_000) == []


def test_a_delay_ends_with_its_time_whether_it_was_felt_or_not(channels: Channels) -> None:
    channels.faults.delay(2, *ENDS, 1_000, 5_000)
    channels.stage.pass_virtual(4_999)
    assert (channels.stage.context.healing, channels.healed) == (1, [])
    channels.stage.pass_virtual(1)
    assert channels.done == [f"add fault-2 {NAME}", "remove fault-2"]
    assert (channels.stage.context.healing, channels.healed, channels.fired) == (0, [2], [])


def test_a_stall_fires_when_something_that_was_held_comes_out_at_its_end(channels: Channels) -> None:
    assert channels.faults.stall(1, *ENDS, 1_000)
    assert channels.stage.proxies.toxics == {"fault-1": Stall()}
    channels.stage.pass_us(15_000)
    assert channels.felt(12_000) == [], "it still holds"
    channels.stage.pass_us(6_000)
    assert channels.healed == [1]
    assert channels.felt(5_000) == [], "that was no longer than one may be by itself"
    assert channels.felt(500_000) == [], "that was under way before"
    assert channels.felt(12_000) == [1]


def test_what_entered_after_a_stall_was_not_held_by_it(channels: Channels) -> None:
    channels.faults.stall(1, *ENDS, 1_000)
    channels.stage.pass_us(100_000)
    assert channels.felt(50_000) == []


def test_slices_fire_when_so_many_more_reads_brought_only_a_part(channels: Channels) -> None:
    channels.felt(pieces=7)
    assert channels.faults.slice(3, *ENDS, 4, 1_000)
    assert channels.stage.proxies.toxics == {"fault-3": Slice(average_size=4, delay_us=300)}
    channels.stage.pass_us(100)
    assert channels.felt(pieces=7 + LEAST_PIECES - 1) == []
    assert channels.felt(pieces=99, channel=OTHER) == []
    assert channels.felt(pieces=7 + LEAST_PIECES) == [3]


def test_pieces_that_came_after_the_slices_do_not_count(channels: Channels) -> None:
    channels.faults.slice(3, *ENDS, 4, 1_000)
    channels.felt(pieces=0)
    channels.stage.pass_virtual(1_001)
    assert channels.felt(pieces=50) == []


# -- what breaks -------------------------------------------------------------------------------------------------------


def test_a_cut_fires_when_the_connection_has_broken_and_is_undone_by_that(channels: Channels) -> None:
    assert channels.faults.cut(0, *ENDS)
    assert (channels.done, channels.breaks, channels.fired) == ([f"close {NAME}"], [(0, NAME)], [])
    channels.stage.pass_us(10)
    assert channels.broke() == [0]
    assert channels.done == [f"close {NAME}", f"open {NAME}"]
    assert (channels.healed, channels.stage.context.healing) == ([0], 0)
    channels.stage.pass_us(2 * GRACE_US)
    assert channels.healed == [0], "once"


def test_a_cut_that_nobody_felt_is_undone_all_the_same_and_has_not_fired(channels: Channels) -> None:
    channels.faults.cut(0, *ENDS)
    channels.stage.pass_us(GRACE_US)
    assert (channels.done[-1], channels.fired, channels.healed) == (f"open {NAME}", [], [0])


def test_another_connection_that_breaks_is_not_of_the_cut(channels: Channels) -> None:
    channels.faults.cut(0, *ENDS)
    channels.stage.pass_us(10)
    assert channels.broke(channel=OTHER) == []
    assert channels.broke(attempt=2) == [], "its sender does not live in that attempt"
    channels.stage.context.facts.down("map-0", 1)
    assert channels.broke() == [], "its sender is gone: it broke of that"


def test_a_break_reported_from_before_is_not_of_the_cut(channels: Channels) -> None:
    channels.faults.cut(0, *ENDS)
    frame = f.Broke(channels.stage.now_us - 5, NAME, AttemptId(1), "it was closed")
    channels.faults.broke(frame)
    assert channels.fired == []


def test_a_reset_closes_the_connection_under_its_toxic_and_lasts(channels: Channels) -> None:
    assert channels.faults.reset(0, *ENDS, 1_000)
    assert channels.stage.proxies.toxics == {"fault-0": Reset(ms=0)}
    assert channels.done == [f"add fault-0 {NAME}", f"close {NAME}", f"open {NAME}"]
    channels.stage.pass_us(5)
    assert channels.broke() == [0]
    channels.stage.pass_virtual(1_000)
    assert channels.done[-1] == "remove fault-0"
    assert channels.healed == [0]


@pytest.mark.parametrize(
    ("act", "toxic", "within_us"),
    [
        (lambda faults: faults.limit(4, *ENDS, 150), Limit(bytes=150), LIMITED_US),
        (lambda faults: faults.timeout(4, *ENDS, 500), Timeout(ms=10), 10_000 + GRACE_US),
    ],
    ids=["limit", "timeout"],
)
@pytest.mark.parametrize("is_felt", [True, False])
def test_a_toxic_that_breaks_is_removed_when_it_has_or_when_it_is_too_late(
    channels: Channels, act: Callable[[ChannelFaults], bool], toxic: object, within_us: int, is_felt: bool
) -> None:
    assert act(channels.faults)
    assert channels.stage.proxies.toxics == {"fault-4": toxic}
    assert channels.breaks == [(4, NAME)]
    channels.stage.pass_us(within_us - 1)
    assert (channels.done[-1], channels.stage.context.healing) == (f"add fault-4 {NAME}", 1)
    if is_felt:
        assert channels.broke() == [4]
    else:
        channels.stage.pass_us(1)
    assert (channels.done[-1], channels.stage.context.healing) == ("remove fault-4", 0)
    assert channels.fired == ([4] if is_felt else [])


def test_one_break_is_of_one_fault(channels: Channels) -> None:
    channels.faults.limit(3, *ENDS, 150)
    channels.faults.limit(4, *ENDS, 150)
    channels.stage.pass_us(5)
    assert (channels.broke(), channels.broke(), channels.broke()) == ([3], [4], [])


def test_a_proxy_that_dies_fires_by_whatever_connection_breaks(channels: Channels) -> None:
    channels.faults.waits_for_all(2, "the proxy dies")
    assert channels.breaks == [(2, ANY)]
    channels.stage.pass_us(5)
    assert channels.broke(channel=OTHER) == [2]
    assert channels.broke() == []


# -- what cannot be done -----------------------------------------------------------------------------------------------


def every(faults: ChannelFaults, sender: str, receiver: str) -> list[bool]:
    return [
        faults.delay(0, sender, receiver, 9, 9),
        faults.stall(0, sender, receiver, 9),
        faults.slice(0, sender, receiver, 9, 9),
        faults.cut(0, sender, receiver),
        faults.reset(0, sender, receiver, 9),
        faults.limit(0, sender, receiver, 9),
        faults.timeout(0, sender, receiver, 9),
    ]


def test_a_channel_without_a_proxy_cannot_be_disturbed(channels: Channels) -> None:
    assert every(channels.faults, "map-0", "count-0") == [False] * 7
    assert channels.done == []


def test_nor_any_while_the_proxy_server_is_down(channels: Channels) -> None:
    channels.stage.proxies.is_up = False
    assert every(channels.faults, *ENDS) == [False] * 7


@pytest.mark.parametrize("end", ENDS)
def test_a_connection_can_only_be_cut_between_two_that_live(channels: Channels, end: str) -> None:
    channels.stage.context.facts.down(end, 1)
    assert not channels.faults.cut(0, *ENDS)
    assert channels.faults.delay(0, *ENDS, 9, 9), "while a proxy can be told before anybody connects"


def test_a_server_that_does_not_do_as_requested_is_replaced_and_no_fault_was_applied(channels: Channels) -> None:
    channels.stage.proxies.resists = True
    assert every(channels.faults, *ENDS) == [False] * 7
    assert channels.done == ["recover"] * 7
    assert set(channels.breaks) == {(0, ANY), (0, NAME)}, "what breaks of that is explained"
    channels.stage.proxies.resists = False
    channels.stage.pass_us(10_000_000)
    assert (channels.fired, channels.stage.context.healing) == ([], 0)
    assert channels.healed == [0] * 7, "what breaks long after is not explained by it"


def test_a_connection_that_breaks_of_no_fault_has_the_proxies_looked_at(channels: Channels) -> None:
    """Whoever has a proxy lead elsewhere breaks what goes through it."""
    channels.broke()
    assert channels.done == ["look"]
    channels.broke(attempt=9)
    assert channels.done == ["look"], "its sender is gone, which is why"
    channels.faults.cut(1, *ENDS)
    channels.stage.pass_us(1_000)
    assert channels.broke() == [1]
    assert "look" not in channels.done[1:]


def test_the_proxies_are_looked_at_before_a_fault_kills_them(channels: Channels) -> None:
    assert Disturbances(channels.stage.context, lambda *_: None).kill_proxy(2, 0)
    assert channels.done[:2] == ["look", "kill"]


def test_a_fault_is_reported_with_the_stamp_of_who_felt_it(channels: Channels) -> None:
    channels.faults.delay(2, *ENDS, 1_000, 5_000)
    channels.stage.pass_us(50_000)
    frame = f.Felt(channels.stage.now_us, NAME, AttemptId(1), 30_000, 0)
    channels.stage.pass_us(5_000)
    channels.faults.felt(frame)
    (fired,) = channels.stage.entries(e.FaultFired)
    assert (fired.stamp, fired.attempt) == (frame.stamp, 1)
    assert msgspec.structs.asdict(fired)["detail"] == f"{NAME}: messages come 20 ms later"
