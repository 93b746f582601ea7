"""Everything that comes in: what a driver tells a task or the coordinator."""

from __future__ import annotations

from typing import Any, dataclass_transform

import msgspec

from .ids import AttemptId, CheckpointId, Handle, TaskId
from .messages import AnyControl, Barrier, Element
from .state import EnumeratorState, TaskState
from .transactions import Outcome


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Event(msgspec.Struct, frozen=True, gc=False):
    """Base of the events."""


class Arrived(Event):
    """A task takes the next element of an input channel (by its number)."""

    channel: int
    element: Element


class Came(Event):
    """An element has entered an input channel's queue; told of persistent channels alone, once the task is open, in
    their order and before it is taken."""

    channel: int
    element: Element


class LogsFound(Event):
    """A task that comes up alone goes on with the logs that its channels have (UNA-4)."""

    logs: tuple[tuple[int, int], ...]
    """by channel: the number of the element that is taken next, and below which all from there on is durable"""
    positions: dict[CheckpointId, tuple[int, ...]]
    """by checkpoint that it can go back to, by channel the first that had not been taken at the snapshot"""


class Synced(Event):
    """All that was appended to logs before this `Sync` is durable."""

    serial: int


class Fetched(Event):
    """What a `Fetch` asked for, reference by reference."""

    elements: tuple[tuple[Element, ...], ...]


class BarrierOvertook(Event):
    """A barrier whose patience is over is taken before its turn; `passed` lie in front of it in the channel's
    queue, and are taken later."""

    channel: int
    barrier: Barrier
    passed: tuple[Element, ...]


class OutputsOvertaken(Event):
    """The barrier of a checkpoint went ahead of these elements, by output channel; they are sent behind it."""

    checkpoint: CheckpointId
    passed: dict[int, tuple[Element, ...]]


class Ticked(Event):
    """A task that goes by processing time is told it, in µs."""

    now: int


class Poll(Event):
    """A source may read one record: its outputs have room."""


class Received(Event):
    """A control message arrived."""

    message: AnyControl


class SnapshotLoaded(Event):
    """The store gave back the snapshot that a `Load` asked for."""

    state: TaskState


class LoadFailed(Event):
    """The store could not give the snapshot back."""

    reason: str


class PositionsLoaded(Event):
    """The positions that sources of this task's splits had saved (at-most-once)."""

    positions: dict[int, int]


class PersistFailed(Event):
    """The store reported an error; nothing is stored."""

    checkpoint: CheckpointId
    reason: str


class Answered(Event):
    """The external transaction store answered, or did not within its time."""

    number: int
    outcome: Outcome


class Mailed(Event):
    """A mail that the task put off (`effects.Deferred`) has its turn."""

    mail: Any


class TimerFired(Event):
    """A timer that the machine set has run out."""

    name: str


class CoordinatorStarted(Event):
    """A coordinator takes over; `record` is what was last saved of the job (None: a new one)."""

    record: JobRecord | None


class SnapshotsListed(Event):
    """The complete snapshots in the store, oldest first; `unreadable` are those whose
    record is there and could not be read."""

    retained: tuple[CompletedSnapshot, ...]
    unreadable: tuple[CheckpointId, ...] = ()


class TaskLost(Event):
    """A task's attempt is dead, or has not been heard of for too long."""

    task: TaskId
    attempt: AttemptId
    reason: str


class JobSaved(Event):
    """The job's record is durable, as of `version`."""

    version: int


class SnapshotStored(Event):
    """The record that makes a checkpoint complete is durable."""

    checkpoint: CheckpointId


class StoreFailed(Event):
    """It could not be written."""

    checkpoint: CheckpointId
    reason: str


class Commanded(Event):
    """A user asks for something; `command` numbers the request."""

    command: int
    kind: str
    """savepoint, stop-with-savepoint or cancel"""
    drain: bool = False


class CompletedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A complete snapshot as the coordinator records it: pointers to states, by task.

    `ending` says what it was the last of: "" (nothing), "stop", "drain" or "finish".
    `states` holds the states themselves when they are kept in the coordinator's memory.
    `finished` are the tasks that had finished: an operator of which all had has no state in
    it and is skipped by a recovery, what is left of another's is its last state (FIN-1).
    """

    checkpoint: CheckpointId
    job: int
    attempt: AttemptId
    savepoint: bool
    ending: str
    handles: dict[TaskId, Handle]
    states: dict[TaskId, TaskState] = {}
    finished: tuple[TaskId, ...] = ()
    logs: tuple[str, ...] = ()
    """of persistent channels, those that its states refer to"""
    parallelism: dict[str, int] = {}
    """of each operator, as the job was laid out that took it; empty where it was never said"""
    key_groups: int = 0
    """by which it was laid out; 0 where it was never said"""
    enumerators: dict[str, EnumeratorState] = {}
    """by source, of those whose splits are dealt out as the job runs (OPS-3)"""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator must find again after it died: counters that never go back,
    and how the job ends, once that is decided."""

    job: int
    attempt: AttemptId
    next_checkpoint: CheckpointId
    version: int = 0
    had_snapshot: bool = False
    """some checkpoint completed: starting from nothing would lose it (ABS-14)"""
    closing: str = ""
    """cancelled or failed, once the job is being closed down, and `reason` why"""
    reason: str = ""
