"""Data channels between processes when barriers overtake (FLIP-76): credits, places, what is put back."""

from __future__ import annotations

from cutproof.reference_impl.core.decisions.in_flight import Capture
from cutproof.reference_impl.core.vocabulary.messages import Barrier, Idle, Watermark
from cutproof.reference_impl.driver.inputs import before_all_times
from cutproof.reference_impl.driver.queues import first_to_arrive
from unit.processes.ends import Ends, record

IN_FRONT = Capture().handed_over


def test_a_barrier_that_overtakes_goes_out_of_a_full_channel_and_gives_its_credit_back(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver(capacity=1)
    ends.until(lambda: not sender.is_full)
    sender.push(record(1))
    assert sender.is_full
    sender.push(Barrier(1, 0))
    ends.until(lambda: len(receiver.queue) == 2)
    assert receiver.timed_barriers == 1

    receiver.take_overtaking(1)

    ends.until(lambda: sender.credits == 0)
    assert (sender.is_full, receiver.timed_barriers) == (True, 0), "the record still fills the channel"
    receiver.queue.popleft()
    receiver.sender.drain()
    ends.until(lambda: not sender.is_full)
    assert sender.credits == 1, "never more than its capacity"
    assert receiver.consumed == sender.sent == 2


def test_a_barrier_that_is_in_no_hurry_is_not_counted_as_one(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver(capacity=4)
    ends.until(lambda: not sender.is_full)
    sender.push(Barrier(1))
    sender.push(Barrier(2, 700))
    ends.until(lambda: len(receiver.queue) == 2)
    assert receiver.timed_barriers == 1


def test_a_barrier_that_overtakes_before_the_channel_is_accepted_waits_for_that(ends: Ends) -> None:
    sender = ends.sender(attempt=2)
    ends.receiver(attempt=1)
    sender.push(Barrier(1, 0))
    began = ends.loop.now
    ends.until(lambda: ends.loop.now - began > 20_000)
    assert not sender.is_idle
    receiver = ends.receiver(attempt=2, capacity=1)
    ends.until(lambda: len(receiver.queue) == 1)
    assert (sender.is_full, sender.is_idle) == (True, True), "it took the only credit"
    receiver.take_overtaking(0)
    ends.until(lambda: not sender.is_full)
    assert sender.credits == 1


def test_what_is_put_back_comes_first_and_takes_and_gives_no_credit(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver(capacity=2)
    ends.until(lambda: not sender.is_full)
    sender.push(record(7))
    ends.until(lambda: len(receiver.queue) == 1)

    receiver.refill((record(4), record(5)), IN_FRONT)

    origins = []
    while receiver.queue:
        _, element = receiver.queue.popleft()
        origins.append(getattr(element, "origin", None))
        receiver.taken += 1
        receiver.sender.drain()
    assert origins == [4, 5, 7]
    ends.until(lambda: sender.credits == 2)
    began = ends.loop.now
    ends.until(lambda: ends.loop.now - began > 10_000)
    assert (sender.credits, receiver.consumed) == (2, 1), "one was the sender's"


def test_what_was_put_back_more_often_comes_first_whatever_its_channel(ends: Ends) -> None:
    first, second = ends.receiver(), ends.receiver()
    first.refill((record(1), record(2)), IN_FRONT, (1,))
    second.refill((record(3), record(4)), IN_FRONT, (2, 1))
    taken = []
    while (next_one := first_to_arrive((first, second), (False, False))) is not None:
        _, chosen = next_one
        taken.append(getattr((first, second)[chosen].queue.popleft()[1], "origin", None))
    assert taken == [3, 1, 4, 2]


def test_what_is_put_back_waits_for_no_stalled_network(ends: Ends) -> None:
    receiver = ends.receiver()
    receiver.stalled_until = ends.loop.now + 1_000_000
    receiver.refill((record(1),), IN_FRONT)
    assert first_to_arrive((receiver,), (False,)) == (before_all_times(0), 0)


def test_the_log_has_what_is_put_back(ends: Ends) -> None:
    ends.receiver().refill((record(4), Watermark(30), record(5), Idle()), IN_FRONT)
    assert ends.log.recovered == [4, 5]
    assert ends.log.recovered_watermarks == [(30, 1), (None, 2)]
    assert ends.log.sent == []


def test_elements_keep_their_numbers_when_a_barrier_overtakes_them_and_others_are_put_back(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver(capacity=9)
    ends.until(lambda: not sender.is_full)
    for element in (record(1), record(2), Barrier(1, 0), record(3)):
        sender.push(element)
    ends.until(lambda: len(receiver.queue) == 4)
    receiver.refill((record(8),), IN_FRONT)
    assert [receiver.position(place) for place in range(5)] == [-1, 0, 1, 2, 3]
    receiver.take_overtaking(3)
    assert [receiver.position(place) for place in range(4)] == [-1, 0, 1, 3]
    receiver.queue.popleft()
    receiver.taken += 1
    assert receiver.position(-1) == -1, "what was taken last was put back before"
    assert [receiver.position(place) for place in range(3)] == [0, 1, 3]
