"""What was sent through channels that outlive the attempts at their ends (UNA-4), as the replay knows it.

An attempt that comes up alone sends again what those before it had sent since its snapshot, and its receivers drop
that.  What they took of an earlier attempt is right only if it is what this one sends in its place: so the rows that
they are taken to have had are those.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..model.history import Mark, TaskRun
from ..model.workload import Row
from .line import Lines
from .run_replay import RunReplay

if TYPE_CHECKING:
    from .replay import Replay

Said = list[tuple[int, Row]]
"""(origin, row) of rows that were sent"""


class Streams:
    """The rows that tasks sent, each task's attempts behind one another."""

    def __init__(self, replay: Replay, lines: Lines) -> None:
        self._replay = replay
        self._lines = lines
        self._joined: dict[tuple[str, int], RunReplay] = {}

    def of(self, task: str, attempt: int) -> RunReplay:
        """All that a task sent into an attempt's channels."""
        persistent = self._lines.persistent
        whole = persistent.whole(attempt) if persistent is not None else attempt
        if (task, whole) not in self._joined:
            runs = persistent.runs(task, attempt) if persistent is not None else []
            self._joined[task, whole] = RunReplay(by_origin=self._join(runs))
        return self._joined[task, whole]

    def _join(self, runs: list[TaskRun]) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {}
        begun: dict[int, Said] = {}
        """by attempt, what had been sent when its snapshot was taken"""
        for run in runs:
            parent = self._lines.parent(run.task, run.attempt)
            before = self._lines.mark(run.task, *parent) if parent is not None and parent[0] in begun else None
            if parent is None or before is None:
                begun[run.attempt] = list(self._replay.left(run))
            else:
                begun[run.attempt] = begun[parent[0]] + self._own(self._lines.runs[run.task, parent[0]], before)
            said = _by_origin(begun[run.attempt] + self._own(run, None))
            for origin, rows in said.items():
                # An attempt that has not caught up leaves what was sent in its place before.
                found[origin] = rows + found.get(origin, [])[len(rows) :]
        return found

    def _own(self, run: TaskRun, until: Mark | None) -> Said:
        """What an attempt made itself, all of it or what it had when it took a snapshot."""
        replayed = self._replay.run(run.task, run.attempt)
        emitted, fired = replayed.emitted, replayed.fired
        if until is not None:
            taken, heard = until.reads or until.applies, until.ticks or until.watermarks
            emitted = [one for one in emitted if one[0] <= taken]
            fired = [one for one in fired if one[0] <= heard]
        return [(origin, row) for _, origin, row in (*emitted, *fired)]

    def before(self, run: TaskRun, channel: str) -> tuple[dict[int, list[Row]], dict[int, int]]:
        """By origin: the rows that lay in a channel from its beginning and that a run took of it, and how many of
        those that were sent had been taken before."""
        persistent = self._lines.persistent
        runs = persistent.runs(run.task, run.attempt) if persistent is not None else []
        content = persistent.content(channel, run.attempt) if persistent is not None else None
        if persistent is None or content is None or not runs:
            return {}, {}
        first, restored = persistent.first_taken(run, channel), len(content.recovered)
        taken: dict[int, int] = {}
        for origin in content.content[restored:first]:
            taken[origin] = taken.get(origin, 0) + 1
        return _by_origin(self._replay.queued(runs[0], channel)[first:]), taken


def _by_origin(said: Iterable[tuple[int, Row]]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for origin, row in said:
        found.setdefault(origin, []).append(row)
    return found
