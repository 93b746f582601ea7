"""The transitions of barrier alignment, by the names that docs/protocol.md gives them: `aligning: barrier, new`."""

from __future__ import annotations

from collections import Counter

from ....reference_impl.core.protocol.barrier_alignment import (
    TABLE,
    AbortCame,
    Aligning,
    BarrierCame,
    CancelCame,
    Counting,
    Flowing,
    OvertakingCame,
    PartitionEnded,
    Transition,
    TriggerCame,
    WaitedEnough,
)

_STATES: dict[type, str] = {Flowing: "flowing", Aligning: "aligning", Counting: "counting"}
_SIGNALS: dict[type, str] = {
    BarrierCame: "barrier",
    OvertakingCame: "barrier that overtakes",
    WaitedEnough: "alignment timeout",
    CancelCame: "cancel barrier",
    AbortCame: "abort",
    TriggerCame: "trigger",
    PartitionEnded: "end of a channel",
}


def _name_of(transition: Transition) -> str:
    state, signal, relation = transition
    return f"{_STATES[state]}: {_SIGNALS[signal]}" + (f", {relation}" if relation else "")


_NAMES = {transition: _name_of(transition) for transition in TABLE}

TRANSITIONS: frozenset[str] = frozenset(_NAMES.values())
"""the name of every transition"""


class TransitionCount:
    """How often the tasks of a run take each transition."""

    def __init__(self) -> None:
        self._taken: Counter[Transition] = Counter()

    def count(self, transition: Transition) -> None:
        self._taken[transition] += 1

    def taken(self) -> dict[str, int]:
        """By name; transitions that none took are left out."""
        return {_NAMES[transition]: count for transition, count in self._taken.items()}
