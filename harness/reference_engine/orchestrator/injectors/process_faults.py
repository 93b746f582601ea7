"""Faults on processes: `faults.ports.Machines`, injected by signals, a real proxy, and orders to processes.

Each method takes the number of the fault and returns whether the fault could be applied.
The fault is reported as fired when it changes something live, which may be later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....reference_impl import observed as o
from .....reference_impl.core.vocabulary.causes import AnyCause, Killed, NodeLost, PowerLost
from .....reference_impl.driver.arms import FAILING, TEARING
from .....reference_impl.driver.settings import Settings
from .....reference_impl.processes.disk.files import DiskFiles
from .....reference_impl.processes.loop import monotonic_us
from .....reference_impl.processes.stores.sinks import DATABASE
from ..context import Context
from ..layout import COORDINATOR, GIVEN_UP_US
from ..processes import Member
from .channel_faults import ChannelFaults
from .waiting import Orders

POLL_US = 10_000
POLL_WRITES_US = 1_000
WRITES_WAITED_FOR = 3
BELIEVED_US: int = Settings().heartbeat_timeout_us
"""of the scenario's time: the heartbeat timeout that whoever drew the scenario assumed"""
MARGIN_US = 300_000


class Disturbances:
    """The faults on processes.  `replaced(member, down_us)` starts a replacement for a killed process."""

    def __init__(self, context: Context, replaced: Callable[[Member, int], None]) -> None:
        self._context = context
        self._replaced = replaced
        self.orders = Orders(context)
        self.channels = ChannelFaults(context)
        self._files = DiskFiles(context.config.store)

    def now(self) -> int:
        return self._context.now()

    def at(self, time: int, action: Callable[[], None]) -> None:
        self._context.at(time, action)

    # -- processes -------------------------------------------------------------------

    def kill_task(self, fault: int, task: str) -> bool:
        member = self._home_of(task)
        if member is None or not member.attempts:
            return False
        return self._kill([member], f"{task} is killed", Killed(), fault)

    def kill_node(self, fault: int, node: int) -> bool:
        members = self._on_node(node)
        if not any(member.attempts for member in members):
            return False
        return self._kill(members, f"node {node} is killed with {_names(members)}", NodeLost(), fault)

    def lose_unsynced(self, fault: int, node: int) -> bool:
        """A node loses power.  The fault fires only if some write was not durable yet, whether its writer lives or not.

        A write that a process has yet to do is waited for.
        """
        limit_us = self._context.real(self._context.config.settings.snapshot_write_us) * WRITES_WAITED_FOR
        self._lose_when_written(fault, node, monotonic_us() + limit_us)
        return True

    def _lose_when_written(self, fault: int, node: int, deadline_us: int) -> None:
        lost = self._unsynced(node) > 0 and self._lose_unsynced(fault, node)
        if not lost and monotonic_us() < deadline_us:
            self._context.after_real(POLL_WRITES_US, lambda: self._lose_when_written(fault, node, deadline_us))

    def _unsynced(self, node: int) -> int:
        tasks = self._context.placement.on_node(node)
        return sum(self._files.temporaries.task(path) in tasks for path in self._files.unsynced())

    def _lose_unsynced(self, fault: int, node: int) -> bool:
        context, members = self._context, self._on_node(node)
        # the processes are stopped, so that none syncs a write while the unsynced writes are counted
        stopped = [member for member in members if context.processes.stop(member)]
        unsynced = self._unsynced(node)
        if not unsynced:
            for member in stopped:
                context.processes.go_on(member)
            return False
        detail = f"node {node} loses power and {unsynced} unsynced writes"
        self._kill(members, detail, PowerLost(), fault, lose=context.placement.on_node(node))
        return True

    def _kill(
        self, members: Sequence[Member], detail: str, cause: AnyCause, fault: int, lose: Sequence[str] = ()
    ) -> bool:
        """Kill processes; whether this hit a live attempt, or lost the writes of one.  A process that had just ended by
        itself does not count as killed.

        The fault is recorded afterwards, with a stamp from before any process could observe the kill.
        """
        context = self._context
        stamps = [context.clock.tick() for _ in range(len(members) + 1)]
        phase, attempt, running = context.facts.phase, _attempt(members), [one for one in members if one.attempts]
        killed = context.processes.kill(members)
        if lose:
            self._files.lose_unsynced(lose)
        has_hit = bool(lose) or any(member in running for member in killed)
        if has_hit:
            context.fired(fault, detail, attempt, stamp=stamps[0], phase=phase)
        for member, stamp in zip(killed, stamps[1:], strict=False):
            context.journal.saw_at(stamp, o.died(member.name, member.incarnation, cause, fault))
        for member in killed:
            self._replaced(member, 0)
        return has_hit

    def kill_coordinator(self, fault: int, down_us: int) -> bool:
        context = self._context
        member = context.processes.current(COORDINATOR)
        if member is None or not context.facts.coordinator_lives:
            return False
        fired, died, phase = context.clock.tick(), context.clock.tick(), context.facts.phase
        if not context.processes.kill([member]):
            return False
        context.fired(fault, "the coordinator is killed", None, stamp=fired, phase=phase)
        context.journal.saw_at(died, o.died(COORDINATOR, member.incarnation, Killed(), fault))
        self._replaced(member, context.real(down_us))
        context.heal_after(context.real(down_us), fault, lambda: None)
        return True

    def pause_task(self, fault: int, task: str, for_us: int) -> bool:
        member = self._home_of(task)
        if member is None or not member.attempts or member.stops:
            return False
        return self._pause(fault, [member], for_us, f"{task} stands still")

    def pause_node(self, fault: int, node: int, for_us: int) -> bool:
        members = [one for one in self._on_node(node) if self._context.processes.is_current(one) and not one.stops]
        if not any(member.attempts for member in members):
            return False
        return self._pause(fault, members, for_us, f"node {node} stands still with {_names(members)}")

    def _pause(self, fault: int, members: Sequence[Member], for_us: int, detail: str) -> bool:
        context = self._context
        before = context.clock.tick()
        stopped = [member for member in members if context.processes.stop(member)]
        if not stopped:
            return False
        for member in stopped:
            context.journal.saw_at(before, o.Stopped(member.name, member.incarnation, fault))
        context.fired(fault, detail, _attempt(stopped))

        def resume() -> None:
            for member in stopped:
                context.processes.go_on(member)

        context.heal_after(self._pause_us(for_us), fault, resume)
        return True

    def _pause_us(self, for_us: int) -> int:
        """The length of a pause on the machine's clock.  It exceeds the heartbeat timeout here if it does so in the
        scenario."""
        real_us = self._context.real(for_us)
        if for_us <= BELIEVED_US:
            return min(real_us, GIVEN_UP_US // 2)
        return real_us + max(0, GIVEN_UP_US + MARGIN_US - self._context.real(BELIEVED_US))

    def _on_node(self, node: int) -> list[Member]:
        """Every process on a node, zombies included."""
        placement = self._context.placement
        return self._context.processes.of(placement.homes_of(placement.on_node(node)))

    def _home_of(self, task: str) -> Member | None:
        """The process that a task lives in."""
        homes = self._context.placement.homes_of([task])
        return self._context.processes.current(homes[0]) if homes else None

    def raise_in_operator(self, fault: int, task: str, always: bool) -> bool:
        if task not in self._context.placement.operators:
            return False
        return self.orders.inject_exception(fault, task, always)

    # -- channels --------------------------------------------------------------------

    def delay_channel(self, fault: int, sender: str, receiver: str, by_us: int, for_us: int) -> bool:
        return self.channels.delay(fault, sender, receiver, by_us, for_us)

    def stall_channel(self, fault: int, sender: str, receiver: str, for_us: int) -> bool:
        return self.channels.stall(fault, sender, receiver, for_us)

    def cut_channel(self, fault: int, sender: str, receiver: str) -> bool:
        return self.channels.cut(fault, sender, receiver)

    def reset_channel(self, fault: int, sender: str, receiver: str, for_us: int) -> bool:
        return self.channels.reset(fault, sender, receiver, for_us)

    def slice_channel(self, fault: int, sender: str, receiver: str, size: int, for_us: int) -> bool:
        return self.channels.slice(fault, sender, receiver, size, for_us)

    def limit_channel(self, fault: int, sender: str, receiver: str, count: int, /) -> bool:
        return self.channels.limit(fault, sender, receiver, count)

    def timeout_channel(self, fault: int, sender: str, receiver: str, after_us: int) -> bool:
        return self.channels.timeout(fault, sender, receiver, after_us)

    # -- messages and stores -----------------------------------------------------------

    def meddle(self, fault: int, how: str, message: str, task: str | None, by_us: int) -> bool:
        return self.orders.meddle(fault, how, message, task, by_us)

    def fail_write(self, fault: int, task: str | None, what: str) -> bool:
        return self.orders.arm(fault, FAILING[what], task)

    def fail_read(self, fault: int, task: str | None) -> bool:
        return self.orders.arm(fault, "fail-read", task)

    def tear_write(self, fault: int, task: str | None, how: str) -> bool:
        return self.orders.arm(fault, TEARING[how], task)

    def fail_commit(self, fault: int, task: str | None, how: str, times: int) -> bool:
        return self.orders.commit(fault, task, how, times)

    def expire(self, fault: int, name: str, attempt: int | None, member: Member) -> bool:
        """Have the store expire a sealed transaction, just before a process requests its commit.

        Several processes may be about to request a commit: the fault fires in the first, and the others drop it.
        """
        context = self._context
        stamp = context.clock.tick()
        if not self.orders.waits(fault) or not context.config.sink.expire(name):
            return False
        context.journal.saw_at(stamp, o.Expired(fault, name))
        self.orders.met_in(fault, member)
        context.fired(fault, f"the commit of {name}: expired", attempt, o.StruckCommit((name,), "expired"))
        return True

    # -- servers -----------------------------------------------------------------------

    def kill_proxy(self, fault: int, down_us: int) -> bool:
        context = self._context
        if not context.config.felt or not context.services.proxies.is_up:
            return False
        proxies = context.services.proxies
        # checked now, because the next server does not show whether another program has changed this one
        context.services.check_proxies()
        self.channels.waits_for_all(fault, "Toxiproxy is killed, and every connection through it breaks")
        proxies.kill()
        context.heal_after(context.real(down_us), fault, proxies.start)
        return True

    def kill_database(self, fault: int, down_us: int) -> bool:
        """Kill the database; the fault fires only if a live sink writes to it."""
        context = self._context
        database = context.services.database if context.config.sink.store == DATABASE else None
        if database is None or not database.pid:
            return False
        if not any(context.facts.attempt_of(sink) is not None for sink in context.placement.sinks):
            return False
        context.journal.saw(o.Outage(fault, True))
        database.kill()
        context.fired(fault, "the database is killed", None)
        context.will_heal(fault)

        def restart() -> None:
            database.start()
            await_answer()

        def await_answer() -> None:
            if not database.answers():
                context.after_real(POLL_US, await_answer)
                return
            context.journal.saw(o.Outage(fault, False))
            context.has_healed(fault)

        context.after_real(context.real(down_us), restart)
        return True


def _attempt(members: Sequence[Member]) -> int | None:
    """The newest live attempt in these processes."""
    return max((attempt for member in members for attempt in member.attempts.values()), default=None)


def _names(members: Sequence[Member]) -> str:
    return ", ".join(member.name for member in members)
