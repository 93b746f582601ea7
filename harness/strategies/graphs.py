"""Systems of processes and channels, drawn: any directed graph, any number of beginners (CL-1)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from ...reference_impl.simulated.graph_plan import Act, Beginning, Channel, System, reached

SPAN_US = 1_000
"""acts happen within so much time"""
LATENCIES_US = st.sampled_from((0, 1, 10, 50, 100, 200, 400, 800))


@st.composite
def systems(draw: st.DrawFn, *, acyclic: bool = False, method: str = "chandy-lamport") -> System:
    """A system on which every snapshot that is begun reaches every process.

    Acyclic ones have their snapshots begun by all processes without an input, as
    a stream's sources are told to.
    """
    names = tuple(f"P{number + 1}" for number in range(draw(st.integers(1, 5))))
    channels = draw(_channels(names, acyclic))
    acts = draw(_acts(names, channels))
    beginnings: list[Beginning] = []
    for number in range(draw(st.integers(1, 3))):
        first = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
        roots = [name for name in names if all(channel.receiver != name for channel in channels)]
        told = roots if acyclic else _reaching_all(names, channels, first)
        for process in told:
            at_us = draw(st.integers(0, SPAN_US)) if process in first or not beginnings else beginnings[-1].at_us
            beginnings.append(Beginning(at_us=at_us, process=process, snapshot=f"S{number + 1}"))
    return System(
        processes=names, channels=channels, acts=acts, beginnings=_in_order(beginnings, acyclic), method=method
    )


@st.composite
def _channels(draw: st.DrawFn, names: Sequence[str], acyclic: bool) -> tuple[Channel, ...]:
    pairs = [(one, other) for one in names for other in names if not acyclic or names.index(one) < names.index(other)]
    if not pairs:
        return ()
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=8))
    return tuple(
        Channel(name=f"C{number + 1}", sender=sender, receiver=receiver, takes_us=draw(LATENCIES_US))
        for number, (sender, receiver) in enumerate(chosen)
    )


@st.composite
def _acts(draw: st.DrawFn, names: Sequence[str], channels: Sequence[Channel]) -> tuple[Act, ...]:
    found = []
    for number in range(draw(st.integers(0, 20))):
        at_us, process = draw(st.integers(0, SPAN_US)), draw(st.sampled_from(names))
        out = [channel.name for channel in channels if channel.sender == process]
        channel = draw(st.sampled_from(["", *out]))
        takes_us = draw(st.none() | LATENCIES_US) if channel else None
        found.append(Act(at_us=at_us, process=process, label=f"e{number}", channel=channel, takes_us=takes_us))
    return tuple(sorted(found, key=lambda act: act.at_us))


def _reaching_all(names: Sequence[str], channels: Sequence[Channel], first: Sequence[str]) -> list[str]:
    """`first`, and whoever else must begin because no marker would come to him."""
    told = list(first)
    for name in names:
        if name not in reached(told, channels):
            told.append(name)
    return told


def _in_order(beginnings: Sequence[Beginning], acyclic: bool) -> tuple[Beginning, ...]:
    """Aligned snapshots come one after the other in each channel: a root begins them in the order of their numbers."""
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
