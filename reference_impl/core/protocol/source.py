"""A source: it reads rewindable splits, and starts each checkpoint in its stream (ABS-1).

A position is the next offset to read.  Flink's first description of its checkpointing
says both "the last record's offset" and "start fetching from S_k".  Read literally, that
repeats one record of each partition, so a snapshot here holds the first offset *not* read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import msgspec

from ..decisions.parts import Parts
from ..decisions.tasks import CutStep, PutOff
from ..job.config import Config
from ..job.topology import EventTime
from ..operators.watermarks import SplitTimes
from ..vocabulary.causes import InputDiscarded
from ..vocabulary.effects import Advanced, Effect, Fail, LoadPositions, Mail, Rest, SavePosition, SetTimer, Trim
from ..vocabulary.errors import ProtocolViolated
from ..vocabulary.events import Event, Mailed, Poll, PositionsLoaded, TimerFired
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import (
    Abort,
    Assign,
    CancelBarrier,
    Complete,
    Deploy,
    Idle,
    Record,
    Running,
    Trigger,
    Watermark,
)
from ..vocabulary.state import Snapshot, TaskState
from ..vocabulary.timeouts import IdleTimeout, RetryAsk
from .task import ENDED, NO_CHECKPOINT, WORKING, InTransit, Reading, Restoring, Task, TaskSpec

OFFSET_BITS = 32
COPY_BITS = 8


def place_of(origin: int) -> tuple[int, int]:
    """The split and offset of the input record with this origin."""
    return origin >> (OFFSET_BITS + COPY_BITS), origin >> COPY_BITS & ((1 << OFFSET_BITS) - 1)


class SplitLog(msgspec.Struct, frozen=True, kw_only=True):
    """A rewindable log of (key, value, tag), and the event time of each record, if the input has any; records
    before offset `begins` have been discarded."""

    split: int
    records: Sequence[tuple[int | None, int | None, int]]
    times: Sequence[int] = ()
    begins: int = 0


class Assigning(Protocol):
    """How a source comes to its splits if an enumerator assigns them (OPS-3); see `split_reader`."""

    returned: dict[int, int]
    """the splits of its snapshot, with their positions, that it hands back when it runs"""
    more_may_come: bool

    def hand_back(self, positions: Mapping[int, int], source: SourceTask) -> None: ...

    def ask(self, source: SourceTask) -> list[Effect]: ...

    def ask_again(self, source: SourceTask) -> list[Effect]: ...

    def assigned(self, message: Assign, source: SourceTask) -> list[Effect]: ...


class SourceTask(Task):
    """Reads its splits in turn, one record a poll."""

    EVENTS: ClassVar[dict[type, str]] = Task.EVENTS | {Poll: "on_poll", PositionsLoaded: "_on_positions"}
    MESSAGES: ClassVar[dict[type, str]] = Task.MESSAGES | {Assign: "_on_assign"}

    def __init__(
        self,
        spec: TaskSpec,
        config: Config,
        parts: Parts,
        logs: Sequence[SplitLog],
        bounded: bool,
        event_time: EventTime | None,
        reading: Reading,
        in_flight: InTransit | None = None,
        assigning: Assigning | None = None,
    ) -> None:
        """`bounded` and `event_time` are properties of the whole input: a subtask may have no split of it.
        `assigning`: None if it has `logs` from the beginning."""
        super().__init__(spec, config, parts, reading, in_flight)
        self._assigning = assigning
        self._bounded = bounded
        self._rewinds = config.rewinds
        self._logs = tuple(logs)
        self.positions = {log.split: 0 for log in logs}
        self._next_log = 0
        self._last = NO_CHECKPOINT
        self._aborted: tuple[CheckpointId, ...] = ()
        self._suspended = False
        self._event_time = event_time
        self._times = SplitTimes(event_time.delay if event_time else 0)
        self._timer_set = False
        self._cuts: dict[CheckpointId, dict[int, int]] = {}
        """by checkpoint that may still be restored: the positions"""

    # -- reading -------------------------------------------------------------------

    def on_poll(self, event: Event) -> list[Effect]:
        if self._suspended or not (self.life is WORKING or self.life is ENDED):
            return []
        for _ in self._logs:
            log = self._logs[self._next_log]
            self._next_log = (self._next_log + 1) % len(self._logs)
            if self.positions[log.split] < len(log.records):
                return self._read(log)
        return [*self.end_of_splits(), Rest()]

    def _read(self, log: SplitLog) -> list[Effect]:
        offset = self.positions[log.split]
        self.positions[log.split] = offset + 1
        key, value, tag = log.records[offset]
        origin = (log.split << OFFSET_BITS | offset) << COPY_BITS
        if self._event_time is None:
            effects = self.emit((Record(key, value, tag, 0, origin),))
        else:
            effects = self.emit((Record(key, value, tag, 0, origin, log.times[offset]),))
            effects.extend(self._read_at(log, log.times[offset]))
        if self._rewinds:
            return effects
        return [SavePosition(log.split, offset + 1, tuple(effects))]

    def end_of_splits(self) -> list[Effect]:
        """Every split is read to its end, which ends a bounded input, but not an unbounded one."""
        if self._assigning is not None and self._assigning.more_may_come:
            return self._assigning.ask(self)
        if self.input_ended or not self._bounded:
            return []
        return self.end_input()

    def end_input(self) -> list[Effect]:
        end = self._advance_to(self.parts.watermarks.at_end(self._times.time)) if self._event_time else []
        return [*end, *super().end_input()]

    # -- event time ----------------------------------------------------------------

    def _read_at(self, log: SplitLog, time: int) -> list[Effect]:
        was_idle = bool(self._times.idle)
        self._times.read(log.split, time)
        self._times.wakes(log.split, self.parts.watermarks.active(self._times.active, log.split, self._times.idle))
        awake = self.broadcast(Watermark(self._times.time)) if was_idle else []
        return [*self._watch(), *awake, *self._advance()]

    def _unread(self) -> list[int]:
        """The splits that hold the watermark back; a bounded split that is read to its end does not."""
        return [log.split for log in self._logs if not self._bounded or self.positions[log.split] < len(log.records)]

    def _advance(self) -> list[Effect]:
        unread = self._unread()
        if not unread and self._bounded:
            return self._advance_to(self.parts.watermarks.at_end(self._times.time))
        waited_for = [split for split in unread if split not in self._times.idle]
        if not waited_for:
            return self.broadcast(Idle())
        return self._advance_to(min(self._times.of(waited_for)))

    def _advance_to(self, time: int) -> list[Effect]:
        if time <= self._times.time:
            return []
        self._times.time = time
        return [Advanced(time), *self.broadcast(Watermark(time))]

    def _watch(self) -> list[Effect]:
        """Set the idle timeout, unless it is set already."""
        idle_after_us = self._event_time.idle_after_us if self._event_time else 0
        if not idle_after_us or self._timer_set:
            return []
        self._timer_set = True
        return [SetTimer(IdleTimeout(), idle_after_us)]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        if isinstance(event.timeout, RetryAsk):
            if self._assigning is None or self.input_ended or self.finished:
                return []
            return self._assigning.ask_again(self)
        if not isinstance(event.timeout, IdleTimeout) or self.input_ended:
            return super().on_timer(event)
        self._timer_set = False
        if self._suspended:
            return []  # a watermark behind the savepoint of a stop would emit windows that the savepoint holds
        unread = self._unread()
        self._times.rest(unread)
        again = self._watch() if len(self._times.idle) < len(unread) else []
        return [*self._advance(), *again]

    def opened(self) -> list[Effect]:
        if self._assigning is not None:
            returned, self.positions = self.positions, {}
            self._assigning.hand_back(returned, self)
        is_rescaled = isinstance(self.life, Restoring) and bool(self.life.deploy.pieces)
        effects = super().opened()
        if self._event_time is None:
            return effects
        if self._logs and self._unread():
            # If the job was rescaled, the tasks downstream begin with the least watermark of all old tasks: send them
            # this source's own.
            advance = self._advance() if is_rescaled else []
            return [*effects, *self._watch(), *advance]
        # Nothing is to be read.  Tasks downstream would wait without end for the watermark of an unbounded input.
        return [*effects, *self._advance()]

    # -- restoring -----------------------------------------------------------------

    def _on_positions(self, event: PositionsLoaded) -> list[Effect]:
        self._take_positions(event.positions)
        return self.opened()

    def restore(self, state: TaskState | None) -> list[Effect]:
        if not self._rewinds:
            return [LoadPositions()]
        wanted = state.positions if state is not None else {}
        for log in self._logs:
            if wanted.get(log.split, 0) < log.begins:
                return [Fail(self.discarded(log, wanted.get(log.split, 0)))]
        return super().restore(state)

    def discarded(self, log: SplitLog, wanted: int) -> InputDiscarded:
        """Why it cannot read a split from that record on."""
        return InputDiscarded(log.split, log.begins, self.restored_checkpoint or None, wanted)

    def take_over(self, state: TaskState) -> None:
        self._take_positions(state.positions)
        self._next_log = state.turn % len(self._logs) if self._logs else 0
        self._times.restore(state.watermark, state.maxima, state.idle)
        if self.restored_checkpoint != NO_CHECKPOINT:
            self._cuts[self.restored_checkpoint] = dict(self.positions)

    def came_up(self) -> Running:
        returned = self._assigning.returned if self._assigning is not None else {}
        return Running(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task, returned=returned)

    @property
    def awaits_splits(self) -> bool:
        return self._assigning is not None and self._assigning.more_may_come and not self.finished

    def _on_assign(self, message: Assign) -> list[Effect]:
        if self._assigning is None:
            raise ProtocolViolated(f"no enumerator assigns splits to {self.spec.task}")
        return self._assigning.assigned(message, self)

    def take_splits(self, splits: Mapping[int, int], logs: Mapping[int, SplitLog]) -> None:
        """Read these splits too, each from its position on; `logs` are those of all splits."""
        self.positions.update(splits)
        self._logs = tuple(logs[split] for split in self.positions)

    def _take_positions(self, positions: Mapping[int, int]) -> None:
        if self._assigning is not None:
            self.positions = dict(positions)
        start = self.parts.start_position
        for log in self._logs:
            self.positions[log.split] = start.position(log.split, positions.get(log.split, 0), len(log.records))

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        self._suspended = self._suspended or message.suspended
        return super()._on_deploy(message)

    def begin_behind(self, checkpoint: CheckpointId) -> None:
        self._last = checkpoint

    def stay_finished(self) -> list[Effect]:
        return [Rest(), *super().stay_finished()]

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        state.positions = dict(self.positions)
        state.turn = self._next_log
        if self._event_time is not None:
            state.watermark = self._times.time
            state.maxima = self.parts.watermarks.of_splits(self._times.maxima)
            state.idle = list(self._times.idle)
        return state

    # -- checkpoints ---------------------------------------------------------------

    def on_trigger(self, message: Trigger) -> list[Effect]:
        """Take the checkpoint here, unless it is over already."""
        checkpoint = message.checkpoint
        if not self.running or checkpoint <= self._last:
            return []
        if checkpoint in self._aborted:
            self._last = checkpoint
            return self.broadcast(CancelBarrier(checkpoint))
        self._last = checkpoint
        self._aborted = tuple(aborted for aborted in self._aborted if aborted > checkpoint)
        ends = message.ending is not None and self.parts.ending.ends_input(message.ending)
        self._suspended = self._suspended or message.ending is not None
        if self.in_flight is not None:
            self.in_flight.announced(checkpoint, message.alignment_timeout_us)
            self.in_flight.cut(checkpoint, ())
        if self.config.drains_late:
            return [*self._cut(checkpoint), *self._end_now(ends)]
        return [*self._end_now(ends), *self._cut(checkpoint)]

    def _end_now(self, ends: bool) -> list[Effect]:
        return self.end_input() if ends and not self.input_ended else []

    def _cut(self, checkpoint: CheckpointId) -> list[Effect]:
        """Record the position and send the barrier, in one step."""
        effects: list[Effect] = []
        for step in self.parts.source_cut.steps():
            if isinstance(step, PutOff):
                effects.append(Mail((step.step, checkpoint)))
            else:
                effects.extend(self._carry_out(step, checkpoint))
        return effects

    def _carry_out(self, step: CutStep, checkpoint: CheckpointId) -> list[Effect]:
        return self.record(checkpoint) if step is CutStep.record_position else self.barrier(checkpoint)

    def on_mail(self, event: Mailed) -> list[Effect]:
        step, checkpoint = event.mail
        return self._carry_out(step, checkpoint)

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        state = self.fixed_state()
        latest = list(self.positions)[self._next_log - 1] if self.positions else None
        state.positions = self.parts.source_cut.positions(self.positions, latest, self.life.after_end)
        if self.config.trims_logs:
            self._cuts[checkpoint] = dict(state.positions)
        return self.write(checkpoint, Snapshot(state, {}, lambda heap: []))

    def on_complete(self, message: Complete) -> list[Effect]:
        """Let the log discard records that no snapshot needs: those before the positions of the oldest one that may be
        restored.  If this source does not know those positions, nothing is discarded."""
        oldest = message.oldest if self.config.trims_logs else None
        if oldest is None or oldest not in self._cuts:
            return []
        self._cuts = {checkpoint: cut for checkpoint, cut in self._cuts.items() if checkpoint >= oldest}
        return [Trim(split, offset) for split, offset in self._cuts[oldest].items()]

    def on_abort(self, message: Abort) -> list[Effect]:
        """Remember an abort that comes before its trigger.  The trigger then sends a cancel barrier, and takes no
        snapshot."""
        if message.checkpoint > self._last and message.checkpoint not in self._aborted:
            self._aborted = (*self._aborted, message.checkpoint)
        return []
