"""Draws systems of processes and channels: any directed graph, with any number of processes that begin (CL-1)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..reference_engine.graphs.system import Act, Beginning, Channel, System, reached
from .choices import Choices, FromBytes, built

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SPAN_US = 1_000
"""all acts happen within this time"""
LATENCIES_US = (0, 1, 10, 50, 100, 200, 400, 800)
_BYTES = 1024
"""many times the number of bytes that the draws of a system consume"""


def systems(*, acyclic: bool = False, method: str = "chandy-lamport") -> SearchStrategy[System]:
    """Systems in which every snapshot that is begun reaches every process.

    In an acyclic system all processes without an input begin the snapshots, like the sources
    of a stream.
    """
    return built(lambda choices: draw_system(choices, acyclic, method))


class system_of:
    """System i of a seed: a function of (arguments, seed, i) alone, as in `scenario_of`."""

    def __init__(self, *, acyclic: bool = False, method: str = "chandy-lamport") -> None:
        self._acyclic = acyclic
        self._method = method

    def __call__(self, seed: int, index: int) -> System:
        choices = FromBytes(hashlib.shake_256(f"cutproof system {seed} {index}".encode()).digest(_BYTES))
        return draw_system(choices, self._acyclic, self._method)


def draw_system(choices: Choices, acyclic: bool, method: str) -> System:
    names = tuple(f"P{number + 1}" for number in range(choices.between(1, 5)))
    channels = _channels(choices, names, acyclic)
    acts = _acts(choices, names, channels)
    roots = [name for name in names if all(channel.receiver != name for channel in channels)]
    beginnings: list[Beginning] = []
    for number in range(choices.between(1, 3)):
        first = _some(choices, names)
        for process in roots if acyclic else _reaching_all(names, channels, first):
            at_us = choices.between(0, SPAN_US) if process in first or not beginnings else beginnings[-1].at_us
            beginnings.append(Beginning(at_us=at_us, process=process, snapshot=f"S{number + 1}"))
    return System(
        processes=names, channels=channels, acts=acts, beginnings=_in_order(beginnings, acyclic), method=method
    )


def _some(choices: Choices, names: Sequence[str]) -> list[str]:
    """One or several of the names, each once."""
    remaining, found = list(names), []
    for _ in range(choices.between(1, len(names))):
        found.append(remaining.pop(choices.between(0, len(remaining) - 1)))
    return found


def _channels(choices: Choices, names: Sequence[str], acyclic: bool) -> tuple[Channel, ...]:
    pairs = [(one, other) for one in names for other in names if not acyclic or names.index(one) < names.index(other)]
    chosen = [choices.pick(pairs) for _ in range(choices.between(0, 8))] if pairs else []
    return tuple(
        Channel(name=f"C{number + 1}", sender=sender, receiver=receiver, takes_us=choices.pick(LATENCIES_US))
        for number, (sender, receiver) in enumerate(chosen)
    )


def _acts(choices: Choices, names: Sequence[str], channels: Sequence[Channel]) -> tuple[Act, ...]:
    found = []
    for number in range(choices.between(0, 20)):
        at_us, process = choices.between(0, SPAN_US), choices.pick(names)
        channel = choices.pick(["", *(channel.name for channel in channels if channel.sender == process)])
        takes_us = choices.pick((None, *LATENCIES_US)) if channel else None
        found.append(Act(at_us=at_us, process=process, label=f"e{number}", channel=channel, takes_us=takes_us))
    return tuple(sorted(found, key=lambda act: act.at_us))


def _reaching_all(names: Sequence[str], channels: Sequence[Channel], first: Sequence[str]) -> list[str]:
    """`first`, and the other processes that must begin because no marker would reach them."""
    starts = list(first)
    for name in names:
        if name not in reached(starts, channels):
            starts.append(name)
    return starts


def _in_order(beginnings: Sequence[Beginning], acyclic: bool) -> tuple[Beginning, ...]:
    """Aligned snapshots follow each other in each channel, so a root begins them in the order of their numbers."""
    if not acyclic:
        return tuple(beginnings)
    of_process: dict[str, list[Beginning]] = {}
    for one in beginnings:
        of_process.setdefault(one.process, []).append(one)
    return tuple(
        Beginning(at_us=at_us, process=process, snapshot=one.snapshot)
        for process, own in of_process.items()
        for one, at_us in zip(own, sorted(each.at_us for each in own), strict=True)
    )
