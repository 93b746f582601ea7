"""The faults of proxies that scenarios draw, and whether a scenario's faults are of a pipeline's proxies."""

from __future__ import annotations

import random
from collections.abc import Mapping

from ....faults.plan import (
    AnyFault,
    AtAim,
    AtTime,
    ChannelFault,
    CutChannel,
    DelayChannel,
    LimitChannel,
    ResetChannel,
    SliceChannel,
    StallChannel,
    TimeoutChannel,
    kind_of,
)
from ..description import BREAKING, CLIENT, Proxy

DELAYS_MS = (20, 100, 300)
PIECES = (1, 10, 100)
"""how many bytes a piece has"""
LIMITS = (0, 10, 100)
"""after how many bytes a connection closes"""


def kinds_of(proxies: Mapping[str, Proxy]) -> frozenset[str]:
    """Every kind of fault that some proxy has."""
    return frozenset(kind for proxy in proxies.values() for kind in proxy.faults)


def breaks(proxies: Mapping[str, Proxy]) -> bool:
    """Whether some proxy has a fault that breaks connections."""
    return bool(kinds_of(proxies) & BREAKING.keys())


def drawn(dice: random.Random, proxies: Mapping[str, Proxy], trigger: AtTime | AtAim, *, breaking: bool) -> AnyFault:
    """A fault of one of the proxies; `breaking`: one that breaks connections."""
    pairs = [
        (name, kind) for name, proxy in proxies.items() for kind in proxy.faults if kind in BREAKING or not breaking
    ]
    name, kind = dice.choice(pairs)
    for_us = dice.choice(proxies[name].for_ms) * 1_000
    sender, receiver = (CLIENT, name) if dice.random() < 0.5 else (name, CLIENT)
    match kind:
        case "cut-channel":
            return CutChannel(trigger=trigger, sender=CLIENT, receiver=name, for_us=for_us)
        case "reset-channel":
            return ResetChannel(trigger=trigger, sender=CLIENT, receiver=name, for_us=for_us)
        case "limit-channel":
            return LimitChannel(trigger=trigger, sender=sender, receiver=receiver, bytes=dice.choice(LIMITS))
        case "timeout-channel":
            return TimeoutChannel(trigger=trigger, sender=sender, receiver=receiver, after_us=for_us)
        case "stall-channel":
            return StallChannel(trigger=trigger, sender=sender, receiver=receiver, for_us=for_us)
        case "delay-channel":
            by_us = dice.choice(DELAYS_MS) * 1_000
            return DelayChannel(trigger=trigger, sender=sender, receiver=receiver, by_us=by_us, for_us=for_us)
        case _:
            size = dice.choice(PIECES)
            return SliceChannel(trigger=trigger, sender=sender, receiver=receiver, size=size, for_us=for_us)


def problem_of(fault: ChannelFault, proxies: Mapping[str, Proxy]) -> str:
    """Why a fault is none of these proxies, in words; empty if it is."""
    ends = {fault.sender, fault.receiver} - {CLIENT}
    name = next(iter(ends), "")
    if len(ends) != 1 or name not in proxies:
        return f"no proxy between {fault.sender} and {fault.receiver}"
    if kind_of(fault) not in proxies[name].faults:
        return f"no {kind_of(fault)} among proxies.{name}.faults"
    return ""
