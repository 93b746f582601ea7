"""A process's journal: what its world reports to the observer, on disk before it can have an effect.

A journal is a file of batches, each a frame of the wire with a checksum.  What is observed waits in the process until
`flush`, which is called before anything that was sent leaves.  So what a kill -9 destroys has reached nobody.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ..core.vocabulary.errors import EngineError, ProtocolViolated
from ..core.vocabulary.events import CompletedSnapshot
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, Tasks
from ..core.vocabulary.transactions import AnyRequest, Done, NoAnswer, Outcome
from ..wire import HEADER, VERSION, Reader, WireError
from . import entries as e
from .checked import CODEC, framed, is_whole
from .clock import Clock

BATCH = 1_000
"""how many entries may wait; with one more they are written at once"""

Item = TypeVar("Item")


_decoder = msgspec.msgpack.Decoder(list[e.AnyEntry])


class CorruptJournal(EngineError):
    """A journal that is altered; one that only ends too early is not."""


class Column(Generic[Item]):
    """Fulfils `trace.Appendable` by writing; it keeps only the number of items."""

    __slots__ = ("_length", "_undo", "_write")

    def __init__(self, write: Callable[[Item], None], undo: Callable[[], None]) -> None:
        self._write = write
        self._undo = undo
        self._length = 0

    def append(self, item: Item, /) -> None:
        self._length += 1
        self._write(item)

    def pop(self) -> None:
        """Take the last one back."""
        if not self._length:
            raise IndexError("nothing is there to be taken back")
        self._length -= 1
        self._undo()

    def __len__(self) -> int:
        return self._length


class RunJournal:
    """Fulfils `trace.TaskLog`."""

    def __init__(self, journal: Journal, run: int) -> None:
        self._journal = journal
        self._run = run
        add, tick = journal.add, journal.clock.tick
        self.reads: Column[tuple[int, int]] = Column(
            lambda place: add(e.RecordRead(tick(), run, *place)), lambda: add(e.ReadUndone(tick(), run))
        )
        self.applies: Column[tuple[int, int]] = Column(
            lambda taken: add(e.RecordApplied(tick(), run, *taken)), lambda: add(e.ApplyUndone(tick(), run))
        )

    def marked(self, checkpoint: CheckpointId, received: list[int], sent: list[int]) -> None:
        self._journal.add(e.Marked(self._tick(), self._run, checkpoint, tuple(received), tuple(sent)))

    def advanced(self, time: int) -> None:
        self._journal.add(e.TimeAdvanced(self._tick(), self._run, time))

    def ticked(self, time: int) -> None:
        self._journal.add(e.Ticked(self._tick(), self._run, time))

    def assigned(self, splits: Mapping[int, int]) -> None:
        self._journal.add(e.SplitsAssigned(self._tick(), self._run, dict(splits)))

    def restored(self, checkpoint: CheckpointId, state: str) -> None:
        self._journal.add(e.StateRestored(self._tick(), self._run, checkpoint, state))

    def input_ended(self) -> None:
        self._journal.add(e.InputEnded(self._tick(), self._run))

    def ended(self, how: str) -> None:
        self._journal.add(e.RunEnded(self._tick(), self._run, how))

    def _tick(self) -> int:
        return self._journal.clock.tick()


class ChannelJournal:
    """Fulfils `trace.ChannelLog`; the receiver's has only the elements that are put back, the sender's only the
    others."""

    def __init__(self, journal: Journal, channel: int) -> None:
        add, tick = journal.add, journal.clock.tick
        self._journal, self._channel = journal, channel
        self.repeated: list[int] = []  # the merge identifies them by their numbers
        self.recovered: Column[int] = Column(lambda origin: add(e.RecordRecovered(tick(), channel, origin)), _never)
        self.recovered_watermarks: Column[tuple[int | None, int]] = Column(
            lambda watermark: add(e.WatermarkRecovered(tick(), channel, *watermark)), _never
        )
        self.sent: Column[int] = Column(lambda origin: add(e.RecordSent(tick(), channel, origin)), _never)
        self.barriers: Column[tuple[int, int]] = Column(
            lambda barrier: add(e.BarrierSent(tick(), channel, *barrier)), _never
        )
        self.watermarks: Column[tuple[int | None, int]] = Column(
            lambda watermark: add(e.WatermarkSent(tick(), channel, *watermark)), _never
        )

    def continued(self, whole: AttemptId, first: int, expects: int) -> None:
        """For a sender that recovered locally: see `entries.ChannelContinued`."""
        journal = self._journal
        journal.add(e.ChannelContinued(journal.clock.tick(), self._channel, whole, first, expects))


def _never() -> None:
    raise ProtocolViolated("what has entered a channel cannot be taken back")


class Journal:
    """Fulfils `trace.Observer` by writing to a file that is its own; not for several threads."""

    def __init__(self, path: Path, clock: Clock, *, detailed: bool = False) -> None:
        """The file's folder must exist; if the file exists, it is continued."""
        self.detailed = detailed
        self.clock = clock
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._waiting: list[e.Entry] = []
        self._runs = 0
        self._channels = 0

    def add(self, entry: e.Entry) -> None:
        """Let an entry wait for the next flush."""
        self._waiting.append(entry)
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits; raises OSError, and WireError for a batch that is longer than a frame can be."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        remaining = memoryview(framed(waiting))
        while remaining:
            remaining = remaining[os.write(self._file, remaining) :]

    def close(self) -> None:
        self.flush()
        os.close(self._file)

    def order(self) -> int:
        """A stamp instead of a number: the merge makes numbers of stamps."""
        return self.clock.tick()

    # -- tasks and channels ------------------------------------------------------------

    def task_started(
        self,
        task: TaskId,
        operator: str,
        subtask: int,
        attempt: AttemptId,
        job: int,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> RunJournal:
        run, self._runs = self._runs, self._runs + 1
        self.add(e.TaskStarted(self.order(), run, task, operator, subtask, attempt, job, tuple(inputs), tuple(outputs)))
        return RunJournal(self, run)

    def channel_opened(self, name: str, attempt: AttemptId) -> ChannelJournal:
        channel, self._channels = self._channels, self._channels + 1
        self.add(e.ChannelOpened(self.order(), channel, name, attempt))
        return ChannelJournal(self, channel)

    def channel_refilled(self, name: str, attempt: AttemptId) -> ChannelJournal:
        """Elements in flight are about to be put back into a channel; its sender may live in another process."""
        channel, self._channels = self._channels, self._channels + 1
        self.add(e.ChannelRefilled(self.order(), channel, name, attempt))
        return ChannelJournal(self, channel)

    # -- the coordinator and the stores --------------------------------------------------

    def note(
        self, what: str, checkpoint: int | None, attempt: int | None, job: int, detail: str, tasks: Tasks = ()
    ) -> None:
        self.add(e.Noted(self.order(), what, checkpoint, attempt, job, detail, tasks))

    def task_failed(self, task: TaskId, attempt: AttemptId, reason: str, fault: int | None) -> None:
        self.add(e.TaskFailed(self.order(), task, attempt, reason, fault))

    def coordinator(self, up: bool, fault: int | None) -> None:
        self.add(e.CoordinatorChanged(self.order(), up, fault))

    def snapshot_stored(
        self, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId, handle: Handle, state: str
    ) -> None:
        self.add(e.SnapshotStored(self.order(), checkpoint, task, attempt, handle, state))

    def checkpoint_completing(self, snapshot: CompletedSnapshot) -> None:
        """The record of a checkpoint is about to be written; `checkpoint_completed` follows, unless its writer dies."""
        self.add(e.CheckpointCompleting(self.order(), _without_states(snapshot)))

    def checkpoint_completed(self, snapshot: CompletedSnapshot) -> None:
        self.add(e.CheckpointCompleted(self.order(), _without_states(snapshot)))

    def deleted(self, checkpoint: CheckpointId | None, handles: Sequence[Handle]) -> None:
        self.add(e.SnapshotsDeleted(self.order(), checkpoint, tuple(handles)))

    def log_opened(self, name: str, task: TaskId, attempt: AttemptId) -> None:
        self.add(e.LogOpened(self.order(), name, task, attempt))

    def log_trimmed(self, name: str, before: int) -> None:
        self.add(e.LogTrimmed(self.order(), name, before))

    def logs_cleared(self, names: Sequence[str]) -> None:
        self.add(e.LogsCleared(self.order(), tuple(names)))

    def command_issued(
        self,
        command: int,
        kind: str,
        drain: bool,
        parallelism: Mapping[str, int] | None = None,
        inserted: Mapping[str, str] | None = None,
    ) -> None:
        self.add(e.CommandIssued(self.order(), command, kind, drain, dict(parallelism or {}), dict(inserted or {})))

    def command_returned(self, command: int, checkpoint: CheckpointId | None, error: str) -> None:
        self.add(e.CommandReturned(self.order(), command, checkpoint, error))

    def job_ended(self, job: int, status: str, checkpoint: CheckpointId | None, reason: str) -> None:
        self.add(e.JobEnded(self.order(), job, status, checkpoint, reason))

    # -- the external store --------------------------------------------------------------

    def transacting(self, request: AnyRequest) -> None:
        """A request is about to be sent to the external store; `transacted` follows, unless this process dies
        before."""
        self.add(e.Transacting(self.order(), request))

    def transacted(self, request: AnyRequest, outcome: Outcome, applied: int) -> None:
        done = isinstance(outcome, Done)
        answer = "done" if done else "no answer" if isinstance(outcome, NoAnswer) else "denied"
        unfinished = outcome.unfinished if isinstance(outcome, Done) else ()
        self.add(e.Transacted(self.order(), request, answer, getattr(outcome, "reason", ""), unfinished, applied))

    def commit_requested(self, name: str) -> None:
        self.add(e.CommitRequested(self.order(), name))

    def looked(self, began: int, rows: int) -> None:
        self.add(e.Looked(self.order(), began, rows))

    def seen(self, began: int, names: Sequence[str], rows: int = 0) -> None:
        """A reader looked at the external store from the stamp `began` on, and saw these transactions, and this many
        rows that belong to none."""
        self.add(e.Seen(self.order(), began, tuple(names), rows))

    # -- faults, and what only the harness knows -------------------------------------------

    def fault_fired(
        self, fault: int, phase: str, detail: str, attempt: int | None, *, stamp: int | None = None
    ) -> None:
        """`stamp` is that of the process in which the fault fired, if it is another one."""
        self.add(e.FaultFired(self.order() if stamp is None else stamp, fault, phase, detail, attempt))

    def fault_healed(self, fault: int) -> None:
        self.add(e.FaultHealed(self.order(), fault))

    def died(self, process: str, incarnation: int, reason: str, fault: int | None) -> None:
        """A process is dead, or is about to be killed; `reason` becomes that of its tasks' failures."""
        self.add(e.Died(self.order(), process, incarnation, reason, fault))

    def stopped(self, process: str, incarnation: int, fault: int) -> None:
        """A fault makes a process stand still, until it heals."""
        self.add(e.Stopped(self.order(), process, incarnation, fault))

    def breaks(self, fault: int, channel: str) -> None:
        """A fault breaks the connections of a channel ("*": of all), until it heals."""
        self.add(e.Breaks(self.order(), fault, channel))

    def outage(self, fault: int, began: bool) -> None:
        """A fault has stopped the database, or it runs again."""
        self.add(e.Outage(self.order(), fault, began))

    def expired(self, fault: int, name: str, stamp: int) -> None:
        """The external store has aborted a sealed transaction; the stamp is from before anybody could see that."""
        self.add(e.Expired(stamp, fault, name))

    def closing(self) -> None:
        """The run is over, and its processes are ordered to end."""
        self.add(e.Closing(self.order()))

    def lagged(self, by_us: int) -> None:
        """This process did something too late, by this much."""
        self.add(e.Lagged(self.order(), by_us))

    def defect_reached(self) -> None:
        self.add(e.DefectReached(self.order()))

    def timed(
        self,
        what: str,
        task: str,
        attempt: int,
        *,
        peer: str = "",
        detail: str = "",
        channel: str = "",
        position: int = -1,
        checkpoint: int | None = None,
        origin: int | None = None,
    ) -> None:
        self.add(e.Timed(self.order(), what, task, attempt, peer, detail, channel, position, checkpoint, origin))


def _without_states(snapshot: CompletedSnapshot) -> CompletedSnapshot:
    return msgspec.structs.replace(snapshot, states={})


def read_journal(path: Path) -> list[e.AnyEntry]:
    """Every entry of a journal, in the order in which they were written; without the last batch, if that is not
    complete.

    Raises OSError, and CorruptJournal when the journal is altered.
    """
    data = path.read_bytes()
    reader = Reader(CODEC)
    found: list[e.AnyEntry] = []
    try:
        for number, batch in enumerate(reader.feed(data)):
            if not is_whole(batch):
                raise CorruptJournal(f"the journal {path.name} is altered: the checksum of its batch {number} is wrong")
            found += _decoder.decode(batch.elements)
    except (WireError, msgspec.DecodeError, RecursionError) as error:
        raise CorruptJournal(f"the journal {path.name} is altered: {error}") from None
    if _holds_a_batch(data[len(data) - reader.pending :]):
        raise CorruptJournal(f"the journal {path.name} is altered: whole batches follow one that is not complete")
    return found


def _holds_a_batch(tail: bytes) -> bool:
    """Whether a whole batch follows the beginning of what looks like a torn one: then the length of that one is
    wrong."""
    mark = bytes([VERSION])
    at = tail.find(mark, 1)
    while 0 < at <= len(tail) - HEADER.size:
        length = HEADER.unpack_from(tail, at)[1]
        body = tail[at + HEADER.size : at + HEADER.size + length]
        if len(body) == length and _is_batch(body):
            return True
        at = tail.find(mark, at + 1)
    return False


def _is_batch(body: bytes) -> bool:
    try:
        return is_whole(CODEC.decode(body))
    except WireError:
        return False
