"""The journals of a run's processes as one history.

Each process wrote what it saw; sorted by stamp, process and position the entries
stand in an order that is consistent with causality.  Replayed in this order
into the `Recorder`, they become the history that the simulator's world would have made.
The merge also adds what no process could know: which process was killed and why, what
the external store did when nobody received its answer, and which fault explains a
failure (see `requests` and `failures`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ....properties.model.history import AttemptStarted, History
from ....properties.model.workload import Row
from ....reference_impl.core import transactions as t
from ....reference_impl.core.ids import AttemptId
from ....reference_impl.processes import entries as e
from ....reference_impl.processes.journal import read_journal
from ..subjects.recorder import Recorder, RunLog
from .failures import judged
from .local_recovery import Continued, Opened, Replaced, cut
from .order import Journal, LookBegan, Placed, Source, in_order
from .requests import completed, rolled_back, settled, where_sent

Committed = Sequence[tuple[str, Row]]
"""What an independent reader sees at the end: (transaction, "" for none; row)."""


def journals_in(folder: Path) -> list[Journal]:
    """Every journal of a run's folder, as its files are named: PROCESS.INCARNATION.

    Raises OSError, and CorruptJournal.
    """
    found: list[Journal] = []
    for path in sorted(folder.iterdir()):
        process, _, incarnation = path.name.rpartition(".")
        if process and incarnation.isdecimal():
            found.append((process, int(incarnation), read_journal(path)))
    return sorted(found, key=lambda one: one[:2])


def merged(
    history: History,
    kinds: Sequence[str],
    journals: Sequence[Journal],
    timeline: bool,
    *,
    committed: Committed,
    passing: Sequence[str] = (),
    rolls_back: bool,
    lasting: Sequence[int] = (),
    epoch: int | None = None,
) -> None:
    """Fill a history, whose head and `residue` are there, from the journals.

    `kinds` are the plan's faults by kind.  `passing` are committed transactions that the
    job's output does not show.  `rolls_back`: the external store
    aborts open transactions with their sessions.  `lasting` are the faults
    that still acted at the end.  Times count from `epoch`, a stamp; by default from
    the first entry.
    """
    sources = [Source(process, incarnation) for process, incarnation, _ in journals]
    placed = where_sent(in_order(journals))
    placed = sorted([*placed, *settled(placed, committed, history.residue, passing)])
    placed = sorted([*placed, *completed(placed, history.residue.retained)])
    if rolls_back:
        placed = sorted([*placed, *rolled_back(placed, sources)])
    judgement = judged(placed, sources)
    first = epoch if epoch is not None else placed[0].stamp if placed else 0
    replay = Replay(history, kinds, timeline, first, Counter(name for name, _ in committed if name))
    for one in judgement.placed:
        replay.take(one)
    for fault in lasting:
        replay.recorder.fault_lasts(fault)
    seen = [one.entry.names for one in placed if isinstance(one.entry, e.Seen)]
    history.committed = [row for _, row in as_seen(committed, seen)]
    history.starved = judgement.starved
    assign_jobs(history)


def as_seen(committed: Committed, reads: Iterable[Sequence[str]]) -> Committed:
    """What is committed, so that each read saw a first part of it: transactions by the smallest
    read that saw them, then as they came."""
    ranks: dict[str, int] = {}
    for rank, names in enumerate(sorted(reads, key=len)):
        for name in names:
            ranks.setdefault(name, rank)
    last = len(ranks) + 1
    for name, _ in committed:
        ranks.setdefault(name, last)
        last += 1
    return sorted(committed, key=lambda one: ranks[one[0]])


def assign_jobs(history: History) -> None:
    """Give each attempt its job: the coordinator reported it, and the task's process need not know it."""
    jobs = {entry.attempt: entry.job for entry in history.journal if isinstance(entry, AttemptStarted)}
    for run in history.runs:
        run.job = jobs.get(run.attempt, run.job)


class Replay:
    """Hands entries to a recorder, one after the other, as a world would have called it."""

    def __init__(self, history: History, kinds: Sequence[str], timeline: bool, epoch: int, sizes: Counter[str]) -> None:
        """`sizes` are the visible transactions' numbers of rows."""
        self._history = history
        self.recorder = Recorder(history, kinds, lambda: self._stamp - epoch, timeline)
        self._stamp = epoch
        self._source = 0
        self._sizes = sizes
        self._runs: dict[tuple[int, int], RunLog] = {}
        self._channels: dict[tuple[int, int], Any] = {}
        self._newest: dict[tuple[str, int], Any] = {}
        """channels by name and attempt; both ends write of one that is refilled"""
        self._unsent: set[tuple[str, int]] = set()
        """those that were refilled before their senders had opened them"""
        self._opened: dict[str, list[Opened]] = {}
        """by channel, by whom it was opened for sending"""
        self._looks: dict[tuple[int, int], int] = {}
        self._do: dict[type, Callable[[Any], object]] = {
            e.TaskStarted: self._start,
            e.RecordRead: lambda one: self._run(one).reads.append((one.split, one.offset)),
            e.ReadUndone: lambda one: self._run(one).reads.pop(),
            e.RecordApplied: lambda one: self._run(one).applies.append((one.channel, one.origin)),
            e.ApplyUndone: lambda one: self._run(one).applies.pop(),
            e.Marked: lambda one: self._run(one).marked(one.checkpoint, list(one.received), list(one.sent)),
            e.SplitsAssigned: lambda one: self._run(one).assigned(one.splits),
            e.TimeAdvanced: lambda one: self._run(one).advanced(one.time),
            e.Ticked: lambda one: self._run(one).ticked(one.time),
            e.StateRestored: lambda one: self._run(one).restored(one.checkpoint, one.state),
            e.InputEnded: lambda one: self._run(one).input_ended(),
            e.RunEnded: lambda one: self._run(one).ended(one.how),
            e.ChannelOpened: self._open,
            e.ChannelContinued: self._continue,
            e.ChannelRefilled: self._refill,
            e.RecordRecovered: lambda one: self._channel(one).recovered.append(one.origin),
            e.WatermarkRecovered: lambda one: self._channel(one).recovered_watermarks.append((one.time, one.before)),
            e.RecordSent: lambda one: self._channel(one).sent.append(one.origin),
            e.BarrierSent: lambda one: self._channel(one).barriers.append((one.checkpoint, one.before)),
            e.WatermarkSent: lambda one: self._channel(one).watermarks.append((one.time, one.before)),
            e.Transacting: _nothing,
            e.Transacted: self._transact,
            e.CheckpointCompleting: _nothing,
            LookBegan: self._begin_look,
            e.Looked: lambda one: self._look(one, one.rows),
            e.Seen: lambda one: self._look(one, one.rows + sum(self._sizes[name] for name in one.names)),
            e.Died: _nothing,
            e.Stopped: _nothing,
            e.Breaks: _nothing,
            e.Outage: _nothing,
            e.Expired: self._expire,
            e.Closing: _nothing,
            e.Lagged: _nothing,
            e.DefectReached: self._reach_defect,
            e.Timed: self._time,
            **self._passed_on(),
        }

    def _passed_on(self) -> dict[type, Callable[[Any], object]]:
        """Entries whose fields are the arguments of the recorder's method."""
        recorder = self.recorder
        methods: dict[type, Callable[..., object]] = {
            e.Noted: recorder.note,
            e.TaskFailed: recorder.task_failed,
            e.CoordinatorChanged: recorder.coordinator,
            e.SnapshotStored: recorder.snapshot_stored,
            e.CheckpointCompleted: recorder.checkpoint_completed,
            e.SnapshotsDeleted: recorder.deleted,
            e.LogOpened: recorder.log_opened,
            e.LogTrimmed: recorder.log_trimmed,
            e.LogsCleared: recorder.logs_cleared,
            e.CommandIssued: recorder.command_issued,
            e.CommandReturned: recorder.command_returned,
            e.JobEnded: recorder.job_ended,
            e.CommitRequested: recorder.commit_requested,
            e.FaultFired: recorder.fault_fired,
            e.FaultHealed: recorder.fault_healed,
        }
        return {kind: _spread(kind, method) for kind, method in methods.items()}

    def take(self, one: Placed) -> None:
        self._stamp, self._source = one.stamp, one.source
        self._do[type(one.entry)](one.entry)

    # -- tasks and channels ------------------------------------------------------------

    def _start(self, one: e.TaskStarted) -> None:
        self._runs[self._source, one.run] = self.recorder.task_started(
            one.task, one.operator, one.subtask, one.attempt, one.job, one.inputs, one.outputs
        )

    def _run(self, one: Any) -> RunLog:
        return self._runs[self._source, one.run]

    def _open(self, one: e.ChannelOpened) -> None:
        name = (one.name, one.attempt)
        if name in self._unsent:
            self._unsent.remove(name)
        else:
            self._newest[name] = self.recorder.channel_opened(*name)
        key = (self._source, one.channel)
        self._channels[key] = self._newest[name]
        self._opened.setdefault(one.name, []).append(Opened(one.attempt, key, self._newest[name]))

    def _continue(self, one: e.ChannelContinued) -> None:
        """Its sender restarted by local recovery and replaces the earlier senders."""
        key = (self._source, one.channel)
        opened, own = next((all_of, each) for all_of in self._opened.values() for each in all_of if each.key == key)
        before = [each for each in opened if one.whole <= each.attempt < own.attempt]
        cut([each.log for each in sorted(before, key=lambda each: each.attempt)], one.expects)
        for each in before:
            self._channels[each.key] = Replaced()
        self._channels[key] = Continued(own.log, one.first, one.expects)

    def _refill(self, one: e.ChannelRefilled) -> None:
        name = (one.name, one.attempt)
        if name not in self._newest:
            self._unsent.add(name)
            self._newest[name] = self.recorder.channel_opened(*name)
        self._channels[self._source, one.channel] = self._newest[name]

    def _channel(self, one: Any) -> Any:
        return self._channels[self._source, one.channel]

    # -- the sink ----------------------------------------------------------------------

    def _transact(self, one: e.Transacted) -> None:
        if one.answer == "done":
            self.recorder.transacted(one.request, t.Done(unfinished=one.unfinished), one.applied)

    def _expire(self, one: e.Expired) -> None:
        aborted = t.AbortTransaction(writer=t.writer_in(one.name), attempt=AttemptId(0), name=one.name)
        self.recorder.transacted(aborted, t.Done(), 0)

    def _begin_look(self, one: LookBegan) -> None:
        self._looks[self._source, one.stamp] = self.recorder.order()

    def _look(self, one: e.Looked | e.Seen, rows: int) -> None:
        self.recorder.looked(self._looks[self._source, one.began], rows)

    # -- the rest ----------------------------------------------------------------------

    def _reach_defect(self, one: e.DefectReached) -> None:
        self._history.defect_reached = True

    def _time(self, one: e.Timed) -> None:
        if self.recorder.detailed:
            self.recorder.timed(
                one.what,
                one.task,
                one.attempt,
                peer=one.peer,
                detail=one.detail,
                channel=one.channel,
                position=one.position,
                checkpoint=one.checkpoint,
                origin=one.origin,
            )


def _spread(kind: type, method: Callable[..., object]) -> Callable[[Any], object]:
    """Call a method with an entry's fields, the stamp excepted."""
    names = kind.__struct_fields__[1:]  # type: ignore[attr-defined]
    return lambda one: method(*[getattr(one, name) for name in names])


def _nothing(one: object) -> None:
    """Skip this entry: other entries carry its meaning."""
