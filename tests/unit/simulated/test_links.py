"""Data channels: first in, first out; bounded; slow; and what faults do to them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.messages import Barrier, Element, EndOfData, Record
from cutproof.reference_impl.driver.perturbations import Lateness
from cutproof.reference_impl.observed import StruckChannel
from cutproof.reference_impl.simulated.links import DataChannel
from cutproof.reference_impl.simulated.loop import Loop

LATENCY = 100


class Receiver:
    """Notes when it is told to look, and which faults have shown."""

    attempt = 1

    def __init__(self) -> None:
        self.appointments: list[int] = []
        self.fired: list[tuple[int, str]] = []
        self.world = SimpleNamespace(detailed=False, fired=self._fired)

    def _fired(self, fault: int, detail: str, attempt: int, struck: StruckChannel) -> None:
        assert struck == StruckChannel("a-0>b-0")
        self.fired.append((fault, detail))

    def schedule(self, time: int) -> None:
        self.appointments.append(time)


def channel(
    capacity: int = 4, late: Lateness | None = None, loop: Loop | None = None, latency: int = LATENCY
) -> DataChannel:
    log = SimpleNamespace(sent=[], barriers=[])
    made = DataChannel("a-0>b-0", loop or Loop(), log, capacity=capacity, latency=latency, late=late)
    made.receiver = Receiver()  # type: ignore[assignment]
    return made


def record(origin: int) -> Record:
    return Record(1, 1, 1, 0, origin)


def push_at(loop: Loop, time: int, one: DataChannel, element: Element) -> None:
    """Let time pass, and then let the element enter."""
    loop.at(time, lambda *_: one.push(element))
    loop.run(time)


def arrivals(one: DataChannel) -> list[int]:
    return [time for time, _ in one.queue]


def test_first_in_first_out_and_a_latency_later() -> None:
    one = channel()
    elements = [record(0), Barrier(1), record(1), EndOfData()]
    for element in elements:
        one.push(element)
    assert [element for _, element in one.queue] == elements
    assert arrivals(one) == [LATENCY] * 4
    assert one.receiver.appointments == [LATENCY] * 4  # type: ignore[union-attr]


def test_a_negative_latency_is_refused() -> None:
    """An element that arrives before all times counts as restored."""
    with pytest.raises(Refused, match=r"^the channel a-0>b-0 has a latency of -1 µs; it can be 0 or more$"):
        channel(latency=-1)
    one = channel(latency=0)
    one.push(record(0))
    assert arrivals(one) == [0]


def test_its_log_numbers_records_and_places_barriers_between_them() -> None:
    one = channel()
    for element in (record(7), Barrier(1), record(8), record(9), Barrier(2), EndOfData()):
        one.push(element)
    assert one.log.sent == [7, 8, 9]
    assert one.log.barriers == [(1, 1), (2, 3)]


@pytest.mark.parametrize(("entered", "full"), [(0, False), (1, False), (2, True)])
def test_it_is_bounded(entered: int, full: bool) -> None:
    one = channel(capacity=2)
    for number in range(entered):
        one.push(record(number))
    assert one.is_full is full


def test_a_late_message_holds_up_those_behind_it() -> None:
    late = Lateness("message a-0>b-0")
    late.add(2, 500)
    one = channel(late=late)
    for number in range(3):
        one.push(record(number))
    assert arrivals(one) == [LATENCY, LATENCY + 500, LATENCY + 500]


def test_a_delay_lasts_as_long_as_it_was_asked_for_and_fires_when_something_enters() -> None:
    loop = Loop()
    one = channel(loop=loop)
    one.delay(by=300, until=50, fault=2)
    assert one.receiver.fired == []  # type: ignore[union-attr]
    one.push(record(0))
    one.push(record(1))
    assert arrivals(one) == [LATENCY + 300] * 2
    assert one.receiver.fired == [(2, "a-0>b-0 delays what enters")]  # type: ignore[union-attr]
    push_at(loop, 50, one, record(2))
    assert arrivals(one)[2] == LATENCY + 300, "not before the one ahead of it"
    push_at(loop, 400, one, record(3))
    assert arrivals(one)[3] == 500


def test_a_delay_that_nothing_meets_has_not_fired() -> None:
    loop = Loop()
    one = channel(loop=loop)
    one.delay(by=300, until=50, fault=2)
    push_at(loop, 50, one, record(0))
    assert one.receiver.fired == []  # type: ignore[union-attr]
    assert arrivals(one) == [50 + LATENCY]


def test_a_stall_holds_what_is_in_it_or_enters() -> None:
    one = channel()
    one.push(record(0))
    one.stall(until=1_000, fault=3)
    assert one.receiver.fired == [(3, "a-0>b-0 holds what is in it")]  # type: ignore[union-attr]
    one.push(record(1))
    assert one.receiver.appointments[-1] == 1_000  # type: ignore[union-attr]
    assert len(one.receiver.fired) == 1  # type: ignore[union-attr]


def test_a_stall_of_an_empty_channel_fires_when_something_is_held() -> None:
    one = channel()
    one.stall(until=1_000, fault=3)
    assert one.receiver.fired == []  # type: ignore[union-attr]
    one.push(record(0))
    assert one.receiver.fired == [(3, "a-0>b-0 holds what is in it")]  # type: ignore[union-attr]


def test_a_stall_that_is_over_holds_nothing() -> None:
    loop = Loop()
    one = channel(loop=loop)
    one.stall(until=1_000, fault=3)
    push_at(loop, 1_000, one, record(0))
    assert one.receiver.fired == []  # type: ignore[union-attr]
    assert one.receiver.appointments == [1_000 + LATENCY]  # type: ignore[union-attr]


def test_a_cut_loses_what_is_in_it_and_all_that_follows() -> None:
    one = channel()
    one.push(record(0))
    one.push(Barrier(1))
    assert one.cut() == 2
    one.push(record(1))
    assert len(one.queue) == 0
    assert one.log.sent == [0], "what enters a broken connection was never sent"
