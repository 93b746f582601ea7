"""The lineages of a history, which follow from what each attempt restored.

Lineages are chained task by task, through the attempts that served each task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

from ..model.history import AttemptRunning, Completed, History, Mark, TaskRun
from .attempts import Attempts
from .lineage import INFINITE, Lineage, Segment, mark_of
from .persistent import Persistent
from .snapshots import Snapshots


class Lineages:
    """A history's attempts and lineages; each lineage is drawn once."""

    def __init__(self, history: History) -> None:
        attempts = Attempts(history)
        self.runs, self.starts, self.serving = attempts.runs, attempts.starts, attempts.serving
        self.tasks: tuple[str, ...] = tuple(dict.fromkeys(run.task for run in history.runs))
        # not with `self`: objects that refer to each other are freed by the collector of garbage alone
        self.snapshots = Snapshots(history, attempts)
        self.completed = self.snapshots.completed
        self.last_attempt: int = max([*self.starts, *(run.attempt for run in history.runs)], default=0)
        self.persistent: Persistent | None = None
        """the channels, where tasks recovered locally; otherwise None"""
        if any(start.in_place for start in self.starts.values()):
            channels = {(channel.name, channel.attempt): channel for channel in history.channels}
            self.persistent = Persistent(self, channels)
        self._running = {entry.attempt for entry in history.journal if isinstance(entry, AttemptRunning)}
        self._completions = history.completed
        self._marks = {key: {mark.checkpoint: mark for mark in run.marks} for key, run in self.runs.items()}
        self._lineages: dict[int, Lineage] = {}
        self._parents: dict[tuple[str, int], tuple[int, int] | None] = {}
        self._serving_runs: dict[int, list[TaskRun]] = {}
        self._marked: dict[int, dict[str, tuple[TaskRun, Mark]]] = {}

    @cached_property
    def end(self) -> Lineage:
        """The lineage of the run's end."""
        return self.of_attempt(self.last_attempt)

    def serving_runs(self, attempt: int) -> list[TaskRun]:
        """The runs that the tasks are in while `attempt` is the newest, in the order of the history."""
        if attempt not in self._serving_runs:
            runs = self.runs.values()
            self._serving_runs[attempt] = [run for run in runs if run.attempt == self.serving(run.task, attempt)]
        return self._serving_runs[attempt]

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

    def mark(self, task: str, attempt: int, checkpoint: int) -> Mark | None:
        """The mark of an attempt's snapshot of a checkpoint; None when the attempt took none.

        If the checkpoint counts the task as finished, it is the mark of the attempt's last snapshot.
        """
        if checkpoint in self.completed and task in self.snapshots.finished_at(checkpoint):
            return self._last_mark(task, attempt)
        return self._marks.get((task, attempt), {}).get(checkpoint)

    def marked(self, checkpoint: int) -> dict[str, tuple[TaskRun, Mark]]:
        """By task, the run that stored a snapshot of a completed checkpoint, and its mark; without tasks that lack
        one of the two."""
        known = self._marked.get(checkpoint)
        if known is None:
            known = self._marked[checkpoint] = {}
            finished = self.snapshots.finished_at(checkpoint)
            for task, stored in self.snapshots.stored(checkpoint).items():
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
        last = self.snapshots.last_of(task, attempt)
        return self._marks.get((task, attempt), {}).get(last.checkpoint) if last is not None else None

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
        snapshot = self.snapshots.stored(checkpoint).get(task)
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
            if all(
                (task, entry.attempt, entry.checkpoint) in kept for task, entry in self.snapshots.stored(number).items()
            )
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
        if cut is None or self.snapshots.finished(run.task, cut):
            return run.marks
        for index, mark in enumerate(run.marks):
            if mark.checkpoint == cut:
                return run.marks[: index + 1]
        return []

    def _segment(self, run: TaskRun, cut: int | None, until: Sequence[Mark], completed: frozenset[int]) -> Segment:
        marks = tuple([mark for mark in until if mark.checkpoint in completed])
        if cut is None or self.snapshots.finished(run.task, cut):
            everything = _ALL * len(run.outputs)
            return Segment(
                run=run, reads=len(run.reads), applies=len(run.applies), sent=everything, cut=cut, marks=marks
            )
        end = mark_of(run, cut)
        if end is None:
            return Segment(run=run, reads=0, applies=0, sent=(0,) * len(run.outputs), cut=cut, marks=marks)
        return Segment(run=run, reads=end.reads, applies=end.applies, sent=tuple(end.sent), cut=cut, marks=marks)


_ALL = (INFINITE,)
"""For one channel: all sends of an uncut segment are on its lineage."""
