"""Who may speak at a port of the run: whoever proves to know its secret, before anything is heard."""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from cutproof.reference_impl.core.vocabulary.messages import Record
from cutproof.reference_impl.processes.network import entrance
from cutproof.reference_impl.processes.network.channels import CODEC
from cutproof.reference_impl.processes.network.data_frames import Accepted, Data, Open
from cutproof.reference_impl.processes.network.greeting import Accepting, Dialling, ForeignPeer, new_secret
from unit.processes.ends import NAME, Ends, record
from unit.processes.greeted import SECRET, proof

FAR_IN_THE_FUTURE = 2**61
OPENING = CODEC.encode(Open(FAR_IN_THE_FUTURE, NAME, 1))


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


class Stranger:
    """Another program of the machine."""

    def __init__(self, ends: Ends) -> None:
        self.sock = socket.create_connection(("127.0.0.1", ends.port), timeout=5)
        self.sock.setblocking(False)
        self.arrived = b""
        self.is_over = False

    def transmit(self, *what: bytes) -> None:
        for each in what:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                self.sock.send(each)

    def is_closed(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionError:
                data = b""
            self.arrived += data
            self.is_over = not data
        return self.is_over


@pytest.fixture
def stranger(ends: Ends) -> Iterator[Callable[[], Stranger]]:
    made: list[Stranger] = []

    def come() -> Stranger:
        made.append(Stranger(ends))
        return made[-1]

    yield come
    for each in made:
        each.sock.close()


def passes_a_record(ends: Ends) -> bool:
    """A sender and a receiver of the run find each other, and an element goes through."""
    receiver, sender = ends.receiver(), ends.sender()
    ends.until(lambda: not sender.is_full)
    sender.push(record(7))
    ends.until(lambda: bool(receiver.queue))
    (_, element) = receiver.queue[0]
    return isinstance(element, Record) and element.origin == 7


# -- the greeting itself ---------------------------------------------------------------------------------------------


def test_two_who_know_the_secret_know_each_other() -> None:
    accepting, dialling = Accepting(SECRET), Dialling(SECRET)
    assert not dialling.take(accepting.challenge)
    assert dialling.proof == proof(SECRET, b"dialled", accepting.challenge)
    assert accepting.take(dialling.proof)
    assert accepting.proof == proof(SECRET, b"accepted", accepting.challenge)
    assert dialling.take(accepting.proof)


def test_it_may_come_byte_by_byte() -> None:
    accepting, dialling = Accepting(SECRET), Dialling(SECRET)
    for byte in accepting.challenge:
        dialling.take(bytes([byte]))
    assert [accepting.take(bytes([byte])) for byte in dialling.proof] == [False] * 15 + [True]


def test_neither_side_takes_another_secret() -> None:
    accepting, dialling = Accepting(SECRET), Dialling(new_secret())
    dialling.take(accepting.challenge)
    with pytest.raises(ForeignPeer):
        accepting.take(dialling.proof)
    with pytest.raises(ForeignPeer):
        dialling.take(accepting.proof)


def test_what_was_overheard_proves_nothing_to_another_connection() -> None:
    first, second, dialling = Accepting(SECRET), Accepting(SECRET), Dialling(SECRET)
    dialling.take(first.challenge)
    with pytest.raises(ForeignPeer):
        second.take(dialling.proof)


def test_who_sends_a_proof_back_has_proved_nothing() -> None:
    dialling = Dialling(SECRET)
    dialling.take(b"sixteen of these")
    with pytest.raises(ForeignPeer):
        dialling.take(dialling.proof)


def test_a_proof_is_judged_whole_so_that_no_part_of_it_can_be_guessed() -> None:
    accepting = Accepting(SECRET)
    assert not accepting.take(b"wrong from the ")
    with pytest.raises(ForeignPeer):
        accepting.take(b"x")


def test_one_that_breaks_off_in_a_true_proof_is_none_of_the_foreign() -> None:
    accepting = Accepting(SECRET)
    assert not accepting.take(proof(SECRET, b"dialled", accepting.challenge)[:9])
    accepting.end()  # says nothing: whoever broke off knew the secret
    other = Accepting(SECRET)
    assert not other.take(b"wrong")
    with pytest.raises(ForeignPeer):
        other.end()


# -- at a port -------------------------------------------------------------------------------------------------------


def test_a_foreign_frame_is_not_received_and_moves_no_clock(ends: Ends, stranger: Callable[[], Stranger]) -> None:
    receiver = ends.receiver()
    impostor = stranger()
    impostor.transmit(OPENING)
    ends.until(impostor.is_closed)
    assert ends.outbox.foreign == 1
    assert ends.outbox.clock.tick() < FAR_IN_THE_FUTURE
    assert receiver.connection is None
    assert len(impostor.arrived) == 16, "the challenge, and not a byte more"
    receiver.close()
    assert passes_a_record(ends)


@pytest.mark.parametrize(
    "reason_text",
    [b"\x01\xff\xff\xff\xff" * 8, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", bytes(1 << 16), OPENING * 500],
    ids=["a gigantic length", "another protocol", "zeros", "many frames"],
)
def test_whatever_a_foreign_one_sends_it_is_closed_and_the_run_goes_on(
    ends: Ends, stranger: Callable[[], Stranger], reason_text: bytes
) -> None:
    impostor = stranger()
    impostor.transmit(reason_text)
    ends.until(impostor.is_closed)
    assert ends.outbox.foreign == 1
    assert passes_a_record(ends)


def test_one_that_sends_too_little_is_closed_in_time_and_holds_nobody_up(
    ends: Ends, stranger: Callable[[], Stranger], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "GREETED_WITHIN_US", 300_000)
    silent, halting = stranger(), stranger()
    halting.transmit(b"half of ")
    assert passes_a_record(ends)
    ends.until(silent.is_closed)
    ends.until(halting.is_closed)
    assert ends.outbox.foreign == 1, "who has said nothing may have been one of the run"


def test_a_crowd_that_reports_nothing_is_bounded_and_holds_nobody_up(
    ends: Ends, stranger: Callable[[], Stranger]
) -> None:
    crowd = [stranger() for _ in range(entrance.MOST_CALLERS + 20)]
    ends.until(lambda: sum(each.is_closed() for each in crowd) >= 20)
    assert passes_a_record(ends)
    assert [each.is_closed() for each in crowd[:20]] == [True] * 20, "the oldest have gone"
    assert ends.outbox.foreign == 0


def test_a_sender_that_comes_upon_somebody_else_takes_nothing_of_what_that_sends(ends: Ends) -> None:
    """Whoever got a port in the moment in which the proxy that had it was dead."""
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        theirs.setblocking(False)
        right, ends.port = ends.port, int(theirs.getsockname()[1])
        sender = ends.sender()
        taken: list[socket.socket] = []

        def come() -> bool:
            with contextlib.suppress(BlockingIOError):
                taken.append(theirs.accept()[0])
                taken[-1].sendall(
                    b"a challenge, 16 " + b"no proof, but 16" + CODEC.encode(Accepted(FAR_IN_THE_FUTURE, 100))
                )
            return ends.outbox.foreign > 0

        ends.until(come)
        assert sender.is_full
        assert ends.outbox.clock.tick() < FAR_IN_THE_FUTURE
        for each in taken:
            each.close()
        sender.close()
        ends.port = right
    assert passes_a_record(ends)


def test_one_of_the_run_that_sends_an_impossible_time_is_not_taken(ends: Ends) -> None:
    receiver, sender = ends.receiver(), ends.sender()
    ends.until(lambda: not sender.is_full)
    assert sender.connection is not None
    sender.connection.send(Data(FAR_IN_THE_FUTURE, record(1)))
    ends.until(lambda: bool(ends.broken))
    assert "ahead of this machine's clock" in ends.broken[0]
    assert not receiver.queue
    assert ends.outbox.clock.tick() < FAR_IN_THE_FUTURE


def test_the_oldest_of_a_crowd_may_speak_in_the_moment_in_which_it_has_to_go(
    ends: Ends, stranger: Callable[[], Stranger]
) -> None:
    """What it said and the next connection are heard in one turn of the loop."""
    crowd = [stranger() for _ in range(entrance.MOST_CALLERS)]
    ends.until(lambda: all(_has_a_challenge(each) for each in crowd))
    for number in range(entrance.MOST_CALLERS):
        crowd.append(stranger())
        crowd[number].transmit(OPENING)
        ends.until(crowd[number].is_closed)
    assert passes_a_record(ends)


def _has_a_challenge(one: Stranger) -> bool:
    return not one.is_closed() and len(one.arrived) == 16


def test_a_process_without_descriptors_rests_and_takes_connections_again(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    accept = socket.socket.accept

    def no_descriptors(sock: socket.socket) -> tuple[socket.socket, object]:
        nonlocal tries
        tries += 1
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket.socket, "accept", no_descriptors)
    sender, receiver = ends.sender(), ends.receiver()
    over = time.monotonic() + 0.5
    ends.until(lambda: time.monotonic() > over)
    assert 1 <= tries <= 7
    monkeypatch.setattr(socket.socket, "accept", accept)
    ends.until(lambda: not sender.is_full)
    receiver.close()
