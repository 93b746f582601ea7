"""What is to be computed, as engine-neutral data.

A workload is a tree of operators over inputs; a topology says how it is laid
out in parallel.  Both are plain values: the engine under test, the quick
checker and PySpark each interpret them with code of their own, and this
description is all that they share.

A row is `(key, value, tag, tag2)`: 64-bit integers, `key` and `value` may be
NULL (None).  `tag` is a random 40-bit integer that names one input record of a
scenario; `tag2` is 0 but in the rows of a join.  Every operator's meaning is
stated in the docstring of its class (`operators`).  A row's lineage is one
integer, its origin (`origin_of`).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .operators import KEYED as KEYED
from .operators import ORDERED as ORDERED
from .operators import STATEFUL as STATEFUL
from .operators import AnyOperator as AnyOperator
from .operators import Batch as Batch
from .operators import Burst as Burst
from .operators import Count as Count
from .operators import Dedup as Dedup
from .operators import Filter as Filter
from .operators import FlatMap as FlatMap
from .operators import Greater as Greater
from .operators import Join as Join
from .operators import Map as Map
from .operators import Model as Model
from .operators import Operator as Operator
from .operators import Rules as Rules
from .operators import Session as Session
from .operators import Sliding as Sliding
from .operators import Sum as Sum
from .operators import Tally as Tally
from .operators import Tumbling as Tumbling
from .operators import Union as Union
from .operators import User as User
from .operators import Value as Value
from .operators import Window as Window
from .operators import is_changelog as is_changelog
from .operators import is_clocked as is_clocked
from .operators import is_ordered as is_ordered
from .operators import is_signed as is_signed

COPY_BITS = 8
LAST_COPY = (1 << COPY_BITS) - 1
OFFSET_BITS = 32


def origin_of(split: int, offset: int, copy: int = 0) -> int:
    """The origin of a row as one integer: split, offset and flat-map copy.

    A flat map adds to the copy (0 … 255): rows of two flat maps, one behind the other, may have
    one origin.  Every other operator keeps the origin of its input record; a join keeps that of
    the record which completed the pair.
    """
    return (split << OFFSET_BITS | offset) << COPY_BITS | copy


PANE = 1 << 60
"""The bit that marks the origin of a window's row; the rest is the origin of the greatest record of its pane, without
the copy.  So rows of one origin have one key, as a replay requires."""


def is_pane(origin: int) -> bool:
    """Whether an origin stands for a window's pane, not for a record."""
    return bool(origin & PANE)


def split_of(origin: int) -> int:
    return (origin & ~PANE) >> (OFFSET_BITS + COPY_BITS)


def offset_of(origin: int) -> int:
    return origin >> COPY_BITS & ((1 << OFFSET_BITS) - 1)


def copy_of(origin: int) -> int:
    return origin & ((1 << COPY_BITS) - 1)


Row = tuple[int | None, int | None, int, int]
InputRecord = tuple[int | None, int | None, int]
"""(key, value, tag) of one record; its offset is its index in its split."""

BEGINNING, END_OF_TIME = -(1 << 62), 1 << 62
"""The watermark before the first was received, and the watermark once all input has ended."""


class Input(Value, kw_only=True):
    """A named input: its splits, each the tuple of its records in order.

    `bounded` inputs end after their last record; an unbounded one stays open
    and merely has nothing more to offer.  Splits are numbered through all
    inputs of the workload in order (`Workload.splits`).
    """

    name: str
    splits: tuple[tuple[InputRecord, ...], ...]
    bounded: bool = True
    times: tuple[tuple[int, ...], ...] = ()
    """parallel to `splits`, the event time of each record: an integer in a unit of the workload's own, of
    any sign; empty where there is none"""
    delay: int = 0
    """a split's watermark is the greatest event time read from it, minus this, minus 1"""
    idle_after_us: int = 0
    """a split from which nothing is read for this long is idle, and no watermark waits for it; 0: never"""
    rewindable: bool = True
    """it can be read again from an earlier position; otherwise only at-most-once can be promised"""
    assignment: str = "static"
    """who reads which split: static (see `Topology`), or enumerated: an enumerator gives each split to one
    subtask at a time, as they ask"""
    discovered_us: tuple[int, ...] = ()
    """parallel to `splits`, of an enumerated input: how long after an attempt began to run each split is discovered;
    0 for splits that have no entry"""

    @property
    def is_enumerated(self) -> bool:
        return self.assignment == "enumerated"


class Node(Value, kw_only=True):
    """One operator of the tree and the names of the inputs or nodes that feed it."""

    name: str
    operator: AnyOperator
    inputs: tuple[str, ...]
    later: bool | msgspec.UnsetType = msgspec.UNSET
    """no job has it until a resume adds it; where a job lacks a node, its rows go on as they are"""

    @property
    def broadcast_input(self) -> str | None:
        """The input whose rows every subtask takes; None without one."""
        return self.inputs[1] if isinstance(self.operator, Rules) and len(self.inputs) > 1 else None


class Workload(Value, kw_only=True):
    """Inputs and operators, in topological order; the last node (or, without
    nodes, the only input) feeds the sink.  Each input or node feeds one reader."""

    name: str
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...] = ()
    query: str | msgspec.UnsetType = msgspec.UNSET
    """in place of nodes: the digest of an SQL text that says what is computed.  The text itself stands in the
    pipeline's file alone, so nothing of a scenario is executed"""

    def splits(self) -> Iterator[tuple[int, Input, tuple[InputRecord, ...]]]:
        """(split number, input, records) of every split, numbered through all inputs."""
        number = 0
        for source in self.inputs:
            for records in source.splits:
                yield number, source, records
                number += 1

    def times(self) -> dict[int, tuple[int, ...]]:
        """The event times of each split that has them."""
        timed = [times for source in self.inputs for times in source.times or [()] * len(source.splits)]
        return {number: times for number, times in enumerate(timed) if times}

    def splits_of(self, name: str) -> tuple[int, ...]:
        return tuple(number for number, source, _ in self.splits() if source.name == name)

    @property
    def output(self) -> str:
        """The name of what feeds the sink."""
        return self.nodes[-1].name if self.nodes else self.inputs[-1].name

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def records(self) -> int:
        return sum(len(records) for _, _, records in self.splits())


SINK = "sink"
"""The name of the one sink, in topologies, task names and histories."""

MOST_WINDOWS = 1_000
"""The sliding windows to which one record may belong: each is held, and each is a row."""


class Edge(Value, kw_only=True):
    """How rows go from one operator to the next.

    `forward` joins equal subtasks of equal parallelism, `hash` sends a key to
    the owner of its key group, `rebalance` goes round the receivers, `broadcast`
    sends a copy to each of them.
    """

    sender: str
    receiver: str
    partitioning: str
    """forward, hash, rebalance or broadcast"""


class Topology(Value, kw_only=True):
    """The workload laid out: parallelism by operator (inputs, nodes, "sink") and edges.

    Split i of an input is read by its source subtask i modulo the parallelism,
    counting the input's own splits from 0, unless the input is enumerated.
    """

    parallelism: dict[str, int]
    edges: tuple[Edge, ...]
    key_groups: int = 16

    def edge(self, sender: str, receiver: str) -> Edge:
        for edge in self.edges:
            if edge.sender == sender and edge.receiver == receiver:
                return edge
        raise KeyError((sender, receiver))


def problems(workload: Workload, topology: Topology) -> list[str]:
    """What is wrong with the pair, in words; empty when it can be run."""
    found: list[str] = []
    names = [source.name for source in workload.inputs] + [node.name for node in workload.nodes]
    if not workload.inputs:
        found.append("the workload has no input")
        return found
    if workload.query and workload.nodes:
        found.append("the workload has a query and nodes: it has one or the other")
    for name in names:
        if names.count(name) > 1 or name == SINK:
            found.append(f"the name {name!r} is used twice or reserved")
    readers: dict[str, list[str]] = {name: [] for name in names}
    seen = {source.name for source in workload.inputs}
    for node in workload.nodes:
        wanted = 2 if isinstance(node.operator, (Union, Join, Rules)) else 1
        if len(node.inputs) < wanted or (len(node.inputs) > wanted and not isinstance(node.operator, Union)):
            found.append(f"{node.name} has {len(node.inputs)} inputs, its kind takes {wanted}")
        for name in node.inputs:
            if name not in seen:
                found.append(f"{node.name} reads {name!r}, which does not stand before it")
            else:
                readers[name].append(node.name)
        seen.add(node.name)
    readers[workload.output].append(SINK)
    for name in names:
        if len(readers[name]) != 1:
            found.append(f"{name} feeds {len(readers[name])} readers; each feeds exactly one")
    if sum(isinstance(node.operator, Join) for node in workload.nodes) > 1:
        found.append("more than one join")
    found.extend(_copy_problems(workload))
    found.extend(_time_problems(workload))
    found.extend(_batch_problems(workload))
    found.extend(_rules_problems(workload))
    if not found:
        found.extend(_layout_problems(workload, topology, readers))
    return found


def window_of(workload: Workload) -> Node | None:
    """The node that uses time, if there is one: a window, or a user function with timers.
    More than one is a problem.
    """
    return next((node for node in workload.nodes if _goes_by_time(node)), None)


def _goes_by_time(node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Window) or is_clocked(operator) or (isinstance(operator, User) and operator.timed)


def inputs_of(workload: Workload, name: str) -> tuple[Input, ...]:
    """The inputs that feed an input or node, by whatever way."""
    found = {name}
    for node in reversed(workload.nodes):
        if node.name in found:
            found.update(node.inputs)
    return tuple(source for source in workload.inputs if source.name in found)


def _copy_problems(workload: Workload) -> Iterator[str]:
    """Flat maps one behind the other whose rows an origin has no numbers for: it would be that of another offset."""
    last = {source.name: 0 for source in workload.inputs}
    for node in workload.nodes:
        before = max((last.get(name, 0) for name in node.inputs), default=0)
        last[node.name] = 0 if isinstance(node.operator, Window) else before
        if isinstance(node.operator, FlatMap):
            last[node.name] = before + max(node.operator.fan - 1, 0)
            if 0 < before <= LAST_COPY < last[node.name]:
                copies, room = last[node.name] + 1, LAST_COPY + 1
                yield f"{node.name}: it and the flat maps before it number {copies} copies of a record; {room} fit"


def _time_problems(workload: Workload) -> Iterator[str]:
    """What is wrong with assignments, event times and windows.

    A window reads inputs with event time through stateless operators alone: the event
    time of a row of a join or of a running sum would be undefined.
    """
    for source in workload.inputs:
        if source.times and [len(times) for times in source.times] != [len(split) for split in source.splits]:
            yield f"the event times of {source.name} are not one for each record"
        if source.assignment not in ("static", "enumerated"):
            yield f"{source.name} has the unknown assignment {source.assignment!r}"
        if source.is_enumerated and (source.times or not source.rewindable):
            yield f"{source.name} is enumerated: it can have no event time, and must be rewindable"
        if source.discovered_us and (not source.is_enumerated or min(source.discovered_us) < 0):
            yield f"{source.name} discovers splits before an attempt begins, or without an enumerator"
        if source.delay < 0 or source.idle_after_us < 0:
            yield f"{source.name} has a delay or an idle timeout below 0"
    windows = [node for node in workload.nodes if _goes_by_time(node)]
    if len(windows) > 1:
        yield "more than one window or function with timers"
    before: set[str] = set()
    for node in reversed(workload.nodes):
        if node in windows or node.name in before:
            before.update(node.inputs)
            if node not in windows and isinstance(node.operator, KEYED):
                yield f"the keyed operator {node.name} stands before a window"
    for node in windows:
        yield from _window_problems(node)
        if is_clocked(node.operator):
            continue
        for source in inputs_of(workload, node.name):
            if not source.times and any(source.splits):
                yield f"the window {node.name} reads {source.name}, which has no event time"


def _batch_problems(workload: Workload) -> Iterator[str]:
    """What is wrong with batches: an operator behind a batch takes rows later than they arrived at the batch."""
    behind: set[str] = set()
    for node in workload.nodes:
        if isinstance(node.operator, Batch) and node.operator.size < 1:
            yield f"{node.name} has a size below 1"
        if behind.intersection(node.inputs):
            behind.add(node.name)
            if isinstance(node.operator, STATEFUL):
                kind = "keyed operator" if isinstance(node.operator, KEYED) else "operator with rules"
                yield f"the {kind} {node.name} stands behind a batch"
        if isinstance(node.operator, Batch):
            behind.add(node.name)


def _rules_problems(workload: Workload) -> Iterator[str]:
    """Rules together with windows: a rule has no event time at which it comes into force."""
    window = window_of(workload)
    for node in workload.nodes:
        if isinstance(node.operator, Rules) and window is not None:
            yield f"{node.name} has rules and {window.name} goes by time: a job can have one or the other"


def _window_problems(node: Node) -> Iterator[str]:
    operator = node.operator
    if not isinstance(operator, Window):
        return
    lengths = [getattr(operator, name) for name in ("size", "slide", "gap", "gap_us") if hasattr(operator, name)]
    if any(length < 1 for length in lengths) or operator.lateness < 0:
        yield f"{node.name} has a size, slide or gap below 1, or a lateness below 0"
    elif isinstance(operator, Sliding) and operator.size > operator.slide * MOST_WINDOWS:
        yield (
            f"{node.name} has windows of {operator.size} every {operator.slide}: a record would be of"
            f" {-(-operator.size // operator.slide):,}, and it can be of {MOST_WINDOWS:,}"
        )
    if isinstance(operator, Burst) and operator.lateness:
        yield f"{node.name} goes by processing time, in which nothing is late"
    if operator.of not in ("count", "sum"):
        yield f"{node.name} is of {operator.of!r}: it can be of count or sum"


def _layout_problems(workload: Workload, topology: Topology, readers: dict[str, list[str]]) -> Iterator[str]:
    for name in [*readers, SINK]:
        if topology.parallelism.get(name, 0) < 1:
            yield f"{name} has no parallelism"
            return
    for sender, (receiver,) in readers.items():
        edges = [edge for edge in topology.edges if (edge.sender, edge.receiver) == (sender, receiver)]
        if len(edges) != 1:
            yield f"{len(edges)} edges from {sender} to {receiver}; one is wanted"
            continue
        how = edges[0].partitioning
        if how not in ("forward", "hash", "rebalance", "broadcast"):
            yield f"unknown partitioning {how!r} from {sender} to {receiver}"
        node = workload.node(receiver) if receiver != SINK else None
        rules = node is not None and node.broadcast_input == sender
        if rules and how != "broadcast":
            yield f"the edge from {sender} to {receiver} is {how}, and every subtask has to have the rules: broadcast"
        if how == "broadcast" and not rules:
            yield f"the edge from {sender} to {receiver} is broadcast: only rules are, others would take a row twice"
        if how == "forward" and topology.parallelism[sender] != topology.parallelism[receiver]:
            yield f"a forward edge from {sender} to {receiver} of another parallelism"
        if node is not None and isinstance(node.operator, KEYED) and how not in ("hash", "broadcast"):
            yield f"the edge into the keyed operator {receiver} is not hashed"
    if len(topology.edges) != len(readers):
        yield "an edge that joins nothing of the workload"
