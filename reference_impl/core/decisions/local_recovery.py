"""Local recovery: the decisions that make a replay repeat what the task did (UNA-4)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from .part import Part


class End(Enum):
    """An end in a channel.  It has no number: it comes once, and a recovered sender sends it again."""

    DATA = "data"
    PARTITION = "partition"


Determinant = tuple[int, int | End]
"""(input channel, number of the element in it) of an element that a task took"""


class LocalRecovery(Part):
    """The decisions that make a replay repeat what the task did."""

    def needed(self, logged: int) -> int:
        """How many determinants must be durable before an output leaves the task: all `logged` by then."""
        return logged

    def replayed(self, determinants: Sequence[Determinant]) -> Sequence[Determinant]:
        """The order in which a recovered task takes its input again: that of its determinants."""
        return determinants

    def begins_at(self, taken: int) -> int:
        """The number of the first element of a channel that a recovered task takes again.  Elements are numbered from
        0, and its snapshot contains the `taken` first ones: so it is the first that the snapshot lacks."""
        return taken

    def is_repeat(self, number: int, entered: int) -> bool:
        """Whether an element of this number has come before; `entered` elements have come."""
        return number < entered

    def may_forget(self, number: int, durable: int, received: int) -> bool:
        """Whether a sender may forget an element.  The receiver has received `received` elements, of which `durable`
        are durable in the channel's log; the others are lost with the receiver."""
        return number < durable
