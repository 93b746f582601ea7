"""The machines that look at event time: windows and user functions."""

from __future__ import annotations

from .user_functions import UserMachine
from .windows import WindowMachine
from .workload import User, Window

TimedMachine = UserMachine | WindowMachine


def timed_machine(operator: User | Window, *, strict: bool = False) -> TimedMachine:
    """A fresh one, with empty state; `strict` as for a `UserMachine`."""
    return UserMachine(operator, strict=strict) if isinstance(operator, User) else WindowMachine(operator)
