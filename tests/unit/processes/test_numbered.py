"""Data channels that outlive the attempts at their ends: what is kept, asked for again, dropped, let in."""

from __future__ import annotations

import socket
from pathlib import Path

from cutproof.reference_impl.core.decisions.local_recovery import End
from cutproof.reference_impl.core.vocabulary.messages import Barrier, EndOfData
from cutproof.reference_impl.defects import parts_for
from unit.processes.ends import Ends, record
from unit.processes.numbered_rig import Rig, kept, push, queued

BARRIER = Barrier(3)  # type: ignore[arg-type]


# -- what is kept, and asked for again -------------------------------------------------------------


def test_a_sender_keeps_what_is_not_durable(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    sender.push(BARRIER)
    push(sender, 2, 3)
    rig.until(lambda: len(receiver.queue) == 5)
    assert kept(sender) == [0, 1, None, 2, 3]
    rig.flush(receiver, 0, 1, 2)
    rig.until(lambda: kept(sender) == [3])


def test_another_receiver_is_sent_what_is_durable_nowhere(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1, 2)
    rig.until(lambda: len(receiver.queue) == 3)
    rig.flush(receiver, 0)
    rig.until(lambda: kept(sender) == [1, 2])
    receiver.close()
    another = rig.receives(2)
    rig.until(lambda: sorted(another.received) == [0, 1, 2])
    assert list(another.received.values()) == [record(0), record(1), record(2)], "from the log, and from the sender"
    assert not another.is_expected(2)
    assert another.is_expected(3)


def test_nobody_is_let_in_before_it_knows_what_to_expect(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(receiver.queue) == 1)
    receiver.close()
    another = rig.receives(2, begins_at=None)
    rig.passes()
    assert another.connection is None
    rig.log[0] = record(0)
    another.begin_at(0)
    rig.until(lambda: another.connection is not None)
    push(sender, 1)
    rig.until(lambda: sorted(another.received) == [0, 1])


def test_a_connection_that_breaks_goes_on_where_it_was_with_barriers_too(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    rig.until(lambda: len(receiver.queue) == 2)
    assert receiver.connection is not None
    receiver.connection.sock.shutdown(socket.SHUT_RDWR)
    sender.push(BARRIER)
    push(sender, 2)
    rig.until(lambda: len(receiver.queue) == 4)
    assert queued(receiver) == [record(0), record(1), BARRIER, record(2)]
    assert len(rig.ends.broken) == 1


def test_ends_are_sent_to_each_receiver_and_taken_once(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    sender.push(EndOfData())
    rig.until(lambda: queued(receiver) == [EndOfData()])
    receiver.close()
    another = rig.receives(2)
    rig.until(lambda: another.ends == [End.DATA])
    later = rig.sends(2)
    rig.knows(later)
    later.push(EndOfData())
    push(later, 0)
    rig.until(lambda: 0 in another.received)
    another.open(())
    assert queued(another) == [record(0), EndOfData()]


# -- what is dropped -------------------------------------------------------------------------------


def test_what_a_sender_that_recovered_locally_sends_again_is_dropped(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1, 2)
    rig.until(lambda: len(receiver.queue) == 3)
    sender.close()
    again = rig.sends(2, begins_at=1)
    rig.knows(again)
    assert again.is_behind
    push(again, 1, 2)
    assert not again.is_behind
    push(again, 3)
    rig.until(lambda: len(receiver.queue) == 4)
    assert [element.origin for element in queued(receiver)] == [0, 1, 2, 3]  # type: ignore[union-attr]


def test_with_the_defect_it_is_not(ends: Ends, tmp_path: Path) -> None:
    rig = Rig(ends, tmp_path, parts_for("P06").local_recovery)
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(receiver.queue) == 1)
    sender.close()
    again = rig.sends(2)
    rig.knows(again)
    push(again, 0)
    rig.until(lambda: len(receiver.queue) == 2)
    assert queued(receiver) == [record(0), record(0)]
    rig.close()


def test_barriers_that_come_while_it_takes_again_are_of_checkpoints_that_were_aborted(rig: Rig) -> None:
    sender = rig.sends()
    receiver = rig.receives(2)
    rig.knows(sender)
    sender.push(BARRIER)
    push(sender, 0)
    rig.until(lambda: 0 in receiver.received)
    receiver.open(())
    assert queued(receiver) == [record(0)]


# -- room ----------------------------------------------------------------------------------------------


def test_room_is_what_was_taken_and_what_the_channel_holds(rig: Rig) -> None:
    sender = rig.sends(capacity=2)
    assert sender.is_full, "nobody has said anything yet"
    receiver = rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    assert sender.is_full
    rig.until(lambda: len(receiver.queue) == 2)
    assert receiver.took() == 0
    rig.until(lambda: not sender.is_full)


def test_what_had_come_before_needs_no_room(rig: Rig) -> None:
    sender, receiver = rig.sends(capacity=3), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1, 2)
    rig.until(lambda: len(receiver.queue) == 3)
    sender.close()
    again = rig.sends(2, capacity=1)
    rig.knows(again)
    for number in range(3):
        assert not again.is_full
        push(again, number)
    assert again.is_full
