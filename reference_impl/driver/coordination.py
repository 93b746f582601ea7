"""Drives one coordinator: feeds its machine, carries out its effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.protocol.coordinator import Coordinator
from ..core.vocabulary.effects import (
    ClearLogs,
    Discard,
    Effect,
    EndJob,
    ListSnapshots,
    Note,
    Return,
    SaveJob,
    SendToTask,
    SetTimer,
    Store,
    Sweep,
    Transact,
)
from ..core.vocabulary.events import Event, TimerFired
from ..core.vocabulary.ids import AttemptId, TaskId
from ..core.vocabulary.timeouts import CheckpointInterval
from .timers import Timers

if TYPE_CHECKING:
    from .ports import World

NOTED = ("checkpoint-triggered", "checkpoint-acknowledged", "checkpoint-aborted")
"""Notes that are also protocol points."""


class CoordinatorRunner:
    """One coordinator until it dies; it makes durable writes one after the other."""

    def __init__(self, world: World, machine: Coordinator) -> None:
        self.world = world
        self.machine = machine
        self.alive = True
        self.name = TaskId("coordinator")
        self.attempt = AttemptId(0)
        self.applied = 0
        self.blame: int | None = None
        self._clear_at = 0
        self._timers = Timers(world.loop, self._due)
        self._carry_out: dict[type, Callable[[Any], None]] = {
            SendToTask: lambda effect: world.control.to_task(effect.task, effect.message),
            SaveJob: lambda effect: world.records.save_job(self, effect),
            Store: lambda effect: world.records.store(self, effect),
            Discard: world.records.discard,
            Sweep: world.records.sweep,
            ClearLogs: world.spills.clear,
            ListSnapshots: lambda effect: world.records.list_snapshots(self),
            SetTimer: self._timers.set,
            Note: self._note,
            Transact: lambda effect: world.sessions.send(self, effect.number, effect.request),
            Return: world.command_returned,
            EndJob: world.job_ended,
        }

    def feed(self, event: Event) -> None:
        """Feed an event to the machine; an exception there ends this coordinator."""
        if not self.alive:
            return
        try:
            effects = self.machine.step(event)
        except Exception:  # any exception ends this coordinator, and the history shows it
            self.world.lose_coordinator(None, self.world.settings.takeover_us)
            return
        self.perform(effects)

    deliver = feed

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if not self.alive:
                return
            self._carry_out[type(effect)](effect)

    def later(self, cost: int, action: Callable[[CoordinatorRunner, Any], None], what: object) -> None:
        """Make a durable write when those before it are done; drop it if the coordinator is dead by then."""
        self._clear_at = max(self._clear_at, self.world.loop.now) + cost
        self.world.loop.at(self._clear_at, self._do, action, what)

    def _do(self, action: Callable[[CoordinatorRunner, Any], None], what: object) -> None:
        if self.alive:
            action(self, what)

    def _note(self, effect: Note) -> None:
        if effect.what in NOTED and not self.world.point(effect.what, None, "before", self):
            return
        job = self.machine.job
        self.world.noted(effect.what, effect.checkpoint, effect.attempt, job, effect.detail, effect.tasks)
        if effect.what in NOTED:
            self.world.point(effect.what, None, "after", self)

    def _due(self, event: TimerFired) -> None:
        """A timer has run out; near the end of a run no checkpoint is triggered any more."""
        if isinstance(event.timeout, CheckpointInterval) and self.world.freezing:
            self._timers.set(SetTimer(event.timeout, self.world.config.checkpoint_interval_us))
        else:
            self.feed(event)
