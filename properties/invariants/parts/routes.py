"""Whether each record was read, sent, and applied once at each operator on the lineage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...model.history import TaskRun
from ...model.verdict import Violated
from ...model.words import LIMIT, journal_until, record_in_words
from ...model.workload import SINK, is_clocked, origin_of
from ...quick_checker.case import Case
from ...reconstruct.buffered_rows import batches, waiting
from ...reconstruct.in_flight import NOTHING
from ...reconstruct.lineage import INFINITE, Segment, by_channel
from ...semantics.broadcast import broadcasters, taken_by_all
from ..order import is_rescaled_behind, put_in


def unread(case: Case) -> Violated | None:
    """A record below the closing cut that no source read on the lineage."""
    read: dict[int, set[int]] = {}
    for source in case.workload.inputs:
        for segment in case.lineage.of_operator(source.name):
            for split, offset in segment.run.reads[: segment.reads_up_to(case.closing.epoch)]:
                read.setdefault(split, set()).add(offset)
    for split, source, records in case.workload.splits():
        end = min(case.closing.positions[split], len(records))
        offsets = read.get(split, set())
        missing = [offset for offset in range(end) if offset not in offsets]
        if missing:
            places = tuple(record_in_words(case.workload, origin_of(split, offset)) for offset in missing[:LIMIT])
            return Violated(
                difference="record never read",
                message=f"{source.name} did not read {places[0]}, though the cut covers split {split} up to {end}",
                records=places,
                checkpoint=case.closing.checkpoint,
                tasks=(source.name,),
                events=journal_until(case.history, None),
            )
    return None


def unapplied(case: Case) -> Violated | None:
    """A message that was sent within the closing cut, and not taken within it.

    The messages are compared, not their numbers: if a checkpoint does not block channels, a later
    message could make up for a missing one.
    """
    epoch = case.closing.epoch
    if case.lineages.persistent:
        return _unapplied_along(case, epoch)
    for task, segments in case.lineage.segments.items():
        for segment in segments:
            taken = _taken_up_to(case, segment, epoch)
            for channel, origins in zip(segment.run.inputs, taken, strict=True):
                sent = _sent_up_to(case, channel, segment.run.attempt, epoch)
                if origins[: len(sent)] == sent:
                    continue
                missing = Counter(sent) - Counter(origins)
                if missing:
                    return _never_applied(case, task, channel, segment.run.attempt, missing)
    return None


def _unapplied_along(case: Case, epoch: int) -> Violated | None:
    """A message that was not taken within the closing cut, in channels that outlive attempts.

    All messages that were sent on the lineage are compared with all that were taken.
    """
    for task, segments in case.lineage.segments.items():
        found: dict[str, Counter[int]] = {}
        for segment in segments:
            for channel, origins in zip(segment.run.inputs, _taken_up_to(case, segment, epoch), strict=True):
                found.setdefault(channel, Counter()).update(origins)
        for channel, taken in found.items():
            missing = Counter(_sent_along(case, channel, epoch)) - taken
            if missing:
                return _never_applied(case, task, channel, case.lineage.tip, missing)
    return None


def _sent_along(case: Case, channel: str, epoch: int) -> list[int]:
    """The messages of a channel on the lineage, of all attempts, whose epoch is at most `epoch`."""
    sent: list[int] = []
    for segment in case.lineage.segments.get(channel.partition(">")[0], ()):
        log = case.channels.get((channel, segment.run.attempt))
        if log is None or channel not in segment.run.outputs:
            continue
        mark = segment.mark_at(epoch)
        if epoch >= INFINITE and segment.cut is None:
            sent += put_in(case, segment, channel, log)
        elif mark is not None:
            sent += put_in(case, segment, channel, log, mark.sent[segment.run.outputs.index(channel)])
            in_flight = case.lineages.snapshots.in_flight(mark.checkpoint).get(channel, NOTHING).origins
            ends_there = segment.cut is None or mark.checkpoint == epoch
            if in_flight and (ends_there or is_rescaled_behind(case, segment)):
                del sent[-len(in_flight) :]
    return sent


def _sent_up_to(case: Case, channel: str, attempt: int, epoch: int) -> list[int]:
    """The messages of an attempt's channel whose epoch is at most `epoch`; none if the sender is off the lineage."""
    sender = case.lineage.segment(channel.partition(">")[0], attempt)
    log = case.channels.get((channel, attempt))
    if sender is None or log is None or channel not in sender.run.outputs:
        return []
    if epoch >= INFINITE and sender.cut is None:
        return log.content
    mark = sender.mark_at(epoch)
    if mark is None:
        return []
    in_flight = case.lineages.snapshots.in_flight(mark.checkpoint).get(channel, NOTHING)
    sent = len(log.recovered) + mark.sent[sender.run.outputs.index(channel)]
    return log.content[: sent - len(in_flight.origins)]


def _taken_up_to(case: Case, segment: Segment, epoch: int) -> Sequence[Sequence[int]]:
    """By input channel, the messages that a segment took whose epoch is at most `epoch`."""
    applies = segment.applies_up_to(epoch)
    return case.taken(segment) if applies == segment.applies else by_channel(segment.run, applies)


def _never_applied(case: Case, task: str, channel: str, attempt: int, missing: Counter[int]) -> Violated:
    return Violated(
        difference="message never applied",
        message=f"{task} did not take {missing.total()} of the messages of {channel} (attempt {attempt})"
        " that lie within the closing cut",
        records=tuple(record_in_words(case.workload, origin) for origin in list(missing)[:LIMIT]),
        checkpoint=case.closing.checkpoint,
        tasks=(channel.partition(">")[0], task),
        events=journal_until(case.history, None),
    )


def misapplied(case: Case) -> Violated | None:
    """A record within the closing cut that an operator did not apply exactly once on the lineage.

    Over a broadcast edge each of the operator's subtasks has to apply the record once.  The
    workload determines the records that the first operators have to apply.  For the other
    operators, the records that their senders applied determine them.
    """
    for operator in (*(node.name for node in case.workload.nodes), SINK):
        expected: Counter[int] = Counter()
        for sender, job in _feeds(case, operator):
            expected.update(_emitted(case, sender, job))
        least, most = _applied(case, operator)
        waiting_there = _in_flight(case, operator)
        if expected - (least + waiting_there) or (most + waiting_there) - expected:
            return _difference(case, operator, expected - (least + waiting_there), (most + waiting_there) - expected)
    return None


def _feeds(case: Case, operator: str) -> Iterator[tuple[str, int | None]]:
    """What sends to an operator, and the job in which it does; None: in all jobs."""
    if not case.jobs.any_absent:
        nodes = {node.name: node.inputs for node in case.workload.nodes} | {SINK: (case.workload.output,)}
        yield from ((sender, None) for sender in nodes[operator])
        return
    for job in case.jobs.absent:
        yield from ((sender, job) for sender in case.jobs.senders(operator, job))


def _emitted(case: Case, sender: str, job: int | None) -> list[int]:
    """The origins of the records that the sender sent within the closing cut, in a job or in all of them."""
    inputs = {source.name for source in case.workload.inputs}
    epoch = case.closing.epoch
    segments = [one for one in case.lineage.of_operator(sender) if job in (None, one.run.job)]
    if sender in inputs and job is not None:
        reads = (read for one in segments for read in one.run.reads[: one.reads_up_to(epoch)])
        return [origin_of(split, offset) for split, offset in reads]
    if sender in inputs:
        return [
            origin_of(split, offset)
            for split in case.workload.splits_of(sender)
            for offset in range(case.closing.positions[split])
        ]
    found: list[int] = []
    clocked = is_clocked(case.workload.node(sender).operator)
    for segment in segments:
        replayed = case.expected.replay.run(segment.run.task, segment.run.attempt)
        applies, advances = segment.applies_up_to(epoch), segment.advances_up_to(epoch, clocked)
        found += [origin for taken, origin, _ in replayed.emitted if taken <= applies]
        found += [origin for advanced, origin, _ in replayed.fired if advanced <= advances]
    return _but_waiting(case, sender, found) if sender in batches(case.workload) else found


def _in_flight(case: Case, operator: str) -> Counter[int]:
    """The origins of the records in flight to an operator in the closing cut's snapshot."""
    closing = case.closing
    if closing.kind in ("end", "drain") or closing.checkpoint is None:
        return Counter()
    channels = case.lineages.snapshots.in_flight(closing.checkpoint).items()
    into = [held for channel, held in channels if channel.partition(">")[2].rpartition("-")[0] == operator]
    return Counter(origin for held in into for origin in held.origins)


def _but_waiting(case: Case, batch: str, passed: list[int]) -> list[int]:
    """The origins of a batch's records, without those that it buffers in the closing cut's snapshot."""
    remaining = Counter(passed)
    if case.closing.kind not in ("end", "drain") and case.closing.checkpoint is not None:
        for state in case.states_of(batch, case.closing.checkpoint).values():
            remaining.subtract(Counter(origin for _, origin in waiting(state)))
    return list(remaining.elements())


def _applied(case: Case, operator: str) -> tuple[Counter[int], Counter[int]]:
    """(least, most): how often an operator applied each record.

    The two differ if not all subtasks downstream of a broadcast edge applied a record equally often.
    """
    epoch = case.closing.epoch
    segments = case.lineage.of_operator(operator)
    sender = broadcasters(case.workload).get(operator)
    if sender is None:
        once = Counter(
            origin for segment in segments for _, origin in segment.run.applies[: segment.applies_up_to(epoch)]
        )
        return once, once
    others: Counter[int] = Counter()
    broadcast: list[tuple[TaskRun, list[int]]] = []
    for segment in segments:
        taken = segment.run.applies[: segment.applies_up_to(epoch)]
        copied = [_sender(channel) == sender for channel in segment.run.inputs]
        broadcast.append((segment.run, [origin for channel, origin in taken if copied[channel]]))
        others.update(origin for channel, origin in taken if not copied[channel])
    least, most = taken_by_all(
        broadcast, {job: layout.parallelism[operator] for job, layout in case.jobs.layouts.items()}
    )
    return others + least, others + most


def _sender(channel: str) -> str:
    """The operator that sends into a channel."""
    return channel.partition(">")[0].rpartition("-")[0]


def _difference(case: Case, operator: str, lost: Counter[int], extra: Counter[int]) -> Violated:
    origins = sorted(extra) or sorted(lost)
    places = tuple(record_in_words(case.workload, origin) for origin in origins[:LIMIT])
    what = "more often than expected" if extra else "less often than expected"
    return Violated(
        difference="applied twice" if extra else "never applied",
        message=f"{operator} applied {places[0]} {what} on the lineage",
        records=places,
        checkpoint=case.closing.checkpoint,
        tasks=(operator,),
        events=journal_until(case.history, None),
    )
