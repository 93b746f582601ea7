"""Which input of a task is next."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.vocabulary.messages import Barrier
from .inputs import was_restored
from .ports import Inbound

NEVER = 1 << 60


def arrival_at(channel: Inbound, place: int) -> int:
    """When the element at this place of a channel's queue can be taken: a stalled channel delivers restored elements
    alone."""
    arrival, stalled_until = channel.queue[place][0], channel.stalled_until
    return arrival if was_restored(arrival) else max(arrival, stalled_until)


def first_to_arrive(inputs: Sequence[Inbound], blocked: Sequence[bool]) -> tuple[int, int] | None:
    """(arrival, channel) of the first element in a channel that is not blocked.  Elements that waited in a blocked
    channel arrived earlier than new ones, so they come first (ABS-2)."""
    first, chosen = NEVER, 0
    for number, channel in enumerate(inputs):
        if channel.queue and not blocked[number]:
            arrival = channel.queue[0][0]
            if 0 <= arrival < channel.stalled_until:  # as `arrival_at` says; each step would cost its call
                arrival = channel.stalled_until
            if arrival < first:
                first, chosen = arrival, number
    return (first, chosen) if first < NEVER else None


def most_urgent(inputs: Sequence[Inbound]) -> tuple[int, int, int] | None:
    """(end of its alignment timeout, channel, place in the queue) of the barrier that may overtake first.  Blocked
    channels count too: such a barrier shows that its channel is past the alignment."""
    first, chosen, place = NEVER, 0, 0
    for number, channel in enumerate(inputs):
        if not channel.timed_barriers:
            continue
        for index, (arrival, element) in enumerate(channel.queue):
            if type(element) is Barrier and element.alignment_timeout_us is not None:
                stalled = channel.stalled_until
                due = (arrival if arrival > stalled else stalled) + element.alignment_timeout_us
                if due < first:
                    first, chosen, place = due, number, index
                break  # barriers behind it came later, and have the same timeout
    return (first, chosen, place) if first < NEVER else None
