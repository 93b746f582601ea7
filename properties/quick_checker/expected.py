"""The expected rows and state after each cut, as the quick checker computes them.

For class M and S the positions of a cut are enough: the records below the positions are
processed in the order (epoch, split, offset).  The run may have had another order, but
all possible orders give the same rows.  For class H, and in the modes other than
exactly-once, the output follows the applied records: the apply events of the lineage are
replayed (see `replay`).

The engine, PySpark and this module compute independently of each other.  They share the
description of the workload and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..model.workload import END_OF_TIME, STATEFUL, Row, Topology, User, Window, Workload, window_of
from ..reconstruct.buffered_rows import batches, emitted_rows, still_to_come
from ..reconstruct.lineage import INFINITE
from ..reconstruct.lineages import Lineages
from ..reconstruct.replay import Replay, Scale
from ..semantics.classes import FOLLOWING
from ..semantics.event_time import Clock, splits_before
from ..semantics.semantics import Entry, machine
from ..semantics.timed import TimedMachine, timed_machine
from ..semantics.user_functions import UserMachine
from ..semantics.windows import Timer
from .jobs import Jobs

NOTHING_LACKS: Mapping[int, tuple[str, ...]] = {}

Push = Callable[[Row, int], None]
"""takes a row and its event time"""
Take = Callable[[Row, int, int], Iterable[Row]]
"""takes a row, the input that it comes from and its event time"""


class Expected:
    """Out(c) and State(c) of one case.

    `grades` are the classes of the workload's nodes (`classes.classes`).
    `by_applies` says that the rows follow the applied records, repeated ones
    included, whatever the class (see `Case.by_applies`).
    """

    def __init__(
        self,
        workload: Workload,
        topology: Topology,
        lineages: Lineages,
        grades: Mapping[str, str],
        *,
        by_applies: bool,
        drained: frozenset[int] = frozenset(),
        layouts: Mapping[int, Topology] | None = None,
        scale: Scale | None = None,
        jobs: Jobs | None = None,
    ) -> None:
        """`jobs`: if some of them have other nodes than others."""
        self._jobs = jobs
        self._layouts = layouts
        self._scale = scale
        self._workload = workload
        self._topology = topology
        self._lineages = lineages
        self._grades = grades
        self._by_applies = by_applies
        self._drained = drained
        self._replay: Replay | None = None
        self._computation: Computation | None = None
        self._rows: dict[int, list[Row]] | None = None
        self._filled: list[tuple[int, list[Row]]] | None = None
        self._up_to: dict[int, Counter[Row]] = {}
        self._states: dict[int, dict[str, Counter[Entry]]] = {}

    @property
    def follows_applies(self) -> bool:
        """Whether the rows come from the lineage's apply events, not from the positions alone."""
        return self._by_applies or self._grades[self._workload.output] in FOLLOWING

    @property
    def replay(self) -> Replay:
        """The replay of the applied records."""
        if self._replay is None:
            senders = self._jobs.senders if self._jobs is not None else None
            self._replay = Replay(self._workload, self._topology, self._lineages, self._layouts, self._scale, senders)
        return self._replay

    def rows(self) -> dict[int, list[Row]]:
        """The rows that reach the sink on the lineage of the run's end, by epoch and in the lineage's order."""
        if self._rows is None:
            if self.follows_applies:
                self._rows = self.replay.sink_rows(self._lineages.end)
            else:
                self._rows = self._emitted(self.rows_through())
        return self._rows

    def rows_through(self) -> dict[int, list[Row]]:
        """The rows by the epoch of their records, computed from the positions alone, as if batches buffered nothing."""
        return self._by_positions().rows

    def _emitted(self, rows: dict[int, list[Row]]) -> dict[int, list[Row]]:
        if not batches(self._workload):
            return rows
        checkpoints = self._lineages.end.checkpoints
        open_ = [number for number in checkpoints if number not in self._drained]
        held = {number: still_to_come(self._workload, self._lineages.snapshots.states(number)) for number in open_}
        return emitted_rows(rows, checkpoints, held)

    def rows_up_to(self, epoch: int) -> Counter[Row]:
        """Out(c): the rows of all epochs up to this one; `INFINITE` gives all."""
        if self._filled is None:
            self._filled = [(at, rows) for at, rows in self.rows().items() if rows]
        known = self._up_to.get(epoch)
        if known is None:
            known = self._up_to[epoch] = Counter([row for at, rows in self._filled if at <= epoch for row in rows])
        return known

    def yielded(self) -> Counter[Row]:
        """Every row that any attempt may bring to the sink, on the lineage or off it.

        If rows follow the applied records, each counts as often as the sink took it.
        """
        if not self.follows_applies:
            return self.rows_up_to(INFINITE)
        return self.replay.yielded()

    def last_rows(self, epoch: int) -> dict[int | None, Row]:
        """The last row of each key in Out(c): the rows of an idempotent sink's table."""
        return {row[0]: row for at in sorted(self.rows()) if at <= epoch for row in self.rows()[at]}

    def states(self, checkpoint: int) -> dict[str, Counter[Entry]]:
        """State(c) of every keyed node at a completed checkpoint, on the lineage or off it."""
        if checkpoint not in self._states:
            nodes = [node.name for node in self._workload.nodes if isinstance(node.operator, STATEFUL)]
            replayed = [name for name in nodes if self._by_applies or self._grades[name] in FOLLOWING]
            computed = self._states_by_positions(checkpoint) if len(replayed) < len(nodes) else {}
            found = {name: Counter(computed[name]) for name in nodes if name not in replayed}
            found.update({name: Counter(self.replay.entries(name, checkpoint)) for name in replayed})
            self._states[checkpoint] = found
        return self._states[checkpoint]

    def timers(self, checkpoint: int) -> Counter[Timer]:
        """The timers that are pending at a completed checkpoint."""
        node = window_of(self._workload)
        if node is None:
            return Counter()
        if self._by_applies or self._grades[node.name] in FOLLOWING:
            return Counter(self.replay.timers(node.name, checkpoint))
        return Counter(self._computed_at(checkpoint).timers.get(checkpoint, ()))

    def _by_positions(self) -> Computation:
        if self._computation is None:
            cuts = [(number, self._lineages.snapshots.positions(number)) for number in self._lineages.end.checkpoints]
            lacking = self._lacking([number for number, _ in cuts])
            self._computation = compute(self._workload, cuts, drained=self._drained, lacking=lacking)
        return self._computation

    def _states_by_positions(self, checkpoint: int) -> dict[str, list[Entry]]:
        return self._computed_at(checkpoint).states[checkpoint]

    def _computed_at(self, checkpoint: int) -> Computation:
        if checkpoint in self._lineages.end.checkpoints:
            return self._by_positions()
        numbers = [checkpoint]
        if self._jobs is not None:  # what had been processed before depends on the jobs that did it
            before = self._lineages.of_checkpoint(checkpoint).checkpoints
            numbers = [*(number for number in before if number < checkpoint), checkpoint]
        cuts = [(number, self._lineages.snapshots.positions(number)) for number in numbers]
        return compute(self._workload, cuts, rest=False, drained=self._drained, lacking=self._lacking(numbers))

    def _lacking(self, checkpoints: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """By epoch, the nodes that the job lacked which processed its records: the one that took the checkpoint, or the
        last one."""
        if self._jobs is None:
            return {}
        absent = self._jobs.absent
        found = {number: absent[self._lineages.completed[number].job] for number in checkpoints}
        tip = self._lineages.starts.get(self._lineages.last_attempt)
        return {**found, INFINITE: absent[tip.job if tip is not None else min(absent)]}


class Computation:
    """For a sequence of cuts: the rows by epoch, and every keyed node's entries by cut."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Row]] = {}
        self.states: dict[int, dict[str, list[Entry]]] = {}
        self.timers: dict[int, list[Timer]] = {}


def compute(
    workload: Workload,
    cuts: Sequence[tuple[int, dict[int, int]]],
    *,
    rest: bool = True,
    drained: frozenset[int] = frozenset(),
    lacking: Mapping[int, tuple[str, ...]] = NOTHING_LACKS,
) -> Computation:
    """Process the records in the order (epoch, split, offset).

    `cuts` are (checkpoint, next offset by split) in the order in which they were
    taken; with `rest`, the records beyond the last cut follow with epoch `INFINITE`.
    Within an epoch a window takes its records first, and then receives the
    watermark of the cut: without late data the order of the two makes no
    difference.  At the cuts in `drained` all input has ended.  `lacking`: by epoch, the
    nodes that the job lacked; rows pass such a node as they are, and what it held is gone.
    """
    found = Computation()
    window = _Windows(workload, strict=not drained)  # records after a drain are late
    untimed = [node for node in workload.nodes if node.name != window.name]
    users = {node.name: UserMachine(node.operator, strict=True) for node in untimed if isinstance(node.operator, User)}
    machines = {node.name: users.get(node.name) or machine(node.operator) for node in untimed}
    keyed = [node.name for node in workload.nodes if isinstance(node.operator, STATEFUL)]
    arrived: list[Row] = []
    takes = {name: _timeless(each.take) for name, each in machines.items()}
    takes |= {name: _taking(each) for name, each in users.items()} | window.takes()
    absent: list[str] = []
    takes |= {name: _if_there(takes[name], name, absent) for names in lacking.values() for name in names}
    push = _pipes(workload, takes, lambda row, _: arrived.append(row))
    times = workload.times()
    splits = [(split, push[source.name], records) for split, source, records in workload.splits()]
    ends = {split: len(records) for split, _, records in splits}
    done = dict.fromkeys((split for split, _, _ in splits), 0)

    def work_through(positions: dict[int, int], *, to_the_end: bool = False) -> list[Row]:
        for split, into, records in splits:
            end = positions.get(split, 0)
            timed = times.get(split)
            for offset in range(done[split], end):
                key, value, tag = records[offset]
                into((key, value, tag, 0), timed[offset] if timed else 0)
            done[split] = max(done[split], end)
        for row in window.at(positions, to_the_end):
            push[window.name](row, 0)
        rows = arrived[:]
        arrived.clear()
        return rows

    def begin(epoch: int) -> None:
        for name in lacking.get(epoch, ()):
            if name not in absent:
                machines[name].load(())
        absent[:] = lacking.get(epoch, ())

    for checkpoint, positions in cuts:
        begin(checkpoint)
        found.rows[checkpoint] = work_through(positions, to_the_end=checkpoint in drained)
        found.states[checkpoint] = {
            name: window.entries() if name == window.name else machines[name].entries() for name in keyed
        }
        found.timers[checkpoint] = window.timers()
    if rest:
        begin(INFINITE)
        found.rows[INFINITE] = work_through(ends)
    return found


class _Windows:
    """The workload's window, if there is one; the window receives the watermarks that follow from positions."""

    def __init__(self, workload: Workload, *, strict: bool) -> None:
        node = window_of(workload)
        self.name = node.name if node else ""
        self._machine: TimedMachine | None = None
        if node and isinstance(node.operator, (User, Window)):
            self._machine = timed_machine(node.operator, strict=strict)
        self._clock = Clock(workload)
        self._splits = splits_before(workload, node.name) if node else ()

    def takes(self) -> dict[str, Take]:
        windows = self._machine
        if windows is None:
            return {}
        return {self.name: _taking(windows)}

    def at(self, positions: dict[int, int], to_the_end: bool) -> list[Row]:
        """The rows of the windows that end by these positions."""
        if self._machine is None:
            return []
        time = END_OF_TIME if to_the_end else self._clock.watermark(self._splits, positions)
        return [row for _, row in self._machine.advance(time)]

    def entries(self) -> list[Entry]:
        return self._machine.entries() if self._machine else []

    def timers(self) -> list[Timer]:
        return self._machine.timers() if self._machine else []


def _taking(machine: TimedMachine) -> Take:
    return lambda row, _, time: [out for _, out in machine.take_at(row, time, 0)]


def _if_there(take: Take, name: str, absent: Sequence[str]) -> Take:
    """The `Take` of a node that some job lacks: its rows then go on as they are."""
    return lambda row, side, time: (row,) if name in absent else take(row, side, time)


def _timeless(take: Callable[[Row, int], Iterable[Row]]) -> Take:
    """The `Take` of an operator that does not use event time."""
    return lambda row, side, _: take(row, side)


def _pipes(workload: Workload, takes: dict[str, Take], sink: Push) -> dict[str, Push]:
    """For each input and node, the function that its rows are pushed into."""
    push: dict[str, Push] = {workload.output: sink}
    for node in reversed(workload.nodes):
        for side, name in enumerate(node.inputs):
            push[name] = _pipe(takes[node.name], side, push[node.name])
    return push


def _pipe(take: Take, side: int, onward: Push) -> Push:
    def push(row: Row, time: int) -> None:
        for out in take(row, side, time):
            onward(out, time)

    return push
