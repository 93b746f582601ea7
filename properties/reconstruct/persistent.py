"""Channels that outlive the attempts at their ends, where tasks recover locally (UNA-4).

From one attempt that starts all tasks to the next such attempt, a channel is one
sequence: the elements that its receiver was restored with, then those that each attempt
of its sender sent.  An attempt that recovered locally first sends the elements again
that earlier attempts had sent since its snapshot.  The network drops these repeats and
records them apart (`Channel.repeated`).  Places in a channel are counted from the
channel's beginning; an attempt's own counts begin at its snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..model.history import AttemptStarted, Channel, Mark, TaskRun
from .in_flight import NOTHING, origins
from .snapshots import Snapshots


class Attempts(Protocol):
    """What this module needs of `lineages.Lineages`."""

    @property
    def runs(self) -> Mapping[tuple[str, int], TaskRun]: ...

    @property
    def starts(self) -> Mapping[int, AttemptStarted]: ...

    @property
    def snapshots(self) -> Snapshots: ...

    def mark(self, task: str, attempt: int, checkpoint: int) -> Mark | None: ...

    def parent(self, task: str, attempt: int) -> tuple[int, int] | None: ...


class Persistent:
    """The channels of a history in which tasks recovered locally."""

    def __init__(self, lineages: Attempts, channels: Mapping[tuple[str, int], Channel]) -> None:
        self._lineages = lineages
        self._channels = channels
        self._joined: dict[tuple[str, int], Channel] = {}
        self._taken: dict[tuple[str, int, str], int] = {}

    def whole(self, attempt: int) -> int:
        """The newest attempt, up to this one, that started all tasks."""
        starts = self._lineages.starts
        while attempt in starts and starts[attempt].in_place:
            attempt = max((number for number in starts if number < attempt), default=0)
        return attempt

    def runs(self, task: str, attempt: int) -> list[TaskRun]:
        """A task's attempts that share the channels of this one, oldest first: from one attempt of all tasks to the
        next."""
        whole = self.whole(attempt)
        numbers = sorted(number for number in self._lineages.starts if number >= whole and self.whole(number) == whole)
        known = (self._lineages.runs.get((task, number)) for number in numbers)
        return [run for run in known if run is not None]

    def content(self, channel: str, attempt: int) -> Channel | None:
        """All that entered a channel while this attempt's channels lived; None if the channel was never opened."""
        whole = self.whole(attempt)
        if (channel, whole) not in self._channels:
            return None
        if (channel, whole) not in self._joined:
            self._joined[channel, whole] = self._join(channel, whole)
        return self._joined[channel, whole]

    def _join(self, channel: str, whole: int) -> Channel:
        first = self._channels[channel, whole]
        joined = Channel(
            name=channel,
            attempt=whole,
            recovered=first.recovered,
            recovered_watermarks=first.recovered_watermarks,
            sent=[],
            barriers=[],
            watermarks=[],
        )
        for number in sorted(number for name, number in self._channels if name == channel):
            if self.whole(number) == whole:
                log, before = self._channels[channel, number], len(joined.sent)
                joined.barriers += [(checkpoint, before + place) for checkpoint, place in log.barriers]
                joined.watermarks += [(time, before + place) for time, place in log.watermarks]
                joined.sent += log.sent
        return joined

    def first_taken(self, run: TaskRun, channel: str) -> int:
        """The place of the first record that a run took from a channel."""
        key = (run.task, run.attempt, channel)
        if key not in self._taken:
            self._taken[key] = self._first_taken(run, channel)
        return self._taken[key]

    def _first_taken(self, run: TaskRun, channel: str) -> int:
        before = self._before(run)
        if before is None:
            return 0
        earlier, checkpoint = before
        mark = self._lineages.mark(earlier.task, earlier.attempt, checkpoint)
        taken = mark.received[earlier.inputs.index(channel)] if mark is not None else 0
        return self.first_taken(earlier, channel) + taken

    def first_sent(self, run: TaskRun, channel: str) -> int:
        """The place of the first record that a run sent into a channel.

        If the restored snapshot has unsent records, it is the place of the first of these.
        """
        before = self._before(run)
        if before is None:
            log = self.content(channel, run.attempt)
            return len(log.recovered) if log is not None else 0
        earlier, checkpoint = before
        mark = self._lineages.mark(earlier.task, earlier.attempt, checkpoint)
        sent = mark.sent[earlier.outputs.index(channel)] if mark is not None else 0
        waiting = self._lineages.snapshots.in_flight(checkpoint).get(channel, NOTHING).unsent
        return self.first_sent(earlier, channel) + sent - len(origins(waiting))

    def _before(self, run: TaskRun) -> tuple[TaskRun, int] | None:
        """The earlier run in the same channels that `run` continues, and the checkpoint that `run` restored.

        None if `run` began together with the channels, or restored the checkpoint that the channels began with.
        """
        parent = self._lineages.parent(run.task, run.attempt)
        if parent is None or parent[0] < self.whole(run.attempt):
            return None
        earlier = self._lineages.runs.get((run.task, parent[0]))
        return (earlier, parent[1]) if earlier is not None else None

    def inbound(self, run: TaskRun, channel: str) -> Channel | None:
        """The content of a channel from the run's first record on."""
        content = self.content(channel, run.attempt)
        first = self.first_taken(run, channel)
        if content is None or not first:
            return content
        return Channel(
            name=channel,
            attempt=run.attempt,
            sent=content.content[first:],
            watermarks=[(time, place - first) for time, place in content.times if place >= first],
        )
