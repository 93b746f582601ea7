"""Which of a task's inputs is next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ports import Inbound

NEVER = 1 << 60


def first_to_arrive(inputs: Sequence[Inbound], blocked: Sequence[bool]) -> tuple[int, int]:
    """(arrival, channel) of the first element in a channel that is not set aside, or (NEVER, -1)."""
    first, chosen = NEVER, -1
    for number, channel in enumerate(inputs):
        if channel.queue and not blocked[number]:
            arrival = channel.queue[0][0]
            if arrival < channel.stalled_until:
                arrival = channel.stalled_until
            if arrival < first:
                first, chosen = arrival, number
    return first, chosen
