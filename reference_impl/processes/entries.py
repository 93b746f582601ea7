"""What a process writes into its journal, one type for each kind of happening.

Each entry carries a stamp of its process's clock, so that the journals of all
processes can be put in one order that is consistent with causality.  `run` and
`channel` number the runs and channels that this journal has begun, from 0.
"""

from __future__ import annotations

import msgspec

from ..core.vocabulary.events import CompletedSnapshot
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.vocabulary.transactions import AnyRequest
from .entry import Entry as Entry
from .log_entries import AnyLogEntry
from .log_entries import ChannelContinued as ChannelContinued
from .log_entries import LogOpened as LogOpened
from .log_entries import LogsCleared as LogsCleared
from .log_entries import LogTrimmed as LogTrimmed

# -- tasks and channels ----------------------------------------------------------------------------


class TaskStarted(Entry):
    run: int
    task: TaskId
    operator: str
    subtask: int
    attempt: AttemptId
    job: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class RecordRead(Entry):
    run: int
    split: int
    offset: int


class ReadUndone(Entry):
    """The last record that the source read does not count."""

    run: int


class RecordApplied(Entry):
    run: int
    channel: int
    """by its number among the run's inputs"""
    origin: int


class ApplyUndone(Entry):
    run: int


class Marked(Entry):
    run: int
    checkpoint: CheckpointId
    received: tuple[int, ...]
    sent: tuple[int, ...]


class TimeAdvanced(Entry):
    """Its watermark has advanced."""

    run: int
    time: int


class Ticked(Entry, tag="TimeTold"):
    """The task received the processing time, or its end: a tick of its history.

    Journals of saved runs have it under its first name.
    """

    run: int
    time: int


class SplitsAssigned(Entry):
    """All splits that the enumerator has assigned to the source, with positions, as the message has it that reached the
    source."""

    run: int
    splits: dict[int, int]


class StateRestored(Entry):
    run: int
    checkpoint: CheckpointId
    state: str


class InputEnded(Entry):
    run: int


class RunEnded(Entry):
    run: int
    how: str


class ChannelOpened(Entry):
    channel: int
    name: str
    attempt: AttemptId


class ChannelRefilled(Entry):
    """The receiver puts elements back that were in flight in the channel, whether or not the sender has opened it by
    then."""

    channel: int
    name: str
    attempt: AttemptId


class RecordRecovered(Entry):
    """A record that was in flight is put back."""

    channel: int
    origin: int


class WatermarkRecovered(Entry):
    """The same for a watermark, or for a mark of being idle."""

    channel: int
    time: int | None
    before: int
    """how many of the records that are put back come before it"""


class RecordSent(Entry):
    channel: int
    origin: int


class WatermarkSent(Entry):
    channel: int
    time: int | None
    """None: the channel is idle from there"""
    before: int
    """how many records come before it"""


class BarrierSent(Entry):
    channel: int
    checkpoint: int
    before: int
    """how many records come before it"""


# -- the coordinator and the stores ------------------------------------------------------------------


class Noted(Entry):
    what: str
    checkpoint: int | None
    attempt: int | None
    job: int
    detail: str
    tasks: tuple[TaskId, ...] = ()
    """the tasks of a part that restarted"""


class TaskFailed(Entry):
    task: TaskId
    attempt: AttemptId
    reason: str
    fault: int | None


class CoordinatorChanged(Entry):
    up: bool
    fault: int | None


class SnapshotStored(Entry):
    checkpoint: CheckpointId
    task: TaskId
    attempt: AttemptId
    handle: Handle
    state: str


class CheckpointCompleting(Entry):
    """The record of a checkpoint is about to be written; its writer may die before it reports that it has."""

    snapshot: CompletedSnapshot
    """without the states of the tasks"""


class CheckpointCompleted(Entry):
    snapshot: CompletedSnapshot
    """without the states of the tasks"""


class SnapshotsDeleted(Entry):
    checkpoint: CheckpointId | None
    handles: tuple[Handle, ...]


class CommandIssued(Entry):
    command: int
    kind: str
    drain: bool
    parallelism: dict[str, int] = msgspec.field(default_factory=dict)
    inserted: dict[str, str] = msgspec.field(default_factory=dict)


class CommandReturned(Entry):
    command: int
    checkpoint: CheckpointId | None
    error: str


class JobEnded(Entry):
    job: int
    status: str
    checkpoint: CheckpointId | None
    reason: str


# -- the external store ------------------------------------------------------------------------------


class Transacting(Entry):
    """A request is about to be sent to the external store; its answer may be lost."""

    request: AnyRequest


class Transacted(Entry):
    """What the external store did about a request; `unfinished` as in `transactions.Done`."""

    request: AnyRequest
    answer: str
    """done, denied or no answer"""
    reason: str
    unfinished: tuple[tuple[str, CheckpointId | None], ...]
    applied: int


class CommitRequested(Entry):
    name: str


class Looked(Entry):
    """A reader looked at the sink from the stamp `began` on, and saw this many rows."""

    began: int
    rows: int


class Seen(Entry):
    """A reader looked at the sink from the stamp `began` on, and saw these transactions."""

    began: int
    names: tuple[str, ...]
    rows: int
    """how many rows belong to no transaction"""


# -- faults, and what only the harness knows -----------------------------------------------------------


class FaultFired(Entry):
    fault: int
    phase: str
    detail: str
    attempt: int | None


class FaultHealed(Entry):
    fault: int


class Died(Entry):
    """A process has died; `fault` is the one that killed it, None when it died by itself."""

    process: str
    incarnation: int
    reason: str
    fault: int | None


class Stopped(Entry):
    """A fault makes a process stand still, until the fault heals."""

    process: str
    incarnation: int
    fault: int


class Breaks(Entry):
    """A fault breaks the connections of a channel, or of all ("*"), until it heals."""

    fault: int
    channel: str


class Expired(Entry):
    """A fault has had the external store give a sealed transaction up."""

    fault: int
    name: str


class Outage(Entry):
    """A fault stops the database, or has started it again."""

    fault: int
    began: bool


class Closing(Entry):
    """The harness ends the run: from now on the end of a process is no failure."""


class Lagged(Entry):
    """A loop did something too late, by this many µs."""

    by_us: int


class DefectReached(Entry):
    """The planted wrong code itself ran."""


class Timed(Entry):
    """One event of the timeline."""

    what: str
    task: str
    attempt: int
    peer: str
    detail: str
    channel: str
    position: int
    checkpoint: int | None
    origin: int | None


AnyEntry = (
    TaskStarted
    | RecordRead
    | ReadUndone
    | RecordApplied
    | ApplyUndone
    | Marked
    | TimeAdvanced
    | Ticked
    | SplitsAssigned
    | StateRestored
    | InputEnded
    | RunEnded
    | ChannelOpened
    | ChannelRefilled
    | RecordRecovered
    | WatermarkRecovered
    | RecordSent
    | BarrierSent
    | WatermarkSent
    | Noted
    | TaskFailed
    | CoordinatorChanged
    | SnapshotStored
    | CheckpointCompleting
    | CheckpointCompleted
    | SnapshotsDeleted
    | AnyLogEntry
    | CommandIssued
    | CommandReturned
    | JobEnded
    | Transacting
    | Transacted
    | CommitRequested
    | Looked
    | Seen
    | FaultFired
    | FaultHealed
    | Died
    | Stopped
    | Breaks
    | Outage
    | Expired
    | Closing
    | Lagged
    | DefectReached
    | Timed
)
