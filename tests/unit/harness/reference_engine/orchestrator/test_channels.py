"""Faults on channels fire by what a receiver feels, and by nothing else; each undoes itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.injectors.toxics import Latency, Limit, Reset, Slice, Stall, Timeout
from cutproof.faults.plan import AtTime
from cutproof.harness.reference_engine.orchestrator.injectors.channel_faults import (
    ANY,
    GRACE_US,
    LEAST_PIECES,
    LIMITED_US,
    SHARE_FELT,
)
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.processes.network import frames as f
from unit.harness.puppets import Run, Script, now, played_by_puppets
from unit.harness.scenarios import chain
from unit.harness.stage import planned

__all__ = ["played_by_puppets"]

NAME = "map-0>count-1"
OTHER = "map-1>count-0"
ENDS = ("map-0", "count-1")
NEAR_US = 100
AT = AtTime(at_us=NEAR_US)
"""when the faults of a test are applied"""

Fired = Generator[None, None, list[int]]
"""a script that ends with the faults that have fired in it"""


def delay(*ends: str) -> plan.DelayChannel:
    sender, receiver = ends or ENDS
    return plan.DelayChannel(trigger=AT, sender=sender, receiver=receiver, by_us=1_000, for_us=5_000)


def stall(*ends: str) -> plan.StallChannel:
    sender, receiver = ends or ENDS
    return plan.StallChannel(trigger=AT, sender=sender, receiver=receiver, for_us=1_000)


def slices(*ends: str) -> plan.SliceChannel:
    sender, receiver = ends or ENDS
    return plan.SliceChannel(trigger=AT, sender=sender, receiver=receiver, size=4, for_us=1_000)


def cut(*ends: str) -> plan.CutChannel:
    sender, receiver = ends or ENDS
    return plan.CutChannel(trigger=AT, sender=sender, receiver=receiver)


def reset(*ends: str) -> plan.ResetChannel:
    sender, receiver = ends or ENDS
    return plan.ResetChannel(trigger=AT, sender=sender, receiver=receiver, for_us=1_000)


def limit(*ends: str) -> plan.LimitChannel:
    sender, receiver = ends or ENDS
    return plan.LimitChannel(trigger=AT, sender=sender, receiver=receiver, bytes=150)


def timeout(*ends: str) -> plan.TimeoutChannel:
    sender, receiver = ends or ENDS
    return plan.TimeoutChannel(trigger=AT, sender=sender, receiver=receiver, after_us=500)


EVERY = (delay, stall, slices, cut, reset, limit, timeout)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(*faults: plan.AnyFault) -> Run:
        runs.append(Run(tmp_path, planned(chain(), *faults), felt=[NAME, OTHER]))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def tells(run: Run, channel: str, frame: f.Frame) -> Fired:
    """The receiver of a channel sends a frame."""
    before = len(run.fired)
    run.home(channel.partition(">")[2]).say(frame)
    yield from run.settles()
    return [fault for fault, _ in run.fired[before:]]


def felt(run: Run, transit_us: int = 0, pieces: int = 0, *, channel: str = NAME) -> Fired:
    """A receiver tells what it has felt now."""
    return tells(run, channel, f.Felt(now(), channel, AttemptId(1), transit_us, pieces))


def broke(run: Run, *, channel: str = NAME, attempt: int = 1, ago_us: int = 0) -> Fired:
    """A receiver tells that a connection has broken."""
    return tells(run, channel, f.Broke(now() - ago_us, channel, AttemptId(attempt), "it was closed"))


def breaks(run: Run) -> list[tuple[int, str]]:
    return [(entry.fault, entry.channel) for entry in run.entries(o.Breaks)]


# -- what passes late, or in pieces ------------------------------------------------------------------------------------


def test_a_delay_fires_when_something_came_as_late(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert run.proxies.toxics == {"fault-0": Latency(ms=20)}
        yield from run.passes_us(30_000)
        assert (yield from felt(run, int(20_000 * SHARE_FELT) - 1)) == []
        assert (yield from felt(run, 25_000, channel=OTHER)) == []
        assert (yield from felt(run, 25_000)) == [0]
        assert (yield from felt(run, 25_000)) == [], "once"

    begin(delay()).whole(script)


def test_what_was_sent_before_the_delay_does_not_count(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(50_000)
        assert run.proxies.toxics
        assert (yield from felt(run, 900_000)) == []

    late = msgspec.structs.replace(delay(), trigger=AtTime(at_us=50_000))
    begin(late).whole(script)


def test_a_delay_ends_with_its_time_whether_it_was_felt_or_not(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US + 4_999)
        assert (run.healed, run.proxies.done) == ([], [f"add fault-0 {NAME}"])
        yield from run.passes(1)
        assert run.healed == [0]

    run = begin(delay())
    assert run.whole(script).lasting == []
    assert run.proxies.done == [f"add fault-0 {NAME}", "remove fault-0"]
    assert (run.healed, run.fired) == ([0], [])


def test_a_stall_fires_when_something_that_was_held_comes_out_at_its_end(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert run.proxies.toxics == {"fault-0": Stall()}
        yield from run.passes_us(15_000)
        assert (yield from felt(run, 12_000)) == [], "it still holds"
        yield from run.passes_us(6_000)
        assert run.healed == [0]
        assert (yield from felt(run, 5_000)) == [], "that was no longer than one may be by itself"
        assert (yield from felt(run, 500_000)) == [], "that was under way before"
        assert (yield from felt(run, 12_000)) == [0]

    begin(stall()).whole(script)


def test_what_entered_after_a_stall_was_not_held_by_it(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        yield from run.passes_us(100_000)
        assert (yield from felt(run, 50_000)) == []

    begin(stall()).whole(script)


def test_slices_fire_when_so_many_more_reads_brought_only_a_part(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from felt(run, pieces=7)
        yield from run.passes(NEAR_US)
        assert run.proxies.toxics == {"fault-0": Slice(average_size=4, delay_us=300)}
        yield from run.passes_us(100)
        assert (yield from felt(run, pieces=7 + LEAST_PIECES - 1)) == []
        assert (yield from felt(run, pieces=99, channel=OTHER)) == []
        assert (yield from felt(run, pieces=7 + LEAST_PIECES)) == [0]

    begin(slices()).whole(script)


def test_pieces_that_came_after_the_slices_do_not_count(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        yield from felt(run, pieces=0)
        yield from run.passes(1_001)
        assert (yield from felt(run, pieces=50)) == []

    begin(slices()).whole(script)


# -- what breaks -------------------------------------------------------------------------------------------------------


def test_a_cut_fires_when_the_connection_has_broken_and_is_undone_by_that(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert (run.proxies.done, breaks(run), run.fired) == ([f"close {NAME}"], [(0, NAME)], [])
        yield from run.passes_us(10)
        assert (yield from broke(run)) == [0]
        assert run.proxies.done == [f"close {NAME}", f"open {NAME}"]
        assert run.healed == [0]
        yield from run.passes_us(2 * GRACE_US)
        assert run.healed == [0], "once"

    assert begin(cut()).whole(script).lasting == []


def test_a_cut_that_nobody_felt_is_undone_all_the_same_and_has_not_fired(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        yield from run.passes_us(GRACE_US)
        assert (run.proxies.done[-1], run.fired, run.healed) == (f"open {NAME}", [], [0])

    begin(cut()).whole(script)


def test_another_connection_that_breaks_is_not_of_the_cut(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        yield from run.passes_us(10)
        assert (yield from broke(run, channel=OTHER)) == []
        assert (yield from broke(run, attempt=2)) == [], "its sender does not live in that attempt"
        run.newest("map-0").down()
        yield from run.settles()
        assert (yield from broke(run)) == [], "its sender is gone: it broke of that"

    begin(cut()).whole(script)


def test_a_break_reported_from_before_is_not_of_the_cut(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert (yield from broke(run, ago_us=5)) == []

    begin(cut()).whole(script)


def test_a_reset_closes_the_connection_under_its_toxic_and_lasts(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert run.proxies.toxics == {"fault-0": Reset(ms=0)}
        assert run.proxies.done == [f"add fault-0 {NAME}", f"close {NAME}", f"open {NAME}"]
        yield from run.passes_us(5)
        assert (yield from broke(run)) == [0]
        assert run.healed == []
        yield from run.passes(1_000)
        assert run.proxies.done[-1] == "remove fault-0"
        assert run.healed == [0]

    begin(reset()).whole(script)


@pytest.mark.parametrize(
    ("fault", "toxic", "within_us"),
    [
        (limit(), Limit(bytes=150), LIMITED_US),
        (timeout(), Timeout(ms=10), 10_000 + GRACE_US),
    ],
    ids=["limit", "timeout"],
)
@pytest.mark.parametrize("is_felt", [True, False])
def test_a_toxic_that_breaks_is_removed_when_it_has_or_when_it_is_too_late(
    begin: Callable[..., Run], fault: plan.AnyFault, toxic: object, within_us: int, is_felt: bool
) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert run.proxies.toxics == {"fault-0": toxic}
        assert breaks(run) == [(0, NAME)]
        yield from run.passes_us(within_us - 1)
        assert (run.proxies.done[-1], run.healed) == (f"add fault-0 {NAME}", [])
        if is_felt:
            assert (yield from broke(run)) == [0]
        else:
            yield from run.passes_us(1)
        assert (run.proxies.done[-1], run.healed) == ("remove fault-0", [0])

    run = begin(fault)
    assert run.whole(script).lasting == []
    assert run.fired == ([(0, 1)] if is_felt else [])


def test_one_break_is_of_one_fault(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        yield from run.passes_us(5)
        found = []
        for _ in range(3):
            found.append((yield from broke(run)))
        assert found == [[0], [1], []]

    begin(limit(), limit()).whole(script)


def test_a_proxy_that_dies_fires_by_whatever_connection_breaks(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert breaks(run) == [(0, ANY)]
        yield from run.passes_us(5)
        assert (yield from broke(run, channel=OTHER)) == [0]
        assert (yield from broke(run)) == []
        yield from run.passes(5_000)
        assert (run.proxies.done, run.healed) == (["kill", "start"], [0])

    begin(plan.KillProxy(trigger=AT, down_us=5_000)).whole(script)


# -- what cannot be done -----------------------------------------------------------------------------------------------


def waits(run: Run) -> Script:
    return run.passes(NEAR_US)


def test_a_channel_without_a_proxy_cannot_be_disturbed(begin: Callable[..., Run]) -> None:
    run = begin(*[fault("map-0", "count-0") for fault in EVERY])
    assert len(run.whole(waits).unapplied) == len(EVERY)
    assert run.proxies.done == []


def test_nor_any_while_the_proxy_server_is_down(begin: Callable[..., Run]) -> None:
    run = begin(*[fault() for fault in EVERY])
    run.proxies.is_up = False
    assert len(run.whole(waits).unapplied) == len(EVERY)


@pytest.mark.parametrize("end", ENDS)
def test_a_connection_can_only_be_cut_between_two_that_live(begin: Callable[..., Run], end: str) -> None:
    def script(run: Run) -> Script:
        run.newest(end).down()
        yield from run.settles()
        yield from run.passes(NEAR_US)

    run = begin(cut(), delay())
    assert run.whole(script).unapplied == ["fault 0: cut-channel"]
    assert run.proxies.done[0] == f"add fault-1 {NAME}", "while a proxy can be told before anybody connects"


def test_a_server_that_does_not_do_as_requested_is_replaced_and_no_fault_was_applied(
    begin: Callable[..., Run],
) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        assert run.proxies.done == ["recover"] * len(EVERY)
        run.proxies.resists = False
        yield from run.passes_us(10_000_000)

    run = begin(*[fault() for fault in EVERY])
    run.proxies.resists = True
    evidence = run.whole(script)
    numbers = range(len(EVERY))
    assert set(breaks(run)) == {*((number, ANY) for number in numbers), (EVERY.index(cut), NAME)}, (
        "what breaks of that is explained"
    )
    assert len(evidence.unapplied) == len(EVERY)
    assert (run.fired, evidence.lasting) == ([], [])
    assert run.healed == list(numbers), "what breaks long after is not explained by it"


def test_a_connection_that_breaks_of_no_fault_has_the_proxies_checked(begin: Callable[..., Run]) -> None:
    """A program that points a proxy elsewhere breaks the connections through it."""

    def script(run: Run) -> Script:
        before = run.checks
        yield from broke(run)
        assert run.checks == before + 1
        yield from broke(run, attempt=9)
        assert run.checks == before + 1, "its sender is gone, which is why"
        yield from run.passes(NEAR_US)
        yield from run.passes_us(1_000)
        before = run.checks
        assert (yield from broke(run)) == [0]
        assert run.checks == before

    begin(cut()).whole(script)


def test_the_proxies_are_checked_before_a_fault_kills_them(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        before = run.checks
        true, checks = run.proxies.kill, []

        def kill() -> None:
            checks.append(run.checks)
            true()

        run.proxies.kill = kill  # type: ignore[method-assign]
        yield from run.passes(NEAR_US)
        assert checks == [before + 1]
        assert run.proxies.done == ["kill"]

    begin(plan.KillProxy(trigger=AT, down_us=5_000)).whole(script)


def test_a_fault_is_reported_with_the_stamp_of_who_felt_it(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.passes(NEAR_US)
        yield from run.passes_us(50_000)
        frame = f.Felt(now(), NAME, AttemptId(1), 30_000, 0)
        yield from run.passes_us(5_000)
        assert (yield from tells(run, NAME, frame)) == [0]
        (fired,) = run.entries(o.FaultFired)
        assert (run.stamps(o.FaultFired), fired.attempt) == ([frame.stamp], 1)
        assert fired.detail == f"{NAME}: messages come 20 ms later"

    begin(delay()).whole(script)
