"""Attempts at both ends of a numbered data channel in one process, over real connections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cutproof.reference_impl.core.decisions.local_recovery import LocalRecovery
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, ends_of
from cutproof.reference_impl.core.vocabulary.messages import Element
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.disk.determinants import DiskDeterminants
from cutproof.reference_impl.processes.disk.journal import ChannelJournal, Journal
from cutproof.reference_impl.processes.network.numbered_input import NumberedInput
from cutproof.reference_impl.processes.network.numbered_output import NumberedOutput
from unit.processes.ends import NAME, Ends, record

WHOLE = AttemptId(1)


class Rig:
    """Attempts at both ends of one channel, and what is durable in its log."""

    def __init__(self, ends: Ends, folder: Path, part: LocalRecovery) -> None:
        self.ends = ends
        self.log: dict[int, Element] = {}
        self._folder = folder
        self._part = part
        self._journal = Journal(folder / "journal", Clock(lambda: 0))
        self._made: list[NumberedInput | NumberedOutput | DiskDeterminants | Journal] = [self._journal]

    def close(self) -> None:
        for one in reversed(self._made):
            one.close()

    def sends(self, attempt: int = 1, *, begins_at: int = 0, capacity: int = 100) -> NumberedOutput:
        account: ChannelJournal = self._journal.channel_opened(NAME, AttemptId(attempt))
        sender = NumberedOutput(
            ends_of(NAME),
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
        """One that recovers locally goes on with `begins_at`; None: it does not know yet."""
        (self._folder / "order").mkdir(exist_ok=True)
        order = DiskDeterminants(self._folder / "order", self._folder, AttemptId(attempt), returns=attempt > WHOLE)
        receiver = NumberedInput(
            ends_of(NAME),
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
        receiver.when_ready = self.ends.reception.retry_waiting
        self.ends.reception.expect(receiver, WHOLE)
        if attempt == WHOLE:
            receiver.open(())
        elif begins_at is not None:
            receiver.begin_at(begins_at)
        return receiver

    def flush(self, receiver: NumberedInput, *numbers: int) -> None:
        self.log.update({number: record(number) for number in numbers})
        receiver.flushed(max(numbers) + 1)

    def is_reached(self, receiver: NumberedInput) -> None:
        """Whoever connects from now on comes upon this one."""
        self.ends.reception.expect(receiver, WHOLE)

    def passes(self, us: int = 20_000, unless: Callable[[], bool] = lambda: False) -> None:
        """The loop runs on for that long, in which everybody connects again several times."""
        began = self.ends.loop.now
        self.ends.until(lambda: unless() or self.ends.loop.now - began > us)

    def knows(self, sender: NumberedOutput) -> None:
        self.ends.until(lambda: sender.is_known)

    def until(self, reached: Callable[[], bool]) -> None:
        self.ends.until(reached)


def push(sender: NumberedOutput, *origins: int) -> None:
    for origin in origins:
        sender.push(record(origin))


def queued(receiver: NumberedInput) -> list[Element]:
    return [element for _, element in receiver.queue]


def kept(sender: NumberedOutput) -> list[int]:
    return [number for _, number, _ in sender.kept]
