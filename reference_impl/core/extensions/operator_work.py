"""The work of a task around a user's operator: rows, timers, and rows that it holds back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ..decisions.tasks import HeldStep
from ..job.key_groups import Place
from ..job.task_spec import TaskSpec
from ..operators.operators import Operator
from ..protocol.input_task import Handler, InputTask, WorkFailed
from ..vocabulary.causes import AnyCause, UserFunctionRaised, UserFunctionRefused
from ..vocabulary.effects import Effect, Fail, Mail, TimeEnded, WakeAt
from ..vocabulary.errors import Refused, expect
from ..vocabulary.events import Letter, Mailed, Ticked
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Record
from ..vocabulary.state import END_OF_TIME, TaskState, Timer
from ..vocabulary.views import View


class ReleaseHeld(Letter, frozen=True):
    """Emit the rows that are held back."""


class OperatorWork:
    """It may hold rows back and emit them from a mail."""

    task: InputTask

    def __init__(self, spec: TaskSpec, operator: Operator) -> None:
        self.operator = operator
        self.clocked = operator.clocked
        self._gates = spec.gates
        self._asked: int | None = None
        """the time of the next tick that it asked for"""
        operator.place = Place(spec.subtask, spec.parallelism, spec.key_groups)
        self._held: list[Record] = []

    def wrap(self, wrapped: Callable[[Operator], Operator]) -> None:
        """Work with the user function in a wrapper from now on."""
        self.operator = wrapped(self.operator)

    def also_takes(self) -> Mapping[type, Handler]:
        return {Ticked: self.on_tick, Mailed: self.on_mail}

    # -- rows ----------------------------------------------------------------------

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        effects = self.release() if self._held else []
        try:
            rows = self.operator.apply(record, self._gates[channel])
        except Exception as error:  # whatever a user's function raises fails its task, not the engine
            return [Fail(self._blamed(error))]
        if self.operator.holds_back:
            return [*effects, *self._hold(rows)]
        if self.clocked:
            return [*self.task.emit(rows), *self._ask(self.operator.alarms.earliest())]
        return [*effects, *self.task.emit(rows)] if effects else self.task.emit(rows)

    def _hold(self, rows: Iterable[Record]) -> list[Effect]:
        """Emit the first row, and the others when the mailbox reaches their mail."""
        waiting = list(rows)
        if not waiting:
            return []
        self._held.extend(waiting[1:])
        later = [Mail(ReleaseHeld())] if self.task.parts.held_output.needs_mail(self._held) else []
        return [*self.task.emit(waiting[:1]), *later]

    def release(self) -> list[Effect]:
        """Emit the rows that are held back."""
        held, self._held = self._held, []
        return self.task.emit(held)

    def on_mail(self, event: Mailed) -> list[Effect]:
        expect(event.letter, ReleaseHeld)
        return self.release()

    def _steps(self) -> Sequence[HeldStep]:
        """At a barrier, or at the end of the data."""
        return self.task.parts.held_output.steps() if self._held else (HeldStep.pass_on,)  # emit, pass on

    def on_end(self) -> list[Effect]:
        last = self.task.parts.held_output.at_end(*self.operator.waiting())
        self.operator.release(len(last))
        ended = self._time_ends() if self.clocked else []
        effects: list[Effect] = []
        for step in self._steps():
            emits = step is HeldStep.emit
            effects += self.release() if emits else [*self.task.emit(last), *ended, *self.task.end_input()]
        return effects

    def on_time(self, time: int) -> list[Effect]:
        """Rows that are held back are emitted before the watermark; so are the panes of the windows that it ends."""
        held = self.release() if self._held else []
        timers = self.operator.timers
        due = timers.due(time)
        if due:
            timers.keep(self.task.parts.firing.left(timers.pending(), time))  # the later ones
        try:
            rows = self.operator.on_watermark(time, due)
        except Exception as error:
            raise WorkFailed(self._blamed(error)) from error
        return [*held, *self.task.emit(rows)]

    # -- processing time -------------------------------------------------------------

    @property
    def awaits_time(self) -> bool:
        return self.operator.alarms.earliest() is not None

    def on_tick(self, event: Ticked) -> list[Effect]:
        now = event.now
        if self._asked is not None and self._asked <= now:
            self._asked = None
        fired = self._fire_alarms(now, self.operator.alarms.take(now))
        return [*fired, *self._ask(self.operator.alarms.earliest())]

    def _time_ends(self) -> list[Effect]:
        """All input has ended, and no tick will come: fire what is pending."""
        return [TimeEnded(), *self._fire_alarms(END_OF_TIME, self.operator.alarms.take(END_OF_TIME))]

    def _fire_alarms(self, now: int, due: list[Timer]) -> list[Effect]:
        try:
            return self.task.emit(self.operator.on_clock(now, due))
        except Exception as error:
            return [Fail(self._blamed(error))]

    def _ask(self, time: int | None) -> list[Effect]:
        """Ask for a tick at that time, unless an earlier one was asked for."""
        if time is None or (self._asked is not None and self._asked <= time):
            return []
        self._asked = time
        return [WakeAt(time)]

    def on_restored(self) -> list[Effect]:
        """Take input; a restored task needs its first tick at the time of its earliest timer."""
        return [*self.task.open_inputs(), *self._ask(self.operator.alarms.earliest())]

    def _blamed(self, error: Exception) -> AnyCause:
        """The cause of its task's failure by an error in a user's code."""
        task = self.task.spec.task
        if isinstance(error, Refused):  # an error about what it returned or requested names it
            return UserFunctionRefused(task, str(error))
        return UserFunctionRaised(task, self.operator.function, f"{type(error).__name__}: {error}")

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        return self.task.finish()

    # -- state ---------------------------------------------------------------------

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Rows that are held back are emitted before (ABS-2)."""
        effects: list[Effect] = []
        try:
            for step in self._steps():
                effects += self.release() if step is HeldStep.emit else self.task.take_snapshot(checkpoint)
        except Refused as error:
            raise WorkFailed(self._blamed(error), effects) from error
        return effects

    def adopt(self, state: TaskState) -> None:
        mine = [item for item in state.shared if self.operator.keeps(item)]
        self.operator.resume(msgspec.structs.replace(state, shared=mine) if state.shared else state)
        if self.task.parts.upgrading.migrates(state.declared, self.operator.declared()):
            self.operator.migrate()

    def describe(self, state: TaskState) -> None:
        operator = self.operator
        state.timers, state.alarms = operator.timers.pending(), operator.alarms.pending()
        state.held, state.declared = operator.held(), operator.declared()
        state.listed, state.shared = operator.listed(), operator.shared()
        state.broadcast = operator.broadcast()

    def view(self) -> View:
        return self.operator.state.snapshot()
