"""The journals of a run's processes, merged into one history.

Each process records what it observes.  All entries are sorted by stamp, process and
position, which is consistent with causality.  They are replayed in this order into the
`Recorder`, which makes a history as it does for the simulated world.  The merge also adds
what no process knows: which process was killed and why, what the external store did when
nobody received its answer, and which fault explains a failure (see `requests` and `failures`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ....properties.model.history import AttemptStarted, History
from ....properties.model.workload import Row
from ....reference_impl.core.vocabulary import transactions as t
from ....reference_impl.core.vocabulary.ids import AttemptId
from ....reference_impl.processes import entries as e
from ....reference_impl.processes.journal import read_journal
from ..subjects.recorder import Recorder, RunLog
from .failures import judged
from .local_recovery import Continued, Opened, Replaced, cut
from .order import Journal, Placed, SinkReadBegan, Source, in_order
from .requests import completed, rolled_back, settled, where_sent

Committed = Sequence[tuple[str, Row]]
"""The rows that an independent reader sees at the end, each with its transaction ("" for none)."""


def journals_in(folder: Path) -> list[Journal]:
    """Every journal in a run's folder, from the files PROCESS.INCARNATION.  Raises OSError and CorruptJournal."""
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
    """Fill a history from the journals; its head and `residue` are already there.

    `kinds` are the kinds of the planned faults, in their order.  `passing` are committed
    transactions that the job's output does not show.  `rolls_back`: the external store aborts
    an open transaction when its session ends.  `lasting` are the faults that still acted at
    the end.  Times count from the stamp `epoch`, by default from the first entry.
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
    """The committed rows in an order of which every read saw a prefix: sorted by the smallest read that saw their
    transaction, then as given."""
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
    """Set the job of each attempt from the coordinator's report: the process of a task may not know it."""
    jobs = {entry.attempt: entry.job for entry in history.journal if isinstance(entry, AttemptStarted)}
    for run in history.runs:
        run.job = jobs.get(run.attempt, run.job)


class Replay:
    """Passes entries to a recorder one by one, as the simulated world calls it."""

    def __init__(self, history: History, kinds: Sequence[str], timeline: bool, epoch: int, sizes: Counter[str]) -> None:
        """`sizes`: the number of rows of each visible transaction."""
        self._history = history
        self.recorder = Recorder(history, kinds, lambda: self._stamp - epoch, timeline)
        self._stamp = epoch
        self._source = 0
        self._sizes = sizes
        self._runs: dict[tuple[int, int], RunLog] = {}
        self._channels: dict[tuple[int, int], Any] = {}
        self._newest: dict[tuple[str, int], Any] = {}
        """channels by name and attempt; both ends of a refilled channel record it"""
        self._unsent: set[tuple[str, int]] = set()
        """channels that receivers refilled before the senders opened them"""
        self._opened: dict[str, list[Opened]] = {}
        """by channel: the logs that its senders opened"""
        self._sink_reads: dict[tuple[int, int], int] = {}
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
            SinkReadBegan: self._begin_sink_read,
            e.Looked: lambda one: self._sink_read(one, one.rows),
            e.Seen: lambda one: self._sink_read(one, one.rows + sum(self._sizes[name] for name in one.names)),
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
        """Handlers of the entries whose fields are the arguments of a method of the recorder."""
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
        """A sender that local recovery restarted takes the channel over from its earlier attempts."""
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

    def _begin_sink_read(self, one: SinkReadBegan) -> None:
        self._sink_reads[self._source, one.stamp] = self.recorder.order()

    def _sink_read(self, one: e.Looked | e.Seen, rows: int) -> None:
        self.recorder.looked(self._sink_reads[self._source, one.began], rows)

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
    """A handler that calls a method with the fields of an entry, except the stamp."""
    names = kind.__struct_fields__[1:]  # type: ignore[attr-defined]
    return lambda one: method(*[getattr(one, name) for name in names])


def _nothing(one: object) -> None:
    """Skip this entry: other entries carry its meaning."""
