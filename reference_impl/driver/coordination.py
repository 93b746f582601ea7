"""Drives one coordinator: feeds its machine, carries out its effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, get_args

from ..core.job.config import Config
from ..core.vocabulary.causes import raised
from ..core.vocabulary.effects import (
    ClearLogs,
    CopyFiles,
    Discard,
    Effect,
    EndJob,
    ListSnapshots,
    MarkMoved,
    Return,
    SaveJob,
    SendToTask,
    SetTimer,
    Store,
    StoreCopy,
    Sweep,
    SweepCopies,
    Transact,
)
from ..core.vocabulary.events import CompletedCheckpoint, DeleteFailed, Event, TimerFired
from ..core.vocabulary.ids import AttemptId, TaskId
from ..core.vocabulary.stages import Stage
from ..core.vocabulary.status_changes import (
    AnyStatusChange,
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointTriggered,
    StatusChange,
)
from ..core.vocabulary.timeouts import CheckpointInterval
from .durable.records import Records, RecordsWorld
from .durable.sessions import Sessions
from .durable.spills import Spills
from .ports import Orders
from .timers import MachineTimers

POINTS: Mapping[type[StatusChange], str] = {
    CheckpointTriggered: "checkpoint-triggered",
    CheckpointAcknowledged: "checkpoint-acknowledged",
    CheckpointAborted: "checkpoint-aborted",
}
"""Status changes that are also protocol points."""


class JobMachine(Protocol):
    """A coordinator's machine, `core.lifecycle.coordinator`, as drivers see it."""

    @property
    def job(self) -> int: ...

    @property
    def stage(self) -> Stage: ...

    @property
    def newest_attempt(self) -> AttemptId | None: ...

    @property
    def has_begun(self) -> bool: ...

    @property
    def is_ending(self) -> bool: ...

    @property
    def has_checkpoint_under_way(self) -> bool: ...

    @property
    def retained(self) -> tuple[CompletedCheckpoint, ...]: ...

    @property
    def newest(self) -> CompletedCheckpoint | None: ...

    def attempt_of(self, task: TaskId) -> AttemptId | None: ...

    def step(self, event: Event) -> list[Effect]: ...


class CoordinatorWorld(RecordsWorld, Protocol):
    """What a coordinator needs of its world."""

    config: Config
    records: Records
    sessions: Sessions

    @property
    def spills(self) -> Spills: ...

    @property
    def control(self) -> Orders: ...

    @property
    def freezing(self) -> bool:
        """The run is about to end: no checkpoint is triggered any more."""

    def status_changed(self, job: int, change: AnyStatusChange) -> None: ...

    def command_returned(self, effect: Return) -> None: ...


class CoordinatorRunner:
    """One coordinator until it dies; it makes durable writes one after the other."""

    def __init__(self, world: CoordinatorWorld, machine: JobMachine) -> None:
        self.world = world
        self.machine = machine
        self.alive = True
        self.name = TaskId("coordinator")
        self.attempt: AttemptId | None = None
        self._clear_at = 0
        self._waiting: list[Event | list[Effect]] = []
        """what has to wait until a record is deleted"""
        self._timers = MachineTimers(world.loop, self._due)

    def feed(self, event: Event) -> None:
        """Feed an event to the machine; an exception there ends this coordinator."""
        if not self.alive:
            return
        if self.world.records.holds_up(self):
            self._waiting.append(event)
            return
        try:
            effects = self.machine.step(event)
        except Exception as error:  # any exception ends this coordinator, and the history shows it
            self.world.lose_coordinator(None, self.world.settings.takeover_us, raised(error))
            return
        self.perform(effects)

    def deliver(self, event: Event, owed_to: int | None = None) -> None:
        """Feed an answer; the store owes none that a coordinator gets to a fault."""
        self.feed(event)

    def perform(self, effects: list[Effect]) -> None:
        records = self.world.records
        for number, effect in enumerate(effects):
            if not self.alive:
                return
            if records.holds_up(self):
                self._waiting.append(effects[number:])
                return
            kind = type(effect)
            if kind is SendToTask:
                self.world.control.to_task(effect.task, effect.message)  # type: ignore[attr-defined]
            else:
                self.handlers[kind](self, effect)

    def retry(self, failed: DeleteFailed) -> None:
        waiting, self._waiting = self._waiting, []
        self.feed(failed)  # what has to wait again comes before what has waited
        for one in waiting:
            if isinstance(one, list):
                self.perform(one)
            else:
                self.feed(one)

    def later(self, cost: int, action: Callable[[CoordinatorRunner, Any], None], what: object) -> None:
        """Make a durable write when those before it are done; drop it if the coordinator is dead by then."""
        self._clear_at = max(self._clear_at, self.world.loop.now) + cost
        self.world.loop.at(self._clear_at, self._do, action, what)

    def _do(self, action: Callable[[CoordinatorRunner, Any], None], what: object) -> None:
        if self.alive:
            action(self, what)

    def _status_changed(self, change: AnyStatusChange) -> None:
        point = POINTS.get(type(change))
        if point is None:
            self.world.status_changed(self.machine.job, change)
        elif self.world.points.reach(point, None, "before", self):
            self.world.status_changed(self.machine.job, change)
            self.world.points.reach(point, None, "after", self)

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        SaveJob: lambda self, effect: self.world.records.save_job(self, effect),
        Store: lambda self, effect: self.world.records.store(self, effect),
        Discard: lambda self, effect: self.world.records.discard(self, effect),
        Sweep: lambda self, effect: self.world.records.sweep(self, effect),
        CopyFiles: lambda self, effect: self.world.records.copy(self, effect),
        MarkMoved: lambda self, effect: self.world.records.mark_moved(self, effect),
        StoreCopy: lambda self, effect: self.world.records.store_copy(self, effect),
        SweepCopies: lambda self, effect: self.world.records.sweep_copies(),
        ClearLogs: lambda self, effect: self.world.spills.clear(effect),
        ListSnapshots: lambda self, effect: self.world.records.list_snapshots(self),
        SetTimer: lambda self, effect: self._timers.set(effect),
        **dict.fromkeys(get_args(AnyStatusChange), _status_changed),
        Transact: lambda self, effect: self.world.sessions.send(self, effect.number, effect.request, 0),
        Return: lambda self, effect: self.world.command_returned(effect),
        EndJob: lambda self, effect: self.world.records.end_job(self, effect),
    }
    """The effects, except `SendToTask`."""

    def _due(self, event: TimerFired) -> None:
        """A timer has run out; near the end of a run no checkpoint is triggered any more."""
        if isinstance(event.timeout, CheckpointInterval) and self.world.freezing:
            self._timers.set(SetTimer(event.timeout, self.world.config.checkpoint_interval_us))
        else:
            self.feed(event)

    def let_go(self) -> None:
        """Drop what refers back to it; it is done with."""
        del self._timers
