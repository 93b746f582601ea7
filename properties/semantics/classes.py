"""What an operator's output is a function of, and what an engine promises.

The output of class M is a function of the input multiset.  Class S depends on the order
within each split too.  Class H depends on the order in which a run merged its inputs.
Class W depends on that order and on the run's watermarks (windows whose records may come
late), or on the clock (operators in processing time).  Rows and state of class M and S
follow from the positions of a cut alone.  Those of class H and W follow from the apply
events of the lineage, and from where the watermark advanced between these events.

A path has the class of its worst operator.  An operator that depends on order is of
class S only if all records of each key come along one first-in-first-out *lane*: from
one split, never through a rebalance, and never hashed by another key before.  This
depends on the data, so the lanes of the actual keys are followed.  (Filters and flat
maps are assumed to pass every record: that can only turn an S into an H.)
"""

from __future__ import annotations

import msgspec

from ..model.workload import (
    SINK,
    Batch,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Join,
    Map,
    Rules,
    Sum,
    Tally,
    Topology,
    User,
    Window,
    Workload,
    is_clocked,
    is_ordered,
)
from .event_time import is_late_free

GRADES = "MSHW"
"""The classes, the worst last."""

FOLLOWING = ("H", "W")
"""The classes whose rows follow the records that a run applied."""

Key = int | None
Lane = tuple[Key, ...]
"""The way of a record: its split, then the key that it had at each hash edge."""


class _Stream(msgspec.Struct, kw_only=True):
    """What is known of the records that leave an input or node."""

    lanes: dict[Key, set[Lane]]
    scattered: bool = False
    """rebalanced: records of one lane may overtake each other"""
    joined: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the data alone determine the order in which the records of each key come."""
        return not self.scattered and not self.joined and all(len(lanes) == 1 for lanes in self.lanes.values())


def classes(workload: Workload, topology: Topology) -> dict[str, str]:
    """The class of each input's and node's rows and state: "M", "S", "H" or "W"."""
    found = {source.name: "M" for source in workload.inputs}
    ordered = any(is_ordered(node.operator) for node in workload.nodes)
    streams = _streams(workload, topology) if ordered else {}
    for node in workload.nodes:
        own = "M"
        if is_clocked(node.operator) or (isinstance(node.operator, Window) and not is_late_free(workload, node.name)):
            own = "W"
        elif isinstance(node.operator, Rules):
            own = "H"
        elif is_ordered(node.operator):
            own = "S" if streams[node.name].in_order else "H"
        found[node.name] = max([own, *(found[name] for name in node.inputs)], key=GRADES.index)
    return found


def class_of(workload: Workload, topology: Topology) -> str:
    """The class of the rows that reach the sink."""
    return classes(workload, topology)[workload.output]


def last_row_is_fixed(workload: Workload, topology: Topology) -> bool:
    """Whether the data alone determine which row of each key reaches the sink last.

    If so, an idempotent sink's table can be compared with these last rows.  There are
    two such cases: the rows of each key come along one lane, or they are the updates of
    a final count, sum or deduplication and stay in order on their way to the sink.  It
    never holds downstream of rules: the data do not say which rule applied to a row.
    """
    if any(isinstance(node.operator, Rules) for node in workload.nodes):
        return False
    if _streams(workload, topology)[SINK].in_order:
        return True
    receiver = SINK
    for node in reversed(workload.nodes):
        if rebalances(topology, node.name, receiver):
            return False
        receiver = node.name
        operator = node.operator
        if isinstance(operator, (Count, Dedup, Tally)):
            return not is_ordered(operator)
        if isinstance(operator, Sum):
            return node.name == workload.output and not operator.signed
        if not isinstance(operator, (Filter, FlatMap)) and not (isinstance(operator, Map) and operator.rekey is None):
            return False
    return False


def _streams(workload: Workload, topology: Topology) -> dict[str, _Stream]:
    """The stream that arrives at each node and at the sink."""
    outgoing = {source.name: _Stream(lanes={}) for source in workload.inputs}
    for split, source, records in workload.splits():
        for key in {record[0] for record in records}:
            outgoing[source.name].lanes.setdefault(key, set()).add((split,))
    arriving: dict[str, _Stream] = {}
    for node in workload.nodes:
        stream = _merged([_over_edge(outgoing[name], topology, name, node.name) for name in node.inputs])
        arriving[node.name] = stream
        if isinstance(node.operator, Map) and node.operator.rekey is not None:
            stream = _rekeyed(stream, node.operator.rekey)
        if isinstance(node.operator, Window):  # one subtask emits the rows of a key, window after window
            stream = _Stream(lanes={key: {(key,)} for key in stream.lanes})
        if isinstance(node.operator, (Join, Rules)):  # the row emitted depends on the rows taken before
            stream = _Stream(lanes=stream.lanes, scattered=stream.scattered, joined=True)
        if isinstance(node.operator, Batch):  # buffered rows are redistributed to any subtask
            stream = _Stream(lanes=stream.lanes, scattered=stream.scattered, joined=True)
        if isinstance(node.operator, User):  # the user decides the order of its rows
            stream = _Stream(lanes=stream.lanes, scattered=stream.scattered, joined=True)
        outgoing[node.name] = stream
    arriving[SINK] = _over_edge(outgoing[workload.output], topology, workload.output, SINK)
    return arriving


def _over_edge(stream: _Stream, topology: Topology, sender: str, receiver: str) -> _Stream:
    if rebalances(topology, sender, receiver):
        return _Stream(lanes=stream.lanes, scattered=True, joined=stream.joined)
    if topology.edge(sender, receiver).partitioning != "hash" or topology.parallelism[receiver] == 1:
        return stream
    spread = {key: {(*lane, key) for lane in lanes} for key, lanes in stream.lanes.items()}
    return _Stream(lanes=spread, scattered=stream.scattered, joined=stream.joined)


def rebalances(topology: Topology, sender: str, receiver: str) -> bool:
    """Whether an edge sends rows of equal keys to different subtasks in turn."""
    return topology.edge(sender, receiver).partitioning == "rebalance" and topology.parallelism[receiver] > 1


def _merged(streams: list[_Stream]) -> _Stream:
    if len(streams) == 1:
        return streams[0]
    lanes: dict[Key, set[Lane]] = {}
    for stream in streams:
        for key, ways in stream.lanes.items():
            lanes.setdefault(key, set()).update(ways)
    return _Stream(
        lanes=lanes,
        scattered=any(stream.scattered for stream in streams),
        joined=any(stream.joined for stream in streams),
    )


def _rekeyed(stream: _Stream, modulus: int) -> _Stream:
    lanes: dict[Key, set[Lane]] = {}
    for key, ways in stream.lanes.items():
        lanes.setdefault(None if key is None else key % modulus, set()).update(ways)
    return _Stream(lanes=lanes, scattered=stream.scattered, joined=stream.joined)


def promised(guarantee: str, sink: str, *, rewindable: bool = True) -> frozenset[str]:
    """The invariants that source, mode and sink together promise.

    With a plain sink an exactly-once engine keeps its state exactly-once, but rows
    written before a failure are written again: the output is at-least-once.  With a
    source that cannot rewind, only at-most-once can be promised.
    """
    if guarantee == "at-most-once" or not rewindable:
        return frozenset({"at-most-once", "progress", "no-leaks"})
    always = {"no-data-loss", "restored-state", "restorable", "drain", "progress", "no-leaks"}
    if guarantee == "at-least-once":
        return frozenset(always | {"at-least-once"})
    always |= {"consistent-cut", "order"}
    if sink == "plain":
        return frozenset(always | {"at-least-once"})
    if sink == "transactional":
        always |= {"visibility"}
    return frozenset(always | {"exactly-once"})
