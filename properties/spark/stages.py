"""Many operator trees as one numbered list of streams, and many scenarios as Arrow tables.

Spark compiles a plan, not a workload.  So the trees of a batch are computed in
rounds, and every round is the same query, whatever the workloads are: all keyed
operators of one depth take their rows (an SQL window over key and node), and each
row that they emit goes through the stateless operators that follow.

A *stream* is the output of an input or a keyed node after the stateless operators
that follow.  Every row has the number of its stream, which says where the row comes
from and which keyed node, if any, reads it.  Where nodes are added to a job or removed
from it, each period in which it has the same nodes has streams of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..model.absent import without
from ..model.workload import SINK, STATEFUL, Node, User, Window, Workload, inputs_of, window_of
from .operators import kind_of, parameters_of
from .tables import OracleJob

Step = tuple[int, int | None, int | None, int | None]
"""A stateless operator: its kind's number and its parameters."""

STEP = pa.struct([("kind", pa.int32()), ("p1", pa.int64()), ("p2", pa.int64()), ("p3", pa.int64())])


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the input or keyed node `name` of a job in one period, and its reader there."""

    job: int
    name: str
    period: int
    first: int
    """the index of the first cut of the period"""
    last: int
    """the index of the last one"""
    end: int
    """the index of the first cut at which the node is gone, or else the number of cuts"""
    steps: tuple[Step, ...]
    """the stateless operators that follow"""
    window: Node | None
    """the reader, if it is a window"""
    function: str | None
    """the name of the reader's user function, if it has one"""
    reader: int | None
    """the stream of the keyed node that reads this one, in the same period; None for the sink"""
    keeps: int | None
    """the reader's stream in the first of those periods, one behind the other, through which it keeps its state"""
    kind: int | None
    """the number of the reader's kind; None for a user function"""
    side: int | None
    """the number of this stream among the reader's inputs"""
    depth: int
    """how many keyed nodes, of all periods, are on the longest path up to and including the reader; 0 for the sink"""
    traced: bool
    """whether the reader takes its rows according to the lineage's apply events"""


def streams_of(jobs: Sequence[OracleJob], kinds: Mapping[str, int]) -> list[Stream]:
    """The streams of a batch, in the order of their numbers."""
    streams: list[Stream] = []
    for number, job in enumerate(jobs):
        every = [without(job.workload, period.absent) for period in job.periods]
        names = [_makers(workload) for workload in every]
        places = [(name, period) for period, there in enumerate(names) for name in there]
        numbers = {place: len(streams) + index for index, place in enumerate(places)}
        depths = _depths(job.workload)  # a node takes the rows of all periods at once
        begins = [period.first for period in job.periods] + [len(job.cuts)]
        for name, period in places:
            workload = every[period]
            readers = {name: (node, side) for node in workload.nodes for side, name in enumerate(node.inputs)}
            steps, reader, side = _follow(name, readers, kinds)
            behind = next((one for one in range(period, len(every)) if name not in names[one]), len(every))
            streams.append(
                Stream(
                    job=number,
                    name=name,
                    period=period,
                    first=begins[period],
                    last=begins[period + 1] - 1,
                    end=begins[behind],
                    steps=steps,
                    window=reader if reader and isinstance(reader.operator, Window) else None,
                    function=reader.operator.function if reader and isinstance(reader.operator, User) else None,
                    reader=numbers[reader.name, period] if reader else None,
                    keeps=numbers[reader.name, _since(reader.name, period, names)] if reader else None,
                    kind=kinds.get(kind_of(reader.operator)) if reader else None,
                    side=side if reader else None,
                    depth=depths[reader.name] if reader else 0,
                    traced=reader is not None and reader.name in job.applies,
                )
            )
    return streams


def _makers(workload: Workload) -> list[str]:
    """The inputs and keyed nodes."""
    keyed = [node.name for node in workload.nodes if isinstance(node.operator, STATEFUL)]
    return [source.name for source in workload.inputs] + keyed


def _since(name: str, period: int, names: Sequence[Sequence[str]]) -> int:
    """The first period from which on, up to this one, a node is there."""
    while period and name in names[period - 1]:
        period -= 1
    return period


def _depths(workload: Workload) -> dict[str, int]:
    depths = {source.name: 0 for source in workload.inputs}
    for node in workload.nodes:
        depths[node.name] = max(depths[name] for name in node.inputs) + isinstance(node.operator, STATEFUL)
    return depths


def _follow(
    name: str, readers: Mapping[str, tuple[Node, int]], kinds: Mapping[str, int]
) -> tuple[tuple[Step, ...], Node | None, int]:
    """The stateless steps from `name` on, then the keyed node after them, and the side on which they enter it."""
    steps: list[Step] = []
    while name in readers:
        node, side = readers[name]
        if isinstance(node.operator, STATEFUL):
            return tuple(steps), node, side
        steps.append((kinds[kind_of(node.operator)], *parameters_of(node.operator)))
        name = node.name
    return tuple(steps), None, 0


class Batch:
    """The jobs of one batch as tables."""

    def __init__(self, jobs: Sequence[OracleJob], kinds: Mapping[str, int]) -> None:
        self.jobs = jobs
        self.streams = streams_of(jobs, kinds)
        self._numbers = {(stream.job, stream.period, stream.name): number for number, stream in enumerate(self.streams)}
        sinks = dict.fromkeys((stream.job, stream.period) for stream in self.streams)
        self._sinks = {sink: -1 - number for number, sink in enumerate(sinks)}
        """by job and period, the number of the sink as a reader; a node has the number of its stream"""
        self.traced = any(job.applies for job in jobs)
        self.rounds = max((stream.depth for stream in self.streams), default=0)
        self._depths = pa.array([stream.depth for stream in self.streams], pa.int32())
        self._steps = _steps([stream.steps for stream in self.streams])
        self._readers = {
            "kind": pa.array([stream.kind for stream in self.streams], pa.int32()),
            "side": pa.array([stream.side for stream in self.streams], pa.int32()),
            "node": pa.array([stream.reader for stream in self.streams], pa.int32()),
            "keeps": pa.array([stream.keeps for stream in self.streams], pa.int32()),
            "traced": pa.array([stream.traced for stream in self.streams], pa.bool_()),
        }

        self._windows = pa.array([stream.window is not None for stream in self.streams], pa.bool_())
        self._functions = pa.array([stream.function for stream in self.streams], pa.string())
        self._cuts = pa.array([len(jobs[stream.job].cuts) for stream in self.streams], pa.int32())
        parameters = [_window_parameters(stream.window) for stream in self.streams]
        self._parameters = {
            name: pa.array([one[number] for one in parameters], kind)
            for number, (name, kind) in enumerate(WINDOW_PARAMETERS.items())
        }

    def records(self) -> pa.Table:
        """One row for each split and period: its stream, number, records, and the cuts' positions in it."""
        keys: list[int | None] = []
        values: list[int | None] = []
        tags: list[int] = []
        times: list[int | None] = []
        windows: list[int | None] = []
        delays: list[int] = []
        bounded: list[bool] = []
        drained: list[bool] = []
        cuts: list[int] = []
        ends, cut_ends = [0], [0]
        streams: list[int] = []
        splits: list[int] = []
        periods = [(number, job, period) for number, job in enumerate(self.jobs) for period in range(len(job.periods))]
        for number, job, period in periods:
            timed = job.workload.times()
            window = window_of(job.workload)
            before = [source.name for source in inputs_of(job.workload, window.name)] if window else []
            for split, source, records in job.workload.splits():
                for key, value, tag in records:
                    keys.append(key)
                    values.append(value)
                    tags.append(tag)
                times.extend(timed.get(split) or [None] * len(records))
                read = window is not None and source.name in before
                windows.append(self._numbers[number, period, window.name] if window and read else None)
                delays.append(source.delay)
                bounded.append(source.bounded)
                drained.extend(cut.drained for cut in job.cuts)
                cuts.extend(cut.positions[split] for cut in job.cuts)
                ends.append(len(tags))
                cut_ends.append(len(cuts))
                streams.append(self._numbers[number, period, source.name])
                splits.append(split)
        at = pa.array(streams, pa.int32())
        return pa.table(
            {
                "at": at,
                "split": pa.array(splits, pa.int64()),
                "cuts": _lists(cut_ends, pa.array(cuts, pa.int32())),
                "keys": _lists(ends, pa.array(keys, pa.int64())),
                "values": _lists(ends, pa.array(values, pa.int64())),
                "tags": _lists(ends, pa.array(tags, pa.int64())),
                "times": _lists(ends, pa.array(times, pa.int64())),
                "window": pa.array(windows, pa.int32()),
                "delay": pa.array(delays, pa.int64()),
                "bounded": pa.array(bounded, pa.bool_()),
                "drained": _lists(cut_ends, pa.array(drained, pa.bool_())),
                "steps": self._steps.take(at),
                "first": pa.array([self.streams[one].first for one in streams], pa.int32()),
                "last": pa.array([self.streams[one].last for one in streams], pa.int32()),
            }
        )

    def traced_readers(self) -> Iterator[tuple[int, str, OracleJob, int]]:
        """(number, name, job, period) of the nodes and sinks that take their rows according to apply events."""
        for number, stream in enumerate(self.streams):
            if stream.name in self.jobs[stream.job].applies:
                yield number, stream.name, self.jobs[stream.job], stream.period
        for (job, period), number in self._sinks.items():
            if SINK in self.jobs[job].applies:
                yield number, SINK, self.jobs[job], period

    def at_sinks(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """(the rows for sinks whose applications are given, each with its sink; the other rows)."""
        traced = [SINK in self.jobs[stream.job].applies for stream in self.streams]
        sinks = pa.array([self._sinks[stream.job, stream.period] for stream in self.streams], pa.int32())
        at = rows["at"].combine_chunks()
        now = pa.array(traced, pa.bool_()).take(at)
        return rows.filter(now).append_column("node", sinks.take(at.filter(now))), rows.filter(pc.invert(now))

    def split(self, rows: pa.Table, depth: int) -> tuple[pa.Table, pa.Table]:
        """(the rows that nodes of this depth read, each with the columns of its reader; the other rows)."""
        at = rows["at"].combine_chunks()
        now = pc.equal(self._depths.take(at), depth)
        due, at = rows.filter(now), at.filter(now)
        for name, column in self._readers.items():
            due = due.append_column(name, column.take(at))
        then = self._steps.take(self._readers["node"].take(at))
        return due.append_column("then", then), rows.filter(pc.invert(now))

    def windowed(self, due: pa.Table) -> tuple[pa.Table, pa.Table]:
        """(the rows of `due` that windows read, each with the window's parameters; the other rows)."""
        at = due["at"].combine_chunks()
        now = self._windows.take(at)
        rows, at = due.filter(now), at.filter(now)
        for name, column in self._parameters.items():
            rows = rows.append_column(name, column.take(at))
        return rows, due.filter(pc.invert(now))

    def of_users(self, due: pa.Table) -> tuple[pa.Table, pa.Table]:
        """(the rows of `due` that user functions read, each with the function; the other rows)."""
        at = due["at"].combine_chunks()
        now = pc.is_valid(self._functions.take(at))
        rows, at = due.filter(now), at.filter(now)
        rows = rows.append_column("function", self._functions.take(at)).append_column("cuts", self._cuts.take(at))
        return rows, due.filter(pc.invert(now))


WINDOW_PARAMETERS = {"p1": pa.int64(), "p2": pa.int64(), "lateness": pa.int64(), "sums": pa.bool_()}


def _window_parameters(node: Node | None) -> tuple[int | None, int | None, int | None, bool | None]:
    if node is None or not isinstance(node.operator, Window):
        return None, None, None, None
    first, second, _ = parameters_of(node.operator)
    return first, second, node.operator.lateness, node.operator.of == "sum"


def _steps(lists: Iterable[Sequence[Step]]) -> pa.Array:
    kept = list(lists)
    ends = [0]
    for steps in kept:
        ends.append(ends[-1] + len(steps))
    flat = [dict(zip(STEP.names, step, strict=True)) for steps in kept for step in steps]
    return _lists(ends, pa.array(flat, STEP))


def _lists(ends: Sequence[int], values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


APPLY = {
    "to_node": pa.int32(),
    "to_lineage": pa.int64(),
    "to_attempt": pa.int64(),
    "to_maker": pa.int64(),
    "to_origin": pa.int64(),
    "to_nth": pa.int64(),
    "to_place": pa.int64(),
    "to_epoch": pa.int32(),
    "to_tip": pa.bool_(),
    "to_lane": pa.int32(),
    "to_wm": pa.int64(),
    "to_moment": pa.int64(),
    "to_scale": pa.int64(),
}
"""The application, by the attempt `to_attempt`, of a row that the attempt `to_maker` made.

`to_nth` counts the applied rows of one origin that one attempt made, `to_place` all applications of a node.
"""

ADVANCE = {
    "at_node": pa.int32(),
    "at_lane": pa.int32(),
    "at_lineage": pa.int64(),
    "at_attempt": pa.int64(),
    "at_place": pa.int64(),
    "at_before": pa.int64(),
    "at_time": pa.int64(),
    "at_epoch": pa.int32(),
}
"""An advance of a window subtask's watermark: see `tables.Advance`."""


def applies_table(batch: Batch) -> pa.Table:
    """One row for each application of a job."""
    columns: tuple[list[int | bool | None], ...] = tuple([] for _ in APPLY)
    for number, name, job, there in batch.traced_readers():
        seen: dict[tuple[int, int, int, int], int] = {}
        for place, one in enumerate(job.applies[name]):
            origin, epoch, attempt, lineage, lane, watermark, moment, made_by, scale, period = one
            if period != there:
                continue
            maker = attempt if made_by is None else made_by
            nth = seen[lineage, maker, lane, origin] = seen.get((lineage, maker, lane, origin), 0) + 1
            row = (
                number,
                lineage,
                attempt,
                maker,
                origin,
                nth,
                place,
                epoch,
                lineage == job.tip,
                lane,
                watermark,
                moment,
                scale,
            )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, APPLY.values(), strict=True)]
    return pa.table(arrays, names=list(APPLY))


def advances_table(batch: Batch) -> pa.Table:
    """One row for each advance of a window's watermark."""
    rows = [
        (number, one.lane, one.lineage, one.attempt, one.place, one.before, one.time, one.epoch)
        for number, name, job, _ in batch.traced_readers()
        for one in job.advances.get(name, ())
    ]
    columns = zip(*rows, strict=True) if rows else [() for _ in ADVANCE]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ADVANCE.values(), strict=True)]
    return pa.table(arrays, names=list(ADVANCE))
