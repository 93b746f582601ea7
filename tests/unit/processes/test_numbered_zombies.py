"""Numbered channels when an attempt at one end was replaced and does not know it; and channels that began with what
was restored."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.messages import CancelBarrier
from unit.processes.ends import record
from unit.processes.numbered_rig import Rig, kept, push, queued

# -- senders ---------------------------------------------------------------------------------------


def test_the_older_of_two_senders_is_shut_out(rig: Rig) -> None:
    zombie, receiver = rig.sends(), rig.receives()
    rig.knows(zombie)
    another = rig.sends(2)
    rig.knows(another)
    push(zombie, 7)
    push(another, 0)
    rig.until(lambda: len(receiver.queue) == 1 and zombie.accepted_by is None)
    rig.passes(30_000, unless=lambda: zombie.accepted_by is not None)
    assert zombie.accepted_by is None
    assert queued(receiver) == [record(0)]
    assert receiver.sender_attempt == 2


def test_of_another_sender_nothing_counts_as_received(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(receiver.queue) == 2)
    sender.close()
    again = rig.sends(2, begins_at=2)
    rig.knows(again)
    assert receiver.connection is not None
    receiver.connection.sock.shutdown(socket.SHUT_RDWR)
    push(again, 2)
    rig.until(lambda: len(receiver.queue) == 3)
    assert queued(receiver)[2] == record(2)


def test_what_nobody_has_received_of_another_sender_is_sent_again_without_numbers_too(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(receiver.queue) == 2)
    sender.close()
    again = rig.sends(2)
    rig.knows(again)
    assert receiver.connection is not None
    receiver.connection.sock.shutdown(socket.SHUT_RDWR)
    aborted = CancelBarrier(3)  # type: ignore[arg-type]
    again.push(aborted)
    push(again, 0, 1, 2)
    rig.until(lambda: len(receiver.queue) == 4)
    assert queued(receiver) == [record(0), record(1), aborted, record(2)]


def test_a_sender_that_is_behind_stays_so_when_another_receiver_has_less(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1, 2)
    rig.until(lambda: len(receiver.queue) == 3)
    sender.close()
    again = rig.sends(2)
    rig.knows(again)
    receiver.close()
    another = rig.receives(2)
    rig.until(lambda: again.accepted_by == 2)
    push(again, 0)
    rig.until(lambda: 0 in another.received)
    assert again.is_behind
    push(again, 1, 2)
    assert not again.is_behind


# -- receivers -------------------------------------------------------------------------------------


def test_a_sender_leaves_a_receiver_that_was_replaced(rig: Rig) -> None:
    sender, zombie = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(zombie.queue) == 1)
    another = rig.receives(2)
    assert another.received == {}
    sender.receiver_moved(AttemptId(2))
    rig.until(lambda: 0 in another.received)
    assert another.received == {0: record(0)}


def test_a_sender_that_knows_of_a_later_receiver_takes_no_word_of_an_older(rig: Rig) -> None:
    sender, zombie = rig.sends(), rig.receives()
    sender.receiver_moved(AttemptId(2))
    rig.until(lambda: zombie.sender_attempt is not None)  # its connection lives for a moment: the sender leaves it
    rig.passes(30_000, unless=lambda: sender.is_known)
    assert not sender.is_known
    rig.receives(2)
    rig.knows(sender)


def test_a_zombie_reports_nothing_of_what_it_has_flushed(rig: Rig) -> None:
    sender, zombie = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(zombie.queue) == 1)
    another = rig.receives(2)  # which has read the log by then
    rig.flush(zombie, 0)
    rig.passes()
    assert kept(sender) == [0]
    assert zombie.logged == 0, "nor will it say so later"
    sender.receiver_moved(AttemptId(2))
    rig.until(lambda: 0 in another.received)
    assert kept(sender) == [0]


def test_a_zombie_lets_nobody_in_and_nothing_is_forgotten(rig: Rig) -> None:
    sender, zombie = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(zombie.queue) == 2)
    sender.close()
    another = rig.receives(2)  # which has read the log by then
    rig.is_reached(zombie)
    rig.flush(zombie, 0, 1)
    again = rig.sends(2)
    rig.passes(30_000, unless=lambda: again.is_known)
    assert not again.is_known
    rig.is_reached(another)
    rig.knows(again)
    push(again, 0, 1)
    rig.until(lambda: sorted(another.received) == [0, 1])
    assert kept(again) == [0, 1]


# -- whoever cannot see whether it was replaced ----------------------------------------------------


def test_a_receiver_that_cannot_look_for_fences_lets_nobody_in_until_it_can(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = rig.receives()
    looked = cannot_read_fences(monkeypatch)
    sender = rig.sends()
    rig.until(lambda: len(looked) > 1)
    assert not sender.is_known
    monkeypatch.undo()
    push(sender, 0)
    rig.knows(sender)
    assert receiver.sender_attempt == 1


def test_a_receiver_that_cannot_look_for_fences_reports_to_nobody_what_is_durable(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(receiver.queue) == 2)
    cannot_read_fences(monkeypatch)
    rig.flush(receiver, 0, 1)
    rig.passes()
    assert kept(sender) == [0, 1]
    monkeypatch.undo()
    rig.flush(receiver, 1)
    rig.until(lambda: not kept(sender))


def cannot_read_fences(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """From now on folders cannot be listed; those that were asked for."""
    asked: list[object] = []

    def listed(path: object) -> list[str]:
        asked.append(path)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", listed)
    return asked


# -- a channel that began with something -----------------------------------------------------------


def test_what_a_channel_began_with_has_the_first_numbers_in_each_attempt_of_the_receiver(rig: Rig) -> None:
    sender, receiver = rig.sends(capacity=2), rig.receives()
    receiver.refill([record(100), record(101)], lambda restored, live: [*restored, *live])
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(receiver.queue) == 4)
    rig.log = {0: record(100), 1: record(101), 2: record(0)}
    receiver.flushed(3)
    rig.until(lambda: kept(sender) == [1])
    receiver.close()
    another = rig.receives(2)
    rig.until(lambda: len(another.received) == 4)
    rig.passes()
    assert another.received == {0: record(100), 1: record(101), 2: record(0), 3: record(1)}
    assert not another.is_expected(3)
    assert another.is_expected(4)


def test_what_a_channel_began_with_makes_no_room(rig: Rig) -> None:
    sender, receiver = rig.sends(capacity=2), rig.receives()
    receiver.refill([record(100), record(101)], lambda restored, live: [*restored, *live])
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(receiver.queue) == 4)
    assert [receiver.took(), receiver.took()] == [0, 1]
    rig.passes()
    assert sender.is_full
    assert receiver.took() == 2
    rig.until(lambda: not sender.is_full)
