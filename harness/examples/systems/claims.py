"""The claims of an example of a general snapshot, and how they are looked up in its history."""

from __future__ import annotations

import msgspec

from ....properties.graphs.causality import GraphHistory, Taken
from ...reference_engine.graphs.system import System
from ..claims import Claim, NotShown


class SystemExample(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example on a system of processes and channels, and the claims of its text."""

    name: str
    about: str
    document: str
    system: System
    claims: tuple[Claim[System, GraphHistory], ...]


def taken(history: GraphHistory, name: str) -> Taken:
    """A snapshot that completed."""
    for one in history.snapshots:
        if one.name == name and one.complete_us is not None:
            return one
    raise NotShown(f"snapshot {name} did not complete")


def states(history: GraphHistory, name: str) -> dict[str, list[str]]:
    """By process: the events in its state in a snapshot, in order; a sent or received message stands by its name."""
    found = taken(history, name)
    return {part.process: [history.events[number].label for number in part.events] for part in found.parts}


def held_of_channels(history: GraphHistory, name: str) -> dict[str, list[str]]:
    """By channel with messages in flight: these messages, as the snapshot has them."""
    channels = {channel: messages for part in taken(history, name).parts for channel, messages in part.channels.items()}
    return {
        channel: [history.events[number].label for number in messages]
        for channel, messages in sorted(channels.items())
        if messages
    }


def in_words(channels: dict[str, list[str]]) -> str:
    return ", ".join(f"{channel} = [{', '.join(labels)}]" for channel, labels in channels.items()) or "every one empty"
