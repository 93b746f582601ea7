"""The lineage of a snapshot or of a run's end: which events led there, and the epoch of each.

When an attempt restores a checkpoint, what the failed attempt did after that checkpoint
is undone.  So the judges do not look at all events of an exactly-once engine, but at one
*lineage*: for each task, the events of the attempts that led to the end.  Each attempt
is cut at the mark of the snapshot that the next attempt restored, also where the next
attempt belongs to a resumed job.  Attempts from which no later one restored are off the
lineage.

The *epoch* of an event on a lineage is the first completed checkpoint on the lineage
whose mark its task set after the event; `INFINITE` when there is none.  A checkpoint
that was aborted bounds no epoch: its events belong to the epoch of the next completed
checkpoint.  A task that had finished took no part in a checkpoint: all its events are on
the lineage, and its last snapshot counts for the checkpoint.

The theory is Chandy and Lamport, "Distributed Snapshots" (1985): a cut is consistent
when no event in it depends on one outside.  Lineages are chained task by task.  A
recovery that restarts only some tasks (`AttemptStarted.tasks`) leaves the other tasks in
their attempts; the attempt that serves a task is the newest one that deployed it.  The
part of one attempt of a task that lies on a lineage is a `Segment`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain

import msgspec

from ..model.history import AttemptRunning, AttemptStarted, Completed, History, Mark, Stored, StoredState, TaskRun
from .in_flight import InFlight, channels_of
from .persistent import Persistent

INFINITE = 1 << 62
"""The epoch of an event that no completed checkpoint of its lineage covers."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one attempt of a task that lies on a lineage.

    `reads`, `applies` and `sent` (by output channel) say how many of the run's
    events are in the segment.  `cut` is the checkpoint whose mark ends the segment
    (None: all of the run is on the lineage).  `marks` are the run's marks of the
    lineage's completed checkpoints, in program order.
    """

    run: TaskRun
    reads: int
    applies: int
    sent: tuple[int, ...]
    cut: int | None
    marks: tuple[Mark, ...]

    def read_epochs(self) -> list[int]:
        """The epoch of each read of the segment, in program order."""
        return _epochs(((mark.checkpoint, mark.reads) for mark in self.marks), self.reads)

    def apply_epochs(self) -> list[int]:
        """The epoch of each applied record of the segment, in program order."""
        return _epochs(((mark.checkpoint, mark.applies) for mark in self.marks), self.applies)

    def mark_at(self, epoch: int) -> Mark | None:
        """The last mark of a checkpoint up to an epoch: the events of later epochs begin at this mark."""
        found = None
        for mark in self.marks:
            if mark.checkpoint <= epoch:
                found = mark
        return found

    def reads_up_to(self, epoch: int) -> int:
        """How many of its reads have at most this epoch."""
        mark = self.mark_at(epoch)
        return self.reads if epoch >= INFINITE else mark.reads if mark else 0

    def advances_up_to(self, epoch: int, clocked: bool) -> int:
        """How many advances of its watermark, or of its clock, have at most this epoch."""
        mark, run = self.mark_at(epoch), self.run
        if epoch >= INFINITE and self.cut is None:
            return len(run.ticks if clocked else run.watermarks)
        return (mark.ticks if clocked else mark.watermarks) if mark else 0

    def applies_up_to(self, epoch: int) -> int:
        """How many of its applies have at most this epoch."""
        mark = self.mark_at(epoch)
        return self.applies if epoch >= INFINITE else mark.applies if mark else 0


def _epochs(bounds: Iterator[tuple[int, int]], total: int) -> list[int]:
    epochs: list[int] = []
    for checkpoint, before in bounds:
        epochs.extend([checkpoint] * (min(before, total) - len(epochs)))
    epochs.extend([INFINITE] * (total - len(epochs)))
    return epochs


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """One record taken by an operator on a lineage.

    `segment` is the attempt, `sequence` the record's number (from 0) among those
    that this attempt of the subtask took.
    """

    operator: str
    subtask: int
    segment: int
    sequence: int
    origin: int
    epoch: int


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """A lineage that ends with attempt `tip`.

    `attempts` and `checkpoints` are ordered oldest first, `segments` by task and oldest first.
    """

    tip: int
    attempts: tuple[int, ...]
    checkpoints: tuple[int, ...]
    segments: dict[str, tuple[Segment, ...]]
    by_operator: dict[str, list[Segment]]
    """the same segments"""

    def of_operator(self, operator: str) -> Sequence[Segment]:
        """The segments of all subtasks of an input, node or sink."""
        return self.by_operator.get(operator, ())

    def applied(self, operator: str) -> Iterator[Applied]:
        """The records that the operator took on the lineage, by subtask and in program order."""
        for segment in self.of_operator(operator):
            run = segment.run
            for sequence, epoch in enumerate(segment.apply_epochs()):
                yield Applied(
                    operator=operator,
                    subtask=run.subtask,
                    segment=run.attempt,
                    sequence=sequence,
                    origin=run.applies[sequence][1],
                    epoch=epoch,
                )

    def segment(self, task: str, attempt: int) -> Segment | None:
        """The segment of a task's attempt; None when the attempt is off the lineage."""
        for segment in self.segments.get(task, ()):
            if segment.run.attempt == attempt:
                return segment
        return None

    def epochs_of(self, task: str, attempt: int, taken: Sequence[int]) -> list[int | None]:
        """The epoch of the n-th record (from 1) of a task's attempt, for each n of `taken`; None when the record is off
        the lineage."""
        segment = self.segment(task, attempt)
        if segment is None:
            return [None] * len(taken)
        ends = list(accumulate((mark.applies for mark in segment.marks), max))
        epochs = [*(mark.checkpoint for mark in segment.marks), INFINITE]
        return [epochs[bisect_left(ends, one)] if one <= segment.applies else None for one in taken]


class Lineages:
    """A history's attempts, snapshots and lineages; each lineage is computed once."""

    def __init__(self, history: History) -> None:
        self.runs: dict[tuple[str, int], TaskRun] = {(run.task, run.attempt): run for run in history.runs}
        self.tasks: tuple[str, ...] = tuple(dict.fromkeys(run.task for run in history.runs))
        self.completed: dict[int, Completed] = {entry.checkpoint: entry for entry in history.completed}
        self.handles: dict[str, Stored] = {entry.handle: entry for entry in history.stored}
        self.starts: dict[int, AttemptStarted] = {
            entry.attempt: entry for entry in history.journal if isinstance(entry, AttemptStarted)
        }
        self.last_attempt: int = max([*self.starts, *(run.attempt for run in history.runs)], default=0)
        self.persistent: Persistent | None = None
        """the channels, where tasks recovered locally; otherwise None"""
        if any(start.in_place for start in self.starts.values()):
            channels = {(channel.name, channel.attempt): channel for channel in history.channels}
            self.persistent = Persistent(self, channels)
        self._running = {entry.attempt for entry in history.journal if isinstance(entry, AttemptRunning)}
        self._completions = history.completed
        self._partial = any(start.tasks for start in self.starts.values())
        self._marks = {key: {mark.checkpoint: mark for mark in run.marks} for key, run in self.runs.items()}
        self._entries = history.stored
        self._stored: dict[int, dict[str, Stored]] = {}
        self._lineages: dict[int, Lineage] = {}
        self._decoded: dict[str, StoredState | None] = {}
        self._finished: dict[int, frozenset[str]] = {}
        self._parents: dict[tuple[str, int], tuple[int, int] | None] = {}
        self._serving_runs: dict[int, list[TaskRun]] = {}
        self._marked: dict[int, dict[str, tuple[TaskRun, Mark]]] = {}
        self._states: dict[int, dict[str, StoredState]] = {}
        self._states_of: dict[int, dict[str, dict[str, StoredState]]] = {}
        self._positions: dict[int, dict[int, int]] = {}
        self._in_flight: dict[int, dict[str, InFlight]] = {}

    @cached_property
    def end(self) -> Lineage:
        """The lineage of the run's end."""
        return self.of_attempt(self.last_attempt)

    def serving(self, task: str, attempt: int) -> int:
        """The attempt that a task is in while `attempt` is the newest: an earlier one if `attempt` left it running."""
        if self._partial:
            while (start := self.starts.get(attempt)) is not None and start.tasks and task not in start.tasks:
                attempt = max((number for number in self.starts if number < attempt), default=0)
        return attempt

    def serving_runs(self, attempt: int) -> list[TaskRun]:
        """The runs that the tasks are in while `attempt` is the newest, in the order of the history."""
        if attempt not in self._serving_runs:
            runs = self.runs.values()
            self._serving_runs[attempt] = [run for run in runs if run.attempt == self.serving(run.task, attempt)]
        return self._serving_runs[attempt]

    @cached_property
    def _stored_of(self) -> dict[tuple[str, int], list[Stored]]:
        """By task and attempt, its stored snapshots."""
        found: dict[tuple[str, int], list[Stored]] = {}
        for entry in sorted(self._entries, key=lambda entry: entry.checkpoint):  # they may be stored out of order
            found.setdefault((entry.task, entry.attempt), []).append(entry)
        return found

    @cached_property
    def operator_of(self) -> dict[str, str]:
        """The operator of each task that ran."""
        return {run.task: run.operator for run in self.runs.values()}

    @cached_property
    def operators(self) -> dict[int, dict[str, str]]:
        """By job, the operator of each task that ran in it."""
        found: dict[int, dict[str, str]] = {}
        for run in self.runs.values():
            found.setdefault(run.job, {})[run.task] = run.operator
        return found

    def taken_by(self, task: str, attempt: int) -> list[Completed]:
        """The completed checkpoints in which an attempt of a task took part."""
        return [entry for entry in self._completions if self.serving(task, entry.attempt) == attempt]

    def of_attempt(self, attempt: int) -> Lineage:
        """The lineage that ends with the end of an attempt."""
        if attempt not in self._lineages:
            self._lineages[attempt] = self._draw(attempt)
        return self._lineages[attempt]

    def of_checkpoint(self, checkpoint: int) -> Lineage:
        """The lineage of a completed checkpoint.

        It is the lineage of the run's end if the checkpoint is on that one, else that of the attempt that took it.
        """
        if checkpoint in self.end.checkpoints:
            return self.end
        return self.of_attempt(self.completed[checkpoint].attempt)

    def stored(self, checkpoint: int) -> dict[str, Stored]:
        """The store's entries of a completed checkpoint, by task; a task whose handle refers to no stored snapshot is
        left out.

        A task that had finished has the last snapshot that it took, whether or not the checkpoint still refers to it.
        """
        known = self._stored.get(checkpoint)
        if known is None:
            completed = self.completed[checkpoint]
            found = {task: self.handles.get(handle) for task, handle in completed.handles.items()}
            found |= self._last_of_finished(completed)
            known = self._stored[checkpoint] = {task: entry for task, entry in found.items() if entry is not None}
        return known

    def _last_of_finished(self, completed: Completed) -> dict[str, Stored | None]:
        """The last snapshots of the finished tasks for which a checkpoint has no handle.

        If the whole operator had finished before its job began, they are taken from the snapshot that the job began
        with, since the job may have been rescaled.
        """
        tasks = [task for task in completed.finished if task not in completed.handles]
        began = self._began_with(completed) if tasks else None
        finished: set[str] = set()
        if began is not None:
            going_on = {_operator(task) for task in self.completed[began].handles}
            finished = {_operator(task) for task in tasks} - going_on
        found = {task: self._last_stored(task, completed) for task in tasks if _operator(task) not in finished}
        inherited = self.stored(began).items() if began is not None else ()
        return found | {task: entry for task, entry in inherited if _operator(task) in finished}

    def _began_with(self, completed: Completed) -> int | None:
        """The snapshot, of another job, from which the job of a checkpoint was resumed."""
        before = self._restored_by(completed.attempt)
        while before is not None and before.job == completed.job:
            before = self._restored_by(before.attempt)
        return None if before is None else before.checkpoint

    def _restored_by(self, attempt: int) -> Completed | None:
        """The checkpoint that an attempt restored, if an earlier attempt completed it.

        A broken engine may use the number of a checkpoint twice, and then an attempt seems to restore a checkpoint of
        its own.  A walk back from attempt to attempt would then never end.
        """
        restored = self.starts[attempt].restores if attempt in self.starts else None
        found = None if restored is None else self.completed.get(restored)
        return found if found is not None and found.attempt < attempt else None

    def _last_stored(self, task: str, completed: Completed) -> Stored | None:
        """The newest snapshot of a finished task on the lineage of the checkpoint that counts the task as finished."""
        attempt: int | None = self.serving(task, completed.attempt)
        while attempt is not None:
            of_attempt = self._stored_of.get((task, attempt), ())
            if of_attempt:
                return _newest(of_attempt)
            before = self._restored_by(attempt)
            attempt = None if before is None else self.serving(task, before.attempt)
        return None

    def finished(self, task: str, checkpoint: int) -> bool:
        """Whether a completed checkpoint counts a task as finished."""
        return task in self._finished_at(checkpoint)

    def _finished_at(self, checkpoint: int) -> frozenset[str]:
        known = self._finished.get(checkpoint)
        if known is None:
            completed = self.completed[checkpoint]
            last = (task for task in self.stored(checkpoint) if task not in completed.handles)
            known = self._finished[checkpoint] = frozenset([*completed.finished, *last])
        return known

    def decoded(self, text: str) -> StoredState | None:
        """`decode_state`, once for each text: what a task loads is mostly the text that the store has."""
        if text not in self._decoded:
            self._decoded[text] = decode_state(text)
        return self._decoded[text]

    def loaded(self, run: TaskRun) -> StoredState | None:
        """What a run loaded; None when it loaded nothing, or text that is no snapshot."""
        return self.decoded(run.loaded.state) if run.loaded is not None else None

    def states(self, checkpoint: int) -> dict[str, StoredState]:
        """The decoded snapshots of a completed checkpoint, by task; those that are not valid JSON are left out."""
        known = self._states.get(checkpoint)
        if known is None:
            decoded = {task: self.decoded(entry.state) for task, entry in self.stored(checkpoint).items()}
            known = self._states[checkpoint] = {task: state for task, state in decoded.items() if state is not None}
        return known

    def states_of(self, operator: str, checkpoint: int) -> Mapping[str, StoredState]:
        """Those of `states` that are of an operator's tasks."""
        known = self._states_of.get(checkpoint)
        if known is None:
            known = self._states_of[checkpoint] = {}
            for task, state in self.states(checkpoint).items():
                known.setdefault(_operator(task), {})[task] = state
        return known.get(operator, _NO_STATES)

    def in_flight(self, checkpoint: int) -> dict[str, InFlight]:
        """By channel, the in-flight data of a completed checkpoint; an empty channel has no entry."""
        known = self._in_flight.get(checkpoint)
        if known is None:
            known = channels_of(self.stored(checkpoint), self.states(checkpoint), self.runs)
            self._in_flight[checkpoint] = known
        return known

    def positions(self, checkpoint: int) -> dict[int, int]:
        """The next offset of each split according to the snapshots of a completed checkpoint."""
        merged = self._positions.get(checkpoint)
        if merged is None:
            merged = self._positions[checkpoint] = {}
            for enumerated in self.completed[checkpoint].enumerators.values():
                merged.update(enumerated.unassigned)
            for state in self.states(checkpoint).values():
                if state.positions:
                    merged.update(state.positions)
        return merged

    def mark(self, task: str, attempt: int, checkpoint: int) -> Mark | None:
        """The mark of an attempt's snapshot of a checkpoint; None when the attempt took none.

        If the checkpoint counts the task as finished, it is the mark of the attempt's last snapshot.
        """
        if checkpoint in self.completed and task in self._finished_at(checkpoint):
            return self._last_mark(task, attempt)
        return self._marks.get((task, attempt), {}).get(checkpoint)

    def marked(self, checkpoint: int) -> dict[str, tuple[TaskRun, Mark]]:
        """By task, the run that stored a snapshot of a completed checkpoint, and its mark; without tasks that lack
        one of the two."""
        known = self._marked.get(checkpoint)
        if known is None:
            known = self._marked[checkpoint] = {}
            finished = self._finished_at(checkpoint)
            for task, stored in self.stored(checkpoint).items():
                key = (task, stored.attempt)
                run = self.runs.get(key)
                if run is None:
                    continue
                mark = self._last_mark(*key) if task in finished else self._marks[key].get(checkpoint)
                if mark is not None:
                    known[task] = run, mark
        return known

    def _last_mark(self, task: str, attempt: int) -> Mark | None:
        """The mark of the last snapshot that an attempt of a task stored."""
        of_attempt = self._stored_of.get((task, attempt), ())
        return self._marks.get((task, attempt), {}).get(_newest(of_attempt).checkpoint) if of_attempt else None

    def restored(self, task: str, attempt: int) -> int | None:
        """The checkpoint that an attempt of a task restored: the one it loaded, else the one that the coordinator
        chose."""
        run = self.runs.get((task, attempt))
        if run is not None and run.loaded is not None:
            return run.loaded.checkpoint
        return self.starts[attempt].restores if attempt in self.starts else None

    def parent(self, task: str, attempt: int) -> tuple[int, int] | None:
        """(attempt, checkpoint) from which an attempt of a task continues.

        None when the attempt began empty, or restored no completed checkpoint of an earlier attempt.
        """
        key = (task, attempt)
        if key not in self._parents:
            self._parents[key] = self._parent(task, attempt)
        return self._parents[key]

    def _parent(self, task: str, attempt: int) -> tuple[int, int] | None:
        checkpoint = self.restored(task, attempt)
        if checkpoint is None or checkpoint not in self.completed:
            return None
        snapshot = self.stored(checkpoint).get(task)
        earlier = self.serving(task, self.completed[checkpoint].attempt) if snapshot is None else snapshot.attempt
        return (earlier, checkpoint) if earlier < attempt else None

    def _draw(self, tip: int) -> Lineage:
        pieces = {
            task: [(run, cut, self._marks_up_to(run, cut)) for run, cut in self._chain(task, tip)]
            for task in self.tasks
        }
        kept = {
            (task, run.attempt, mark.checkpoint)
            for task, parts in pieces.items()
            for run, _, marks in parts
            for mark in marks
        }
        checkpoints = tuple(
            number
            for number in sorted(self.completed)
            if all((task, entry.attempt, entry.checkpoint) in kept for task, entry in self.stored(number).items())
        )
        wanted = frozenset(checkpoints)
        segments = {
            task: tuple([self._segment(run, cut, marks, wanted) for run, cut, marks in parts])
            for task, parts in pieces.items()
        }
        attempts = sorted({run.attempt for parts in pieces.values() for run, _, _ in parts} | {tip})
        by_operator: dict[str, list[Segment]] = {}
        for segment in chain.from_iterable(segments.values()):
            by_operator.setdefault(segment.run.operator, []).append(segment)
        return Lineage(
            tip=tip,
            attempts=tuple(attempts),
            checkpoints=checkpoints,
            segments=segments,
            by_operator=by_operator,
        )

    def _chain(self, task: str, tip: int) -> list[tuple[TaskRun, int | None]]:
        """(run, checkpoint that cuts it) of the attempts that led to the end of `tip`, oldest first."""
        parts: list[tuple[TaskRun, int | None]] = []
        attempt = self._furthest(task, self.serving(task, tip))
        cut: int | None = None
        while True:
            run = self.runs.get((task, attempt))
            if run is not None:
                parts.append((run, cut))
            before = self.parent(task, attempt)
            if before is None:
                break
            attempt, cut = before
        parts.reverse()
        return parts

    def _furthest(self, task: str, attempt: int) -> int:
        """The attempt that got furthest with a task's work by the end of `attempt`.

        It is the previous attempt if the job ended while `attempt`, in local recovery, was still sending repeats that
        other tasks had already taken.
        """
        if self.persistent is None:
            return attempt
        start = self.starts.get(attempt)
        if start is None or not start.in_place or attempt in self._running:
            return attempt
        before = self._furthest(task, self.serving(task, max(number for number in self.starts if number < attempt)))
        return before if self._work(task, before) > self._work(task, attempt) else attempt

    def _work(self, task: str, attempt: int) -> int:
        """How many records a task had read or taken by the end of an attempt, since the last attempt that started all
        tasks."""
        run = self.runs.get((task, attempt))
        return self._work_before(task, attempt) + (len(run.reads) + len(run.applies) if run is not None else 0)

    def _work_before(self, task: str, attempt: int) -> int:
        parent = self.parent(task, attempt)
        if parent is None or self.persistent is None or parent[0] < self.persistent.whole(attempt):
            return 0
        mark = self.mark(task, *parent)
        return self._work_before(task, parent[0]) + (mark.reads + mark.applies if mark is not None else 0)

    def _marks_up_to(self, run: TaskRun, cut: int | None) -> list[Mark]:
        if cut is None or self.finished(run.task, cut):
            return run.marks
        for index, mark in enumerate(run.marks):
            if mark.checkpoint == cut:
                return run.marks[: index + 1]
        return []

    def _segment(self, run: TaskRun, cut: int | None, until: Sequence[Mark], completed: frozenset[int]) -> Segment:
        marks = tuple([mark for mark in until if mark.checkpoint in completed])
        if cut is None or self.finished(run.task, cut):
            everything = _ALL * len(run.outputs)
            return Segment(
                run=run, reads=len(run.reads), applies=len(run.applies), sent=everything, cut=cut, marks=marks
            )
        end = mark_of(run, cut)
        if end is None:
            return Segment(run=run, reads=0, applies=0, sent=(0,) * len(run.outputs), cut=cut, marks=marks)
        return Segment(run=run, reads=end.reads, applies=end.applies, sent=tuple(end.sent), cut=cut, marks=marks)


_state_decoder = msgspec.json.Decoder(StoredState)


def decode_state(text: str) -> StoredState | None:
    """The engine-neutral part of a snapshot; None when the text is no snapshot."""
    if not text:
        return StoredState()
    try:
        return _state_decoder.decode(text)
    except msgspec.DecodeError:
        return None


def by_channel(run: TaskRun, applies: int) -> list[list[int]]:
    """By input channel, the origins of the first records that a run took, in order."""
    taken: list[list[int]] = [[] for _ in run.inputs]
    for channel, origin in run.applies[:applies]:
        taken[channel].append(origin)
    return taken


def mark_of(run: TaskRun, checkpoint: int) -> Mark | None:
    """The mark of a run's snapshot of a checkpoint; None when the run took none."""
    for mark in run.marks:
        if mark.checkpoint == checkpoint:
            return mark
    return None


def _newest(stored: Sequence[Stored]) -> Stored:
    """The snapshot that the task took last: snapshots may become durable out of order."""
    return max(stored, key=lambda entry: entry.checkpoint)


def _operator(task: str) -> str:
    return task.rpartition("-")[0]


_NO_STATES: Mapping[str, StoredState] = {}

_ALL = (INFINITE,)
"""For one channel: all sends of an uncut segment are on its lineage."""
