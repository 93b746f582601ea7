"""Event time at a task: its watermark follows from those of its inputs, or from what a source has read (OPS-1).

The papers have no event time.  What a snapshot holds of it is in the task's state (ABS-5), and a watermark keeps its
place among the records and barriers of a channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from ..decisions.event_time import Watermarks
from ..job.topology import EventTime
from ..operators.watermarks import InputTimes, SplitTimes
from ..protocol.input_task import InputTask, WorkFailed
from ..protocol.source import SourceTask
from ..vocabulary.effects import Advanced, Effect, SetTimer
from ..vocabulary.errors import Handlers
from ..vocabulary.messages import Element, Idle, Watermark
from ..vocabulary.state import TaskState
from ..vocabulary.timeouts import IdleTimeout


class TimedWork(Protocol):
    """It emits rows when the watermark advances."""

    def on_time(self, time: int) -> list[Effect]:
        """The task's watermark advances; the effects come before it is sent on.  Raises WorkFailed."""
        ...


class InputEventTime:
    """The event time of a task with inputs."""

    def __init__(self, channels: int, decisions: Watermarks, work: TimedWork | None = None) -> None:
        self.times = InputTimes(channels)
        self._decisions = decisions
        self._work = work

    def step(self, element: Element, channel: int, task: InputTask) -> list[Effect]:
        effects: list[Effect] = self._handlers[type(element)](self, element, channel, task)
        return effects

    def _on_watermark(self, watermark: Watermark, channel: int, task: InputTask) -> list[Effect]:
        awake = self.awake(channel, task)
        self.times.received(channel, watermark.time)
        # If every other input is idle or has ended, and this one ends with its watermark, the task is idle: the tasks
        # downstream must not wait for it.
        news = task.broadcast(Idle()) if self.times.is_idle else self._advance(task)
        return [*awake, *news]

    def _on_idle(self, idle: Idle, channel: int, task: InputTask) -> list[Effect]:
        """The channel is idle; when all that have not ended are idle, the task sends that it is idle downstream."""
        self.times.sleeps(channel)
        return task.broadcast(Idle()) if self.times.is_idle else self._advance(task)

    def awake(self, channel: int, task: InputTask) -> list[Effect]:
        """An element came from a channel: the channel is active again, and so is this task for the tasks downstream."""
        if not self.times.idle:
            return []
        was_idle = self.times.is_idle
        self.times.wakes(self._decisions.still_idle(self.times.idle, channel))
        return task.broadcast(Watermark(self.times.time)) if was_idle else []

    def _advance(self, task: InputTask) -> list[Effect]:
        time = self._decisions.of_inputs(self.times.waited_for())
        if not self.times.advance(time):
            return []
        try:
            ended = self._work.on_time(time) if self._work is not None else []
        except WorkFailed as failed:
            return [Advanced(time), *failed.effects]
        return [Advanced(time), *ended, *task.broadcast(Watermark(time))]

    def describe(self, state: TaskState) -> None:
        if self.times.is_known:
            state.watermark = self.times.time
            state.times = list(self.times.times)
            state.idle = list(self.times.idle)

    def restore(self, state: TaskState) -> None:
        self.times.restore(state.watermark, state.times, state.idle)

    _handlers: ClassVar[Handlers] = Handlers({Watermark: _on_watermark, Idle: _on_idle})


class SourceEventTime:
    """The event time of a source: its watermark follows from the greatest event times that it has read."""

    def __init__(self, event_time: EventTime, decisions: Watermarks) -> None:
        self._idle_after_us = event_time.idle_after_us
        self._decisions = decisions
        self._times = SplitTimes(event_time.delay)
        self._timer_set = False

    def read(self, split: int, time: int, source: SourceTask) -> list[Effect]:
        was_idle = bool(self._times.idle)
        self._times.read(split, time)
        awake = source.broadcast(Watermark(self._times.time)) if was_idle else []
        return [*self._watch(), *awake, *self._advance(source)]

    def _advance(self, source: SourceTask) -> list[Effect]:
        unread = source.unread()
        if not unread and source.bounded:
            return self.at_end(source)
        waited_for = [split for split in unread if split not in self._times.idle]
        if not waited_for:
            return source.broadcast(Idle())
        return self._advance_to(waited_for, source)

    def at_end(self, source: SourceTask) -> list[Effect]:
        return self._advance_to([], source)

    def _advance_to(self, waited_for: Sequence[int], source: SourceTask) -> list[Effect]:
        """Advance to the watermark that follows from these splits."""
        time = self._decisions.of_splits(self._times.of(waited_for))
        if not self._times.advance(time):
            return []
        return [Advanced(time), *source.broadcast(Watermark(time))]

    def _watch(self) -> list[Effect]:
        """Set the idle timeout, unless it is set already."""
        if not self._idle_after_us or self._timer_set:
            return []
        self._timer_set = True
        return [SetTimer(IdleTimeout(), self._idle_after_us)]

    def idle_timeout_over(self, source: SourceTask) -> list[Effect]:
        self._timer_set = False
        if source.suspended:
            return []  # a watermark behind the savepoint of a stop would emit windows that the savepoint holds
        unread = source.unread()
        self._times.rest(self._decisions.become_idle(unread, self._times.read_since))
        again = self._watch() if len(self._times.idle) < len(unread) else []
        return [*self._advance(source), *again]

    def on_restored(self, source: SourceTask, *, is_rescaled: bool) -> list[Effect]:
        if source.unread():
            # If the job was rescaled, the tasks downstream begin with the least watermark of all old tasks: send them
            # this source's own.
            return [*self._watch(), *(self._advance(source) if is_rescaled else ())]
        # Nothing is to be read.  Tasks downstream would wait without end for the watermark of an unbounded input.
        return self._advance(source)

    def describe(self, state: TaskState) -> None:
        state.watermark = self._times.time
        state.maxima = dict(self._times.maxima)
        state.idle = list(self._times.idle)

    def restore(self, state: TaskState) -> None:
        self._times.restore(state.watermark, state.maxima, state.idle)
