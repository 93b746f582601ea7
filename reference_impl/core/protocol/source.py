"""A source: it reads rewindable splits, and starts each checkpoint in its stream (ABS-1).

Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603), section 4.2: the
coordinator injects barriers into the sources, and a source that gets one takes its snapshot and sends the barrier on.
That its state is a position in the stream, S_n, from which it reads on after a failure (ABS-6), is in Flink's first
description of its checkpoints.

A position is the next offset to read.  That description says both "the last record's offset" and "start fetching from
S_k".  Read literally, that repeats one record of each partition, so a snapshot here holds the first offset *not* read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from ..decisions.parts import Parts
from ..decisions.postponed import Postponed
from ..decisions.tasks import CutStep
from ..job.config import Config
from ..job.split_log import COPY_BITS, OFFSET_BITS, SplitLog
from ..job.task_spec import TaskSpec
from ..vocabulary.causes import InputDiscarded
from ..vocabulary.effects import Effect, Fail, LoadPositions, Mail, Rest, SavePosition, Trim
from ..vocabulary.errors import ProtocolViolated, expect
from ..vocabulary.events import Event, Letter, Mailed, Poll, PositionsLoaded, TimerFired
from ..vocabulary.ids import CheckpointId, is_newer
from ..vocabulary.messages import (
    Abort,
    Assign,
    CancelBarrier,
    Complete,
    Deploy,
    Record,
    Running,
    Trigger,
)
from ..vocabulary.state import TaskState, without_keyed_state
from ..vocabulary.timeouts import IdleTimeout, RetryAsk
from .task import (
    AWAITING_FINAL_CHECKPOINT,
    PROCESSING,
    InFlightData,
    Restoring,
    SnapshotFormats,
    StateReader,
    Task,
)


class Assigning(Protocol):
    """How a source comes to its splits if an enumerator assigns them (OPS-3); see `split_reader`."""

    returned: dict[int, int]
    """the splits of its snapshot, with their positions, that it hands back when it runs"""
    more_may_come: bool

    def hand_back(self, positions: Mapping[int, int], source: SourceTask) -> None: ...

    def ask(self, source: SourceTask) -> list[Effect]: ...

    def ask_again(self, source: SourceTask) -> list[Effect]: ...

    def assigned(self, message: Assign, source: SourceTask) -> list[Effect]: ...


class SourceTime(Protocol):
    """The event time of a source (OPS-1); see `event_time`."""

    def read(self, split: int, time: int, source: SourceTask) -> list[Effect]:
        """A record with this event time was read."""
        ...

    def at_end(self, source: SourceTask) -> list[Effect]:
        """The input has ended."""
        ...

    def idle_timeout_over(self, source: SourceTask) -> list[Effect]: ...

    def on_restored(self, source: SourceTask, *, is_rescaled: bool) -> list[Effect]: ...

    def describe(self, state: TaskState) -> None: ...

    def restore(self, state: TaskState) -> None: ...


class PostponedCut(Letter, frozen=True):
    """Steps of a cut that are still to be carried out."""

    steps: tuple[CutStep, ...]
    checkpoint: CheckpointId


class LogTrimming(Protocol):
    """It lets the log discard records that no snapshot needs (ABS-15); see `log_trimming`."""

    def cut(self, checkpoint: CheckpointId, positions: Mapping[int, int]) -> None:
        """A snapshot was taken, or restored, at these positions."""
        ...

    def complete(self, oldest: CheckpointId | None) -> list[Effect]:
        """A checkpoint is complete; `oldest` is the oldest one that may be restored, now or once it is complete."""
        ...


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
        event_time: SourceTime | None,
        reading: StateReader,
        formats: SnapshotFormats,
        in_flight: InFlightData | None = None,
        assigning: Assigning | None = None,
        trimming: LogTrimming | None = None,
    ) -> None:
        """`bounded` and `event_time` are properties of the whole input: a subtask may have no split of it.
        `assigning`: None if it has `logs` from the beginning."""
        super().__init__(spec, config, parts, reading, formats, in_flight)
        self._assigning = assigning
        self.bounded = bounded
        self._at_most_once = not config.takes_checkpoints
        self._logs = tuple(logs)
        self.positions = {log.split: 0 for log in logs}
        self._next_log = 0
        self._last_triggered: CheckpointId | None = None
        self._aborted: tuple[CheckpointId, ...] = ()
        self.suspended = False
        self._event_time = event_time
        self._trimming = trimming

    # -- reading -------------------------------------------------------------------

    def on_poll(self, event: Event) -> list[Effect]:
        if self.suspended or not (self.life is PROCESSING or self.life is AWAITING_FINAL_CHECKPOINT):
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
            effects.extend(self._event_time.read(log.split, log.times[offset], self))
        if self._at_most_once:  # the position is saved before the record is sent (ABS-7)
            taken = () if log.rewindable else (Trim(log.split, offset + 1),)
            return [SavePosition(log.split, self.parts.start_position.saved(offset), (*effects, *taken))]
        return effects

    def end_of_splits(self) -> list[Effect]:
        """Every split is read to its end, which ends a bounded input, but not an unbounded one."""
        if self._assigning is not None and self._assigning.more_may_come:
            return self._assigning.ask(self)
        if self.input_ended or not self.bounded:
            return []
        return self.end_input()

    def end_input(self) -> list[Effect]:
        end = self._event_time.at_end(self) if self._event_time is not None else []
        return [*end, *super().end_input()]

    def unread(self) -> list[int]:
        """The splits of which something may be read; a bounded one that is read to its end is not among them."""
        return [log.split for log in self._logs if not self.bounded or self.positions[log.split] < len(log.records)]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        if isinstance(event.timeout, RetryAsk):
            if self._assigning is None or self.input_ended or self.finished:
                return []
            return self._assigning.ask_again(self)
        if not isinstance(event.timeout, IdleTimeout) or self._event_time is None or self.input_ended:
            return super().on_timer(event)
        return self._event_time.idle_timeout_over(self)

    def on_restored(self) -> list[Effect]:
        if self._assigning is not None:
            returned, self.positions = self.positions, {}
            self._assigning.hand_back(returned, self)
        is_rescaled = isinstance(self.life, Restoring) and bool(self.life.deploy.pieces)
        effects = super().on_restored()
        if self._event_time is None:
            return effects
        return [*effects, *self._event_time.on_restored(self, is_rescaled=is_rescaled)]

    # -- restoring -----------------------------------------------------------------

    def _on_positions(self, event: PositionsLoaded) -> list[Effect]:
        """Go on from the saved positions.  What was taken out of a log that cannot rewind is gone (ABS-16)."""
        for log in self._logs:
            if event.positions.get(log.split, 0) < log.begins:
                return [Fail(self.discarded(log, event.positions.get(log.split, 0)))]
        self._take_positions(event.positions)
        return self.on_restored()

    def restore(self, state: TaskState | None) -> list[Effect]:
        if self._at_most_once:
            return [LoadPositions(tuple(self.positions))]
        wanted = state.positions if state is not None else {}
        for log in self._logs:
            if wanted.get(log.split, 0) < log.begins:
                return [Fail(self.discarded(log, wanted.get(log.split, 0)))]
        return super().restore(state)

    def discarded(self, log: SplitLog, wanted: int) -> InputDiscarded:
        """Why it cannot read a split from that record on."""
        return InputDiscarded(log.split, log.begins, self.starts_from, wanted)

    def adopt(self, state: TaskState) -> None:
        self._take_positions(state.positions)
        self._next_log = state.turn % len(self._logs) if self._logs else 0
        if self._event_time is not None:
            self._event_time.restore(state)
        if self._trimming is not None and self.starts_from is not None:
            self._trimming.cut(self.starts_from, self.positions)

    def _running_report(self) -> Running:
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
        for log in self._logs:
            self.positions[log.split] = self.parts.start_position.position(log, positions)

    def _on_deploy(self, message: Deploy) -> list[Effect]:
        self.suspended = self.suspended or message.suspended
        return super()._on_deploy(message)

    def let_go(self) -> None:
        """Nothing refers back to it."""

    def skip_checkpoints(self, last: CheckpointId) -> None:
        self._last_triggered = last

    def stay_finished(self) -> list[Effect]:
        return [Rest(), *super().stay_finished()]

    def unkeyed_state(self) -> TaskState:
        state = super().unkeyed_state()
        state.positions = dict(self.positions)
        state.turn = self._next_log
        if self._event_time is not None:
            self._event_time.describe(state)
        return state

    # -- checkpoints ---------------------------------------------------------------

    def on_trigger(self, message: Trigger) -> list[Effect]:
        """Take the checkpoint here.  A trigger that comes before the start, or is not newer than the last one, changes
        nothing; one of an aborted checkpoint is answered with a cancel barrier."""
        checkpoint = message.checkpoint
        if not self.has_started or not is_newer(checkpoint, self._last_triggered):
            return []
        if checkpoint in self._aborted:
            self._last_triggered = checkpoint
            return self.broadcast(CancelBarrier(checkpoint))
        self._last_triggered = checkpoint
        self.formats.ask(checkpoint, message.format)
        self._aborted = tuple(aborted for aborted in self._aborted if aborted > checkpoint)
        ends = message.ending is not None and self.parts.ending.ends_input(message.ending)
        self.suspended = self.suspended or message.ending is not None
        if self.in_flight is not None:
            self.in_flight.triggered(message)
            self.in_flight.snapshot_taken(checkpoint, ())
        if self.config.drains_after_savepoint:
            return [*self._snapshot_and_barrier(checkpoint), *self._end_now(ends)]
        return [*self._end_now(ends), *self._snapshot_and_barrier(checkpoint)]

    def _end_now(self, ends: bool) -> list[Effect]:
        return self.end_input() if ends and not self.input_ended else []

    def _snapshot_and_barrier(self, checkpoint: CheckpointId) -> list[Effect]:
        """Record the position and send the barrier, in one step (ABS-1).

        The correct decision gives both steps at once, position first; only a planted defect puts one off.
        """
        effects: list[Effect] = []
        for step in self.parts.source_cut.steps():
            if isinstance(step, Postponed):
                effects.append(Mail(PostponedCut(step.steps, checkpoint)))
            else:
                effects.extend(self._carry_out(step, checkpoint))
        return effects

    def _carry_out(self, step: CutStep, checkpoint: CheckpointId) -> list[Effect]:
        return self.take_snapshot(checkpoint) if step is CutStep.record_position else self.barrier(checkpoint)

    def on_mail(self, event: Mailed) -> list[Effect]:
        postponed = expect(event.letter, PostponedCut)
        return [effect for step in postponed.steps for effect in self._carry_out(step, postponed.checkpoint)]

    def persist_current_state(self, checkpoint: CheckpointId) -> list[Effect]:
        state = self.unkeyed_state()
        if self._trimming is not None:
            self._trimming.cut(checkpoint, state.positions)
        return self.persist_once_in_flight_known(checkpoint, without_keyed_state(state))

    def on_complete(self, message: Complete) -> list[Effect]:
        self.formats.complete(message.checkpoint)
        return self._trimming.complete(message.oldest) if self._trimming is not None else []

    def on_abort(self, message: Abort) -> list[Effect]:
        """Remember an abort that comes before its trigger.  The trigger then sends a cancel barrier, and takes no
        snapshot."""
        self.formats.aborted(message.checkpoint)
        if is_newer(message.checkpoint, self._last_triggered) and message.checkpoint not in self._aborted:
            self._aborted = (*self._aborted, message.checkpoint)
        return []
