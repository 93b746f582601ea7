"""Both ends of a data channel in one process, over a real connection."""

from __future__ import annotations

import socket
from collections.abc import Callable

from cutproof.reference_impl.core.vocabulary.ids import ends_of
from cutproof.reference_impl.core.vocabulary.messages import Record
from cutproof.reference_impl.driver.perturbations import Lateness
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.loop import Loop, monotonic_us
from cutproof.reference_impl.processes.network.channels import InputChannel, OutputChannel, Reception
from cutproof.reference_impl.processes.network.connections import Outbox
from unit.processes.greeted import SECRET

NAME = "source-0>count-0"


class Log:
    """What the network saw."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.barriers: list[tuple[int, int]] = []
        self.recovered: list[int] = []
        self.recovered_watermarks: list[tuple[int | None, int]] = []


def record(origin: int) -> Record:
    return Record(1, 2, 3, 4, origin)


class Ends:
    """A loop, a reception, and what the ends are made of; `until` runs the loop for as long as it takes."""

    def __init__(self) -> None:
        self.loop = Loop(1, monotonic_us())
        self.outbox = Outbox(self.loop, Clock(monotonic_us), SECRET)
        self.loop.before_wait = self.outbox.flush
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.reception = Reception(self.listener, self.outbox)
        self.broken: list[str] = []
        self.log = Log()

    def close(self) -> None:
        self.loop.close()
        self.listener.close()

    def sender(self, attempt: int = 1, late: Lateness | None = None) -> OutputChannel:
        return OutputChannel(ends_of(NAME), attempt, self.port, self.outbox, self.log, late)

    def receiver(self, attempt: int = 1, capacity: int = 2) -> InputChannel:
        channel = InputChannel(ends_of(NAME), capacity, self.outbox, lambda: self.log)
        channel.on_broken = self.broken.append
        self.reception.expect(channel, attempt)
        return channel

    def until(self, reached: Callable[[], bool], within_us: int = 5_000_000) -> None:
        """Run the loop until something is so; fail when it takes too long."""
        limit = self.loop.now + within_us

        def look(*_: object) -> None:
            self.loop.stopped = reached() or self.loop.now > limit
            if not self.loop.stopped:
                self.loop.after(500, look)

        self.loop.stopped = False
        look()
        self.loop.run()
        assert reached(), "it did not come to that in time"
