"""Control messages on arrival, and the faults that lose, delay or repeat them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .. import observed as o
from ..core.vocabulary.events import Received
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.messages import AnyControl, Assign, Cancel, Complete, Deploy, ToCoordinator, ToTask, kind_of

if TYPE_CHECKING:
    from .coordination import CoordinatorRunner
    from .ports import World


class Meddling(msgspec.Struct):
    """A fault for the next message of a kind: lose, late or repeat, and by how much."""

    how: str
    message: str
    task: str | None
    fault: int
    by_us: int = 0


class Meddlings:
    """Faults that wait for their message; each is used up by it."""

    def __init__(self) -> None:
        self.waiting: list[Meddling] = []

    def take(self, kind: str, task: TaskId) -> Meddling | None:
        for meddling in self.waiting:
            if meddling.message == kind and meddling.task in (None, task):
                self.waiting.remove(meddling)
                return meddling
        return None


def reach_task(world: World, task: TaskId, message: ToTask) -> None:
    """A control message arrives at its task; a message of a former job is dropped."""
    attempt = world.parts.fencing.addressed(message, world.job_number, world.attempt_of(task) or None)
    if attempt is None:
        return
    if isinstance(message, Deploy):
        world.point("task-deployed", task, "before", None)
        world.come_up(task, attempt, message.channels_of)
    runner = world.runner(task, attempt)
    if runner is None or not runner.alive:
        return
    if isinstance(message, Cancel):
        if not runner.paused:
            runner.end("finished" if runner.task.finished else "cancelled")
        return
    point = "completion-notified" if isinstance(message, Complete) else ""
    if point and not world.point(point, task, "before", runner):
        return
    if isinstance(message, Assign):
        world.observer.saw(o.SplitsAssigned(runner.log.run, dict(message.splits)))
    if world.detailed:
        show_control(world, task, message, to_task=True)
    runner.deliver(Received(message))
    if isinstance(message, Deploy):
        world.point("task-deployed", task, "after", runner)
    if point:
        world.point(point, task, "after", runner)


def reach_coordinator(
    world: World, coordinator: CoordinatorRunner | None, task: TaskId, message: ToCoordinator
) -> None:
    """A task's control message arrives at the coordinator, if there is one."""
    if coordinator is None or not coordinator.alive:
        return
    acknowledges = kind_of(message) == "ack"
    if acknowledges and not world.point("ack-received", task, "before", coordinator):
        return
    if world.detailed:
        show_control(world, task, message, to_task=False)
    coordinator.feed(Received(message))
    if acknowledges:
        world.point("ack-received", task, "after", coordinator)


def show_control(world: World, task: TaskId, message: AnyControl, *, to_task: bool) -> None:
    """Enter a control message into the time line, at its arrival."""
    world.observer.saw(
        o.Timed(
            f"{kind_of(message)}-{'received' if to_task else 'arrived'}",
            task if to_task else "coordinator",
            message.attempt,
            peer="coordinator" if to_task else task,
            checkpoint=getattr(message, "checkpoint", None),
        )
    )
