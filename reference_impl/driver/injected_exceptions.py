"""Exceptions injected into user functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ..core.backends.keyed_state import KeyedState
from ..core.extensions.operator_work import OperatorWork
from ..core.job.key_groups import Place
from ..core.operators.operators import Operator
from ..core.operators.timers import Timers
from ..core.protocol.input_task import InputTask
from ..core.protocol.task import Task
from ..core.vocabulary.messages import Record
from ..core.vocabulary.state import Item, TaskState, Timer
from .ports import Faults
from .runner import TaskRunner


class Injected(Exception):
    """The exception that a user function is made to raise."""


def operator_work(task: Task) -> OperatorWork | None:
    """The work of a task around a user's operator; None for any other task."""
    return task.work if isinstance(task, InputTask) and isinstance(task.work, OperatorWork) else None


class Raising(Operator):
    """Wraps a user function and raises: once, or always on one record."""

    def __init__(self, inner: Operator, raises: Callable[[Record], bool]) -> None:
        self._inner = inner
        self._raises = raises
        self.holds_back = inner.holds_back
        super().__init__()

    @property
    def state(self) -> KeyedState:
        """Its state is the inner operator's."""
        return self._inner.state

    @state.setter
    def state(self, state: KeyedState) -> None:
        """Ignored: the inner operator keeps its own."""

    @property
    def timers(self) -> Timers:
        return self._inner.timers

    @timers.setter
    def timers(self, timers: Timers) -> None:
        """As with the state."""

    @property
    def alarms(self) -> Timers:
        return self._inner.alarms

    @alarms.setter
    def alarms(self, alarms: Timers) -> None:
        """As with the state."""

    def on_clock(self, now: int, due: Iterable[Timer]) -> Iterable[Record]:
        return self._inner.on_clock(now, due)

    @property
    def place(self) -> Place:
        return self._inner.place

    @place.setter
    def place(self, place: Place) -> None:
        """As with the state."""

    def on_watermark(self, time: int, due: Iterable[Timer]) -> Iterable[Record]:
        return self._inner.on_watermark(time, due)

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        if self._raises(record):
            raise Injected(f"injected on the record with tag {record.tag}")
        return self._inner.apply(record, gate)

    def waiting(self) -> tuple[Sequence[Record], Sequence[Record]]:
        return self._inner.waiting()

    def release(self, count: int) -> None:
        self._inner.release(count)

    def listed(self) -> list[Item]:
        return self._inner.listed()

    def shared(self) -> list[Item]:
        return self._inner.shared()

    def broadcast(self) -> list[Item]:
        return self._inner.broadcast()

    def keeps(self, item: Item) -> bool:
        return self._inner.keeps(item)

    def held(self) -> list[tuple[int | None, str, str]]:
        return self._inner.held()

    def declared(self) -> dict[str, str]:
        return self._inner.declared()

    def resume(self, state: TaskState) -> None:
        self._inner.resume(state)

    def migrate(self) -> None:
        self._inner.migrate()


class ExceptionInjection:
    """Makes a task's user function raise on its next record: once, or each time that this record comes."""

    def __init__(self, world: Faults, fault: int, always: bool) -> None:
        self._world = world
        self._fault = fault
        self._always = always
        self._origin: int | None = None
        self._done = False

    def into(self, runner: TaskRunner) -> None:
        work = operator_work(runner.task)
        if work is not None and not self._done:
            work.wrap(lambda inner: Raising(inner, partial(self._raises, runner)))

    def _raises(self, runner: TaskRunner, record: Record) -> bool:
        if self._done or (self._origin is not None and record.origin != self._origin):
            return False
        self._origin = record.origin
        self._done = not self._always
        runner.owe(self._fault)
        self._world.fired(self._fault, f"the user function of {runner.name} raises", runner.attempt)
        return True
