"""Where rows go: over each outgoing edge of a task, according to its partitioning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..vocabulary.messages import Record
from .topology import key_group, owner


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """One outgoing edge of a task: its channels by number, in the order of the receivers."""

    partitioning: str
    channels: tuple[int, ...]
    overtaken: bool = False
    """barriers may overtake the elements in its channels"""


Route = Callable[[Record], int]
"""From a row to its channel."""


def routes_of(outputs: Sequence[Output], key_groups: int, rotations: list[int]) -> list[Route]:
    """The routes of a task's rows over all its outputs."""
    return [route for number, output in enumerate(outputs) for route in routers(output, key_groups, rotations, number)]


def routers(output: Output, key_groups: int, rotations: list[int], number: int) -> list[Route]:
    """For each copy of an emitted row, the function that gives its channel.  A rebalance edge keeps its next channel
    in `rotations`, under the edge's number."""
    if output.partitioning == "broadcast":
        return [_into(channel) for channel in output.channels]
    return [_router(output, key_groups, rotations, number)]


def _into(channel: int) -> Route:
    return lambda row: channel


def _router(output: Output, key_groups: int, rotations: list[int], number: int) -> Route:
    channels = output.channels
    if len(channels) == 1 or output.partitioning == "forward":
        return lambda row: channels[0]
    if output.partitioning == "hash":
        by_key: dict[int | None, int] = {}

        def by_group(row: Record) -> int:
            channel = by_key.get(row.key)
            if channel is None:
                channel = channels[owner(key_group(row.key, key_groups), key_groups, len(channels))]
                by_key[row.key] = channel
            return channel

        return by_group

    def round_robin(row: Record) -> int:
        position = rotations[number]
        rotations[number] = (position + 1) % len(channels)
        return channels[position]

    return round_robin
