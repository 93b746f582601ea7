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

import msgspec

from ....properties.model.history import AttemptStarted, History
from ....properties.model.workload import Row
from ....reference_impl import observed as o
from ....reference_impl.processes.disk.journal import read_journal
from ..subjects.past import Past
from ..subjects.recorder import Recorder, RunLog
from .failures import judged
from .local_recovery import Continued, Opened, Replaced, cut
from .order import Journal, Placed, SinkReadBegan, Source, in_order
from .requests import completed, rolled_back, settled, where_sent

Committed = Sequence[tuple[str | None, Row]]
"""The rows that an independent reader sees at the end, each with its transaction (None: of none)."""


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
    past: Past | None = None,
) -> None:
    """Fill a history from the journals; its head and `residue` are already there.

    `kinds` are the kinds of the planned faults, in their order.  `passing` are committed
    transactions that the job's output does not show.  `rolls_back`: the external store aborts
    an open transaction when its session ends.  `lasting` are the faults that still acted at
    the end.  Times count from the stamp `epoch`, by default from the first entry.  `past` is the
    run before, whose history this one continues.
    """
    sources = [Source(process, incarnation) for process, incarnation, _ in journals]
    placed = where_sent(in_order(journals))
    placed = sorted([*placed, *settled(placed, committed, history.residue, passing, past)])
    placed = sorted([*placed, *completed(placed, history.residue.retained)])
    if rolls_back:
        placed = sorted([*placed, *rolled_back(placed, sources)])
    judgement = judged(placed, sources)
    first = epoch if epoch is not None else placed[0].stamp if placed else 0
    sizes = Counter(name for name, _ in committed if name is not None)
    order = 0
    if past is not None:
        order, first = past.order, first - past.at_us
    replay = Replay(history, kinds, timeline, first, sizes, order)
    for one in judgement.placed:
        replay.take(one)
    for fault in lasting:
        replay.recorder.fault_lasts(fault)
    seen = [one.event.names for one in placed if isinstance(one.event, o.Seen)]
    history.committed = [row for _, row in as_seen(committed, seen)]
    history.starved = judgement.starved
    assign_jobs(history)


def as_seen(committed: Committed, reads: Iterable[Sequence[str]]) -> Committed:
    """The committed rows in an order of which every read saw a prefix: sorted by the smallest read that saw their
    transaction, then as given."""
    ranks: dict[str | None, int] = {}
    for rank, names in enumerate(sorted(reads, key=len)):
        for name in names:
            ranks.setdefault(name, rank)
    last = len(ranks) + 1
    for transaction, _ in committed:
        ranks.setdefault(transaction, last)
        last += 1
    return sorted(committed, key=lambda one: ranks[one[0]])


def assign_jobs(history: History) -> None:
    """Set the job of each attempt from the coordinator's report: the process of a task may not know it."""
    jobs = {entry.attempt: entry.job for entry in history.journal if isinstance(entry, AttemptStarted)}
    for run in history.runs:
        run.job = jobs.get(run.attempt, run.job)


OF_A_RUN = (
    o.Marked,
    o.TimeAdvanced,
    o.Ticked,
    o.SplitsAssigned,
    o.StateRestored,
    o.InputEnded,
    o.RunEnded,
)
UNRECORDED = (
    o.Transacting,
    o.CheckpointCompleting,
    o.Died,
    o.Stopped,
    o.Breaks,
    o.Outage,
    o.Closing,
    o.Lagged,
)
"""Events from which the merge draws conclusions, and which leave nothing in the history themselves."""


class Replay:
    """Passes events to a recorder one by one, as the simulated world does."""

    def __init__(
        self,
        history: History,
        kinds: Sequence[str],
        timeline: bool,
        epoch: int,
        sizes: Counter[str],
        order: int = 0,
    ) -> None:
        """`sizes`: the number of rows of each visible transaction.  `order`: of the last entry of the run before."""
        self._history = history
        self.recorder = Recorder(history, kinds, lambda: self._stamp - epoch, timeline, order=order)
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
            o.TaskStarted: self._start,
            o.RecordRead: lambda one: self._run(one).reads.append((one.split, one.offset)),
            o.ReadUndone: lambda one: self._run(one).reads.pop(),
            o.RecordApplied: lambda one: self._run(one).applies.append((one.channel, one.origin)),
            o.ApplyUndone: lambda one: self._run(one).applies.pop(),
            o.ChannelOpened: self._open,
            o.ChannelContinued: self._continue,
            o.ChannelRefilled: self._refill,
            o.RecordRecovered: lambda one: self._channel(one).recovered.append(one.origin),
            o.WatermarkRecovered: lambda one: self._channel(one).recovered_watermarks.append((one.time, one.before)),
            o.RecordSent: lambda one: self._channel(one).sent.append(one.origin),
            o.BarrierSent: lambda one: self._channel(one).barriers.append((one.checkpoint, one.before)),
            o.WatermarkSent: lambda one: self._channel(one).watermarks.append((one.time, one.before)),
            SinkReadBegan: self._begin_sink_read,
            o.Looked: lambda one: self._sink_read(one, one.rows),
            o.Seen: lambda one: self._sink_read(one, one.rows + sum(self._sizes[name] for name in one.names)),
            o.DefectReached: self._reach_defect,
            o.Timed: self._time,
            **dict.fromkeys(OF_A_RUN, self._of_run),
            **dict.fromkeys(UNRECORDED, _nothing),
        }
        """what to do with an event that the recorder does not simply record"""

    def take(self, one: Placed) -> None:
        self._stamp, self._source = one.stamp, one.source
        self._do.get(type(one.event), self.recorder.saw)(one.event)

    # -- tasks and channels ------------------------------------------------------------

    def _start(self, one: o.TaskStarted) -> None:
        self._runs[self._source, one.run] = self.recorder.task_started(
            one.task, one.operator, one.subtask, one.attempt, one.job, one.inputs, one.outputs
        )

    def _run(self, one: Any) -> RunLog:
        return self._runs[self._source, one.run]

    def _of_run(self, one: Any) -> None:
        """An event of a run, which the recorder knows by another number."""
        self.recorder.saw(msgspec.structs.replace(one, run=self._run(one).run))

    def _open(self, one: o.ChannelOpened) -> None:
        name = (one.name, one.attempt)
        if name in self._unsent:
            self._unsent.remove(name)
        else:
            self._newest[name] = self.recorder.channel_opened(*name)
        key = (self._source, one.channel)
        self._channels[key] = self._newest[name]
        self._opened.setdefault(one.name, []).append(Opened(one.attempt, key, self._newest[name]))

    def _continue(self, one: o.ChannelContinued) -> None:
        """A sender that local recovery restarted takes the channel over from its earlier attempts."""
        key = (self._source, one.channel)
        opened, own = next((all_of, each) for all_of in self._opened.values() for each in all_of if each.key == key)
        before = [each for each in opened if one.whole <= each.attempt < own.attempt]
        cut([each.log for each in sorted(before, key=lambda each: each.attempt)], one.expects)
        for each in before:
            self._channels[each.key] = Replaced()
        self._channels[key] = Continued(own.log, one.first, one.expects)

    def _refill(self, one: o.ChannelRefilled) -> None:
        name = (one.name, one.attempt)
        if name not in self._newest:
            self._unsent.add(name)
            self._newest[name] = self.recorder.channel_opened(*name)
        self._channels[self._source, one.channel] = self._newest[name]

    def _channel(self, one: Any) -> Any:
        return self._channels[self._source, one.channel]

    # -- the sink ----------------------------------------------------------------------

    def _begin_sink_read(self, one: SinkReadBegan) -> None:
        self._sink_reads[self._source, self._stamp] = self.recorder.order()

    def _sink_read(self, one: o.Looked | o.Seen, rows: int) -> None:
        self.recorder.saw(o.Looked(self._sink_reads[self._source, one.began], rows))

    # -- the rest ----------------------------------------------------------------------

    def _reach_defect(self, one: o.DefectReached) -> None:
        self._history.defect_reached = True

    def _time(self, one: o.Timed) -> None:
        if self.recorder.detailed:
            self.recorder.saw(one)


def _nothing(one: object) -> None:
    """Skip this event: other events carry its meaning."""
