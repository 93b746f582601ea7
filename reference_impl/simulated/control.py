"""The control plane: messages between the coordinator and the tasks, each on its own.

They are not ordered among each other beyond their latency, and faults can lose
one, hold it back or deliver it twice.  Every one belongs to an attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..core.events import Received
from ..core.ids import TaskId
from ..core.messages import AnyControl, Cancel, Complete, Deploy, ToCoordinator, ToTask, kind_of

if TYPE_CHECKING:
    from .world import World


class Meddling(msgspec.Struct):
    """What a fault does to the next message of a kind: lose, late or repeat, by how much."""

    how: str
    message: str
    task: str | None
    fault: int
    by_us: int = 0


class ControlPlane:
    """Carries control messages; what is addressed to nobody alive is dropped."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.meddlings: list[Meddling] = []

    def to_task(self, task: TaskId, message: ToTask) -> None:
        self._send(task, message, to_task=True)

    def to_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        self._send(task, message, to_task=False)

    def _send(self, task: TaskId, message: AnyControl, *, to_task: bool) -> None:
        world, kind = self.world, kind_of(message)
        delay = world.settings.control_latency_us + world.decisions.late(f"control {kind} {task}")
        meddling = self._meddle(kind, task) if self.meddlings else None
        deliver = self._reach_task if to_task else self._reach_coordinator
        if meddling is not None:
            world.busy_until = max(world.busy_until, world.loop.now + delay + meddling.by_us)
            world.fired(meddling.fault, f"{kind} of {task}: {meddling.how}", message.attempt)
            if meddling.how == "lose":
                return
            if meddling.how == "repeat":
                world.loop.after(delay + meddling.by_us, deliver, task, message)
            else:
                delay += meddling.by_us
        world.loop.after(delay, deliver, task, message)

    def _meddle(self, kind: str, task: TaskId) -> Meddling | None:
        for meddling in self.meddlings:
            if meddling.message == kind and meddling.task in (None, task):
                self.meddlings.remove(meddling)
                return meddling
        return None

    def _reach_task(self, task: TaskId, message: ToTask) -> None:
        world = self.world
        if isinstance(message, Deploy):
            world.point("task-deployed", task, "before", None)
            world.come_up(task, message.attempt)
        runner = world.runner(task, message.attempt)
        if runner is None or not runner.alive:
            return
        if isinstance(message, Cancel):
            if not runner.paused:
                runner.end("finished" if runner.task.finished else "cancelled")
            return
        point = "completion-notified" if isinstance(message, Complete) else ""
        if point and not world.point(point, task, "before", runner):
            return
        if world.detailed:
            world.show_control(task, message, to_task=True)
        runner.deliver(Received(message))
        if isinstance(message, Deploy):
            world.point("task-deployed", task, "after", runner)
        if point:
            world.point(point, task, "after", runner)

    def _reach_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        coordinator = self.world.coordinator
        if coordinator is None or not coordinator.alive:
            return
        acknowledges = kind_of(message) == "ack"
        if acknowledges and not self.world.point("ack-received", task, "before", coordinator):
            return
        if self.world.detailed:
            self.world.show_control(task, message, to_task=False)
        coordinator.feed(Received(message))
        if acknowledges:
            self.world.point("ack-received", task, "after", coordinator)
