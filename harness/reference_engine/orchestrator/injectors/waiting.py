"""Faults that wait inside a process for an event.  The replacement of a process receives the order again, until the
fault has fired."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .....reference_impl.core.vocabulary.ids import TaskId
from .....reference_impl.processes.network.frames import Arm, Disarm, Frame, Meddle, RaiseException
from ..context import Context
from ..layout import COORDINATOR
from ..processes import Member

Order = Callable[[int], Frame]
"""makes the frame that orders a fault, with a stamp"""


class Waiting(msgspec.Struct, kw_only=True):
    """A fault that waits, the processes in which it may fire, and the order that they receive."""

    fault: int
    processes: tuple[str, ...]
    order: Order
    times: int = 1
    comes_again: bool = False
    """the fault fires any number of times"""


class Orders:
    """The faults that wait in the processes of a run."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: list[Waiting] = []
        context.when_fired(self._fired)

    def _order(self, one: Waiting) -> bool:
        self._waiting.append(one)
        for name in one.processes:
            member = self._context.processes.current(name)
            if member is not None:
                member.send(one.order(self._context.clock.tick()))
        return True

    def order_again(self, member: Member) -> None:
        """Send the orders of a replaced process to its replacement."""
        for one in self._waiting:
            if member.name in one.processes:
                member.send(one.order(self._context.clock.tick()))

    def _fired(self, fault: int) -> None:
        """Count a firing; a fault that has fired as often as it may no longer waits."""
        for one in [one for one in self._waiting if one.fault == fault and not one.comes_again]:
            one.times -= 1
            if one.times <= 0:
                self._waiting.remove(one)

    def waits(self, fault: int) -> bool:
        """Whether a fault still waits."""
        return any(one.fault == fault for one in self._waiting)

    def met_in(self, fault: int, member: Member) -> None:
        """A fault that waited in several processes has fired in one: the others drop it."""
        for one in [one for one in self._waiting if one.fault == fault]:
            one.processes = (member.name,)
        for other in self._context.processes.living():
            if other is not member:
                other.send(Disarm(self._context.clock.tick(), fault))

    # -- the faults ------------------------------------------------------------------

    def _homes_of(self, *tasks: str) -> tuple[str, ...]:
        return self._context.placement.homes_of(tasks)

    def arm(self, fault: int, kind: str, task: str | None) -> bool:
        """Hit the next event of a kind in a task, or (None) in the coordinator."""
        processes = self._homes_of(task) if task is not None else (COORDINATOR,)
        return self._order(
            Waiting(fault=fault, processes=processes, order=lambda stamp: Arm(stamp, kind, task, fault, 1))
        )

    def commit(self, fault: int, task: str | None, how: str, times: int) -> bool:
        """Hit the next commits of a task, or (None) of the process that requests one first."""
        anybody = self._homes_of(*self._context.placement.committing)
        processes = self._homes_of(task) if task is not None else (*anybody, COORDINATOR)
        one = Waiting(
            fault=fault, processes=processes, order=lambda stamp: Arm(stamp, how, task, fault, one.times), times=times
        )
        return self._order(one)

    def meddle(self, fault: int, how: str, message: str, task: str | None, by_us: int) -> bool:
        """Disturb a control message, in the coordinator: all control messages pass it."""
        return self._order(
            Waiting(
                fault=fault,
                processes=(COORDINATOR,),
                order=lambda stamp: Meddle(stamp, how, message, task, fault, by_us),
            )
        )

    def inject_exception(self, fault: int, task: str, always: bool) -> bool:
        return self._order(
            Waiting(
                fault=fault,
                processes=self._homes_of(task),
                order=lambda stamp: RaiseException(stamp, TaskId(task), fault, always),
                comes_again=always,
            )
        )
