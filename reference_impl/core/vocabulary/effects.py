"""Everything that goes out: the effects that a task or the coordinator asks its driver to carry out, in order.

The order of effects is part of the protocol.  Where one effect must not happen before
another is durable, it is a field of that one: `Persist(…, then=(Report(…),))`.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec

from .causes import AnyCause
from .ends import Status
from .events import CompletedCheckpoint, JobRecord, Letter
from .formats import Filed, WriteStep
from .ids import AttemptId, CheckpointId, Handle, TaskId
from .messages import Ack, Barrier, Element, ToCoordinator, ToTask
from .state import Ref, Snapshot, TaskState
from .timeouts import Timeout
from .transactions import AnyRequest


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Effect(msgspec.Struct, frozen=True, gc=False):
    """Base of the effects."""


class Send(Effect):
    """Put an element into an output channel (by its number)."""

    channel: int
    element: Element


class Overtake(Effect):
    """Put a barrier into output channels ahead of the elements that wait to be sent, however full the channels are.
    The driver answers at once with `OutputsOvertaken`."""

    barrier: Barrier
    channels: tuple[int, ...]


class Refill(Effect):
    """Put restored elements back into an input channel; `Capture.handed_over` joins them with the elements that are
    in the channel by then.

    The elements of all channels that were put back most often come first: `replays` says how often each of the first
    `elements` was put back before; it was 0 times for the others.
    """

    channel: int
    elements: tuple[Element, ...]
    replays: tuple[int, ...] = ()


class AppendToLog(Effect):
    """Append an element to the log of a persistent channel; it is not durable yet.  No number comes twice, but with a
    buffer timeout a lower one can come later."""

    log: str
    number: int
    element: Element


class Sync(Effect):
    """Make durable what this task has appended so far: answered by `Synced`.  If that fails, the task ends."""

    serial: int


class Fetch(Effect):
    """Read what is durable in logs: answered by `Fetched`, or by `LoadFailed` if something is missing."""

    refs: tuple[Ref, ...]


class TrimLog(Effect):
    """No element of a log below this number is needed any more."""

    log: str
    before: int


class ClearLogs(Effect):
    """Delete every log of a persistent channel, of this job and those it was resumed from, except the named ones and
    those in the folders of living attempts."""

    keep: tuple[str, ...]
    living: tuple[str, ...]


class Block(Effect):
    """Take nothing more from an input channel: it has delivered its barrier (ABS-2)."""

    channel: int


class Unblock(Effect):
    """Take from an input channel again; what waited in it comes first."""

    channel: int


class SnapshotTaken(Effect):
    """The task takes its snapshot of a checkpoint here, in its program order; a later
    effect writes it."""

    checkpoint: CheckpointId


class Advanced(Effect):
    """The task's watermark advances here, in its program order; the rows that this yields follow."""

    time: int


class TimeEnded(Effect):
    """Processing time ends here for the task, in its program order: pending timers fire."""


class WakeAt(Effect):
    """Feed the task a tick (`Ticked`) at this time, even if nothing else happens."""

    time: int


class Persist(Effect):
    """Write a snapshot; when it is durable carry out `then`.

    With `synchronous` the task stands still until then (ABS-13).  The driver
    encodes the snapshot when it writes, not before: if the task changes a state that
    it has handed over, the change is written.  Answered by `PersistFailed` when
    the store reports an error.  `filed`: the snapshot is not canonical; its entries are
    in files.  `until`: the step of the write for which `then` waits.
    """

    checkpoint: CheckpointId
    handle: Handle
    snapshot: Snapshot
    synchronous: bool
    then: tuple[Effect, ...]
    filed: Filed | None = None
    until: WriteStep = WriteStep.LINK_SYNCED


class Ship(Effect):
    """Snapshots are in the coordinator's memory: send `ack` with the state in it."""

    snapshot: Snapshot
    synchronous: bool
    ack: Ack


class Report(Effect):
    """Send a message to the coordinator."""

    message: ToCoordinator


class Load(Effect):
    """Read a snapshot: answered by `SnapshotLoaded` or `LoadFailed`."""

    handle: Handle


class Restored(Effect):
    """The task has taken over the state of a checkpoint, before any input (ABS-6)."""

    checkpoint: CheckpointId
    state: TaskState


class LoadPositions(Effect):
    """Read the saved positions: answered by `PositionsLoaded` (at-most-once)."""

    splits: tuple[int, ...]


class SavePosition(Effect):
    """Save a source's next position at once, then carry out `then`.  The store refuses the
    position of an older attempt, and the task ends (at-most-once)."""

    split: int
    position: int
    then: tuple[Effect, ...]


class Trim(Effect):
    """A split's log may discard what lies before this offset (ABS-15)."""

    split: int
    offset: int


class Transact(Effect):
    """Send a request to the external store: answered by `Answered(number, …)`."""

    number: int
    request: AnyRequest


class MemtableFlushed(Effect):
    """The working state has become larger than its memtable, or a view needs it: there is one more sorted file."""


class Compact(Effect):
    """Merge sorted files of the working state while the task goes on; answered by `Compacted` when it is time to put
    the result in the place of its inputs."""


class Mail(Effect):
    """Put a mail into the task's own mailbox; it is opened when nothing else is due."""

    letter: Letter


class SetTimer(Effect):
    """Answer with `TimerFired` after a while; to set the same timeout again replaces the earlier setting."""

    timeout: Timeout
    after_us: int


class Fail(Effect):
    """This task cannot go on."""

    cause: AnyCause


class Open(Effect):
    """Take input from now on."""


class Rest(Effect):
    """A source has nothing to read: do not poll it again."""


class PollAgain(Effect):
    """A source that rested may have something to read again."""


class SendToTask(Effect):
    """Send a control message to a task's attempt."""

    task: TaskId
    message: ToTask


class ListSnapshots(Effect):
    """Read the records of complete snapshots: answered by `SnapshotsListed`."""


class SaveJob(Effect):
    """Make the job's record durable: answered by `JobSaved`."""

    record: JobRecord


class Store(Effect):
    """Write the record that makes a checkpoint complete: answered by `RecordStored`
    or `StoreFailed`."""

    snapshot: CompletedCheckpoint
    attempts: dict[TaskId, AttemptId]
    """those that took part: all tasks may have newer ones when it is durable"""


class Discard(Effect):
    """Delete files of snapshots, and with `checkpoint` the record that made it complete.  Answered by `DeleteFailed`
    when something cannot be deleted.

    `with_files`: the handles are of snapshots that never were complete.  The files that were written for them are
    deleted too; no other snapshot refers to those.
    """

    handles: tuple[Handle, ...]
    checkpoint: CheckpointId | None = None
    with_files: bool = False


class CopyFiles(Effect):
    """Copy files of a snapshot into the directory of the user, those that are not there yet, up to the first that is
    missing or altered, or cannot be written.  Answered by `FilesCopied`."""

    checkpoint: CheckpointId
    handles: tuple[Handle, ...]
    parts: tuple[Handle, ...] = ()
    """those of the tasks' states, which are read first to see whether all their files are whole"""
    resolves: bool = False
    """the states refer to logs of channels: their copies have the elements themselves"""


class StoreCopy(Effect):
    """Write the record of a snapshot into the directory of the user, which makes the copy complete.  Answered by
    `SnapshotCopied` or `CopyFailed`."""

    snapshot: CompletedCheckpoint


class SweepCopies(Effect):
    """Delete the files in the directory of the user that no complete copy needs."""


class MarkMoved(Effect):
    """Replace the record of a complete snapshot by one that says that it was moved."""

    snapshot: CompletedCheckpoint


class Sweep(Effect):
    """Delete every snapshot in the store, of this job and those it was resumed from, except
    the named ones."""

    keep: tuple[Handle, ...]


class Return(Effect):
    """Answer a user's command; with a cause it is refused."""

    command: int
    checkpoint: CheckpointId | None = None
    cause: AnyCause | None = None


class EndJob(Effect):
    """The job has ended."""

    status: Status
    checkpoint: CheckpointId | None = None
    cause: AnyCause | None = None
