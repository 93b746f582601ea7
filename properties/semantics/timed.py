"""The machines of operators that depend on time: windows, bursts and user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..model.workload import Burst, User, Window
from .bursts import BurstMachine
from .user_functions import UserMachine
from .windows import WindowMachine

TimedMachine = UserMachine | WindowMachine | BurstMachine


def timed_machine(operator: User | Window, *, strict: bool = False) -> TimedMachine:
    """A fresh machine with empty state; `strict` as for a `UserMachine`."""
    if isinstance(operator, Burst):
        return BurstMachine(operator)
    if isinstance(operator, User):  # a clocked function's rows are not known without its ticks
        return UserMachine(operator, strict=strict and not operator.clocked)
    return WindowMachine(operator)


def redistributed(
    operator: User | Window, parts: Sequence[TimedMachine], is_mine: Callable[[int | None], bool]
) -> TimedMachine:
    """The machine of a subtask of a rescaled job: it takes its keys from the machines of all old subtasks."""
    worker = timed_machine(operator)
    worker.time = min((part.time for part in parts), default=worker.time)
    for part in parts:
        kept = part.keep()
        if isinstance(worker, WindowMachine) and isinstance(kept, WindowMachine):
            worker.adopt((pane for pane in kept.panes if is_mine(pane.key)), kept.time)
        elif isinstance(worker, BurstMachine) and isinstance(kept, BurstMachine):
            worker.open.update((key, rows) for key, rows in kept.open.items() if is_mine(key))
        elif isinstance(worker, UserMachine) and isinstance(kept, UserMachine):
            for key in filter(is_mine, kept.records):
                worker.records[key] = kept.records[key]
                worker.origins[key] = kept.origins[key]
                worker.given[key] = kept.given[key]
    return worker
