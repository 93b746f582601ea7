"""The toxics that are set on a Toxiproxy server, as values, and their names on the wire.

The docstring of each value states its effect, as measured on version 2.12 of the server.  All are certain (toxicity 1)
and steady (no jitter): the plan decides who is hit and when, and the server draws nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

LARGEST = 2**31 - 1


class ToxicValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Base of the toxics.  Each whole number is between 0 and 2^31-1; another one raises ValueError."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if type(value) is not int or not 0 <= value <= LARGEST:
                raise ValueError(f"{type(self).__name__}.{field} is {value!r}, not a whole number from 0 to {LARGEST}")


class Latency(ToxicValue, frozen=True, kw_only=True, tag="latency"):
    """Each chunk comes later by this much, in order; when the toxic is removed, delayed chunks are delivered at
    once."""

    ms: int


class Stall(ToxicValue, frozen=True, kw_only=True, tag="stall"):
    """Nothing passes; when the toxic is removed, everything is delivered.  A partition that loses nothing."""


class Timeout(ToxicValue, frozen=True, kw_only=True, tag="timeout"):
    """Bytes are DROPPED, and the connection is closed after this time; with 0, when the toxic is removed."""

    ms: int


class Reset(ToxicValue, frozen=True, kw_only=True, tag="reset"):
    """This long after its first byte a connection is reset (RST); only connections that are opened after the toxic
    was added."""

    ms: int


class Slice(ToxicValue, frozen=True, kw_only=True, tag="slice"):
    """Chunks are cut into pieces of about `average_size` bytes, `delay_us` apart; nothing is lost.

    `average_size` is at least 1, and `size_variation` less than that: the server does not check this, and crashes on
    other values.
    """

    average_size: int
    size_variation: int = 0
    delay_us: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.average_size < 1:
            raise ValueError(f"Slice.average_size is {self.average_size}, not at least 1: it would crash the server")
        if self.size_variation >= self.average_size:
            raise ValueError(f"Slice.size_variation is {self.size_variation}, not less than average_size")


class Limit(ToxicValue, frozen=True, kw_only=True, tag="limit"):
    """So many bytes of each connection pass, then it is closed; for an open connection they are counted from now on."""

    bytes: int


Toxic = Latency | Stall | Timeout | Reset | Slice | Limit

WIRE: dict[type[ToxicValue], tuple[str, dict[str, str], dict[str, int]]] = {
    Latency: ("latency", {"ms": "latency"}, {"jitter": 0}),
    Stall: ("bandwidth", {}, {"rate": 0}),
    Timeout: ("timeout", {"ms": "timeout"}, {}),
    Reset: ("reset_peer", {"ms": "timeout"}, {}),
    Slice: ("slicer", {"average_size": "average_size", "size_variation": "size_variation", "delay_us": "delay"}, {}),
    Limit: ("limit_data", {"bytes": "bytes"}, {}),
}
"""A toxic's type on the wire, the names of its fields there, and the fields that are always the same."""
BY_TYPE: dict[str, type[Any]] = {wire_type: kind for kind, (wire_type, _, _) in WIRE.items()}
