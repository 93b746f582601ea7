"""In-flight data of completed checkpoints: what a channel held when its two ends took their snapshots.

Both ends store a part of it.  The receiver stores `queued`: the elements that the
barrier overtook in the input queue, or that arrived between the receiver's own snapshot
and the barrier.  The sender stores `unsent`: the elements that the barrier overtook in
the output queue.  First `queued`, then `unsent`: that is the channel's state, in order
(Chandy and Lamport, 1985; FLIP-76).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ..model.history import Passing, Stored, StoredState, TaskRun
from ..model.workload import Row


class InFlight(msgspec.Struct, kw_only=True):
    """The in-flight data of one channel."""

    queued: list[Passing] = []
    unsent: list[Passing] = []
    replays: list[int] = []
    """for the first elements of `queued`: how often a restore had already put each of them back"""

    @property
    def origins(self) -> list[int]:
        """The origins of its records, in order."""
        return origins(self.queued) + origins(self.unsent)


NOTHING = InFlight()


def origins(passing: Iterable[Passing]) -> list[int]:
    """The origins of the records among elements in flight."""
    return [origin for origin, _ in records(passing)]


def records(passing: Iterable[Passing]) -> list[tuple[int, Row]]:
    """(origin, row) of the records among elements in flight."""
    found = []
    for one in passing:
        if len(one) == 6:
            key, value, tag, tag2, origin, _ = one
            found.append((origin or 0, (key, value, tag or 0, tag2 or 0)))
    return found


def channels_of(
    stored: Mapping[str, Stored], states: Mapping[str, StoredState], runs: Mapping[tuple[str, int], TaskRun]
) -> dict[str, InFlight]:
    """By channel, the in-flight data of a checkpoint; an empty channel has no entry."""
    found: dict[str, InFlight] = {}
    for task, state in states.items():
        if not state.queued and not state.unsent:
            continue
        run = runs.get((task, stored[task].attempt))
        if run is None:
            continue
        for number, passing in state.queued.items():
            if number < len(run.inputs):
                one = found.setdefault(run.inputs[number], InFlight())
                one.queued, one.replays = list(passing), list(state.replays.get(number, ()))
        for number, passing in state.unsent.items():
            if number < len(run.outputs):
                found.setdefault(run.outputs[number], InFlight()).unsent = list(passing)
    return found
