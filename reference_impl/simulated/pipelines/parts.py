"""The parts of a pipeline's world, and what it records: channels that hold bytes, tasks, checkpoints, crashes."""

from __future__ import annotations

from collections import deque

import msgspec

from ...core.extensions.in_flight_data.spilling import ChannelSpilling, Copy
from .plan import Stage
from .spill_store import Content, Pace, Read, SpillStore


class Mark(msgspec.Struct, kw_only=True):
    """What one task did for one checkpoint; times in µs."""

    task: str
    checkpoint: int
    first_barrier_us: int
    """when the first of its barriers came; for a source, when the checkpoint was triggered"""
    forwarded_us: int | None = None
    """when its own barrier was downstream"""
    sync_began_us: int | None = None
    sync_ended_us: int | None = None


class Checkpoint(msgspec.Struct, kw_only=True):
    """One checkpoint; the values of sources and sink are set when it completes."""

    number: int
    begun_us: int
    complete_us: int | None = None
    stored_bytes: int = 0
    """in-flight bytes, in its parts"""
    written_bytes: int = 0
    """by all stores from the run's begin until it was complete"""
    positions: dict[str, int] = {}
    """source: buffers that it had read"""
    processed: int = 0
    """buffers that the sink had processed"""

    @property
    def took_us(self) -> int | None:
        return None if self.complete_us is None else self.complete_us - self.begun_us


class Recovery(msgspec.Struct, kw_only=True):
    """A crash, and the recovery from it."""

    crashed_us: int
    restores: int | None
    """the checkpoint that is restored; None: all began from nothing"""
    replayed_bytes: int = 0
    """in-flight data read from the stores; until another crash, if that ended the recovery"""
    lost_bytes: int = 0
    """processed before the crash, and again after it"""
    restored_us: int | None = None
    """when the last in-flight data was read and all tasks were up"""
    caught_up_us: int | None = None
    """when the sink had processed as much as at the crash"""


class PipelineOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """All that could be seen of a run from outside."""

    buffer_bytes: int
    ended_us: int
    processed: list[Content] = msgspec.field(name="line")  # the name in what is encoded stays
    """source and place of all buffers that the sink has processed, in the order of its state"""
    positions: dict[str, int]
    in_flight: list[Content]
    """in channels, in hand or still to be read back when the run ended, the nearest to the sink first"""
    sources: tuple[str, ...]
    checkpoints: list[Checkpoint]
    recoveries: list[Recovery]
    marks: list[Mark]
    blocked_us: dict[str, int] = msgspec.field(name="set_aside_us")  # the name in what is encoded stays
    """channel: how long an alignment blocked it"""
    written: dict[str, int]
    """node: bytes that its store wrote"""
    most_stored: dict[str, int]
    """node: the most bytes that its store held"""
    reads: dict[str, list[Read]]
    """node: each buffer that its store read back"""
    written_series: dict[str, list[int]]
    processed_series: list[int]


class Barrier(msgspec.Struct, frozen=True):
    checkpoint: int
    begun_us: int


class Buffer(msgspec.Struct, frozen=True):
    number: int
    """in its channel"""
    content: Content


class PipelineChannel:
    """A bounded channel between two tasks; a buffer that is spilled keeps its memory until it is written."""

    def __init__(
        self, name: str, sender: Task, receiver: Task, limit: int, store: SpillStore, spilling: ChannelSpilling
    ) -> None:
        self.name = name
        self.sender = sender
        self.receiver = receiver
        self.limit = limit
        self.store = store
        self.spilling = spilling
        self.queue: deque[Buffer | Barrier] = deque()
        self.unread: deque[Copy] = deque()
        """after a crash: what is still to be read back from the store"""
        self.contents: dict[int, Content] = {}
        """of the buffers that are in memory"""
        self.held = 0
        """bytes in memory, those reserved for a buffer that is being made included"""
        self.blocked_since: int | None = None
        self.blocked_us = 0
        self.had: dict[int, None] = {}
        """checkpoints whose barrier was taken from the channel or overtook its queue"""

    def has_room(self, size: int) -> bool:
        return self.held + size <= self.limit

    def block(self, now_us: int) -> None:
        self.blocked_since = now_us

    def unblock(self, now_us: int) -> None:
        if self.blocked_since is not None:
            self.blocked_us += now_us - self.blocked_since
            self.blocked_since = None

    def cut(self, barrier: Barrier) -> tuple[list[int], bool]:
        """The buffers in front of which a snapshot was taken, and whether these are all: the barrier has come."""
        if barrier.checkpoint in self.had:
            return [], True
        overtaken: list[int] = []
        for item in self.queue:
            if item == barrier:
                self.queue.remove(barrier)
                self.had[barrier.checkpoint] = None
                return overtaken, True
            if isinstance(item, Buffer):
                overtaken.append(item.number)
        return overtaken, False

    def clear(self) -> None:
        """Everything that it held in memory is lost."""
        self.queue.clear()
        self.unread.clear()
        self.contents.clear()
        self.had.clear()
        self.held = 0

    def put_back(self, buffer: Buffer, size: int) -> None:
        """A buffer that was read from the store is in the queue again."""
        self.queue.append(buffer)
        self.contents[buffer.number] = buffer.content
        self.held += size


class Task:
    """One task: what it works on, and how far it has come."""

    def __init__(self, stage: Stage, number: int) -> None:
        self.stage = stage
        self.number = number
        self.inputs: list[PipelineChannel] = []
        self.output: PipelineChannel | None = None
        self.busy = False
        self.in_hand: Content | None = None
        self.next_input = 0
        self.position = 0
        """of a source: the next buffer to read"""
        self.asked: list[Barrier] = []
        """a source's triggers, or barriers that are to overtake the queue"""
        self.taken: dict[int, None] = {}
        """checkpoints whose snapshot it took"""
        self.pace = Pace(stage.rate)
        self.waking = False

    def restart(self, position: int) -> None:
        self.busy, self.in_hand, self.waking = False, None, False
        self.asked.clear()
        self.taken.clear()
        self.position = position


def in_flight(tasks: list[Task]) -> list[Content]:
    """In channels, in hand or to be read back, the nearest to the sink first; the buffer that a source has in hand
    is not read yet."""
    found: list[Content] = []
    for task in reversed(tasks):
        if task.inputs and task.in_hand is not None:
            found.append(task.in_hand)
        for channel in task.inputs:
            found += [item.content for item in channel.queue if isinstance(item, Buffer)]
            stored = (channel.store.kept(channel.name, copy) for copy in channel.unread)
            found += [content for content in stored if content is not None]
    return found
