"""Data channels: FIFO, bounded, with a latency; a full one makes its sender wait (ABS-12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.vocabulary.errors import Refused
from ..core.vocabulary.messages import Barrier, Element, Idle, Record, Watermark
from ..driver.inputs import HandOver, InputQueue
from ..driver.perturbations import Lateness
from ..driver.timeline import show_sent
from ..observed import StruckChannel
from ..trace import ChannelLog
from .loop import Loop

if TYPE_CHECKING:
    from ..driver.runner import TaskRunner


class DataChannel(InputQueue):
    """One channel of one attempt."""

    __slots__ = (
        "_delay",
        "_delay_until",
        "_late",
        "_latency",
        "_loop",
        "broken",
        "capacity",
        "held_by",
        "log",
        "name",
        "number",
        "receiver",
        "sender",
        "stalled_until",
        "touched_by",
    )

    def __init__(
        self, name: str, loop: Loop, log: ChannelLog, *, capacity: int, latency: int, late: Lateness | None
    ) -> None:
        """`latency` in µs; Refused if it is negative: an arrival before all times is that of a restored element."""
        super().__init__()
        if latency < 0:
            raise Refused(f"the channel {name} has a latency of {latency} µs; it can be 0 or more")
        self.name = name
        self.capacity = capacity
        self.log = log
        self.stalled_until = 0
        self.broken = False
        self.sender: TaskRunner | None = None
        self.receiver: TaskRunner | None = None
        self.number = 0
        """its index among the receiver's inputs"""
        self.touched_by: int | None = None
        """the fault that delays the next elements, until it has delayed one"""
        self.held_by: int | None = None
        """the fault that stalls it, until it has delayed an element"""
        self._loop = loop
        self._latency = latency
        self._late = late
        self._delay = 0
        self._delay_until = 0

    @property
    def is_full(self) -> bool:
        return len(self.queue) >= self.capacity

    def push(self, element: Element) -> None:
        """Put an element in; the caller has seen that there is room."""
        if self.broken:
            return
        now = self._loop.now
        arrival = now + self._latency
        if self._late is not None:
            arrival += self._late.next()
        if now < self._delay_until:
            arrival += self._delay
            self._touch()
        queue = self.queue
        if queue and queue[-1][0] > arrival:
            arrival = queue[-1][0]
        kind = type(element)
        if kind is Record:
            self.log.sent.append(element.origin)  # type: ignore[union-attr]
        elif kind is Barrier:
            self.log.barriers.append((element.checkpoint, len(self.log.sent)))  # type: ignore[union-attr]
            self.timed_barriers += element.alignment_timeout_us is not None  # type: ignore[union-attr]
        elif kind is Watermark or kind is Idle:
            self.log.watermarks.append((getattr(element, "time", None), len(self.log.sent)))
        queue.append((arrival, element))
        receiver = self.receiver
        if receiver is not None:
            if self.sender is not None and receiver.world.detailed:
                show_sent(
                    receiver.world.observer,
                    self.sender,
                    receiver.name,
                    self.name,
                    self.position(len(queue) - 1),
                    element,
                )
            receiver.schedule(arrival if arrival > self.stalled_until else self.stalled_until)
        if now < self.stalled_until:
            self._hold()

    def take_overtaking(self, place: int) -> None:
        """Take a barrier that overtakes: it has a place in the channel too, so a reader that waits for that place
        goes on."""
        super().take_overtaking(place)
        if self.sender is not None:
            self.sender.drain()

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """Put restored elements back; `handed_over` says what the channel holds then, of these and of those that it
        had."""
        if self.broken:
            return
        self.put_back(elements, handed_over, self.log, replays)
        if self.receiver is not None:
            self.receiver.schedule(self._loop.now)

    # -- faults ----------------------------------------------------------------------

    def delay(self, by: int, until: int, fault: int) -> None:
        self._delay, self._delay_until, self.touched_by = by, until, fault

    def stall(self, until: int, fault: int) -> None:
        """Let no element leave until a time; the fault fires when an element is delayed."""
        self.stalled_until, self.held_by = until, fault
        if self.queue:
            self._hold()

    def cut(self) -> int:
        """Break the channel; returns how many elements were in it."""
        lost = len(self.queue)
        self.broken = True
        self.queue.clear()
        return lost

    def _touch(self) -> None:
        if self.touched_by is not None and self.receiver is not None:
            fault, self.touched_by = self.touched_by, None
            self._fired(fault, f"{self.name} delays what enters", self.receiver)

    def _hold(self) -> None:
        if self.held_by is not None and self.receiver is not None:
            fault, self.held_by = self.held_by, None
            self._fired(fault, f"{self.name} holds what is in it", self.receiver)

    def _fired(self, fault: int, detail: str, receiver: TaskRunner) -> None:
        receiver.world.fired(fault, detail, receiver.attempt, StruckChannel(self.name))
