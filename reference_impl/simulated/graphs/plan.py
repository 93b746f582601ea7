"""A system of processes and channels as data, with what each process does at which time; a general snapshot is taken
of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec


class Channel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First in, first out; its sender and its receiver may be the same process."""

    name: str
    sender: str
    receiver: str
    takes_us: int = 100
    """how long a marker takes, and a message without a time of its own; an item never overtakes those in front of it"""


class Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that a process does at a time: an internal event, or a message into a channel."""

    at_us: int
    process: str
    label: str
    channel: str = ""
    """the channel of the message; none for an internal event"""
    takes_us: int | None = None


class Beginning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A process begins a snapshot; several processes may begin the same one."""

    at_us: int
    process: str
    snapshot: str


BREACHES = ("lose", "repeat", "overtake", "gap")


class Breach(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One precondition of the algorithm, broken once (CL-5).

    lose, repeat, overtake: the item that enters `channel` as its `number`th, counted from 0 and with markers, never
    arrives, arrives twice, or overtakes the items in front of it.  gap: after the `number`th state that `process`
    records, its markers leave `by_us` later.
    """

    kind: str
    number: int = 0
    channel: str = ""
    process: str = ""
    by_us: int = 0


METHODS = ("chandy-lamport", "aligned", "clocks", "stop-the-world")


class System(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processes, channels, what happens, and the method by which snapshots are taken.

    Times are whole microseconds.  Of several things at one time the beginnings happen first, in their order, then the
    acts, in theirs.
    """

    processes: tuple[str, ...]
    channels: tuple[Channel, ...]
    acts: tuple[Act, ...] = ()
    beginnings: tuple[Beginning, ...] = ()
    breaches: tuple[Breach, ...] = ()
    method: str = "chandy-lamport"
    skews_us: dict[str, int] = {}
    """process: how much its clock is ahead (method clocks)"""
    timeout_us: int = msgspec.field(default=1_000_000, name="patience_us")  # the name in files stays
    """how long after the last act the run goes on: a snapshot that is not complete by then never will be"""


def faults_of(system: System) -> list[str]:
    """What is wrong with a description, a line each; empty if it can run."""
    names, channels = set(system.processes), {channel.name: channel for channel in system.channels}
    found = [f"process {name!r} is named twice" for name in _twice(system.processes)]
    found += [f"channel {name!r} is named twice" for name in _twice([channel.name for channel in system.channels])]
    if not system.processes:
        found.append("there is no process")
    for channel in system.channels:
        for end in (channel.sender, channel.receiver):
            if end not in names:
                found.append(f"channel {channel.name!r}: there is no process {end!r}")
    for act in system.acts:
        if act.process not in names:
            found.append(f"{act.label!r}: there is no process {act.process!r}")
        elif act.channel and (act.channel not in channels or channels[act.channel].sender != act.process):
            found.append(f"{act.label!r}: {act.channel!r} is no channel out of {act.process!r}")
    found += [f"snapshot {one.snapshot!r}: there is no process {one.process!r}"
              for one in system.beginnings if one.process not in names]  # fmt: skip
    for breach in system.breaches:
        found += _faults_of_breach(breach, names, channels)
    if system.method not in METHODS:
        found.append(f"method {system.method!r}: one of {', '.join(METHODS)}")
    found += [f"the clock of {name!r}: there is no such process" for name in system.skews_us if name not in names]
    found += _faults_of_beginnings(system)
    times = [system.timeout_us, *(breach.by_us for breach in system.breaches)]
    times += [act.at_us for act in system.acts] + [one.at_us for one in system.beginnings]
    times += [channel.takes_us for channel in system.channels]
    times += [act.takes_us for act in system.acts if act.takes_us is not None]
    if any(time < 0 for time in times):
        found.append("a time is negative")
    return found


def _faults_of_beginnings(system: System) -> list[str]:
    """Two rules: a method that orders all processes at once has one beginning, and markers must reach every process."""
    found = []
    names = [one.snapshot for one in system.beginnings]
    if system.method in ("clocks", "stop-the-world"):
        found += [
            f"snapshot {name!r} is begun twice: {system.method} orders all processes at once" for name in _twice(names)
        ]
    if system.method == "stop-the-world" and len(names) > 1:
        found.append("stop-the-world takes one snapshot: it stops all processes")
    if any(2 * abs(skew) >= system.timeout_us for skew in system.skews_us.values()):
        found.append("a clock differs by half of patience_us or more: nobody would wait for it")
    if system.method == "chandy-lamport":
        for name in dict.fromkeys(names):
            began = [one.process for one in system.beginnings if one.snapshot == name]
            there = set(reached(began, system.channels))
            lost = [process for process in system.processes if process not in there]
            found += [f"snapshot {name!r} never reaches {process!r}" for process in lost]
    return found


def reached(first: Sequence[str], channels: Sequence[Channel]) -> list[str]:
    """The processes that markers reach from those that begin, these included."""
    onward: dict[str, list[str]] = {}
    for channel in channels:
        onward.setdefault(channel.sender, []).append(channel.receiver)
    found = dict.fromkeys(first)
    waiting = list(found)
    for process in waiting:  # the list grows during the loop
        new = dict.fromkeys(one for one in onward.get(process, ()) if one not in found)
        found |= new
        waiting += new
    return waiting


def _faults_of_breach(breach: Breach, names: set[str], channels: dict[str, Channel]) -> list[str]:
    if breach.kind not in BREACHES:
        return [f"breach {breach.kind!r}: one of {', '.join(BREACHES)}"]
    if breach.kind == "gap" and breach.process not in names:
        return [f"breach gap: there is no process {breach.process!r}"]
    if breach.kind != "gap" and breach.channel not in channels:
        return [f"breach {breach.kind}: there is no channel {breach.channel!r}"]
    return []


def _twice(names: list[str] | tuple[str, ...]) -> list[str]:
    counted = Counter(names)
    return [name for name, count in counted.items() if count > 1]
