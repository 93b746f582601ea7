"""What a decision puts off."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Step = TypeVar("Step")


class Postponed(msgspec.Struct, Generic[Step], frozen=True):
    """Steps that wait in the task's mailbox; the task goes on meanwhile."""

    steps: tuple[Step, ...]
