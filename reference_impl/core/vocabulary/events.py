"""Everything that comes in: what a driver feeds to a task or to the coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, dataclass_transform

import msgspec

from .causes import AnyCause
from .ends import JobEnd, Status
from .formats import CANONICAL, Keyed, StateFile
from .ids import AttemptId, CheckpointId, Handle, TaskId
from .messages import AnyControl, Barrier, Element
from .state import EnumeratorState, TaskState
from .timeouts import Timeout
from .transactions import Outcome


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Event(msgspec.Struct, frozen=True, gc=False):
    """Base of the events."""


class Arrived(Event):
    """A task takes the next element of an input channel (by its number)."""

    channel: int
    element: Element


class Came(Event):
    """An element has entered the queue of a persistent input channel.  The driver feeds this in the channel's order,
    once the task is open, and before `Arrived` of the same element."""

    channel: int
    element: Element


class LogsFound(Event):
    """A task that recovers locally goes on with the logs that its channels already have (UNA-4)."""

    logs: tuple[tuple[int, int], ...]
    """by channel: the number of the element to be taken next, and the number below which all is durable"""
    positions: dict[CheckpointId, tuple[int, ...]]
    """by checkpoint that the task can restore, by channel: the first element that its snapshot does not cover"""


class Synced(Event):
    """All that was appended to logs before this `Sync` is durable."""

    serial: int


class Fetched(Event):
    """What a `Fetch` asked for, reference by reference."""

    elements: tuple[tuple[Element, ...], ...]


class BarrierOvertook(Event):
    """A barrier whose alignment timeout is over overtakes.  `passed` are the elements in front of it in the channel's
    queue; the task takes them later."""

    channel: int
    barrier: Barrier
    passed: tuple[Element, ...]


class OutputsOvertaken(Event):
    """A checkpoint's barrier overtook these elements, by output channel; they are sent after it."""

    checkpoint: CheckpointId
    passed: dict[int, tuple[Element, ...]]


class Ticked(Event):
    """The processing time, in µs, for a task that uses it."""

    now: int


class Compacted(Event):
    """Sorted files of the working state are merged; the result takes the place of its inputs."""


class Poll(Event):
    """A source may read one record: its outputs have room."""


class Received(Event):
    """A control message arrived."""

    message: AnyControl


class SnapshotLoaded(Event):
    """The store gave back the snapshot that a `Load` asked for."""

    state: TaskState
    files: tuple[StateFile, ...] = ()
    """those that the snapshot needs besides; a canonical one needs none"""
    keyed: Keyed = Keyed()
    """what these hold"""


class LoadFailed(Event):
    """The store could not give the snapshot back."""

    reason: str


class PositionsLoaded(Event):
    """The positions that were saved of this task's splits (at-most-once)."""

    positions: dict[int, int]


class PersistFailed(Event):
    """The store reported an error; nothing is stored."""

    checkpoint: CheckpointId
    reason: str


class Answered(Event):
    """The external store answered a request, or the request timed out."""

    number: int
    outcome: Outcome


class Letter(msgspec.Struct, frozen=True):
    """What a mail says.  Each machine that sends itself mails has its own kind."""


class Mailed(Event):
    """A mail that the task put off (`effects.Mail`) is due."""

    letter: Letter


class TimerFired(Event):
    """A timer that the machine set has run out."""

    timeout: Timeout


class CoordinatorStarted(Event):
    """A coordinator takes over; `record` is the job's record as it was last saved (None: a new job)."""

    record: JobRecord | None


class SnapshotsListed(Event):
    """The complete snapshots in the store, oldest first; `unreadable` are those whose records
    are there, but could not be read."""

    retained: tuple[CompletedCheckpoint, ...]
    unreadable: tuple[CheckpointId, ...] = ()
    copied: tuple[CheckpointId, ...] = ()
    """those of which the user's directory has a complete copy"""


class TaskLost(Event):
    """An attempt of a task has ended, or its heartbeats stayed away too long."""

    task: TaskId
    attempt: AttemptId
    cause: AnyCause


class JobSaved(Event):
    """The job's record of this version is durable."""

    version: int


class RecordStored(Event):
    """The record that makes a checkpoint complete is durable."""

    checkpoint: CheckpointId


class StoreFailed(Event):
    """The record that makes a checkpoint complete could not be written."""

    checkpoint: CheckpointId
    reason: str


class DeleteFailed(Event):
    """Files of snapshots, and with `checkpoint` its record, could not be deleted: they are all there."""

    files: tuple[Handle, ...]
    checkpoint: CheckpointId | None
    reason: str


class FilesCopied(Event):
    """The files of a snapshot are in the directory of the user, or one of them could not be copied."""

    checkpoint: CheckpointId
    failure: str | None = None
    """names the file that is missing, altered or could not be written; None if all are there"""


class SnapshotCopied(Event):
    """The copy of a snapshot for its user is complete."""

    checkpoint: CheckpointId


class CopyFailed(Event):
    """The record of a copy could not be written."""

    checkpoint: CheckpointId
    reason: str


class CommandKind(Enum):
    """What a user requests."""

    SAVEPOINT = "savepoint"
    STOP = "stop-with-savepoint"
    CANCEL = "cancel"
    DELETE = "delete-snapshot"
    COPY = "copy-snapshot"
    MOVE = "move-snapshot"
    RESUME = "resume"
    """another job begins where an ended one stopped: no coordinator receives it"""


class Commanded(Event):
    """A user's request; `command` is its number."""

    command: int
    kind: CommandKind
    drain: bool = False
    format: str | None = None
    """of the snapshot that it asks for; None: the job's own"""
    snapshot: CheckpointId | None = None
    """the one that is to be deleted, copied or moved"""


class CompletedCheckpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A complete checkpoint, or savepoint, as the coordinator records it: pointers to states, by task.

    A record with a field that is not known here is of a later version, and is refused.

    `ending`: how the job ended with this snapshot; None if it went on.
    `states` holds the states themselves when they are kept in the coordinator's memory.
    `finished` are the tasks that had finished.  An operator all of whose tasks had finished has no
    state here, and a recovery skips it; of other operators the last state of a finished task is here (FIN-1).
    """

    checkpoint: CheckpointId
    job: int
    attempt: AttemptId
    savepoint: bool
    ending: JobEnd | None
    handles: dict[TaskId, Handle]
    states: dict[TaskId, TaskState] = {}
    finished: tuple[TaskId, ...] = ()
    logs: tuple[str, ...] = ()
    """the logs of persistent channels to which its states refer"""
    parallelism: dict[str, int] | None = None
    """of each operator, in the job that took it; None if not recorded"""
    key_groups: int | None = None
    """of the job that took it; None if not recorded"""
    uids: dict[str, str] = {}
    """by operator: under which its states are held, where that is not its name"""
    state_types: dict[str, str] = {}
    """by operator: the types of its states, where they are not whole"""
    stateless: tuple[str, ...] = ()
    """the operators that keep no state, which a later job may lack"""
    enumerators: dict[str, EnumeratorState] = {}
    """by source: the states of enumerators (OPS-3)"""
    format: str = CANONICAL
    files: dict[TaskId, tuple[Handle, ...]] = {}
    """the files that its snapshots need besides, whoever wrote them"""
    increments: int = 0
    """how many complete checkpoints it builds on, one on the other; 0: all files were written for it"""
    in_flight: bool = False
    """some of its states hold elements that barriers overtook"""
    moved: bool = False
    """its user has it elsewhere: it is deleted here once the job would restore another one"""

    def __post_init__(self) -> None:
        # Of what was not recorded, a stored record says {} and 0.
        if not self.parallelism:
            msgspec.structs.force_setattr(self, "parallelism", None)
        if not self.key_groups:
            msgspec.structs.force_setattr(self, "key_groups", None)

    def stored(self) -> dict[str, Any]:
        """What a store writes as JSON."""
        fields = msgspec.structs.asdict(self)
        return {**fields, "parallelism": self.parallelism or {}, "key_groups": self.key_groups or 0}

    def in_another_place(self) -> CompletedCheckpoint:
        """The same for a job that begins from a copy of the stores: nothing was moved there."""
        return msgspec.structs.replace(self, moved=False) if self.moved else self


Claims = Mapping[CheckpointId, bool]
"""By snapshot from which a user resumed a job and said whose it is: whether the job claimed it, and so deletes it once
newer ones subsume it.  False: the job never deletes it, and refers to none of its files."""


class Closure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How and why a job is closed: it is cancelled or has failed."""

    status: Status
    cause: AnyCause | None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a coordinator must find again after a crash: counters that never go back,
    and how the job ends, once that is decided.  An unknown field is refused, as above."""

    job: int
    attempt: AttemptId
    next_checkpoint: CheckpointId
    version: int = 0
    had_snapshot: bool = False
    """some checkpoint completed: a start without a snapshot would lose it (ABS-14)"""
    has_begun: bool = True
    """its first attempt has been deployed, or will be; False if it was refused before that"""
    closure: Closure | None = None
    """once the job is being closed"""


def all_of(files: Mapping[TaskId, Sequence[Handle]]) -> tuple[Handle, ...]:
    """The files of all tasks."""
    return tuple(file for one in files.values() for file in one) if files else ()


def files_needed(record: CompletedCheckpoint) -> tuple[Handle, ...]:
    """The files that the snapshots of a complete checkpoint need, besides those under their handles."""
    return all_of(record.files)


def files_of(records: Iterable[CompletedCheckpoint]) -> tuple[Handle, ...]:
    """All that must not be deleted while these records are kept."""
    return tuple(name for record in records for name in (*record.handles.values(), *files_needed(record)))
