"""What an example of a general snapshot claims, and how it is looked up in its history."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...properties.causality import GraphHistory, Taken
from ...reference_impl.simulated.graph_plan import System
from ..examples.claims import NotShown, Shown


class SystemClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the text, and the function that finds it in a history.

    The function returns its evidence in words, or raises NotShown.
    """

    says: str
    look: Callable[[System, GraphHistory], str]


class SystemExample(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example on a system of processes and channels, and what the text says of it."""

    name: str
    about: str
    document: str
    system: System
    claims: tuple[SystemClaim, ...]


def show(example: SystemExample, history: GraphHistory) -> list[Shown]:
    """Look every claim of an example up in the history of its run."""
    return [_look(claim, example.system, history) for claim in example.claims]


def _look(claim: SystemClaim, system: System, history: GraphHistory) -> Shown:
    try:
        return Shown(says=claim.says, shown=True, evidence=claim.look(system, history))
    except NotShown as instead:
        return Shown(says=claim.says, shown=False, evidence=str(instead))


def taken(history: GraphHistory, name: str) -> Taken:
    """A snapshot that completed."""
    for one in history.snapshots:
        if one.name == name and one.complete_us is not None:
            return one
    raise NotShown(f"snapshot {name} did not complete")


def states(history: GraphHistory, name: str) -> dict[str, list[str]]:
    """Process: what its state in a snapshot is made of, in order; what it sent or received has the message's name."""
    found = taken(history, name)
    return {part.process: [history.events[number].label for number in part.events] for part in found.parts}


def under_way(history: GraphHistory, name: str) -> dict[str, list[str]]:
    """Channel: the messages that a snapshot has of it, of those that have any."""
    channels = {channel: messages for part in taken(history, name).parts for channel, messages in part.channels.items()}
    return {
        channel: [history.events[number].label for number in messages]
        for channel, messages in sorted(channels.items())
        if messages
    }


def in_words(channels: dict[str, list[str]]) -> str:
    return ", ".join(f"{channel} = [{', '.join(labels)}]" for channel, labels in channels.items()) or "every one empty"
