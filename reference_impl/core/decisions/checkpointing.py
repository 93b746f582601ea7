"""Checkpoints: their ids, who takes part, when they are complete, which are kept and restored (ABS-3 to ABS-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from ..job.topology import JobGraph
from ..vocabulary.causes import (
    AnyCause,
    AnyIncompatible,
    AttemptFailed,
    Declined,
    JobClosed,
    OtherBarrierFirst,
    RegionRestarts,
    Subsumed,
)
from ..vocabulary.effects import CopyFiles, Discard, Effect, StoreCopy, Sweep
from ..vocabulary.events import Claims, CompletedCheckpoint, FilesCopied, files_of
from ..vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, following
from ..vocabulary.messages import Ack
from ..vocabulary.stages import Stage, Working
from .part import Part
from .snapshots.compatibility import refusal


class CheckpointIds(Part):
    """How ids are given out; two checkpoints never share one, be they of one attempt or of several."""

    def next(self, last: CheckpointId | None) -> CheckpointId:
        """The id of a new checkpoint: one more than the last that the job gave."""
        return following(last)


class Situation(msgspec.Struct, frozen=True):
    """What the coordinator knows when a checkpoint is due."""

    stage: Stage
    attempt: AttemptId
    under_way: int
    """how many checkpoints are under way, without savepoints"""
    concurrent: int
    """how many may be under way at a time (ABS-3)"""
    is_ending: bool
    """a stop, a drain or the final checkpoint is under way"""
    is_open: bool
    """no input has ended, or checkpoints go on after that (FIN-7)"""
    latest: CompletedCheckpoint | None
    """the latest complete snapshot"""
    finished: tuple[TaskId, ...]


class CheckpointPlan(msgspec.Struct, frozen=True):
    """Which tasks take part in a checkpoint (FIN-1)."""

    triggered: tuple[TaskId, ...]
    """they start it: no unfinished task sends to them"""
    awaited: tuple[TaskId, ...]
    """they must acknowledge it"""
    finished: tuple[TaskId, ...]
    """they count as finished in it"""


class TriggerStep(Enum):
    """One of the two steps in which a checkpoint is triggered, once its id is durable."""

    begin_timeout = "begin-timeout"
    trigger_tasks = "trigger-tasks"


class Triggering(Part):
    """When a checkpoint may be triggered, which tasks take part in it, and how it is triggered."""

    def allowed(self, now: Situation) -> bool:
        """Only while every task runs, nothing is ending, fewer are under way than may be, and no input has ended, or
        checkpoints go on after that (FIN-7)."""
        runs = isinstance(now.stage, Working) and not now.is_ending and now.is_open
        return runs and now.under_way < now.concurrent

    def plan(self, graph: JobGraph, finished: Sequence[TaskId]) -> CheckpointPlan:
        """All tasks take part that have not finished (FIN-1).  All of these must acknowledge: the sinks alone are not
        enough (ABS-4)."""
        running = tuple(task for task, _, _ in graph.tasks() if task not in finished)
        return CheckpointPlan(tuple(graph.first_of(running)), running, tuple(finished))

    def steps(self) -> tuple[TriggerStep, ...]:
        """The steps in order, both at once: the timeout begins before the tasks hear of the checkpoint, since from then
        on a trigger, a barrier or an acknowledgement may be lost."""
        return (TriggerStep.begin_timeout, TriggerStep.trigger_tasks)


class PendingView(Protocol):
    """What a decision sees of a pending checkpoint."""

    @property
    def savepoint(self) -> bool: ...

    @property
    def acknowledged(self) -> Mapping[TaskId, Handle]: ...

    @property
    def finished(self) -> Sequence[TaskId]:
        """The tasks that count as finished in it."""
        ...


class Completion(Part):
    """When a checkpoint is complete, and what happens to acknowledgements that come too late."""

    def counts(self, ack: Ack, pending: PendingView) -> bool:
        """Whether an acknowledgement of a pending checkpoint counts: unless its task has finished since it wrote the
        state, which then nobody needs.  A repeat counts too: the state is the same."""
        return ack.task not in pending.finished

    def to_store(self, acknowledged: Mapping[CheckpointId, bool]) -> tuple[CheckpointId, ...]:
        """The checkpoints whose records are stored now, in order; they are complete once the records are durable.
        `acknowledged` says of each pending checkpoint whether all have acknowledged it."""
        return tuple(checkpoint for checkpoint, by_all in acknowledged.items() if by_all)

    def still_pending(self, pending: Sequence[CheckpointId], stored: CheckpointId) -> tuple[CheckpointId, ...]:
        """The checkpoints that go on taking acknowledgements while the record of one is being stored: all others."""
        return tuple(checkpoint for checkpoint in pending if checkpoint != stored)

    def unwanted(self, ack: Ack, taker: PendingView | None) -> list[Handle]:
        """The handles to discard after an acknowledgement: that of its state, if no pending checkpoint took it."""
        return [ack.handle] if taker is None else []


class CheckpointFailure(msgspec.Struct, frozen=True):
    """A checkpoint that was aborted, and why."""

    checkpoint: CheckpointId
    cause: AnyCause


def is_failure(cause: AnyCause) -> bool:
    """Whether a checkpoint that is aborted for this cause has failed: it did not give place to a newer one, and was not
    aborted with its attempt or its job."""
    if isinstance(cause, Declined):
        return not isinstance(cause.cause, OtherBarrierFirst)
    return not isinstance(cause, Subsumed | AttemptFailed | RegionRestarts | JobClosed)


class Tolerance(Part):
    """Which failed checkpoints count towards the number in a row that the job tolerates (ABS-3)."""

    def failed_in_a_row(self, before: int, failure: CheckpointFailure, complete: CheckpointId | None) -> int:
        """How many have failed in a row with this failure, `before` without it.  It does not count if a newer
        checkpoint is complete (`complete` is the newest), or if a task declined for a barrier that came in the place of
        the checkpoint's (as in Flink's `CheckpointFailureManager`): the newer checkpoint may complete, and what was
        a task aborted upstream was counted when it did so."""
        counts = complete is None or failure.checkpoint > complete
        return before + (counts and self.has_failed(failure.cause))

    def has_failed(self, cause: AnyCause) -> bool:
        """Whether a checkpoint that is aborted for this cause counts as failed."""
        return is_failure(cause)


class WhenListed(Enum):
    """What a coordinator that takes over does once it has listed the records of complete checkpoints."""

    choose = "choose"
    """choose among them the snapshot to restore"""
    list_again = "list-again"
    """list them again after a while"""
    give_up = "give-up"
    """fail the job, and delete nothing"""


class RestoreChoice(Part):
    """Which snapshot a new attempt restores (ABS-6)."""

    def when_listed(self, unreadable: Sequence[CheckpointId], tries_left: int) -> WhenListed:
        """What follows when the records of these complete checkpoints cannot be read: none is chosen without them,
        since each of them may be the newest."""
        if not unreadable:
            return WhenListed.choose
        return WhenListed.list_again if tries_left > 0 else WhenListed.give_up

    def choose(self, retained: Sequence[CompletedCheckpoint]) -> CompletedCheckpoint | None:
        """The latest completed snapshot, checkpoint or savepoint: both commit side effects."""
        return max(retained, key=lambda snapshot: snapshot.checkpoint, default=None)

    def choose_for_region(self, retained: Sequence[CompletedCheckpoint]) -> CompletedCheckpoint | None:
        """What a region restores: the same as all tasks would.  The tasks that go on commit what was sealed for it."""
        return self.choose(retained)

    def recoverable(
        self, retained: tuple[CompletedCheckpoint, ...], job: int, named: CheckpointId | None, savepoints: bool
    ) -> tuple[CompletedCheckpoint, ...]:
        """The snapshots among which a job may choose.

        Of former jobs all, unless its user began it from a `named` one: then none that is newer.  Of its own all; but
        without `savepoints` no savepoint, except the one that ended the job (SNAP-6).
        """
        if named is not None:
            retained = tuple(one for one in retained if one.job == job or one.checkpoint <= named)
        if savepoints:
            return retained
        return tuple(one for one in retained if one.job != job or not one.savepoint or one.ending is not None)

    def refusal(self, graph: JobGraph, snapshot: CompletedCheckpoint) -> AnyIncompatible | None:
        """Why the job cannot start from this snapshot; None if it can (FIN-2)."""
        return refusal(graph, snapshot)


def record_of_copy(snapshot: CompletedCheckpoint) -> StoreCopy:
    """What makes the copy of a snapshot complete.  It refers to no log, since the job goes on using those."""
    return StoreCopy(msgspec.structs.replace(snapshot, logs=()))


class MoveStep(Enum):
    """One of the steps in which a snapshot is moved."""

    copy = "copy"
    """copy its files, and then its record"""
    delete = "delete"
    """delete the one that was copied"""


class Cleanup(Part):
    """Which snapshots may be deleted, and when."""

    def owns(self, snapshot: CompletedCheckpoint, claims: Claims) -> bool:
        """Whether the job may delete a snapshot by itself: as its user said on resuming from it (SNAP-3).  Of all other
        snapshots it may delete checkpoints, and no savepoints."""
        return claims.get(snapshot.checkpoint, not snapshot.savepoint)

    def subsumed(self, retained: Sequence[CompletedCheckpoint], keep: int, claims: Claims) -> list[CompletedCheckpoint]:
        """The oldest snapshots beyond `keep` that the job owns."""
        own = [snapshot for snapshot in retained if self.owns(snapshot, claims)]
        return own[: max(0, len(own) - keep)]

    def oldest_needed(self, restorable: Sequence[CheckpointId], pending: Sequence[CheckpointId]) -> CheckpointId | None:
        """The oldest of the checkpoints that may be restored, now or once they are complete: sources may discard what
        lies before it (ABS-15).  A `pending` savepoint may be older than every complete checkpoint."""
        return min((*restorable, *pending), default=None)

    def may_be_deleted(self, snapshot: CheckpointId, restored: CheckpointId | None) -> bool:
        """Whether a user may delete a snapshot: any but the one that would be `restored` after a failure (SNAP-3)."""
        return snapshot != restored

    def deletion(self, snapshot: CompletedCheckpoint, unneeded: tuple[Handle, ...]) -> list[Effect]:
        """How a snapshot is deleted that its user no longer wants: its record first, and then the files that nobody
        needs besides.  If the coordinator dies in between, the one that takes over sweeps these files."""
        files: list[Effect] = [Discard(unneeded)] if unneeded else []
        return [Discard((), snapshot.checkpoint), *files]

    def copy(self, snapshot: CompletedCheckpoint) -> list[Effect]:
        """How the copy of a snapshot into the directory of its user begins: with all its files.  If the coordinator
        dies before their record is written, the one that takes over sweeps them."""
        return [
            CopyFiles(snapshot.checkpoint, files_of((snapshot,)), tuple(snapshot.handles.values()), bool(snapshot.logs))
        ]

    def may_be_recorded(self, copied: FilesCopied) -> bool:
        """Whether a copy gets its record: only if all its files are there, so that what has a record is complete."""
        return copied.failure is None

    def steps_of_move(self) -> tuple[MoveStep, ...]:
        """The steps in order: a snapshot that is moved is deleted once its copy is complete, so that at each moment one
        of the two is."""
        return (MoveStep.copy, MoveStep.delete)

    def on_takeover(self, referred_to: tuple[Handle, ...] | None) -> list[Effect]:
        """What a coordinator deletes when it takes over: what no record refers to, and nothing before the records
        were listed (None)."""
        return [Sweep(referred_to)] if referred_to is not None else []

    def left_behind(self, acknowledged: Mapping[TaskId, Handle], complete: Sequence[Handle]) -> tuple[Handle, ...]:
        """The states that a checkpoint leaves behind, to be deleted, when it is aborted: those that tasks have
        acknowledged for it, and nothing of the `complete` snapshots, one of which the next attempt restores."""
        return tuple(handle for handle in acknowledged.values() if handle not in complete)
