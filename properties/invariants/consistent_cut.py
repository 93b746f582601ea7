"""consistent-cut: each completed checkpoint is a state that the job could have passed through.

For every completed checkpoint c, restored or not:

- a record is below c's positions exactly if its read has an epoch <= c;
- each record is read once on the lineage, and every operator on its way applies it in
  the epoch in which it was read, or in a later one if it was in flight at each
  checkpoint between: nothing sent after a barrier is applied before the barrier
  (causal closure), and on aligned edges nothing sent before it is applied after it;
- a split of an enumerated input is with the enumerator or with one reader (`assignments`);
- per channel three witnesses agree on one number of records: the sender's mark minus
  the channel's in-flight records in c, the barrier's place in the network's log minus
  the in-flight records before the barrier, and the receiver's mark;
- the in-flight data of c are, row by row and in order, the messages that were sent
  before the sender's mark and taken after the receiver's;
- the elements to which a snapshot refers in logs of persistent channels were durable
  when the snapshot was stored;
- the state decoded from the store's bytes equals State(c), timers and watermarks
  included, and broadcast state is the same at every subtask;
- the sealed transactions in c hold the uncommitted rows of epochs <= c, and no
  other rows; the rows written in each epoch are those expected in the epoch.

The definition is that of Chandy and Lamport, "Distributed Snapshots" (1985).  The epoch
of an event says on which side of every cut the event lies.

Exercised by checkpoints that held state and had record events between their local
snapshots.  Where those events were not counted, it is exercised by checkpoints with
records on both sides of the cut in the attempt that took it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate

import msgspec

from ..model.history import Mark, Passing, TaskRun
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, plural, record_in_words
from ..model.workload import COPY_BITS, SINK, is_pane, origin_of
from ..quick_checker.case import Case
from ..reconstruct.buffered_rows import behind_batches
from ..reconstruct.in_flight import origins
from ..reconstruct.lineage import INFINITE, Lineage
from .parts.assignments import in_one_place, two_owners
from .parts.cut_contents import copies, held_rows, missing_snapshots, rows_by_epoch, stored_state, transactions
from .parts.cut_times import stored_times
from .parts.in_flight_cut import wrongly_in_flight
from .parts.persistent_logs import not_durable


def check(case: Case) -> Verdict:
    if "consistent-cut" not in case.promised:
        return case.not_promised("consistent-cut", f"{case.history.guarantee} mode does not align")
    lineages = {checkpoint: case.lineages.of_checkpoint(checkpoint) for checkpoint in sorted(case.lineages.completed)}
    distinct = {lineage.tip: lineage for lineage in lineages.values()}
    reads = {tip: _reads(case, lineage) for tip, lineage in distinct.items()}
    found = two_owners(case)
    if found is not None:
        return found
    inputs, exercised = _Inputs(case), 0
    for checkpoint, lineage in lineages.items():
        found = (
            missing_snapshots(case, checkpoint)
            or in_one_place(case, checkpoint)
            or not_durable(case, checkpoint)
            or _positions(case, reads[lineage.tip], checkpoint)
            or _channels(case, inputs, checkpoint)
            or copies(case, checkpoint)
            or stored_state(case, checkpoint)
            or stored_times(case, checkpoint)
            or transactions(case, lineage, checkpoint)
        )
        if found is not None:
            return found
        exercised += _is_exercised(case, checkpoint)
    for tip, lineage in distinct.items():
        found = _closure(case, lineage, reads[tip])
        if found is not None:
            return found
    found = held_rows(case) or rows_by_epoch(case)
    if found is not None:
        return found
    if not exercised:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no checkpoint held state and had events amid its snapshots")
    return Holds(exercised=exercised)


class Reads(msgspec.Struct, frozen=True, kw_only=True):
    """The reads of one split on a lineage, in order, and the epoch of each."""

    task: str = ""
    offsets: list[int] = []
    epochs: list[int] = []
    consecutive: int = 0
    """how many of the first reads are those of offsets 0, 1, 2 and so on"""
    least: list[int] = []
    """for each read, the least offset among this read and all later ones"""

    @classmethod
    def of(cls, task: str, offsets: list[int], epochs: list[int]) -> Reads:
        """The reads of a task: `agrees` is asked for each checkpoint, so what it needs is counted once."""
        consecutive = next((at for at, offset in enumerate(offsets) if at != offset), len(offsets))
        least = list(accumulate(reversed(offsets), min))[::-1]
        return cls(task=task, offsets=offsets, epochs=epochs, consecutive=consecutive, least=least)

    def agrees(self, before: int, position: int) -> bool:
        """Whether the first `before` reads are exactly the offsets below a position, and no later read is below it."""
        below = before == max(0, position) <= self.consecutive
        return below and (before >= len(self.least) or self.least[before] >= position)


def _reads(case: Case, lineage: Lineage) -> dict[int, Reads]:
    tasks: dict[int, str] = {}
    found: dict[int, tuple[list[int], list[int]]] = {}
    for source in case.workload.inputs:
        # a split may have had other readers in other attempts
        for segment in sorted(lineage.of_operator(source.name), key=lambda one: one.run.attempt):
            for (split, offset), epoch in zip(segment.run.reads, segment.read_epochs(), strict=False):
                if split not in found:
                    found[split] = [], []
                    tasks[split] = segment.run.task
                found[split][0].append(offset)
                found[split][1].append(epoch)
    return {split: Reads.of(tasks[split], offsets, epochs) for split, (offsets, epochs) in found.items()}


def _positions(case: Case, reads: dict[int, Reads], checkpoint: int) -> Violated | None:
    """A recorded position that differs from the reads before and after the marks."""
    for split, position in case.positions(checkpoint).items():
        seen = reads.get(split, _NONE)
        before = bisect_right(seen.epochs, checkpoint)
        if not seen.agrees(before, position):
            below, above = seen.offsets[:before], seen.offsets[before:]
            return _wrong_position(case, checkpoint, split, seen.task, position, below, above)
    return None


_NONE = Reads()


def _wrong_position(
    case: Case, checkpoint: int, split: int, task: str, position: int, below: list[int], above: list[int]
) -> Violated:
    wrong = [offset for offset in below if offset >= position]
    wrong += [offset for offset in above if offset < position]
    wrong += sorted(set(range(position)) - set(below) - set(above))
    wrong += [offset for offset, count in Counter(below).items() if count > 1]
    return Violated(
        difference="position differs from reads",
        message=f"{task or 'no source'} read {plural(len(below), 'record')} of split {split} before the barrier of"
        " checkpoint"
        f" {checkpoint} but recorded position {position}",
        records=tuple(record_in_words(case.workload, origin_of(split, offset)) for offset in wrong[:LIMIT]),
        checkpoint=checkpoint,
        tasks=(task,) if task else (),
        events=(
            f"read before the snapshot, on the lineage: offsets {_span(below)} of split {split}",
            f"the snapshot records: the next offset is {position}",
            f"read after the snapshot, on the lineage: offsets {_span(above)}",
        ),
    )


def _span(offsets: list[int]) -> str:
    if not offsets:
        return "none"
    if offsets == list(range(offsets[0], offsets[-1] + 1)):
        return f"{offsets[0]} to {offsets[-1]}"
    return ", ".join(map(str, offsets[:LIMIT]))


class _Input(msgspec.Struct, frozen=True, kw_only=True):
    """One input channel of a run, as its two ends and the network count its records.

    A count of an end begins at a place in the channel: where the attempt of that end began.
    """

    channel: str
    first_taken: int
    sender: TaskRun | None
    output: int
    """the channel's number among the sender's outputs"""
    first_sent: int | None
    barriers: Mapping[int, int]


class _Inputs:
    """The inputs of each run, put together once for all checkpoints."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._known: dict[tuple[str, int, int | None], list[_Input]] = {}

    def of(self, run: TaskRun, checkpoint: int) -> list[_Input]:
        """The inputs of a run when a checkpoint was taken: where tasks recover locally, their senders change."""
        key = (run.task, run.attempt, checkpoint if self._case.lineages.persistent else None)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = [self._input(run, channel, checkpoint) for channel in run.inputs]
        return known

    def _input(self, run: TaskRun, channel: str, checkpoint: int) -> _Input:
        case = self._case
        sender = case.sender(channel, run, checkpoint)
        if sender is not None and channel not in sender.outputs:
            sender = None
        return _Input(
            channel=channel,
            first_taken=case.first_taken(run, channel),
            sender=sender,
            output=sender.outputs.index(channel) if sender is not None else 0,
            first_sent=case.first_sent(sender, channel) if sender is not None else None,
            barriers=case.barriers(channel, run),
        )


def _channels(case: Case, inputs: _Inputs, checkpoint: int) -> Violated | None:
    """A channel whose marks at both ends and barrier disagree, or whose in-flight data differs."""
    in_flight = case.lineages.snapshots.in_flight(checkpoint)
    marked = case.lineages.marked(checkpoint)
    for run, mark in marked.values():
        for index, one in enumerate(inputs.of(run, checkpoint)):
            received = one.first_taken + mark.received[index]
            sent, passed = _sent(case, one, marked, checkpoint), one.barriers.get(checkpoint)
            held = in_flight.get(one.channel)
            if held is not None:
                queued = _records_in(held.queued)
                sent = None if sent is None else sent - queued - _records_in(held.unsent)
                passed = None if passed is None else passed - queued
            if (sent is not None and sent != received) or (passed is not None and passed != received):
                return _uneven(case, checkpoint, one.channel, run, received, sent, passed)
            if held is not None:
                found = wrongly_in_flight(case, one.channel, run, checkpoint, received)
                if found is not None:
                    return found
    return None


def _sent(case: Case, one: _Input, marked: Mapping[str, tuple[TaskRun, Mark]], checkpoint: int) -> int | None:
    """The place up to which the sender had sent at its own mark; None if that is unknown."""
    sender = one.sender
    if sender is None or one.first_sent is None:
        return None
    there = marked.get(sender.task)
    mark = there[1] if there and there[0] is sender else case.lineages.mark(sender.task, sender.attempt, checkpoint)
    return one.first_sent + mark.sent[one.output] if mark is not None else None


def _records_in(passing: list[Passing]) -> int:
    return len(origins(passing)) if passing else 0


def _uneven(
    case: Case, checkpoint: int, channel: str, run: TaskRun, received: int, sent: int | None, passed: int | None
) -> Violated:
    sender = channel.partition(">")[0]
    log = case.content(channel, run)
    known = [count for count in (sent, passed) if count is not None]
    between = log.content[min(received, *known) : max(received, *known)] if log else []
    counted = next(count for count in known if count != received)
    early = received > counted
    return Violated(
        difference="sent after, applied before" if early else "sent before, applied after",
        message=f"{run.task} had taken {plural(received, 'record')} of {channel} at its snapshot of"
        f" checkpoint {checkpoint}, {sender} had sent {counted} at its own",
        records=tuple(record_in_words(case.workload, origin) for origin in between[:LIMIT]),
        checkpoint=checkpoint,
        tasks=(sender, run.task),
        events=(
            *_counts(channel, checkpoint, sent, passed),
            f"{run.task} had taken {plural(received, 'record')} at its own snapshot",
        ),
    )


def _counts(channel: str, checkpoint: int, sent: int | None, passed: int | None) -> Iterator[str]:
    """The counts of the sender and of the network, where they are known."""
    if sent is not None:
        sender = channel.partition(">")[0]
        yield f"{sender} had sent {plural(sent, 'record')} into {channel} at its snapshot of checkpoint {checkpoint}"
    if passed is not None:
        yield f"the network saw the barrier after {plural(passed, 'record')}"


def _closure(case: Case, lineage: Lineage, reads: dict[int, Reads]) -> Violated | None:
    """A record that was not applied in the epoch in which it was read, nor in flight until it was applied."""
    read: dict[int, int] = {}
    for split, seen in reads.items():
        first = origin_of(split, 0) >> COPY_BITS
        for offset, epoch in zip(seen.offsets, seen.epochs, strict=True):
            read[first | offset] = epoch
    late = behind_batches(case.workload)
    passing = {
        number: {
            origin >> COPY_BITS for one in case.lineages.snapshots.in_flight(number).values() for origin in one.origins
        }
        for number in lineage.checkpoints
    }
    for operator in (*(node.name for node in case.workload.nodes), SINK):
        for segment in lineage.of_operator(operator):
            for (channel, origin), epoch in zip(segment.run.applies, segment.apply_epochs(), strict=False):
                # A window's row belongs to the epoch in which the window ended, and a buffered row may come later:
                # `_channels` and `rows_by_epoch` check these.
                was = read.get(origin >> COPY_BITS)
                if was == epoch or is_pane(origin):
                    continue
                if was is not None and was < epoch and _was_passing(passing, origin >> COPY_BITS, was, epoch):
                    continue
                if operator not in late or was is None or was > epoch:
                    return _crossing(case, segment.run, channel, origin, epoch, was)
    return None


def _was_passing(passing: dict[int, set[int]], record: int, read: int, applied: int) -> bool:
    """Whether a record was in flight at every checkpoint between its read and its application."""
    return all(record in records for number, records in passing.items() if read <= number < applied)


def _crossing(case: Case, run: TaskRun, channel: int, origin: int, applied: int, read: int | None) -> Violated:
    place = record_in_words(case.workload, origin)
    source = run.inputs[channel].partition(">")[0]
    if read is None:
        difference, clause = "applied without a read", "no source read it on the lineage"
    elif applied < read:
        difference, clause = "sent after, applied before", f"its source read it in {_epoch(read)}"
    else:
        difference, clause = "sent before, applied after", f"its source read it in {_epoch(read)}"
    return Violated(
        difference=difference,
        message=f"{run.task} (attempt {run.attempt}) applied {place} in {_epoch(applied)}, {clause}",
        records=(place,),
        checkpoint=min(applied, INFINITE if read is None else read) if applied != read else None,
        tasks=(source, run.task),
        events=(f"{run.task} took it from {run.inputs[channel]}",),
    )


def _epoch(epoch: int) -> str:
    return "the time after the last completed checkpoint" if epoch >= INFINITE else f"the epoch of checkpoint {epoch}"


def _is_exercised(case: Case, checkpoint: int) -> bool:
    states = case.states(checkpoint).values()
    if not any(state.holds_something for state in states):
        return False
    marked = case.lineages.marked(checkpoint).values()
    counted = [mark.events for _, mark in marked if mark.events >= 0]
    if counted:
        return max(counted) > min(counted)
    return any(_is_amid(run, mark) for run, mark in marked)


def _is_amid(run: TaskRun, mark: Mark) -> bool:
    return 0 < mark.reads < len(run.reads) or 0 < mark.applies < len(run.applies)
