"""Why something failed: a value of a type for each cause.

Whoever has to know the cause looks at the type and its fields.  The sentence that a person
reads is made here, in `in_words`, and decides nothing: it may be worded differently any day.
Some causes quote what a task, a store or a user's function said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, dataclass_transform

import msgspec

from .ends import Status
from .ids import CheckpointId, TaskId
from .upgrades import CONVERSIONS


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Cause(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base of the causes; as a text each is the sentence that a person reads."""

    def __str__(self) -> str:
        return in_words(self)


# -- of a task ---------------------------------------------------------------------------------------


class Killed(Cause):
    """A fault ended the task, or the process in which it ran."""


class NodeLost(Cause):
    """Its node ended, with all tasks on it."""


class PowerLost(Cause):
    """Its node lost power, and with it what was not synced."""


class SnapshotTorn(Cause):
    """It died amid the write of a snapshot."""


class FlushTorn(Cause):
    """It died while it flushed its logs."""


class ProcessEnded(Cause):
    """Its process ended by itself: `how`, and the last that it wrote."""

    how: str
    last_words: str


class HeartbeatMissed(Cause):
    """Its process sent no heartbeat in time."""


class ProcessGone(Cause):
    """The connection with its process has ended."""


class ConnectionBroke(Cause):
    """An input channel ended before its sender had sent all; `detail` is what the operating system says of it."""

    sender: TaskId
    detail: str | None = None


class StoreRefused(Cause):
    """The external store denied a request for good; `transaction` is the one that it does not have, or can neither
    change nor commit, None if the refusal is about the writer."""

    task: TaskId
    transaction: str | None
    detail: str


class SnapshotUnreadable(Cause):
    """The store could not give back what a task was to restore."""

    checkpoint: CheckpointId | None
    detail: str


class SnapshotUnfit(Cause):
    """The user function cannot take over the state in the snapshot."""

    task: TaskId
    detail: str


class UserFunctionRaised(Cause):
    task: TaskId
    function: str | None
    error: str


class UserFunctionRefused(Cause):
    """It did what no user function may do."""

    task: TaskId
    detail: str


class EngineRaised(Cause):
    """An exception in the engine's own code, or in user code that it was creating."""

    error: str


class TaskUnknown(Cause):
    """The job has no such task."""

    task: TaskId


class InputDiscarded(Cause):
    """A split begins only behind the record that is needed."""

    split: int
    begins: int
    checkpoint: CheckpointId | None
    wanted: int


class SplitTaken(Cause):
    """A newer attempt reads the split."""


class LogUnusable(Cause):
    """A log of a persistent channel could not be made, written or flushed."""

    step: str
    detail: str


class DeterminantsUnusable(Cause):
    """The task's determinants could not be written or flushed."""

    step: str
    detail: str


class FilesUnusable(Cause):
    """Its logs or its determinants cannot be used."""

    detail: str


class PlaceForgotten(Cause):
    """The place of its snapshot of this checkpoint among the determinants, or (None) that of its beginning, is not
    known, so the task cannot repeat its work."""

    checkpoint: CheckpointId | None


class ElementGone(Cause):
    """An input channel no longer has an element that the task has to take again."""

    channel: str
    number: int


# -- of an attempt, and of a job ---------------------------------------------------------------------


class TaskFailed(Cause):
    """A task has been lost, with its own cause."""

    task: TaskId
    cause: AnyCause


class NotUpInTime(Cause):
    tasks: tuple[TaskId, ...]


class StopFailed(Cause):
    """The savepoint with which the job was to stop was aborted."""

    cause: AnyCause


class CheckpointsFailed(Cause):
    """More checkpoints in a row were aborted than the job tolerates."""

    cause: AnyCause
    """of the last"""


class Submitted(Cause):
    """Not a failure: the job begins."""


class TakenOver(Cause):
    """A new coordinator has taken the job over."""


class RestartsUsedUp(Cause):
    restarts: int
    last: AnyCause


class SnapshotsLost(Cause):
    """All snapshots were in the memory of a coordinator that died."""


class RecordsUnreadable(Cause):
    """The records of complete checkpoints are there, and cannot be read."""

    checkpoints: tuple[CheckpointId, ...]


class Incompatible(Cause):
    """Base: the job cannot begin with the snapshot of this checkpoint; `operators` are those in the way."""

    operators: tuple[str, ...]
    checkpoint: CheckpointId


class StateMissing(Incompatible):
    """There is no state of these tasks."""

    tasks: tuple[TaskId, ...]


class FinishedBehindUnfinished(Incompatible):
    """The first operator counts as finished, the others send to it and do not."""


class OperatorsAdded(Incompatible):
    """The job that took the snapshot did not have them."""


class OperatorsRemoved(Incompatible):
    """The job does not have them any more, and its user does not allow that their states are dropped."""

    uids: tuple[str, ...]
    """under which the snapshot holds their states"""


class KeyGroupsChanged(Incompatible):
    before: int
    now: int


class OperatorsRenamed(Incompatible):
    """Their uids have changed, and the mapping does not move their states."""

    unmapped: tuple[tuple[str, str, str], ...]
    """(operator, its uid in the snapshot, its uid in the job)"""


class StatesRetyped(Incompatible):
    """They keep states of another type, and the mapping does not convert the states."""

    unread: tuple[tuple[str, str, str], ...]
    """(operator, its uid in the snapshot, the conversion)"""


class UpgradedFromCheckpoint(Incompatible):
    """They are new or gone, or their uids or the types of their states have changed; the snapshot is no savepoint."""


AnyIncompatible = (
    StateMissing
    | FinishedBehindUnfinished
    | OperatorsAdded
    | OperatorsRemoved
    | KeyGroupsChanged
    | OperatorsRenamed
    | StatesRetyped
    | UpgradedFromCheckpoint
)


class CancelledByUser(Cause):
    pass


class FormerSentence(Cause):
    """Only in journals of older runs: they have a sentence where today a cause is."""

    sentence: str


# -- of a checkpoint that is aborted, and of a command that is refused --------------------------------


class SnapshotNotWritten(Cause):
    """The task has written no snapshot."""

    detail: str


class OtherBarrierFirst(Cause):
    """A newer barrier, or a cancel barrier, came in place of the checkpoint's barrier: nothing failed."""


WhyDeclined = SnapshotNotWritten | OtherBarrierFirst
"""Why a task cannot take part in a checkpoint."""


class Declined(Cause):
    """A task cannot take part in the checkpoint."""

    task: TaskId
    cause: WhyDeclined


class TimedOut(Cause):
    """Not all tasks acknowledged the checkpoint in time."""


class NotStored(Cause):
    """The checkpoint's record could not be written."""

    detail: str


class Subsumed(Cause):
    """A later checkpoint is complete."""

    by: CheckpointId


class AttemptFailed(Cause):
    cause: AnyCause


class RegionRestarts(Cause, tag="PartRestarts"):
    """Only these tasks restart.  The tag is the name that journals have."""

    tasks: tuple[TaskId, ...]
    cause: AnyCause


class JobClosed(Cause):
    """The job comes to an end."""

    status: Status


class NoCoordinator(Cause):
    """No coordinator was there to take the command."""


class CoordinatorDied(Cause):
    """The coordinator that took the command died before it answered."""


class JobHasEnded(Cause):
    pass


class JobIsEnding(Cause):
    pass


class NoSnapshots(Cause):
    """With its guarantee, at-most-once, the job takes no snapshots."""


class FormatNeedsFiles(Cause):
    """The job's snapshots are in the coordinator's memory, and this format has files."""

    format: str


class SomeInputEnded(Cause):
    """This job takes no snapshots any more once some input has ended."""


class NeededForRecovery(Cause):
    """After a failure the job would restore the snapshot that is to be deleted."""

    checkpoint: CheckpointId


class NotRetained(Cause):
    """The snapshot that is to be copied or moved is not there."""

    checkpoint: CheckpointId


class NotCopied(Cause):
    """A snapshot could not be copied; the reason names the file."""

    checkpoint: CheckpointId
    reason: str


AnyCause = (
    Killed
    | NodeLost
    | PowerLost
    | SnapshotTorn
    | FlushTorn
    | ProcessEnded
    | HeartbeatMissed
    | ProcessGone
    | ConnectionBroke
    | StoreRefused
    | SnapshotUnreadable
    | SnapshotUnfit
    | UserFunctionRaised
    | UserFunctionRefused
    | EngineRaised
    | TaskUnknown
    | InputDiscarded
    | SplitTaken
    | LogUnusable
    | DeterminantsUnusable
    | FilesUnusable
    | PlaceForgotten
    | ElementGone
    | TaskFailed
    | NotUpInTime
    | StopFailed
    | CheckpointsFailed
    | Submitted
    | TakenOver
    | RestartsUsedUp
    | SnapshotsLost
    | RecordsUnreadable
    | AnyIncompatible
    | CancelledByUser
    | FormerSentence
    | Declined
    | TimedOut
    | NotStored
    | Subsumed
    | AttemptFailed
    | RegionRestarts
    | JobClosed
    | NoCoordinator
    | CoordinatorDied
    | JobHasEnded
    | JobIsEnding
    | NoSnapshots
    | FormatNeedsFiles
    | SomeInputEnded
    | NeededForRecovery
    | NotRetained
    | NotCopied
)


def raised(error: Exception) -> EngineRaised:
    """The cause of a task's failure by an exception inside the engine."""
    return EngineRaised(f"{type(error).__name__}: {error}")


def root(cause: AnyCause) -> AnyCause:
    """What a chain of causes began with."""
    while isinstance(
        cause, TaskFailed | AttemptFailed | RegionRestarts | StopFailed | CheckpointsFailed | RestartsUsedUp
    ):
        cause = cause.last if isinstance(cause, RestartsUsedUp) else cause.cause
    return cause


def in_words(cause: Cause) -> str:
    """The sentence for a person."""
    return _WORDS[type(cause)](cause)


def _connection_broke(cause: ConnectionBroke) -> str:
    return f"its connection from {cause.sender} broke" + (f": {cause.detail}" if cause.detail else "")


def _function_raised(cause: UserFunctionRaised) -> str:
    name = f"{cause.function} " if cause.function else ""
    return f"the user function {name}of {cause.task} raised {cause.error}"


def _input_discarded(cause: InputDiscarded) -> str:
    what = f"checkpoint {cause.checkpoint} needs" if cause.checkpoint is not None else "a new job needs"
    return f"split {cause.split} has been discarded up to record {cause.begins}, and {what} record {cause.wanted}"


def _place_forgotten(cause: PlaceForgotten) -> str:
    where = f"its snapshot of checkpoint {cause.checkpoint} was taken" if cause.checkpoint is not None else "it began"
    return f"the place in its determinant log at which {where} is not known"


def _holds(cause: Incompatible) -> str:
    return f"checkpoint {cause.checkpoint} holds"


def _names(cause: Incompatible) -> str:
    return ", ".join(cause.operators)


def _finished_behind_unfinished(cause: FinishedBehindUnfinished) -> str:
    finished, *senders = cause.operators
    return (
        f"checkpoint {cause.checkpoint} counts {finished} as finished, but not all that sends to it: rows of"
        f" {', '.join(senders)} would be lost"
    )


def _operators_removed(cause: OperatorsRemoved) -> str:
    named = zip(cause.operators, cause.uids, strict=True)
    held = [name if name == uid else f"{name} (uid {uid})" for name, uid in named]
    return (
        f"{_holds(cause)} state of {', '.join(held)}, which the job no longer has: it is dropped only with"
        " allow_non_restored_state"
    )


def _operators_renamed(cause: OperatorsRenamed) -> str:
    held = ", ".join(f"the state of {name} under the uid {old}" for name, old, _ in cause.unmapped)
    moves = ", ".join(f"{old} -> {new}" for _, old, new in cause.unmapped)
    return f"{_holds(cause)} {held}, and the job has another: its mapping needs the moves {moves}"


def _states_retyped(cause: StatesRetyped) -> str:
    known = CONVERSIONS.values()
    needed = ", ".join(f"{uid}: {conversion}" for _, uid, conversion in cause.unread if conversion in known)
    never = ", ".join(f"{uid} ({conversion})" for _, uid, conversion in cause.unread if conversion not in known)
    advice = [f"its mapping needs the conversions {needed}"] if needed else []
    advice += [f"nothing converts {never}, so the job has to keep the type that the snapshot has"] if never else []
    return f"{_holds(cause)} states of {_names(cause)} that are of another type than the job's: {'; '.join(advice)}"


_WORDS: dict[type, Callable[[Any], str]] = {
    Killed: lambda one: "it was killed",
    NodeLost: lambda one: "its node was lost",
    PowerLost: lambda one: "its node lost power",
    SnapshotTorn: lambda one: "it died while it wrote a snapshot",
    FlushTorn: lambda one: "it died while it flushed its logs",
    ProcessEnded: lambda one: f"its process ended with {one.how}: {one.last_words}",
    HeartbeatMissed: lambda one: "no heartbeat",
    ProcessGone: lambda one: "its process is gone",
    ConnectionBroke: _connection_broke,
    StoreRefused: lambda one: f"{one.task}: the external store refused: {one.detail}",
    SnapshotUnreadable: lambda one: f"the snapshot of checkpoint {one.checkpoint} could not be read: {one.detail}",
    SnapshotUnfit: lambda one: f"{one.task} cannot go on from its snapshot: {one.detail}",
    UserFunctionRaised: _function_raised,
    UserFunctionRefused: lambda one: f"the user function of {one.task} is refused: {one.detail}",
    EngineRaised: lambda one: f"the engine raised {one.error}",
    TaskUnknown: lambda one: f"the job has no task {one.task}",
    InputDiscarded: _input_discarded,
    SplitTaken: lambda one: "a newer attempt reads its split",
    LogUnusable: lambda one: f"a log could not be {one.step}: {one.detail}",
    DeterminantsUnusable: lambda one: f"its determinants could not be {one.step}: {one.detail}",
    FilesUnusable: lambda one: f"its logs or its determinants cannot be used: {one.detail}",
    PlaceForgotten: _place_forgotten,
    ElementGone: lambda one: f"{one.channel} has no element {one.number} any more",
    TaskFailed: lambda one: f"{one.task}: {one.cause}",
    NotUpInTime: lambda one: f"{', '.join(one.tasks)} did not come up in time",
    StopFailed: lambda one: f"the stop failed, its savepoint was aborted: {one.cause}",
    CheckpointsFailed: lambda one: f"too many checkpoints failed; the last: {one.cause}",
    Submitted: lambda one: "the job was submitted",
    TakenOver: lambda one: "a new coordinator took over",
    RestartsUsedUp: lambda one: f"{one.restarts} restarts are used up; the last cause was {one.last}",
    SnapshotsLost: lambda one: "its snapshots were in the memory of the coordinator that died (ABS-14)",
    RecordsUnreadable: lambda one: f"the record of checkpoint {', '.join(map(str, one.checkpoints))} cannot be read",
    StateMissing: lambda one: f"{_holds(one)} no state of {', '.join(one.tasks)}",
    FinishedBehindUnfinished: _finished_behind_unfinished,
    OperatorsAdded: lambda one: f"{_holds(one)} no state of {_names(one)}: its job had no such operator",
    OperatorsRemoved: _operators_removed,
    KeyGroupsChanged: lambda one: (
        f"{_holds(one)} the state of {_names(one) or 'its operators'} by {one.before} key groups, and the job has"
        f" {one.now}"
    ),
    OperatorsRenamed: _operators_renamed,
    StatesRetyped: _states_retyped,
    UpgradedFromCheckpoint: lambda one: (
        f"checkpoint {one.checkpoint} is no savepoint, and {_names(one)} cannot be new or gone, nor have another uid or"
        " type than in it: resume from a savepoint"
    ),
    CancelledByUser: lambda one: "by its user",
    FormerSentence: lambda one: one.sentence,
    SnapshotNotWritten: lambda one: one.detail,
    OtherBarrierFirst: lambda one: "a newer barrier, or a cancel barrier, came first",
    Declined: lambda one: f"{one.task} declined: {one.cause}",
    TimedOut: lambda one: "it timed out",
    NotStored: lambda one: one.detail,
    Subsumed: lambda one: f"subsumed by checkpoint {one.by}",
    AttemptFailed: lambda one: f"the attempt failed: {one.cause}",
    RegionRestarts: lambda one: f"{', '.join(one.tasks)} restart: {one.cause}",
    JobClosed: lambda one: f"the job is {one.status.value}",
    NeededForRecovery: lambda one: f"after a failure the job would restore checkpoint {one.checkpoint}",
    NotRetained: lambda one: f"checkpoint {one.checkpoint} is not retained",
    NotCopied: lambda one: f"checkpoint {one.checkpoint} is not copied: {one.reason}",
    NoCoordinator: lambda one: "no coordinator answers",
    CoordinatorDied: lambda one: "the coordinator died",
    JobHasEnded: lambda one: "the job has ended",
    JobIsEnding: lambda one: "the job is ending already",
    NoSnapshots: lambda one: "at-most-once takes no snapshots",
    FormatNeedsFiles: lambda one: f"snapshots in the coordinator's memory have no files for the format {one.format}",
    SomeInputEnded: lambda one: "some input has ended, and this job takes no snapshots after that",
}
