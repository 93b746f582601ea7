"""order: on the lineage, records are taken as they were sent.

There are two claims.  Per channel, the receiver applies the sender's records in their
order and without a gap: over the attempts of the lineage, each cut at the snapshot that
the next attempt restored, the records taken are a prefix of the records sent.  Per split
and key, the offsets increase at every operator, if the path to the operator is
first-in-first-out (a rebalance among several receivers is not).

The network's log has the sends, and the receiver's own program order has the applies: no
single defect writes both witnesses.  Exercised by each pair of neighbouring records of a
channel with a restore between them, or with an alignment that blocked the channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..model.history import Channel
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import journal_until, record_in_words
from ..model.workload import SINK, Batch, FlatMap, Join, User, Window, is_changelog, offset_of, split_of
from ..quick_checker.case import Case
from ..reconstruct.in_flight import NOTHING, origins
from ..reconstruct.lineage import INFINITE, Segment
from ..semantics.broadcast import broadcasters


def check(case: Case) -> Verdict:
    if "order" not in case.promised:
        return case.not_promised("order", f"{case.history.guarantee} mode may repeat and reorder")
    if not case.history.channels:
        return Unknown(reason=Reason.NOT_OBSERVABLE, detail="the sends were not recorded")
    exercised = 0
    for task, segments in case.lineage.segments.items():
        taken = [dict(zip(segment.run.inputs, case.taken(segment), strict=True)) for segment in segments]
        for channel in dict.fromkeys(name for segment in segments for name in segment.run.inputs):
            found = _compare(case, task, channel, [of.get(channel, []) for of in taken])
            if found is not None:
                return found
        exercised += _restores_between(taken) + sum(_alignments_between(case, segment) for segment in segments)
    return _offsets_increase(case) or (
        Holds(exercised=exercised)
        if exercised
        else Unknown(reason=Reason.NOT_EXERCISED, detail="no restore or alignment lay between two records of a channel")
    )


def _sends(case: Case, channel: str) -> list[int] | None:
    """The origins sent into a channel along the lineage; None where a log is missing or the records cannot be followed.

    Records that were in flight at a restore were sent before it, and are not counted again.  If the job was rescaled,
    these records went through other channels, and are counted in the channels into which they were restored.
    """
    sent: list[int] = []
    for segment in case.lineage.segments.get(channel.split(">")[0], ()):
        if _rescaled_unobserved(case, segment):
            return None
        if channel not in segment.run.outputs:
            continue
        log = case.channels.get((channel, segment.run.attempt))
        if log is None:
            return None
        sent += put_in(case, segment, channel, log)
        if segment.cut is not None and is_rescaled_behind(case, segment):  # earlier attempts may have sent some of it
            in_flight = case.lineages.snapshots.in_flight(segment.cut).get(channel, NOTHING)
            del sent[max(0, len(sent) - len(in_flight.origins)) :]
    return sent + _restored_without_sender(case, channel)


def _restored_without_sender(case: Case, channel: str) -> list[int]:
    """The origins restored into a channel of a rescaled job, if its sender has not been deployed in it.

    The receiver's last run on the lineage is the only one of such a job.  Another would restore a checkpoint of this
    job, and none completes without an acknowledgement of the sender.  (A sender that had finished before is deployed
    too, or its records cannot be followed: `_rescaled_unobserved`.)
    """
    sender, receiver = channel.split(">")
    last = case.lineage.segments[receiver][-1].run
    origin = case.lineages.parent(receiver, last.attempt)
    deployed = any(segment.run.job == last.job for segment in case.lineage.segments.get(sender, ()))
    if deployed or origin is None or not case.rescaled(last.attempt, origin[1]):
        return []
    content = case.content(channel, last)
    return content.recovered if content is not None else []


def put_in(case: Case, segment: Segment, channel: str, log: Channel, end: int | None = None) -> list[int]:
    """The origins that a segment of the sender sent into a channel for the first time.

    They go up to the segment's end, or to `end` records.
    """
    run = segment.run
    end = segment.sent[run.outputs.index(channel)] if end is None else end
    origin = case.lineages.parent(run.task, run.attempt)
    rescaled = origin is not None and case.rescaled(run.attempt, origin[1])
    again = (
        case.lineages.snapshots.in_flight(origin[1]).get(channel, NOTHING)
        if origin is not None and not rescaled
        else NOTHING
    )
    sent = (log.repeated + log.sent if log.repeated else log.sent)[:end]
    in_flight = (
        case.lineages.snapshots.in_flight(segment.cut).get(channel, NOTHING) if segment.cut is not None else NOTHING
    )
    if len(sent) < end < INFINITE:  # the attempt failed before it could send the unsent records of its snapshot
        sent = sent + origins(in_flight.unsent)[len(sent) - end :]
    if again.unsent:
        sent = sent[len(origins(again.unsent)) :]
    content = case.content(channel, run) if rescaled else None
    return content.recovered + sent if content is not None else sent


def _rescaled_unobserved(case: Case, segment: Segment) -> bool:
    """Whether the job was rescaled between a finished task's last snapshot and the cut of its segment.

    The lineage skips the attempts between, in which the task's in-flight records were redistributed.
    """
    if segment.cut is None:
        return False
    until = case.lineages.completed[segment.cut].attempt
    between = [case.lineages.starts[one] for one in case.lineage.attempts if segment.run.attempt < one <= until]
    return any(one.restores is not None and case.rescaled(one.attempt, one.restores) for one in between)


def is_rescaled_behind(case: Case, segment: Segment) -> bool:
    """Whether the job that continues from a segment's cut is rescaled."""
    starts = case.lineages.starts
    later = [one for one in case.lineage.attempts if one > segment.run.attempt and not starts[one].in_place]
    if not later or segment.cut is None:
        return False
    recovered_locally = case.lineages.persistent is not None and starts[later[0]].restores != segment.cut
    return not recovered_locally and case.rescaled(later[0], segment.cut)


def _compare(case: Case, task: str, channel: str, taken: Sequence[Sequence[int]]) -> Violated | None:
    sent = _sends(case, channel)
    applied = [origin for origins in taken for origin in origins]
    if sent is None or applied == sent[: len(applied)]:
        return None
    at = next((at for at, (one, other) in enumerate(zip(applied, sent, strict=False)) if one != other), len(sent))
    got = applied[at]
    wanted = sent[at] if at < len(sent) else None
    difference = _kind(got, wanted, sent, applied, at)
    due = "nothing more was sent" if wanted is None else f"{record_in_words(case.workload, wanted)} was sent next"
    return Violated(
        difference=difference,
        message=f"{task} took {record_in_words(case.workload, got)} from {channel}, but {due}",
        records=tuple(record_in_words(case.workload, origin) for origin in (got, wanted) if origin is not None),
        tasks=(channel.split(">")[0], task),
        events=(
            f"{channel} carried on the lineage: {_records_in_words(case, sent[max(0, at - 2) : at + 3])}",
            f"{task} took: {_records_in_words(case, applied[max(0, at - 2) : at + 3])}",
            *journal_until(case.history, None),
        ),
    )


def _records_in_words(case: Case, origins: list[int]) -> str:
    return "; ".join(record_in_words(case.workload, origin) for origin in origins) or "nothing"


def _kind(got: int, wanted: int | None, sent: list[int], applied: list[int], at: int) -> str:
    if wanted is not None and wanted in applied[at:]:
        return "records out of order"
    if got in sent[at:]:
        return "gap in a channel"
    return "record taken twice" if got in sent[:at] else "record never sent"


def _restores_between(taken: Sequence[Mapping[str, Sequence[int]]]) -> int:
    """How many pairs of neighbouring records of a channel have a restore between them."""
    found = 0
    seen: set[str] = set()
    for channels in taken:
        having = [channel for channel, origins in channels.items() if origins]
        found += sum(channel in seen for channel in having)
        seen.update(having)
    return found


def _alignments_between(case: Case, segment: Segment) -> int:
    """How many pairs of neighbouring records of a channel have an alignment between them that blocked the channel.

    An alignment blocks all channels but the one whose barrier came last.
    """
    inputs = len(segment.run.inputs)
    if inputs < 2:
        return 0
    found = 0
    totals = list(map(len, case.taken(segment)))
    for mark in segment.run.marks:
        if mark.applies <= segment.applies:
            around = sum(0 < before < total for before, total in zip(mark.received, totals, strict=True))
            found += min(around, inputs - 1)
    return found


class _Way(msgspec.Struct, frozen=True, kw_only=True):
    """How records come to an operator: in order (`fifo`), and at most one row of each record (`single`)."""

    fifo: bool = True
    single: bool = True


def _ways(case: Case) -> dict[str, _Way]:
    """The way to each node and the sink: the worst one over its inputs."""
    ways: dict[str, _Way] = {source.name: _Way() for source in case.workload.inputs}
    for node in case.workload.nodes:
        arriving = [_after_edge(case, name, node.name, ways[name]) for name in node.inputs]
        ways[node.name] = _Way(fifo=all(way.fifo for way in arriving), single=all(way.single for way in arriving))
    ways[SINK] = _after_edge(case, case.workload.output, SINK, ways[case.workload.output])
    return ways


def _after_edge(case: Case, sender: str, receiver: str, way: _Way) -> _Way:
    spread = case.jobs.topology.edge(sender, receiver).partitioning == "rebalance"
    several = case.jobs.topology.parallelism[receiver] > 1
    kinds = [node.operator for node in case.workload.nodes if node.name == sender]
    multiplies = any(isinstance(one, (FlatMap, Join, User)) or is_changelog(one) for one in kinds)
    gathers = any(isinstance(one, (Batch, User, Window)) for one in kinds)
    return _Way(fifo=way.fifo and not gathers and not (spread and several), single=way.single and not multiplies)


_Lane = tuple[int, int | None, int]
"""split, key, and of a broadcast edge the subtask that takes a copy (else -1)"""


class _Places:
    """The split, key and offset of each record that an origin names."""

    def __init__(self, case: Case) -> None:
        self._keys = {split: [record[0] for record in records] for split, _, records in case.workload.splits()}
        self.known: dict[int, tuple[_Lane, int]] = {}
        """by origin, (lane, offset) on an edge that is not broadcast"""

    def of(self, origin: int) -> tuple[_Lane, int]:
        split, offset = split_of(origin), offset_of(origin)
        keys = self._keys.get(split, [])
        self.known[origin] = (split, keys[offset] if offset < len(keys) else None, -1), offset
        return self.known[origin]


def _offsets_increase(case: Case) -> Violated | None:
    places = _Places(case)
    copied = broadcasters(case.workload)
    for operator, way in _ways(case).items():
        if not way.fifo:
            continue
        last: dict[_Lane, int] = {}
        segments = sorted(case.lineage.of_operator(operator), key=lambda segment: segment.run.attempt)
        for segment in segments:
            found = _increasing(case, segment, places, 1 if way.single else 0, last, copied.get(operator))
            if found is not None:
                return found
    return None


def _increasing(
    case: Case,
    segment: Segment,
    places: _Places,
    step: int,
    last: dict[_Lane, int],
    broadcaster: str | None,
) -> Violated | None:
    """An offset that is not greater by at least `step` than the last one of its split and key.

    The last one is that of all subtasks; on a broadcast edge it is that of this subtask.
    """
    own = [channel.partition(">")[0].rpartition("-")[0] == broadcaster for channel in segment.run.inputs]
    known = places.known
    for channel, origin in segment.run.applies[: segment.applies]:
        lane, offset = known.get(origin) or places.of(origin)
        if own[channel]:
            lane = (lane[0], lane[1], segment.run.subtask)
        if offset < last.get(lane, -1) + step:
            return Violated(
                difference="offsets do not increase",
                message=f"{segment.run.task} took {record_in_words(case.workload, origin)} after record {last[lane]} "
                f"of the same split and key {lane[1]}",
                records=(record_in_words(case.workload, origin),),
                tasks=(segment.run.task,),
                events=journal_until(case.history, segment.run.ended),
            )
        last[lane] = offset
    return None
