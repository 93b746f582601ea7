"""Control messages on arrival, and the faults that lose, delay or repeat them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from .. import observed as o
from ..core.decisions.parts import Parts
from ..core.vocabulary.events import Received
from ..core.vocabulary.ids import AttemptId, TaskId
from ..core.vocabulary.messages import Ack, AnyControl, Assign, Cancel, Complete, Deploy, ToCoordinator, ToTask, kind_of
from ..trace import Observer
from .coordination import CoordinatorRunner
from .points import Points
from .runner import TaskRunner


class ControlWorld(Protocol):
    """What it takes to bring a control message to its receiver."""

    parts: Parts
    detailed: bool
    points: Points

    @property
    def observer(self) -> Observer: ...

    @property
    def job_number(self) -> int:
        """The number of the job that runs here, or ran last; jobs are counted from 1."""


class Tasks(ControlWorld, Protocol):
    """The tasks that live in a world."""

    def attempt_of(self, task: TaskId) -> AttemptId | None:
        """The newest attempt of a task that lives here; None if none does."""

    def runner(self, task: TaskId, attempt: AttemptId) -> TaskRunner | None: ...

    def come_up(self, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None = None) -> None:
        """Make room for an attempt; an older one of the task that still responds is cancelled.  `channels_of`: the
        attempt in whose channels it goes on (UNA-4); None: its own."""


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


def reach_task(world: Tasks, task: TaskId, message: ToTask) -> None:
    """A control message arrives at its task; a message of a former job is dropped."""
    attempt = world.parts.fencing.addressed(message, world.job_number, world.attempt_of(task))
    if attempt is None:
        return
    kind, points = type(message), world.points
    if kind is Deploy:
        points.reach("task-deployed", task, "before", None)
        world.come_up(task, attempt, message.channels_of)  # type: ignore[union-attr]
    runner = world.runner(task, attempt)
    if runner is None or not runner.alive:
        return
    if kind is Cancel:
        if not runner.paused:
            runner.end_in_order()
        return
    if kind is Complete and not points.reach("completion-notified", task, "before", runner):
        return
    if kind is Assign:
        world.observer.saw(o.SplitsAssigned(runner.log.run, dict(message.splits)))  # type: ignore[union-attr]
    if world.detailed:
        show_control(world.observer, task, message, to_task=True)
    runner.deliver(Received(message))
    if kind is Deploy:
        points.reach("task-deployed", task, "after", runner)
    elif kind is Complete:
        points.reach("completion-notified", task, "after", runner)


def reach_coordinator(
    world: ControlWorld, coordinator: CoordinatorRunner | None, task: TaskId, message: ToCoordinator
) -> None:
    """A task's control message arrives at the coordinator, if there is one."""
    if coordinator is None or not coordinator.alive:
        return
    acknowledges = type(message) is Ack and "ack-received" in world.points.watched
    if acknowledges and not world.points.reach("ack-received", task, "before", coordinator):
        return
    if world.detailed:
        show_control(world.observer, task, message, to_task=False)
    coordinator.feed(Received(message))
    if acknowledges:
        world.points.reach("ack-received", task, "after", coordinator)


def show_control(observer: Observer, task: TaskId, message: AnyControl, *, to_task: bool) -> None:
    """Enter a control message into the time line, at its arrival."""
    observer.saw(
        o.Timed(
            f"{kind_of(message)}-{'received' if to_task else 'arrived'}",
            task if to_task else "coordinator",
            message.attempt,
            peer="coordinator" if to_task else task,
            checkpoint=getattr(message, "checkpoint", None),
        )
    )
