"""The control plane in virtual time.

The order of messages depends on their latency only.  A fault can lose a message, delay it or deliver it twice.  Each
message belongs to an attempt; a message to an attempt that is not alive is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.messages import AnyControl, ToCoordinator, ToTask, kind_of
from ..driver.control import Meddlings, Tasks, reach_coordinator, reach_task
from ..driver.coordination import CoordinatorRunner
from ..driver.ports import Site


class ControlledWorld(Tasks, Site, Protocol):
    """What the control plane needs of its world."""

    busy_until: int
    coordinator: CoordinatorRunner | None

    def fired(self, fault: int, detail: str, attempt: int | None) -> None:
        """A fault that waited here has changed something live."""


class ControlPlane:
    """Carries control messages between the coordinator and the tasks."""

    def __init__(self, world: ControlledWorld) -> None:
        self.world = world
        self.meddlings = Meddlings()
        self._reach_task = partial(reach_task, world)
        self._latency_us = world.settings.control_latency_us

    def to_task(self, task: TaskId, message: ToTask) -> None:
        self._send(self._reach_task, task, message)

    def to_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        self._send(self._reach_coordinator, task, message)

    def _send(self, deliver: Callable[[Any, Any], None], task: TaskId, message: AnyControl) -> None:
        world = self.world
        if not (world.perturbations.any or self.meddlings.waiting):
            world.loop.after(self._latency_us, deliver, task, message)
            return
        kind = kind_of(message)
        delay = self._latency_us + world.perturbations.late(f"control {kind} {task}")
        meddling = self.meddlings.take(kind, task)
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

    def _reach_coordinator(self, task: TaskId, message: ToCoordinator) -> None:
        reach_coordinator(self.world, self.world.coordinator, task, message)
