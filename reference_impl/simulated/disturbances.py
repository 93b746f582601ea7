"""How a simulated world is disturbed: one method for each fault; each fault ends by itself.

Each method takes the number of the fault, reports through the world when the fault has changed something live, and
returns whether it could be applied.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import observed as o
from ..core.vocabulary.causes import ConnectionBroke, HeartbeatMissed, Killed, NodeLost, PowerLost
from ..core.vocabulary.ids import TaskId
from ..driver.arms import FAILING, TEARING
from ..driver.control import Meddling
from ..driver.injected_exceptions import ExceptionInjection, operator_work
from ..driver.runner import TaskRunner
from .links import DataChannel
from .world import World


class Disturbances:
    """The faults that a simulated world can suffer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._kinds: dict[int, str] = {}

    def now(self) -> int:
        return self.world.loop.now

    def at(self, time: int, action: Callable[[], None]) -> None:
        world = self.world
        world.busy_until = max(world.busy_until, time)
        world.loop.at(max(time, world.loop.now), lambda *_: action())

    # -- processes -------------------------------------------------------------------

    def kill_task(self, fault: int, task: str) -> bool:
        runner = self.world.latest(task)
        if runner is None or not runner.alive:
            return False
        self.world.fired(fault, f"{task} is killed", runner.attempt)
        return self.world.kill(runner, Killed(), fault)

    def kill_node(self, fault: int, node: int) -> bool:
        victims = self.world.on_node(node)
        if not victims:
            return False
        self.world.fired(fault, f"node {node} is killed with {_names(victims)}", victims[0].attempt)
        for runner in victims:
            self.world.kill(runner, NodeLost(), fault)
        return True

    def lose_unsynced(self, fault: int, node: int) -> bool:
        """Power is lost: the fault fires only if some write was not durable yet, whether its writer lives or not."""
        unsynced = self.world.stores.lose(lambda write: self.world.node_of(write.runner) == node)
        if not unsynced:
            return False
        victims = self.world.on_node(node)
        attempt = victims[0].attempt if victims else None
        self.world.fired(fault, f"node {node} loses power and {unsynced} unsynced writes", attempt)
        for runner in victims:
            self.world.kill(runner, PowerLost(), fault)
        return True

    def kill_coordinator(self, fault: int, down_us: int) -> bool:
        coordinator = self.world.coordinator
        if coordinator is None or not coordinator.alive or self.world.job_over:
            return False
        self.world.fired(fault, "the coordinator is killed", None)
        self._heal(fault, self.now() + down_us)
        self.world.lose_coordinator(fault, down_us)
        return True

    def pause_task(self, fault: int, task: str, for_us: int) -> bool:
        """Stop a task; without heartbeats its attempt is given up, and the task may go on as a zombie."""
        world, runner = self.world, self.world.latest(task)
        if runner is None or not runner.alive or runner.paused:
            return False
        world.fired(fault, f"{task} stands still", runner.attempt)
        runner.pause()
        world.loop.after(world.settings.heartbeat_timeout_us, self._miss, runner, fault)
        world.loop.after(for_us, lambda *_: runner.resume())
        self._heal(fault, self.now() + for_us)
        return True

    def _miss(self, runner: TaskRunner, fault: int) -> None:
        if runner.paused and runner.alive:
            if not self.world.is_superseded(runner):
                self.world.observer.saw(o.task_failed(runner.name, runner.attempt, HeartbeatMissed(), fault))
            self.world.lose(runner, HeartbeatMissed())

    def raise_in_operator(self, fault: int, task: str, always: bool) -> bool:
        runner = self.world.latest(task)
        if runner is None or operator_work(runner.task) is None:
            return False
        injection = ExceptionInjection(self.world, fault, always)
        self.world.inject_exception(TaskId(task), injection.into)
        injection.into(runner)
        return True

    # -- channels --------------------------------------------------------------------

    def delay_channel(self, fault: int, sender: str, receiver: str, by_us: int, for_us: int) -> bool:
        channel = self._live_channel(sender, receiver)
        if channel is None:
            return False
        channel.delay(by_us, self.now() + for_us, fault)
        self._heal(fault, self.now() + for_us)
        return True

    def stall_channel(self, fault: int, sender: str, receiver: str, for_us: int) -> bool:
        channel = self._live_channel(sender, receiver)
        if channel is None:
            return False
        until = self.now() + for_us
        channel.stall(until, fault)
        if channel.receiver is not None:
            channel.receiver.schedule(until)
        self._heal(fault, until)
        return True

    def cut_channel(self, fault: int, sender: str, receiver: str) -> bool:
        """Break a connection: the elements in it are lost, and its receiver fails."""
        channel = self._live_channel(sender, receiver)
        if channel is None or channel.receiver is None:
            return False
        lost = channel.cut()
        detail = f"{channel.name} breaks with {lost} messages in it"
        self.world.fired(fault, detail, channel.receiver.attempt, o.StruckChannel(channel.name))
        self.world.task_failed(channel.receiver, ConnectionBroke(TaskId(sender)), fault)
        return True

    def _live_channel(self, sender: str, receiver: str) -> DataChannel | None:
        runner = self.world.latest(receiver)
        if runner is None or not runner.alive:
            return None
        return self.world.channel(f"{sender}>{receiver}", runner.attempt)

    # -- messages and stores -----------------------------------------------------------

    def meddle(self, fault: int, how: str, message: str, task: str | None, by_us: int) -> bool:
        target = TaskId(task) if task is not None else None
        self.world.control.meddlings.waiting.append(Meddling(how, message, target, fault, by_us))
        return True

    def fail_write(self, fault: int, task: str | None, what: str) -> bool:
        self.world.stores.arms.arm(FAILING[what], task, fault)
        return True

    def fail_read(self, fault: int, task: str | None) -> bool:
        self.world.stores.arms.arm("fail-read", task, fault)
        return True

    def tear_write(self, fault: int, task: str | None, how: str) -> bool:
        self.world.stores.arms.arm(TEARING[how], task, fault)
        return True

    def fail_commit(self, fault: int, task: str | None, how: str, times: int) -> bool:
        self.world.sessions.arms.arm(how, task, fault, times)
        return True

    def _heal(self, fault: int, time: int) -> None:
        self.at(time, lambda: self.world.observer.saw(o.FaultHealed(fault)))


def _names(runners: list[TaskRunner]) -> str:
    return ", ".join(runner.name for runner in runners)
