"""What is owed: the rows and the state after each cut, by the quick checker's reckoning.

For class M and S a cut's positions say it all: the records below them are
worked through in the order (epoch, split, offset), which is one of the orders
that the run may have had, and any gives the same rows.  For class H, and in the
weaker modes, whose output follows what was really applied, the line's apply
events are replayed instead (see `replay`).

This is the third reckoning beside the engine's and PySpark's; it shares with
them the description of the workload and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from .line import INFINITE, Lines
from .replay import Replay
from .semantics import Entry, machine
from .workload import KEYED, Row, Topology, Workload

Push = Callable[[Row], None]
Take = Callable[[Row, int], Iterable[Row]]


class Expected:
    """Out(c) and State(c) of one case.

    `grades` are the classes of the workload's nodes (`classes.classes`);
    `by_applies` says that the rows follow the applied records, repeats included
    (at-least-once and at-most-once), whatever the class.
    """

    def __init__(
        self, workload: Workload, topology: Topology, lines: Lines, grades: dict[str, str], *, by_applies: bool
    ) -> None:
        self._workload = workload
        self._topology = topology
        self._lines = lines
        self._grades = grades
        self._by_applies = by_applies
        self._replay: Replay | None = None
        self._reckoning: Reckoning | None = None
        self._rows: dict[int, list[Row]] | None = None
        self._filled: list[tuple[int, list[Row]]] | None = None
        self._states: dict[int, dict[str, Counter[Entry]]] = {}

    @property
    def follows_applies(self) -> bool:
        """Whether the rows come from the line's apply events, not from the positions alone."""
        return self._by_applies or self._grades[self._workload.output] == "H"

    @property
    def replay(self) -> Replay:
        """What was applied, worked through again."""
        if self._replay is None:
            self._replay = Replay(self._workload, self._topology, self._lines)
        return self._replay

    def rows(self) -> dict[int, list[Row]]:
        """The rows that reach the sink, by epoch on the line of the run's end, in the line's order."""
        if self._rows is None:
            if self.follows_applies:
                self._rows = self.replay.sink_rows(self._lines.end)
            else:
                self._rows = self._by_positions().rows
        return self._rows

    def rows_up_to(self, epoch: int) -> Counter[Row]:
        """Out(c): the rows of all epochs up to this one; `INFINITE` gives all."""
        if self._filled is None:
            self._filled = [(at, rows) for at, rows in self.rows().items() if rows]
        return Counter(row for at, rows in self._filled if at <= epoch for row in rows)

    def yielded(self) -> Counter[Row]:
        """Every row that any attempt may bring to the sink, on the line or off it; where the rows
        follow the applied records, as often as it was brought."""
        if not self.follows_applies:
            return self.rows_up_to(INFINITE)
        return self.replay.yielded()

    def last_rows(self, epoch: int) -> dict[int | None, Row]:
        """The last row of each key in Out(c): what an idempotent sink's table holds."""
        return {row[0]: row for at in sorted(self.rows()) if at <= epoch for row in self.rows()[at]}

    def states(self, checkpoint: int) -> dict[str, Counter[Entry]]:
        """State(c) of every keyed node at a completed checkpoint, on the line or off it."""
        if checkpoint not in self._states:
            nodes = [node.name for node in self._workload.nodes if isinstance(node.operator, KEYED)]
            replayed = [name for name in nodes if self._by_applies or self._grades[name] == "H"]
            reckoned = self._states_by_positions(checkpoint) if len(replayed) < len(nodes) else {}
            found = {name: Counter(reckoned[name]) for name in nodes if name not in replayed}
            found.update({name: Counter(self.replay.entries(name, checkpoint)) for name in replayed})
            self._states[checkpoint] = found
        return self._states[checkpoint]

    def _by_positions(self) -> Reckoning:
        if self._reckoning is None:
            cuts = [(number, self._lines.positions(number)) for number in self._lines.end.checkpoints]
            self._reckoning = reckon(self._workload, cuts)
        return self._reckoning

    def _states_by_positions(self, checkpoint: int) -> dict[str, list[Entry]]:
        if checkpoint in self._lines.end.checkpoints:
            return self._by_positions().states[checkpoint]
        return reckon(self._workload, [(checkpoint, self._lines.positions(checkpoint))], rest=False).states[checkpoint]


class Reckoning:
    """The rows by epoch, and every keyed node's entries by cut, of a sequence of cuts."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Row]] = {}
        self.states: dict[int, dict[str, list[Entry]]] = {}


def reckon(workload: Workload, cuts: Sequence[tuple[int, dict[int, int]]], *, rest: bool = True) -> Reckoning:
    """Work through the records in the order (epoch, split, offset).

    `cuts` are (checkpoint, next offset by split) in the order they were taken;
    with `rest`, the records beyond the last cut follow with epoch `INFINITE`.
    """
    found = Reckoning()
    machines = {node.name: machine(node.operator) for node in workload.nodes}
    keyed = [node.name for node in workload.nodes if isinstance(node.operator, KEYED)]
    arrived: list[Row] = []
    push = _pipes(workload, {name: each.take for name, each in machines.items()}, arrived.append)
    splits = [(split, push[source.name], records) for split, source, records in workload.splits()]
    done = dict.fromkeys((split for split, _, _ in splits), 0)

    def work_through(positions: dict[int, int] | None) -> list[Row]:
        for split, into, records in splits:
            end = len(records) if positions is None else positions.get(split, 0)
            for key, value, tag in records[done[split] : end]:
                into((key, value, tag, 0))
            done[split] = max(done[split], end)
        rows = arrived[:]
        arrived.clear()
        return rows

    for checkpoint, positions in cuts:
        found.rows[checkpoint] = work_through(positions)
        found.states[checkpoint] = {name: machines[name].entries() for name in keyed}
    if rest:
        found.rows[INFINITE] = work_through(None)
    return found


def _pipes(workload: Workload, takes: dict[str, Take], sink: Push) -> dict[str, Push]:
    """For each input and node, the function that its rows are pushed into."""
    push: dict[str, Push] = {workload.output: sink}
    for node in reversed(workload.nodes):
        for side, name in enumerate(node.inputs):
            push[name] = _pipe(takes[node.name], side, push[node.name])
    return push


def _pipe(take: Take, side: int, onward: Push) -> Push:
    def push(row: Row) -> None:
        for out in take(row, side):
            onward(out)

    return push
