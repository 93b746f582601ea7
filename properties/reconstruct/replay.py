"""The replay of the applied records, attempt by attempt.

The expected rows are those that the applied records yield where the order of a merge
matters (class H), and where records may be applied twice or never (at-least-once,
at-most-once).  A history names an applied record by its channel and its origin.  The
record's content follows from a replay of the sender's own applied records, and so on up
to the source.  So each attempt is replayed in the order of the dataflow.  A subtask
begins with the state that its predecessor on the lineage had at the restored mark.  It
takes the records that the history names, and emits the rows to which its receivers'
origins refer.

Rows of one origin leave a subtask with one key, hence through one channel and in order:
the n-th row emitted with an origin is the n-th applied with it.  (A rebalance may
distribute them to several receivers; `is_determined` says whether it is still known
which row a receiver got.)  Rows that a batch buffered are taken from the loaded state:
they are the same rows in a later attempt.  The replay takes only the order from the engine.

`Streams` has what was sent through channels that outlive the attempts at their ends
(UNA-4).  An attempt that recovers locally sends the elements again that earlier attempts
had sent since its snapshot, and its receivers drop these repeats.  So they keep the rows
of an earlier attempt, which is right only if the later attempt sends the same rows.  The
replay therefore gives the receivers the rows of the later attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from ..model.history import Mark, StoredState, TaskRun
from ..model.workload import (
    SINK,
    Batch,
    FlatMap,
    Join,
    Row,
    Topology,
    User,
    Window,
    Workload,
    is_changelog,
    is_clocked,
    offset_of,
    origin_of,
    split_of,
    window_of,
)
from ..semantics.broadcast import rules_in, with_rules
from ..semantics.classes import rebalances
from ..semantics.semantics import Entry, Machine, machine, scaled
from ..semantics.timed import TimedMachine, redistributed, timed_machine
from ..semantics.user_functions import is_by_key, user_nodes
from ..semantics.windows import Emitted, Timer
from .buffered_rows import batches, waiting
from .in_flight import records
from .layouts import owner_of_key, same_width
from .lineage import Lineage
from .lineages import Lineages
from .snapshots import decode_state


class RunReplay(msgspec.Struct, kw_only=True):
    """One run, replayed.

    `taken[i]` is the row of the i-th applied record (None when no sender emitted
    it).  `emitted` has the rows that the run emitted, as (number of records read
    or applied by then, origin, row).  `states` has the entries at the marks of
    completed checkpoints.
    """

    taken: list[Row | None] = []
    emitted: list[tuple[int, int, Row]] = []
    states: dict[int, list[Entry]] = {}
    fired: list[tuple[int, int, Row]] = []
    """the rows that advances of its watermark or clock yielded, as (number of advances by then, origin, row)"""
    kept: dict[int, TimedMachine] = {}
    """the windows at the marks of completed checkpoints"""
    by_origin: dict[int, list[Row]] = {}
    """the emitted rows by origin, each list in order"""
    rebalanced: dict[int, int] = {}
    """by origin, how many of the emitted rows the receivers of a rebalance have taken"""

    def fire(self, advances: int, out: Iterable[Emitted]) -> None:
        for origin, row in out:
            self.fired.append((advances, origin, row))
            self.by_origin.setdefault(origin, []).append(row)

    def emit(self, taken: int, origin: int, row: Row) -> None:
        self.emitted.append((taken, origin, row))
        self.by_origin.setdefault(origin, []).append(row)


_Held = TypeVar("_Held")


Scale = Callable[[str, int], int]
"""from a node and a job to the parts of a whole in which the node's state is kept there"""


Senders = Callable[[str, int], Sequence[str]]
"""from a node, or the sink, and a job to what sends to it there"""


class Strange(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was applied although its sender never emitted it (with `again`: emitted it less often)."""

    task: str
    attempt: int
    sequence: int
    origin: int
    again: bool


class Replay:
    """The runs of a history; each is replayed once, when it is first needed."""

    def __init__(
        self,
        workload: Workload,
        topology: Topology,
        lineages: Lineages,
        layouts: Mapping[int, Topology] | None = None,
        scale: Scale | None = None,
        senders: Senders | None = None,
    ) -> None:
        """`topology` is the widest one; `layouts` has the topology of each job, if jobs were rescaled; `scale` says in
        how many parts of a whole a node keeps its state in a job, if some state was retyped; `senders` what sends to an
        operator in a job, if some job lacks nodes."""
        self._senders = senders
        self._scale: Scale = scale or (lambda node, job: 1)
        self.strange: list[Strange] = []
        self._topology = topology
        self._layouts = layouts or {}
        self._lineages = lineages
        self._records = {split: records for split, _, records in workload.splits()}
        self._times = workload.times()
        self._sources = frozenset(source.name for source in workload.inputs)
        self._nodes = {node.name: node for node in workload.nodes}
        self._feeds = {node.name: node.inputs for node in workload.nodes} | {SINK: (workload.output,)}
        self._runs: dict[tuple[str, int], RunReplay] = {}
        self.streams = Streams(self, lineages) if lineages.persistent is not None else None
        self._broadcast = with_rules(workload)

    def run(self, task: str, attempt: int) -> RunReplay:
        """A run of the history, replayed; an empty one when the history has no such run."""
        known = self._runs.get((task, attempt))
        if known is None:
            known = self._runs[task, attempt] = RunReplay()
            run = self._lineages.runs.get((task, attempt))
            if run is None:
                return known
            for origin, row in self.inherited(run):
                known.by_origin.setdefault(origin, []).append(row)
            if run.operator in self._sources:
                self._read(run, known)
            else:
                self._take(run, known)
        return known

    def _unsent(self, run: TaskRun) -> Iterator[tuple[int, Row]]:
        """The unsent rows of the snapshot that a run restored: the run sends them first."""
        state = self._lineages.snapshots.loaded(run)
        for passing in state.unsent.values() if state is not None else ():
            yield from records(passing)

    def restored_rows(self, run: TaskRun, channel: str) -> dict[int, list[Row]]:
        """The rows, by origin, that a run was restored with in one of its inputs."""
        found: dict[int, list[Row]] = {}
        for origin, row in self.queued(run, channel):
            found.setdefault(origin, []).append(row)
        return found

    def queued(self, run: TaskRun, channel: str) -> list[tuple[int, Row]]:
        """(origin, row) of the in-flight rows that a run was restored with in one of its inputs, in order."""
        state = self._lineages.snapshots.loaded(run)
        if state is None or not state.queued:
            return []
        return records(state.queued.get(run.inputs.index(channel), ()))

    def stream(self, task: str, attempt: int) -> RunReplay:
        """What a task sent into the channels of an attempt."""
        return self.run(task, attempt) if self.streams is None else self.streams.of(task, attempt)

    def inherited(self, run: TaskRun) -> Iterator[tuple[int, Row]]:
        """The rows of its snapshot that a run sends itself: the unsent rows, and the rows that a batch buffered."""
        yield from self._unsent(run)
        node = self._nodes.get(run.operator)
        if node is not None and isinstance(node.operator, Batch) and run.loaded is not None:
            for waited, origin in waiting(self._lineages.snapshots.loaded(run) or StoredState()):
                yield origin, waited

    def sink_rows(self, lineage: Lineage) -> dict[int, list[Row]]:
        """The rows that the sink took on a lineage, by epoch and in order."""
        found: dict[int, list[Row]] = {}
        for segment in lineage.of_operator(SINK):
            taken = self.run(segment.run.task, segment.run.attempt).taken
            for row, epoch in zip(taken, segment.apply_epochs(), strict=False):
                if row is not None:
                    found.setdefault(epoch, []).append(row)
        return found

    def yielded(self) -> Counter[Row]:
        """The rows that the sink took in all attempts, each as often as it was taken."""
        runs = [run for run in self._lineages.runs.values() if run.operator == SINK]
        return Counter(row for run in runs for row in self.run(run.task, run.attempt).taken if row is not None)

    def timers(self, node: str, checkpoint: int) -> Iterator[Timer]:
        """The timers that all subtasks of a window have pending at a completed checkpoint."""
        for kept in self._kept(node, checkpoint):
            yield from kept.timers()

    def _kept(self, node: str, checkpoint: int) -> Iterator[TimedMachine]:
        """The machine of each subtask of a window, as of a completed checkpoint."""
        for task, stored in self._lineages.snapshots.stored(checkpoint).items():
            run = self._lineages.runs.get((task, stored.attempt))
            if run is not None and run.operator == node:
                kept = self._at(self.run(task, stored.attempt).kept, task, checkpoint)
                if kept is not None:
                    yield kept

    def entries(self, node: str, checkpoint: int) -> Iterator[Entry]:
        """The state of all subtasks of a node at a completed checkpoint."""
        for _, entries in self._states(node, checkpoint):
            yield from entries

    def _states(self, node: str, checkpoint: int) -> Iterator[tuple[str, list[Entry]]]:
        """The state of each subtask of a node at a completed checkpoint."""
        for task, stored in self._lineages.snapshots.stored(checkpoint).items():
            run = self._lineages.runs.get((task, stored.attempt))
            if run is not None and run.operator == node:
                yield task, self._at(self.run(task, stored.attempt).states, task, checkpoint) or []

    def _at(self, held: Mapping[int, _Held], task: str, checkpoint: int) -> _Held | None:
        """What a run held at a completed checkpoint; if the task had finished by then, what it held last."""
        if self._lineages.snapshots.finished(task, checkpoint):
            return next(reversed(list(held.values())), None)
        return held.get(checkpoint)

    def _read(self, run: TaskRun, replayed: RunReplay) -> None:
        for index, (split, offset) in enumerate(run.reads):
            records = self._records.get(split, ())
            if offset < len(records):
                key, value, tag = records[offset]
                replayed.emit(index + 1, origin_of(split, offset), (key, value, tag, 0))

    def _take(self, run: TaskRun, replayed: RunReplay) -> None:
        node = self._nodes.get(run.operator)
        if node is not None and isinstance(node.operator, (User, Window)):
            self._take_at(run, replayed, node.operator)
            return
        worker = machine(node.operator, self._scale(run.operator, run.job)) if node else Machine()
        worker.load(self._restored_entries(run))
        copying = node is not None and isinstance(node.operator, FlatMap)
        senders = [_Sender(self, run, name) for name in run.inputs]
        marks = [mark for mark in run.marks if mark.checkpoint in self._lineages.completed]
        marks.reverse()
        for index, (channel, origin) in enumerate(run.applies):
            while marks and marks[-1].applies <= index:
                replayed.states[marks.pop().checkpoint] = worker.entries()
            row = senders[channel].next(origin, index)
            replayed.taken.append(row)
            if row is not None:
                for copy, out in enumerate(worker.take(row, senders[channel].side)):
                    replayed.emit(index + 1, origin + copy if copying else origin, out)
        for mark in marks:
            replayed.states[mark.checkpoint] = worker.entries()

    def _take_at(self, run: TaskRun, replayed: RunReplay, operator: User | Window) -> None:
        """Replay an operator that depends on time: its records, its marks and the advances of its watermark or clock,
        in program order."""
        worker = self._restored_machine(run, operator)
        senders = [_Sender(self, run, name) for name in run.inputs]
        marks = [mark for mark in run.marks if mark.checkpoint in self._lineages.completed]
        clocked = is_clocked(operator)
        moments = run.ticks if clocked else run.watermarks
        advances = 0

        def go_on(index: int) -> None:
            nonlocal advances
            while True:
                ticks = (marks[0].ticks if clocked else marks[0].watermarks) if marks else 0
                if marks and marks[0].applies <= index and ticks <= advances:
                    checkpoint = marks.pop(0).checkpoint
                    replayed.states[checkpoint] = worker.entries()
                    replayed.kept[checkpoint] = worker.keep()
                elif advances < len(moments) and moments[advances][0] <= index:
                    advances += 1
                    replayed.fire(advances, worker.advance(moments[advances - 1][1]))
                else:
                    return

        for index, (channel, origin) in enumerate(run.applies):
            go_on(index)
            row = senders[channel].next(origin, index)
            replayed.taken.append(row)
            if row is not None:
                for out, late in worker.take_at(row, self._time_of(origin), origin):
                    replayed.emit(index + 1, out, late)
        go_on(len(run.applies))

    def _time_of(self, origin: int) -> int:
        """The event time of the record that an origin names."""
        times = self._times.get(split_of(origin), ())
        return times[offset_of(origin)] if offset_of(origin) < len(times) else 0

    def _restored_machine(self, run: TaskRun, operator: User | Window) -> TimedMachine:
        before = self._lineages.parent(run.task, run.attempt)
        if before and self._is_rescaled(run, before[1]):
            return redistributed(operator, list(self._kept(run.operator, before[1])), lambda key: self._is_of(run, key))
        kept = self._at(self.run(run.task, before[0]).kept, run.task, before[1]) if before else None
        return kept.keep() if kept is not None else timed_machine(operator)

    def _is_rescaled(self, run: TaskRun, checkpoint: int) -> bool:
        """Whether a run's job has another topology than the job that took the restored snapshot."""
        taken = self._lineages.completed[checkpoint].job
        now, before = self._layouts.get(run.job), self._layouts.get(taken)
        return taken != run.job and now is not None and before is not None and not same_width(now, before)

    def _is_of(self, run: TaskRun, key: int | None) -> bool:
        return owner_of_key(key, self._layouts[run.job], run.operator) == run.subtask

    def _restored_entries(self, run: TaskRun) -> list[Entry]:
        """The entries with which a run begins, of the type that its job keeps."""
        entries, before = self._entries_before(run), self._lineages.parent(run.task, run.attempt)
        if not before:
            return entries
        there = self._scale(run.operator, self._lineages.completed[before[1]].job)
        return scaled(entries, self._scale(run.operator, run.job), there)

    def _entries_before(self, run: TaskRun) -> list[Entry]:
        before = self._lineages.parent(run.task, run.attempt)
        if before and self._is_rescaled(run, before[1]):
            if run.operator in self._broadcast:
                return self._copy_taken(run, before[1])
            every = self.entries(run.operator, before[1])
            return [entry for entry in every if self._is_of(run, entry[1])]
        return (self._at(self.run(run.task, before[0]).states, run.task, before[1]) or []) if before else []

    def _copy_taken(self, run: TaskRun, checkpoint: int) -> list[Entry]:
        """The copy of broadcast state that a run loaded, among the copies of the old subtasks.

        Without alignment the copies may differ, and the run may load any of them.
        """
        copies = [states for _, states in self._states(run.operator, checkpoint)]
        text = run.loaded.state if run.loaded is not None else ""
        loaded = Counter(rules_in(decode_state(text) or StoredState())) if text else None
        return next((copy for copy in copies if Counter(copy) == loaded), next(iter(copies), []))

    def sender(self, run: TaskRun, channel: str) -> tuple[RunReplay, int, bool]:
        """For one of a run's inputs: (replay of the sender, side, whether the edge is a rebalance)."""
        task = channel.partition(">")[0]
        operator = task.rpartition("-")[0]
        senders: Sequence[str] = self._feeds[run.operator]
        topology = self._topology
        if self._senders is not None:
            senders, topology = self._senders(run.operator, run.job), self._layouts[run.job]
        is_rebalanced = rebalances(topology, operator, run.operator)
        return self.stream(task, run.attempt), senders.index(operator), is_rebalanced


class _Sender:
    """One input channel of a run that is being replayed."""

    def __init__(self, replay: Replay, run: TaskRun, channel: str) -> None:
        self._replay = replay
        self._run = run
        self._from, self.side, is_rebalanced = replay.sender(run, channel)
        self._counts = self._from.rebalanced if is_rebalanced else {}
        self._sent = self._from.by_origin
        self._restored = replay.restored_rows(run, channel)
        """the receiver takes these before all that was sent"""
        if replay.streams is not None:
            self._restored, self._counts = replay.streams.before(run, channel)

    def next(self, origin: int, sequence: int) -> Row | None:
        """The next row with an origin."""
        waiting = self._restored.get(origin) if self._restored else None
        if waiting:
            return waiting.pop(0)
        rows = self._sent.get(origin, ())
        count = self._counts.get(origin, 0)
        self._counts[origin] = count + 1
        if count < len(rows):
            return rows[count]
        self._replay.strange.append(
            Strange(
                task=self._run.task,
                attempt=self._run.attempt,
                sequence=sequence,
                origin=origin,
                again=bool(rows),
            )
        )
        return rows[-1] if rows else None


def is_determined(workload: Workload, topology: Topology, *, every_attempt: bool = False, at_sink: bool = True) -> bool:
    """Whether a replay knows which rows were applied; without `at_sink`, which rows the nodes applied.

    A join, or a flat map after another, emits several rows of one origin.  A
    rebalance may send them to different receivers, and the history does not show
    which row went where.  On a rebalance to the sink this does not matter for the
    lineage of an exactly-once run: the sink subtasks together apply all of the rows.
    It does matter with `every_attempt`: some of the rows may not have been applied, or
    only on one side of a cut.  It also matters downstream of a window or a batch, which
    emits the rows of one origin at different times.  If a user's function buffers
    rows without a key, it is unknown from which subtask they come.
    """
    several = {source.name: 0 for source in workload.inputs}
    anywhere = {name for name, function in user_nodes(workload).items() if not is_by_key(function)}
    if anywhere and (at_sink or workload.nodes[-1].name not in anywhere):
        return False
    for node in workload.nodes:
        if any(several[name] > 1 and rebalances(topology, name, node.name) for name in node.inputs):
            return False
        several[node.name] = max(several[name] for name in node.inputs)
        if isinstance(node.operator, (Join, User, Window)) or is_changelog(node.operator):
            several[node.name] = 2
        elif isinstance(node.operator, FlatMap):
            several[node.name] += 1
    apart = every_attempt or (at_sink and (window_of(workload) is not None or bool(batches(workload))))
    return not (apart and several[workload.output] > 1 and rebalances(topology, workload.output, SINK))


SentRows = list[tuple[int, Row]]
"""(origin, row) of rows that were sent"""


class Streams:
    """The rows that tasks sent through channels that outlive their attempts, joined over a task's attempts."""

    def __init__(self, replay: Replay, lineages: Lineages) -> None:
        self._replay = replay
        self._lineages = lineages
        self._joined: dict[tuple[str, int], RunReplay] = {}

    def of(self, task: str, attempt: int) -> RunReplay:
        """All that the attempts of a task sent into an attempt's channels."""
        persistent = self._lineages.persistent
        whole = persistent.whole(attempt) if persistent is not None else attempt
        if (task, whole) not in self._joined:
            runs = persistent.runs(task, attempt) if persistent is not None else []
            self._joined[task, whole] = RunReplay(by_origin=self._join(runs))
        return self._joined[task, whole]

    def _join(self, runs: list[TaskRun]) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {}
        begun: dict[int, SentRows] = {}
        """by attempt, what had been sent when the snapshot that it restored was taken"""
        for run in runs:
            parent = self._lineages.parent(run.task, run.attempt)
            before = self._lineages.mark(run.task, *parent) if parent is not None and parent[0] in begun else None
            if parent is None or before is None:
                begun[run.attempt] = list(self._replay.inherited(run))
            else:
                begun[run.attempt] = begun[parent[0]] + self._own(self._lineages.runs[run.task, parent[0]], before)
            sent = _by_origin(begun[run.attempt] + self._own(run, None))
            for origin, rows in sent.items():
                # Where an attempt has not caught up yet, the rows of earlier attempts remain.
                found[origin] = rows + found.get(origin, [])[len(rows) :]
        return found

    def _own(self, run: TaskRun, until: Mark | None) -> SentRows:
        """The rows that an attempt made itself: all of them, or those made before it took a snapshot."""
        replayed = self._replay.run(run.task, run.attempt)
        emitted, fired = replayed.emitted, replayed.fired
        if until is not None:
            taken, ticks = until.reads or until.applies, until.ticks or until.watermarks
            emitted = [one for one in emitted if one[0] <= taken]
            fired = [one for one in fired if one[0] <= ticks]
        return [(origin, row) for _, origin, row in (*emitted, *fired)]

    def before(self, run: TaskRun, channel: str) -> tuple[dict[int, list[Row]], dict[int, int]]:
        """(by origin, the rows that a channel was restored with and that a run took; by origin, how many of the rows
        sent had been taken before this run)"""
        persistent = self._lineages.persistent
        runs = persistent.runs(run.task, run.attempt) if persistent is not None else []
        content = persistent.content(channel, run.attempt) if persistent is not None else None
        if persistent is None or content is None or not runs:
            return {}, {}
        first, restored = persistent.first_taken(run, channel), len(content.recovered)
        taken: dict[int, int] = {}
        for origin in content.content[restored:first]:
            taken[origin] = taken.get(origin, 0) + 1
        return _by_origin(self._replay.queued(runs[0], channel)[first:]), taken


def _by_origin(sent: Iterable[tuple[int, Row]]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for origin, row in sent:
        found.setdefault(origin, []).append(row)
    return found
