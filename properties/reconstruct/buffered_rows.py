"""The rows that batches buffer (OPS-2).  A snapshot holds them in list state.

The engine chooses how many rows a batch buffers, and at which subtask.  So the expected
rows are computed as if a batch emitted every row at once, and then the rows that a
snapshot holds are subtracted.  A row that a snapshot holds must have reached the batch
by then.  The batch has emitted all other rows.  Once all input has ended, a batch may
hold nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ..model.history import StoredState
from ..model.workload import SINK, Batch, Row, Tally, Workload
from ..semantics.semantics import Entry, machine

ROWS = "rows"
COUNTS = "counts"


def batches(workload: Workload) -> tuple[str, ...]:
    """The names of the nodes that are batches."""
    return tuple(node.name for node in workload.nodes if isinstance(node.operator, Batch))


def behind_batches(workload: Workload) -> frozenset[str]:
    """The nodes downstream of a batch, including the sink: their rows may have been buffered."""
    found: set[str] = set()
    for node in workload.nodes:
        if found.intersection(node.inputs) or any(name in batches(workload) for name in node.inputs):
            found.add(node.name)
    if workload.output in found or workload.output in batches(workload):
        found.add(SINK)
    return frozenset(found)


def waiting(state: StoredState) -> Iterator[tuple[Row, int]]:
    """(row, origin) of each buffered row in the list state of one subtask's snapshot."""
    for name, text in state.listed:
        if name == ROWS:
            key, value, tag, tag2, origin, _ = msgspec.json.decode(text)
            yield (key, value, tag, tag2), origin


def counts_in(state: StoredState) -> list[Entry]:
    """The counts that a tally's subtask adds to the union in its snapshot, as entries of a count."""
    decoded = [msgspec.json.decode(text) for name, text in state.shared if name == COUNTS]
    return [(0, key, count, 0) for key, count in decoded]


def buffered_at(workload: Workload, states: Mapping[str, StoredState], name: str) -> Counter[Row]:
    """The rows that all subtasks of a batch hold in a snapshot."""
    mine = [state for task, state in states.items() if task.rpartition("-")[0] == name]
    return Counter(row for state in mine for row, _ in waiting(state))


def is_tally(workload: Workload, name: str) -> bool:
    return any(node.name == name and isinstance(node.operator, Tally) for node in workload.nodes)


def still_to_come(workload: Workload, states: Mapping[str, StoredState]) -> Counter[Row]:
    """The rows that reach the sink from the rows buffered in a snapshot: only stateless nodes lie between."""
    found: Counter[Row] = Counter()
    for name in batches(workload):
        found.update(_at_the_sink(workload, name, buffered_at(workload, states, name).elements()))
    return found


def _at_the_sink(workload: Workload, name: str, rows: Iterable[Row]) -> list[Row]:
    passing = list(rows)
    for node in workload.nodes:
        if name in node.inputs:
            step = machine(node.operator)
            passing = [out for row in passing for out in step.take(row, node.inputs.index(name))]
            name = node.name
    return passing


def emitted_rows(
    rows: Mapping[int, Sequence[Row]], checkpoints: Sequence[int], held: Mapping[int, Counter[Row]]
) -> dict[int, list[Row]]:
    """The rows that a batch emits, by epoch: each in the first epoch in which no snapshot holds it as buffered.

    `rows` are those that reached the batch.
    """
    found: dict[int, list[Row]] = {}
    before: list[Row] = []
    for epoch in [*checkpoints, *(at for at in rows if at not in checkpoints)]:
        keeps = held.get(epoch, Counter()).copy()
        found[epoch], now = [], []
        for row in reversed([*before, *rows.get(epoch, ())]):  # of equal rows the last are the buffered ones
            if keeps[row]:
                keeps[row] -= 1
                now.append(row)
            else:
                found[epoch].append(row)
        found[epoch].reverse()
        before = now[::-1]
    return found
