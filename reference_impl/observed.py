"""What a run shows, one type for each kind of event.

A world reports these events to its observer (`trace.Observer`).  In virtual time the observer
records them in the history at once.  A process writes them into its journal, and the harness
later records the events of all journals in one order.  Checkers read the history only.

`run` and `channel` number the runs and channels that the observer has begun, from 0.  The fields
keep their order, and the types their names: journals of saved runs have them.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, dataclass_transform

import msgspec

from .core.vocabulary.causes import AnyCause
from .core.vocabulary.ends import Status
from .core.vocabulary.errors import expect
from .core.vocabulary.events import CommandKind, CompletedCheckpoint
from .core.vocabulary.formats import Filed
from .core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from .core.vocabulary.status_changes import AnyStatusChange
from .core.vocabulary.transactions import AnyRequest, Denied, Done, NoAnswer, Outcome, Unfinished
from .core.vocabulary.upgrades import Upgrade

Words = Annotated[str, msgspec.Meta(min_length=1)]
"""Text that is never empty: None stands where nothing is said.  Journals of older runs have "" there (see
`former_journals`)."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Observed(msgspec.Struct, frozen=True, array_like=True, tag=True, gc=False):
    """Base of the events."""


# -- tasks and channels ----------------------------------------------------------------------------


class TaskStarted(Observed):
    run: int
    task: TaskId
    operator: str
    subtask: int
    attempt: AttemptId
    job: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class RecordRead(Observed):
    run: int
    split: int
    offset: int


class ReadUndone(Observed):
    """The last record that the source read does not count."""

    run: int


class RecordApplied(Observed):
    run: int
    channel: int
    """by its number among the run's inputs"""
    origin: int


class ApplyUndone(Observed):
    run: int


class Marked(Observed):
    run: int
    checkpoint: CheckpointId
    received: tuple[int, ...]
    sent: tuple[int, ...]


class TimeAdvanced(Observed):
    """Its watermark has advanced."""

    run: int
    time: int


class Ticked(Observed, tag="TimeTold"):
    """The task received the processing time, or its end: a tick of its history.

    Journals of saved runs have it under its first name.
    """

    run: int
    time: int


class SplitsAssigned(Observed):
    """All splits that the enumerator has assigned to the source, with positions, as the message has it that reached the
    source."""

    run: int
    splits: dict[int, int]


class StateRestored(Observed):
    run: int
    checkpoint: CheckpointId
    state: str


class InputEnded(Observed):
    run: int


class RunEnd(Enum):
    """How an attempt of a task ends."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    KILLED = "killed"
    FAILED = "failed"

    @property
    def is_orderly(self) -> bool:
        return self in (RunEnd.FINISHED, RunEnd.CANCELLED)


class RunEnded(Observed):
    run: int
    how: RunEnd


class ChannelOpened(Observed):
    channel: int
    name: str
    attempt: AttemptId


class ChannelRefilled(Observed):
    """The receiver puts elements back that were in flight in the channel, whether or not the sender has opened it by
    then."""

    channel: int
    name: str
    attempt: AttemptId


class RecordRecovered(Observed):
    """A record that was in flight is put back."""

    channel: int
    origin: int


class WatermarkRecovered(Observed):
    """The same for a watermark, or for a mark of being idle."""

    channel: int
    time: int | None
    before: int
    """how many of the records that are put back come before it"""


class RecordSent(Observed):
    channel: int
    origin: int


class WatermarkSent(Observed):
    channel: int
    time: int | None
    """None: the channel is idle from there"""
    before: int
    """how many records come before it"""


class BarrierSent(Observed):
    channel: int
    checkpoint: int
    before: int
    """how many records come before it"""


# -- the coordinator and the stores ------------------------------------------------------------------


class StatusChanged(Observed, tag="Noted"):
    """The status of a job, or of one of its checkpoints, has changed at the coordinator.  The tag is the name that
    journals of saved runs have."""

    job: int
    change: AnyStatusChange


class TaskFailed(Observed):
    task: TaskId
    attempt: AttemptId
    reason: str
    """the cause in words"""
    fault: int | None
    cause: AnyCause | None = None
    """None in journals of older runs"""


def task_failed(task: TaskId, attempt: AttemptId, cause: AnyCause, fault: int | None) -> TaskFailed:
    """The failure, with its cause put into words."""
    return TaskFailed(task, attempt, str(cause), fault, cause)


class CoordinatorChanged(Observed):
    up: bool
    fault: int | None
    reason: Words | None = None
    """why it died without a fault"""


class NeededFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a snapshot needs besides that under its handle; `own`: it was written for this snapshot."""

    name: Handle
    size: int
    own: bool


def needed(filed: Filed) -> tuple[NeededFile, ...]:
    """The files that a snapshot needs."""
    written = [new.file.name for new in filed.new]
    return tuple(NeededFile(file.name, file.size, file.name in written) for file in filed.files)


class SnapshotStored(Observed):
    checkpoint: CheckpointId
    task: TaskId
    attempt: AttemptId
    handle: Handle
    state: str
    files: tuple[NeededFile, ...] = ()
    """those that it needs besides"""


class CheckpointCompleting(Observed):
    """The record of a checkpoint is about to be written; its writer may die before it reports that it has."""

    snapshot: CompletedCheckpoint
    """in a journal without the states of the tasks"""

    @classmethod
    def of(cls, snapshot: CompletedCheckpoint) -> CheckpointCompleting:
        return cls(msgspec.structs.replace(snapshot, states={}))


class CheckpointCompleted(Observed):
    snapshot: CompletedCheckpoint
    """in a journal without the states of the tasks"""

    @classmethod
    def of(cls, snapshot: CompletedCheckpoint) -> CheckpointCompleted:
        return cls(msgspec.structs.replace(snapshot, states={}))


class SnapshotsDeleted(Observed):
    checkpoint: CheckpointId | None
    handles: tuple[Handle, ...]


class CommandIssued(Observed):
    command: int
    kind: CommandKind
    drain: bool
    parallelism: dict[str, int] = msgspec.field(default_factory=dict)
    inserted: dict[str, str] = msgspec.field(default_factory=dict)
    snapshot: CheckpointId | None = None
    """the one that the user named; None: the newest"""
    format: Words | None = None
    """of the snapshot that it asks for; None: the job's own, or it asks for none"""
    claimed: bool | None = None
    """of a resume: what the user said of the snapshot (`Claims`)"""
    upgrade: Upgrade | None = None
    """of a resume: what the user changed in the job"""


class CommandReturned(Observed):
    command: int
    checkpoint: CheckpointId | None
    error: Words | None
    """the cause in words; None for a command that was carried out"""
    cause: AnyCause | None = None
    """None for a command that was carried out, and in journals of older runs"""


def command_returned(command: int, checkpoint: CheckpointId | None, cause: AnyCause | None) -> CommandReturned:
    """The answer, with its cause put into words."""
    return CommandReturned(command, checkpoint, str(cause) if cause is not None else None, cause)


class JobEnded(Observed):
    job: int
    status: Status
    checkpoint: CheckpointId | None
    reason: Words | None
    """the cause in words; None for a job that ended well"""
    cause: AnyCause | None = None
    """None for a job that ended well, and in journals of older runs"""


def job_ended(job: int, status: Status, checkpoint: CheckpointId | None, cause: AnyCause | None) -> JobEnded:
    """The end, with its cause put into words."""
    return JobEnded(job, status, checkpoint, str(cause) if cause is not None else None, cause)


# -- the logs of persistent channels -----------------------------------------------------------------


class LogOpened(Observed):
    """From now on the log may exist, and is to be deleted some day.

    The log of a channel: its first element is about to be appended.  Determinants: an attempt is about to take the
    task's place.
    """

    name: str
    task: TaskId
    attempt: AttemptId


class LogTrimmed(Observed):
    name: str
    before: int
    """elements below this number were discarded"""


class LogsCleared(Observed):
    names: tuple[str, ...]


class ChannelContinued(Observed):
    """For an attempt that recovered locally: it sends again from a number on; every element below `expects` had
    arrived.

    What earlier attempts had sent beyond that was durable nowhere (UNA-4).
    """

    channel: int
    whole: AttemptId
    """the attempt of all tasks to which the channel belongs"""
    first: int
    expects: int


# -- the external store ------------------------------------------------------------------------------


class Transacting(Observed):
    """A request is about to be sent to the external store; its answer may be lost."""

    request: AnyRequest


class Answer(Enum):
    """What the external store did about a request, as its sender knows it."""

    DONE = "done"
    DENIED = "denied"
    NONE = "no answer"
    """it may have executed the request"""


class Transacted(Observed):
    """The answer to a request; `unfinished` as in `transactions.Done`."""

    request: AnyRequest
    answer: Answer
    reason: Words | None
    """None if it was carried out"""
    unfinished: tuple[Unfinished, ...]
    applied: int
    """how many records its writer had applied when it sent the request"""

    @property
    def is_done(self) -> bool:
        return self.answer is Answer.DONE

    @classmethod
    def of(cls, request: AnyRequest, outcome: Outcome, applied: int) -> Transacted:
        if isinstance(outcome, Done):
            return cls(request, Answer.DONE, None, outcome.unfinished, applied)
        if isinstance(outcome, Denied):
            return cls(request, Answer.DENIED, outcome.reason, (), applied)
        return cls(request, Answer.NONE, expect(outcome, NoAnswer).reason, (), applied)


class CommitRequested(Observed):
    name: str


class Looked(Observed):
    """A reader looked at the sink from the stamp `began` on, and saw this many rows."""

    began: int
    rows: int


class Seen(Observed):
    """A reader looked at the sink from the stamp `began` on, and saw these transactions."""

    began: int
    names: tuple[str, ...]
    rows: int = 0
    """how many rows belong to no transaction"""


# -- faults, and what only the harness knows -----------------------------------------------------------


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Struck(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base of what a fault can strike, for those on which a judgement depends."""


class TornWrite(Struck):
    """A write of which half is in the store: of this snapshot, or (None) of a log or a checkpoint's record."""

    handle: Handle | None = None


class StruckDelete(Struck):
    """A delete of this file of a snapshot: it stays."""

    handle: Handle


class StruckCopy(Struck):
    """A write of a user's copy of this checkpoint: the copy is not made."""

    checkpoint: CheckpointId


class StruckCommit(Struck):
    transactions: tuple[str, ...]
    how: str


class StruckChannel(Struck):
    channel: str


AnyStruck = TornWrite | StruckDelete | StruckCopy | StruckCommit | StruckChannel


class FaultFired(Observed):
    fault: int
    phase: str
    detail: str
    """in words"""
    attempt: int | None
    struck: AnyStruck | None = None
    """None in journals of older runs too"""


class FaultHealed(Observed):
    fault: int


class Died(Observed):
    """A process has died; `fault` is the one that killed it, None when it died by itself."""

    process: str
    incarnation: int
    reason: str
    """the cause in words"""
    fault: int | None
    cause: AnyCause | None = None
    """None in journals of older runs"""


def died(process: str, incarnation: int, cause: AnyCause, fault: int | None) -> Died:
    """The death, with its cause put into words."""
    return Died(process, incarnation, str(cause), fault, cause)


class Stopped(Observed):
    """A fault makes a process stand still, until the fault heals."""

    process: str
    incarnation: int
    fault: int


class Breaks(Observed):
    """A fault breaks the connections of a channel, or of all ("*"), until it heals."""

    fault: int
    channel: str


class Expired(Observed):
    """A fault has had the external store give a sealed transaction up."""

    fault: int
    name: str


class Outage(Observed):
    """A fault stops the database, or has started it again."""

    fault: int
    began: bool


class Closing(Observed):
    """The harness ends the run: from now on the end of a process is no failure."""


class Lagged(Observed):
    """A loop did something too late, by this many µs."""

    by_us: int


class DefectReached(Observed):
    """The planted wrong code itself ran."""


class Timed(Observed):
    """One event of the time line, which only a detailed observer wants."""

    what: str
    task: str
    attempt: int
    peer: Words | None = None
    detail: Words | None = None
    channel: Words | None = None
    position: int | None = None
    """in the channel; restored elements have negative positions"""
    checkpoint: int | None = None
    origin: int | None = None


AnyObserved = (
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
    | StatusChanged
    | TaskFailed
    | CoordinatorChanged
    | SnapshotStored
    | CheckpointCompleting
    | CheckpointCompleted
    | SnapshotsDeleted
    | LogOpened
    | LogTrimmed
    | LogsCleared
    | ChannelContinued
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
