"""Triggers: times, points and phases, each with an action."""

from __future__ import annotations

from collections.abc import Callable

from ..plan import AnyTrigger, AtAim, AtPoint, AtRest, AtTime, InPhase

Action = Callable[[], None]


class Triggers:
    """Waits for triggers and carries out their actions, once each.

    `later(time, action)` makes the environment do something at a time.  Occurrences of a point are counted per (point,
    task), and per point over all tasks; the `before` and the `after` side have the same count.
    """

    def __init__(self, now: Callable[[], int], later: Callable[[int, Action], None]) -> None:
        self._now = now
        self._later = later
        self._points: dict[tuple[str, str | None, str], list[tuple[int, Action]]] = {}
        self._counts: dict[tuple[str, str | None, str], int] = {}
        self._phases: dict[str, list[tuple[int, int, Action]]] = {}
        self._entered: dict[str, int] = {}

    def add(self, trigger: AnyTrigger, action: Action) -> None:
        """Have an action carried out when its trigger comes.

        Raises ValueError for an aim, which no engine knows, and for rest: nothing waits for that while a run goes on.
        """
        if isinstance(trigger, AtTime):
            self._later(trigger.at_us, action)
        elif isinstance(trigger, AtPoint):
            address = (trigger.point, trigger.task, trigger.side)
            self._points.setdefault(address, []).append((trigger.occurrence, action))
        elif isinstance(trigger, AtAim):
            raise ValueError(f"the aim {trigger.aim!r} belongs to a pipeline that is run from outside")
        elif isinstance(trigger, AtRest):
            raise ValueError("a run that is at rest has ended")
        else:
            self._add_phase(trigger, action)

    def _add_phase(self, trigger: InPhase, action: Action) -> None:
        self._phases.setdefault(trigger.phase, []).append((trigger.occurrence, trigger.after_us, action))

    @property
    def points(self) -> frozenset[str]:
        return frozenset(point for point, _, _ in self._points)

    @property
    def phases(self) -> bool:
        """Whether an action still waits for a phase."""
        return bool(self._phases)

    def reached(self, point: str, task: str | None, side: str) -> None:
        """A point was reached: count it, and carry out the actions that wait for this occurrence."""
        for address in ((point, task, side), (point, None, side)) if task is not None else ((point, None, side),):
            count = self._counts.get(address, 0) + 1
            self._counts[address] = count
            for occurrence, action in self._points.get(address, ()):
                if occurrence == count:
                    action()

    def entered(self, phase: str) -> None:
        """The job entered a phase."""
        count = self._entered.get(phase, 0) + 1
        self._entered[phase] = count
        waiting = self._phases.pop(phase, [])
        due = [one for one in waiting if one[0] == count]
        if len(due) < len(waiting):
            self._phases[phase] = [one for one in waiting if one[0] != count]
        for _, after_us, action in due:
            if after_us:
                self._later(self._now() + after_us, action)
            else:
                action()
