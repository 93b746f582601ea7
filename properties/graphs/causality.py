"""Consistency of a snapshot of any distributed system, judged by causality (CL-3).

A snapshot is consistent if, with every event, it holds each event that happened before it
(Lamport's relation: earlier in the same process, or the send of a message that was
received), and if each channel holds exactly the messages that were sent and not yet
received, in order.  The evidence is the world's own log of events and messages, compared
with what the processes reported.

The lecture notes on consistent snapshots define consistency in absolute time: "if a occurs
before b and b is included in the snapshot, a is also included".  `in_absolute_time` is that
reading, word by word.  Chandy and Lamport's own cuts break it: a process records its state when
the marker comes, and another process has gone on meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a process did, by the world's log; its number is its place there."""

    process: str
    kind: str
    """local, send or receive"""
    label: str
    at_us: int
    channel: str | None = None
    message: int | None = None
    """of a send and of its receive: the number of the send"""

    @property
    def received(self) -> int | None:
        """The message that this event received."""
        return self.message if self.kind == "receive" else None

    @property
    def sent_into(self) -> str | None:
        """The channel into which this event sent a message."""
        return self.channel if self.kind == "send" else None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one process contributed: the events that made its state, and the messages on its inputs."""

    process: str
    events: tuple[int, ...]
    channels: dict[str, tuple[int, ...]]


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot: what was contributed, and when it was complete (None: never)."""

    name: str
    begun_us: int
    parts: tuple[Part, ...]
    complete_us: int | None = None


class GraphHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a system of processes and channels."""

    processes: tuple[str, ...]
    events: tuple[Event, ...]
    snapshots: tuple[Taken, ...]
    markers: tuple[tuple[int, str, str], ...] = ()
    """time in µs, channel and snapshot of each marker that arrived, in order"""
    fired: tuple[int, ...] = ()
    """which of the planned breaches had an effect"""
    stopped_us: dict[str, int] = {}
    """process: how long it only waited, for the sake of a snapshot"""


def check(history: GraphHistory) -> Verdict:
    """consistent-cut of all snapshots; a snapshot that never completes violates it too."""
    exercised = 0
    for taken in history.snapshots:
        if taken.complete_us is None:
            return _never_complete(taken)
        found = consistent(history, taken)
        if isinstance(found, Violated):
            return found
        exercised += isinstance(found, Holds)
    if not exercised:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no snapshot had events on both of its sides")
    return Holds(exercised=exercised)


def _never_complete(taken: Taken) -> Violated:
    there = ", ".join(part.process for part in taken.parts)
    return Violated(
        difference="snapshot without an end",
        message=f"snapshot {taken.name}, begun at {taken.begun_us} µs, never completed;"
        f" contributed: {there or 'no process'}",
        tasks=tuple(part.process for part in taken.parts),
    )


def consistent(history: GraphHistory, taken: Taken) -> Verdict:
    """Whether one complete snapshot is a state that the system could have passed through."""
    inside = {number for part in taken.parts for number in part.events}
    found = (
        _absent(history, taken)
        or _invented(history, taken)
        or _gap_in_a_process(history, taken, inside)
        or _received_unsent(history, taken, inside)
        or _received_twice(history, taken, inside)
        or _channels(history, taken, inside)
    )
    if found is not None:
        return found
    if not inside or len(inside) == len(history.events):
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no event lay on one of its sides")
    return Holds(exercised=len(inside))


def _absent(history: GraphHistory, taken: Taken) -> Violated | None:
    there = [part.process for part in taken.parts]
    if sorted(there) == sorted(history.processes):
        return None
    message = f"{taken.name} was reported complete, and has the parts of {', '.join(there) or 'no process'}"
    return Violated(difference="process missing", message=message, tasks=tuple(there))


def _invented(history: GraphHistory, taken: Taken) -> Violated | None:
    for part in taken.parts:
        for number in part.events:
            if not 0 <= number < len(history.events) or history.events[number].process != part.process:
                message = f"{taken.name}: the state of {part.process} has event {number}, which it never executed"
                return Violated(difference="event from nowhere", message=message, tasks=(part.process,))
        for channel, messages in part.channels.items():
            if not all(_was_sent(history, number, channel) for number in messages):
                message = f"{taken.name} holds {list(messages)} in {channel}, and not all of these were sent through it"
                return Violated(difference="message from nowhere", message=message, tasks=(part.process,))
    return None


def _was_sent(history: GraphHistory, number: int, channel: str) -> bool:
    if not 0 <= number < len(history.events):
        return False
    event = history.events[number]
    return event.sent_into == channel


def _gap_in_a_process(history: GraphHistory, taken: Taken, inside: set[int]) -> Violated | None:
    did: dict[str, list[int]] = {}
    for number, event in enumerate(history.events):
        did.setdefault(event.process, []).append(number)
    for part in taken.parts:
        own = did.get(part.process, [])
        if list(part.events) != own[: len(part.events)]:
            missing = [number for number in own[: len(part.events)] if number not in inside]
            lacks = (
                f"lacks {_event_in_words(history, missing[0])}, and has later events"
                if missing
                else "has its events in another order"
            )
            return Violated(
                difference="event missing" if missing else "events out of order",
                message=f"the state of {part.process} in {taken.name}, {len(part.events)} events, {lacks}",
                tasks=(part.process,),
            )
    return None


def _received_unsent(history: GraphHistory, taken: Taken, inside: set[int]) -> Violated | None:
    """A message received inside the cut and sent outside: all that can be wrong if every state is a prefix."""
    for number in sorted(inside):
        event = history.events[number]
        sent = event.received
        if sent is not None and sent not in inside:
            sender = history.events[sent]
            return Violated(
                difference="received, not sent",
                message=f"{taken.name} holds that {event.process} received {event.label} by {event.channel},"
                f" and not that {sender.process} sent it",
                records=(event.label,),
                tasks=(sender.process, event.process),
                events=(
                    f"outside: {_event_in_words(history, sent)}",
                    f"inside: {_event_in_words(history, number)}",
                ),
            )
    return None


def _received_twice(history: GraphHistory, taken: Taken, inside: set[int]) -> Violated | None:
    received = [number for number in sorted(inside) if history.events[number].kind == "receive"]
    counted = Counter(history.events[number].message for number in received)
    for number in received:
        event = history.events[number]
        if counted[event.message] > 1:
            return Violated(
                difference="received twice",
                message=f"{taken.name} holds that {event.process} received {event.label} by {event.channel} twice",
                records=(event.label,),
                tasks=(event.process,),
            )
    return None


def _channels(history: GraphHistory, taken: Taken, inside: set[int]) -> Violated | None:
    due = under_way(history.events, inside)
    held = {channel: messages for part in taken.parts for channel, messages in part.channels.items()}
    for channel in sorted({*due, *held}):
        messages, expected = held.get(channel, ()), due.get(channel, ())
        if messages != expected:
            return Violated(
                difference=_difference(history, messages, expected),
                message=f"{taken.name} holds {_labels(history, messages)} in {channel};"
                f" {_labels(history, expected)} had been sent and not received",
                records=tuple(history.events[number].label for number in sorted({*messages, *expected})),
            )
    return None


def under_way(events: Sequence[Event], inside: set[int]) -> dict[str, tuple[int, ...]]:
    """By channel: the messages sent inside the cut and not received inside it, in the order of sending."""
    received = {events[number].received for number in inside}
    found: dict[str, list[int]] = {}
    for number in sorted(inside):
        channel = events[number].sent_into
        if channel is not None and number not in received:
            found.setdefault(channel, []).append(number)
    return {channel: tuple(messages) for channel, messages in found.items()}


def _difference(history: GraphHistory, messages: Sequence[int], expected: Sequence[int]) -> str:
    if sorted(messages) == sorted(expected):
        return "out of order in a channel"
    if any(count > 1 for count in Counter(messages).values()):
        return "twice in a channel"
    if set(expected) - set(messages):
        received = {event.received for event in history.events}
        return "missing in a channel" if set(expected) - set(messages) <= received else "lost from a channel"
    return "too much in a channel"


def _labels(history: GraphHistory, messages: Sequence[int]) -> str:
    return f"[{', '.join(history.events[number].label for number in messages)}]"


def _event_in_words(history: GraphHistory, number: int) -> str:
    event = history.events[number]
    by = f" by {event.channel}" if event.channel else ""
    return f"{event.process}: {event.kind} {event.label}{by} at {event.at_us} µs"


def in_absolute_time(history: GraphHistory, taken: Taken) -> Iterator[tuple[int, int]]:
    """Pairs (a, b): a occurred before b, b is in the snapshot, a is not.  The course allows none."""
    inside = {number for part in taken.parts for number in part.events}
    for later in sorted(inside):
        for earlier, event in enumerate(history.events):
            if earlier not in inside and event.at_us < history.events[later].at_us:
                yield earlier, later
