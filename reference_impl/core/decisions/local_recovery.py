"""Local recovery: the decisions that make a replay repeat what the task did (UNA-4)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from .part import Part


class End(Enum):
    """An end in a channel.  It has no number: it comes once, and a recovered sender sends it again."""

    DATA = "data"
    PARTITION = "partition"


Determinant = tuple[int, int | End]
"""(input channel, number of the element in it) of an element that a task took"""


class Resumption(msgspec.Struct, frozen=True):
    """Where a recovered task goes on in a channel that has a log."""

    takes: int
    """the number of the first element that it takes again"""
    appends: int
    """the number of this element in the log"""


class LocalRecovery(Part):
    """The decisions that make a replay repeat what the task did."""

    def may_leave(self, logged: int, durable: int) -> bool:
        """Whether an output may leave the task: once all determinants are durable that were `logged` before it."""
        return logged <= durable

    def replayed(self, determinants: Sequence[Determinant], contained: int) -> tuple[Determinant, ...]:
        """What a recovered task takes again, and in which order: its determinants in the order in which it took them,
        without the first ones, whose elements the snapshot has `contained`."""
        return tuple(determinants[contained:])

    def goes_on(self, taken: int) -> Resumption:
        """Where a recovered task goes on in a channel of which its snapshot contains the `taken` first elements.  They
        are numbered from 0, so `taken` is the number of the first that the snapshot lacks.  It has the same number in
        the channel's log: a number names the same element in every attempt."""
        return Resumption(taken, taken)

    def is_repeat(self, number: int, entered: int) -> bool:
        """Whether an element of this number has come before; `entered` elements have come."""
        return number < entered

    def may_forget(self, number: int, durable: int, received: int) -> bool:
        """Whether a sender may forget an element.  The receiver has received `received` elements, of which `durable`
        are durable in the channel's log; the others are lost with the receiver."""
        return number < durable
