"""Data channels: credits, who is let in, what is a failure and what is not."""

from __future__ import annotations

from cutproof.reference_impl.core.vocabulary.messages import Barrier
from cutproof.reference_impl.driver.perturbations import Lateness
from cutproof.reference_impl.processes.network.channels import CODEC
from cutproof.reference_impl.processes.network.frames import Data
from unit.processes.ends import Ends, record


def test_a_sender_has_no_room_until_it_is_accepted(ends: Ends) -> None:
    sender = ends.sender()
    assert sender.is_full
    ends.receiver(capacity=2)
    ends.until(lambda: not sender.is_full)


def test_a_full_channel_makes_its_sender_wait_until_something_is_taken(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver(capacity=2)
    ends.until(lambda: not sender.is_full)
    sender.push(record(1))
    sender.push(record(2))
    assert sender.is_full
    ends.until(lambda: len(receiver.queue) == 2)
    assert sender.is_full, "arriving is not being taken"
    receiver.queue.popleft()
    receiver.sender.drain()
    ends.until(lambda: not sender.is_full)
    sender.push(record(3))
    assert sender.is_full, "one taken is one more"


def test_elements_keep_their_order_and_the_network_keeps_its_log(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver(capacity=9)
    ends.until(lambda: not sender.is_full)
    elements = [record(5), Barrier(1), record(6), record(7)]
    for element in elements:
        sender.push(element)
    ends.until(lambda: len(receiver.queue) == 4)
    assert [element for _, element in receiver.queue] == elements
    assert (ends.log.sent, ends.log.barriers) == ([5, 6, 7], [(1, 1)])


def test_a_late_message_holds_back_what_is_behind_it(ends: Ends) -> None:
    late = Lateness("message")
    late.add(1, 30_000)
    sender, receiver = ends.sender(late=late), ends.receiver(capacity=9)
    ends.until(lambda: not sender.is_full)
    began = ends.loop.now
    sender.push(record(1))
    sender.push(record(2))
    assert not sender.is_idle
    ends.until(lambda: len(receiver.queue) == 2)
    assert [element.origin for _, element in receiver.queue] == [1, 2]
    assert ends.loop.now - began >= 30_000
    assert sender.is_idle


def test_a_sender_that_comes_first_waits_for_its_receiver(ends: Ends) -> None:
    sender = ends.sender(attempt=2)
    ends.receiver(attempt=1)
    began = ends.loop.now
    ends.until(lambda: ends.loop.now - began > 20_000)
    assert sender.is_full, "the older attempt does not take it"
    newer = ends.receiver(attempt=2)
    ends.until(lambda: not sender.is_full)
    assert newer.connection is not None


def test_a_sender_of_an_older_attempt_is_never_let_in(ends: Ends) -> None:
    ends.receiver(attempt=2)
    sender = ends.sender(attempt=1)
    began = ends.loop.now
    ends.until(lambda: ends.loop.now - began > 30_000)
    assert sender.is_full
    assert ends.broken == []


def test_good_bye_is_no_failure(ends: Ends) -> None:
    sender, receiver = ends.sender(), ends.receiver()
    ends.until(lambda: not sender.is_full)
    sender.close()
    ends.until(lambda: receiver.is_over)
    assert ends.broken == []


def test_an_end_without_good_bye_breaks_the_receiver(ends: Ends) -> None:
    sender = ends.sender()
    ends.receiver()
    ends.until(lambda: not sender.is_full)
    assert sender.connection is not None
    sender.connection.sock.shutdown(2)
    ends.until(lambda: bool(ends.broken))
    assert len(ends.broken) == 1
    ends.until(lambda: sender.is_full)


def test_what_is_felt_shows_how_long_an_element_was_under_way(ends: Ends) -> None:
    felt: list[tuple[int, int]] = []
    sender, receiver = ends.sender(), ends.receiver(capacity=4)
    receiver.on_felt = lambda transit_us, pieces: felt.append((transit_us, pieces))
    ends.until(lambda: not sender.is_full)
    assert sender.connection is not None
    connection, frame = sender.connection, CODEC.encode(Data(ends.outbox.clock.tick(), record(1)))
    connection.sock.setblocking(True)
    connection.sock.sendall(frame[:4])
    ends.until(lambda: receiver.connection is not None and receiver.connection.partial_reads == 1)
    connection.sock.sendall(frame[4:])
    ends.until(lambda: len(receiver.queue) == 1)
    assert felt[-1][1] == 1, "one read brought less than a frame"
