"""Data channels that outlive the attempts at their ends: what is kept, asked for again, dropped, let in."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.core.ids import AttemptId
from cutproof.reference_impl.core.local_recovery import LocalRecovery
from cutproof.reference_impl.core.messages import Barrier, Element, EndOfData
from cutproof.reference_impl.core.parts import Parts
from cutproof.reference_impl.defects import parts_for
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.journal import ChannelJournal, Journal
from cutproof.reference_impl.processes.numbered import NumberedInput, NumberedOutput
from cutproof.reference_impl.processes.receipts import DiskReceipts
from unit.processes.ends import NAME, Ends, record

WHOLE = AttemptId(1)
BARRIER = Barrier(3)  # type: ignore[arg-type]


class Rig:
    """Attempts at both ends of one channel, and what is durable in its log."""

    def __init__(self, ends: Ends, folder: Path, part: LocalRecovery) -> None:
        self.ends = ends
        self.log: dict[int, Element] = {}
        self._folder = folder
        self._part = part
        self._journal = Journal(folder / "journal", Clock(lambda: 0))
        self._made: list[NumberedInput | NumberedOutput | DiskReceipts | Journal] = [self._journal]

    def close(self) -> None:
        for one in reversed(self._made):
            one.close()

    def sends(self, attempt: int = 1, *, begins_at: int = 0, capacity: int = 100) -> NumberedOutput:
        account: ChannelJournal = self._journal.channel_opened(NAME, AttemptId(attempt))
        sender = NumberedOutput(
            NAME,
            AttemptId(attempt),
            self.ends.port,
            self.ends.outbox,
            account,
            None,
            whole=WHOLE,
            capacity=capacity,
            part=self._part,
        )
        self._made.append(sender)
        if attempt > WHOLE:
            sender.begin_at(begins_at)
        return sender

    def receives(self, attempt: int = 1, *, begins_at: int | None = 0) -> NumberedInput:
        """One that comes up alone goes on with `begins_at`; None: it does not know yet."""
        (self._folder / "order").mkdir(exist_ok=True)
        order = DiskReceipts(self._folder / "order", self._folder, AttemptId(attempt), returns=attempt > WHOLE)
        receiver = NumberedInput(
            NAME,
            0,
            AttemptId(attempt),
            self.ends.outbox,
            order,
            self._part,
            lambda: self.ends.log,
            lambda: dict(self.log),
            returns=attempt > WHOLE,
        )
        self._made += [order, receiver]
        receiver.on_broken = self.ends.broken.append
        receiver.when_ready = self.ends.reception.look_again
        self.ends.reception.expect(receiver, WHOLE)
        if attempt == WHOLE:
            receiver.open(())
        elif begins_at is not None:
            receiver.begin_at(begins_at)
        return receiver

    def flush(self, receiver: NumberedInput, *numbers: int) -> None:
        self.log.update({number: record(number) for number in numbers})
        receiver.flushed(max(numbers) + 1)

    def knows(self, sender: NumberedOutput) -> None:
        self.ends.until(lambda: sender.is_known)

    def until(self, reached: Callable[[], bool]) -> None:
        self.ends.until(reached)


@pytest.fixture
def rig(ends: Ends, tmp_path: Path) -> Iterator[Rig]:
    made = Rig(ends, tmp_path, Parts().local_recovery)
    yield made
    made.close()


def push(sender: NumberedOutput, *origins: int) -> None:
    for origin in origins:
        sender.push(record(origin))


def queued(receiver: NumberedInput) -> list[Element]:
    return [element for _, element in receiver.queue]


def kept(sender: NumberedOutput) -> list[int]:
    return [number for _, number, _ in sender.kept]


# -- what is kept, and asked for again -------------------------------------------------------------


def test_a_sender_keeps_what_is_not_durable(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0, 1)
    sender.push(BARRIER)
    push(sender, 2, 3)
    rig.until(lambda: len(receiver.queue) == 5)
    assert kept(sender) == [0, 1, -1, 2, 3]
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
    assert not another.is_owed(2)
    assert another.is_owed(3)


def test_nobody_is_let_in_before_it_knows_what_to_expect(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(receiver.queue) == 1)
    receiver.close()
    another = rig.receives(2, begins_at=None)
    began = rig.ends.loop.now
    rig.until(lambda: rig.ends.loop.now - began > 20_000)
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


def test_ends_are_said_to_each_receiver_and_taken_once(rig: Rig) -> None:
    sender, receiver = rig.sends(), rig.receives()
    rig.knows(sender)
    sender.push(EndOfData())
    rig.until(lambda: queued(receiver) == [EndOfData()])
    receiver.close()
    another = rig.receives(2)
    rig.until(lambda: another.ends == [-1])
    later = rig.sends(2)
    rig.knows(later)
    later.push(EndOfData())
    push(later, 0)
    rig.until(lambda: 0 in another.received)
    another.open(())
    assert queued(another) == [record(0), EndOfData()]


# -- what is dropped -------------------------------------------------------------------------------


def test_what_a_sender_that_came_up_alone_sends_again_is_dropped(rig: Rig) -> None:
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
    rig.close()


def test_barriers_that_come_while_it_takes_again_are_of_checkpoints_that_were_given_up(rig: Rig) -> None:
    sender = rig.sends()
    receiver = rig.receives(2)
    rig.knows(sender)
    sender.push(BARRIER)
    push(sender, 0)
    rig.until(lambda: 0 in receiver.received)
    receiver.open(())
    assert queued(receiver) == [record(0)]


# -- who is let in -----------------------------------------------------------------------------------


def test_the_older_of_two_senders_is_shut_out(rig: Rig) -> None:
    zombie, receiver = rig.sends(), rig.receives()
    rig.knows(zombie)
    another = rig.sends(2)
    rig.knows(another)
    push(zombie, 7)
    push(another, 0)
    rig.until(lambda: len(receiver.queue) == 1)
    began = rig.ends.loop.now
    rig.until(lambda: rig.ends.loop.now - began > 20_000)
    assert queued(receiver) == [record(0)]
    assert receiver.heard_from == 2


def test_a_sender_leaves_a_receiver_that_was_replaced(rig: Rig) -> None:
    sender, zombie = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(zombie.queue) == 1)
    another = rig.receives(2)
    sender.receiver_moved(AttemptId(2))
    rig.until(lambda: 0 in another.received)


def test_a_zombie_says_nothing_of_what_it_has_flushed(rig: Rig) -> None:
    sender, zombie = rig.sends(), rig.receives()
    rig.knows(sender)
    push(sender, 0)
    rig.until(lambda: len(zombie.queue) == 1)
    another = rig.receives(2)  # which has read the log by then
    rig.flush(zombie, 0)
    sender.receiver_moved(AttemptId(2))
    rig.until(lambda: 0 in another.received)
    assert kept(sender) == [0]


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
