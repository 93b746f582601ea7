"""A world for the general snapshot: processes, FIFO channels and virtual time; every event is recorded (CL-1 to
CL-5)."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from ...core.extensions.other_snapshots import ByTheClock, Stopping
from ...core.protocol.chandy_lamport import (
    ChannelName,
    Collector,
    Contribute,
    Contribution,
    LastMarker,
    ProcessName,
    Recorder,
    RecorderEffect,
    SendMarker,
    SnapshotName,
    TakesPart,
)
from ...core.vocabulary.errors import InvalidGraph
from ..loop import Loop
from .plan import Act, Beginning, Breach, Channel, System, faults_of

CONTROL_US = 100
"""how long an order to stop, or to go on, takes"""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """An event of one process.  `message`: of a send and its receive, the number of the send among all events.

    The judge has types of its own like this one and `Snapshot` (`properties/graphs/causality.py`), since the engine
    imports nothing of its judge.  `harness/reference_engine/graphs/run.py` converts one into the other.
    """

    process: str
    kind: str
    label: str
    at_us: int
    channel: str | None = None
    message: int | None = None


class Snapshot(msgspec.Struct, kw_only=True):
    """The parts of one snapshot so far: a state is a tuple of numbers of events, a message the number of its send."""

    name: str
    begun_us: int
    parts: list[Contribution] = []
    complete_us: int | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All that could be seen of a run from outside."""

    events: list[Noted]
    snapshots: list[Snapshot]
    markers: list[tuple[int, str, str]]
    """(time in µs, channel, snapshot) of each marker that was taken, in order"""
    fired: list[int]
    """the breaches that had an effect, by their indexes in the plan"""
    stopped_us: dict[str, int]


class _Message(msgspec.Struct, frozen=True):
    number: int
    stamp_us: int


class _Marker(msgspec.Struct, frozen=True):
    snapshot: SnapshotName


class _Process:
    """A process: its state is the list of what it did."""

    def __init__(self, name: str, recorder: TakesPart, skew_us: int) -> None:
        self.name = name
        self.recorder = recorder
        self.skew_us = skew_us
        self.state: tuple[int, ...] = ()
        self.recorded = 0
        self.blocked: dict[str, deque[Any]] = {}
        self.stopped_since: int | None = None
        self.waiting: list[Act | tuple[str, _Message]] = []


class GraphWorld:
    """Runs one system to its end; raises InvalidGraph for a description that cannot run."""

    def __init__(self, system: System) -> None:
        found = faults_of(system)
        if found:
            raise InvalidGraph(found[0])
        self._system = system
        self._loop = Loop()
        self._events: list[Noted] = []
        self._snapshots: dict[str, Snapshot] = {}
        self._fired: list[int] = []
        self._markers: list[tuple[int, str, str]] = []
        self._stopped_us = dict.fromkeys(system.processes, 0)
        self._channels = {channel.name: channel for channel in system.channels}
        self._entered = dict.fromkeys(self._channels, 0)
        self._busy_until = dict.fromkeys(self._channels, 0)
        self._collector = Collector([ProcessName(name) for name in system.processes])
        self._processes = {name: self._process(name) for name in system.processes}

    def _process(self, name: str) -> _Process:
        inputs = [ChannelName(one.name) for one in self._system.channels if one.receiver == name]
        outputs = [ChannelName(one.name) for one in self._system.channels if one.sender == name]
        own, skew_us = ProcessName(name), self._system.skews_us.get(name, 0)
        match self._system.method:
            case "clocks":
                return _Process(name, ByTheClock(own, inputs, outputs), skew_us)
            case "stop-the-world":
                return _Process(name, Stopping(own, inputs, outputs), skew_us)
            case "aligned":
                return _Process(name, Recorder(own, inputs, outputs, LastMarker()), skew_us)
            case _:
                return _Process(name, Recorder(own, inputs, outputs), skew_us)

    def run(self) -> Outcome:
        """Run until nothing is under way."""
        for beginning in self._system.beginnings:
            self._plan(beginning)
        for act in self._system.acts:
            self._loop.at(act.at_us, self._act, act)
        last = max([0, *(act.at_us for act in self._system.acts), *(one.at_us for one in self._system.beginnings)])
        self._loop.run(last + self._system.timeout_us)
        return Outcome(
            events=self._events,
            snapshots=list(self._snapshots.values()),
            markers=self._markers,
            fired=sorted(self._fired),
            stopped_us=self._stopped_us,
        )

    # -- beginnings ----------------------------------------------------------------

    def _plan(self, beginning: Beginning) -> None:
        snapshot = SnapshotName(beginning.snapshot)
        match self._system.method:
            case "clocks":
                for process in self._processes.values():
                    self._loop.at(max(0, beginning.at_us - process.skew_us), self._clock, process, beginning)
            case "stop-the-world":
                for process in self._processes.values():
                    self._loop.at(beginning.at_us + CONTROL_US, self._begin, process, snapshot)
            case _:
                self._loop.at(beginning.at_us, self._begin, self._processes[beginning.process], snapshot)

    def _begin(self, process: _Process, snapshot: SnapshotName) -> None:
        self._snapshot(snapshot)
        if self._system.method == "stop-the-world" and process.stopped_since is None:
            process.stopped_since = self._loop.now
        self._perform(process, process.recorder.begin(snapshot, process.state))

    def _clock(self, process: _Process, beginning: Beginning) -> None:
        """The process's own clock has reached the agreed time."""
        snapshot = SnapshotName(beginning.snapshot)
        self._snapshot(snapshot)
        self._perform(process, process.recorder.begin(snapshot, process.state, beginning.at_us))
        self._loop.after(self._system.timeout_us // 2, self._settle, process, snapshot)

    def _settle(self, process: _Process, snapshot: SnapshotName) -> None:
        self._perform(process, process.recorder.settle(snapshot))

    def _snapshot(self, name: SnapshotName) -> Snapshot:
        return self._snapshots.setdefault(name, Snapshot(name=name, begun_us=self._loop.now))

    # -- what processes do ------------------------------------------------------------

    def _act(self, act: Act, _: None) -> None:
        process = self._processes[act.process]
        if process.stopped_since is not None:
            process.waiting.append(act)
            return
        number = len(self._events)
        if not act.channel:
            self._note(process, "local", act.label)
        else:
            self._note(process, "send", act.label, act.channel, number)
            message = _Message(number=number, stamp_us=self._loop.now + process.skew_us)
            self._enter(self._channels[act.channel], message, act.takes_us)

    def _note(
        self, process: _Process, kind: str, label: str, channel: str | None = None, message: int | None = None
    ) -> None:
        process.state = (*process.state, len(self._events))
        noted = Noted(
            process=process.name, kind=kind, label=label, at_us=self._loop.now, channel=channel, message=message
        )
        self._events.append(noted)

    def _receive(self, process: _Process, channel: str, message: _Message) -> None:
        self._note(process, "receive", self._events[message.number].label, channel, message.number)

    def _perform(self, process: _Process, effects: list[RecorderEffect]) -> None:
        markers = [effect for effect in effects if isinstance(effect, SendMarker)]
        gap_us = self._gap(process) if markers else 0
        for marker in markers:
            item, channel = _Marker(marker.snapshot), self._channels[marker.channel]
            if gap_us:
                self._loop.after(gap_us, self._enter_late, channel, item)
            else:
                self._enter(channel, item, None)
        for effect in effects:
            if isinstance(effect, Contribute):
                self._collect(effect.contribution)

    def _collect(self, contribution: Contribution) -> None:
        snapshot = self._snapshots[contribution.snapshot]
        snapshot.parts.append(contribution)
        whole = self._collector.on_contribution(contribution)
        if whole:
            snapshot.parts, snapshot.complete_us = list(whole), self._loop.now
            if self._system.method == "stop-the-world":
                for process in self._processes.values():
                    self._loop.after(CONTROL_US, self._go_on, process)

    def _go_on(self, process: _Process, _: None) -> None:
        if process.stopped_since is None:
            return
        self._stopped_us[process.name] += self._loop.now - process.stopped_since
        process.stopped_since = None
        waiting, process.waiting = process.waiting, []
        for one in waiting:
            if isinstance(one, Act):
                self._act(one, None)
            else:
                self._receive(process, *one)

    # -- channels -----------------------------------------------------------------------

    def _enter_late(self, channel: Channel, item: _Marker) -> None:
        self._enter(channel, item, None)

    def _enter(self, channel: Channel, item: _Message | _Marker, takes_us: int | None) -> None:
        """Put an item into a channel: behind the others, unless the plan breaks a precondition here."""
        number = self._entered[channel.name]
        self._entered[channel.name] += 1
        arrives = self._loop.now + (channel.takes_us if takes_us is None else takes_us)
        in_front = self._busy_until[channel.name]
        breach = self._breach(channel.name, number)
        if breach is not None and breach.kind == "lose":
            return
        if breach is not None and breach.kind == "overtake" and in_front > self._loop.now:
            self._loop.at(self._loop.now, self._arrive, channel, item)
            return
        arrives = max(arrives, in_front)
        self._busy_until[channel.name] = arrives
        for _ in range(2 if breach is not None and breach.kind == "repeat" else 1):
            self._loop.at(arrives, self._arrive, channel, item)

    def _breach(self, channel: str, number: int) -> Breach | None:
        for place, breach in enumerate(self._system.breaches):
            if breach.kind != "gap" and (breach.channel, breach.number) == (channel, number):
                if breach.kind != "overtake" or self._busy_until[channel] > self._loop.now:
                    self._fired.append(place)
                return breach
        return None

    def _gap(self, process: _Process) -> int:
        number, process.recorded = process.recorded, process.recorded + 1
        for place, breach in enumerate(self._system.breaches):
            if breach.kind == "gap" and (breach.process, breach.number) == (process.name, number) and breach.by_us:
                self._fired.append(place)
                return breach.by_us
        return 0

    def _arrive(self, channel: Channel, item: _Message | _Marker) -> None:
        process = self._processes[channel.receiver]
        if channel.name in process.blocked or process.recorder.is_blocked(ChannelName(channel.name)):
            process.blocked.setdefault(channel.name, deque()).append(item)
            return
        self._take(process, channel.name, item)
        self._take_unblocked(process)

    def _take(self, process: _Process, channel: str, item: _Message | _Marker) -> None:
        if isinstance(item, _Marker):
            self._markers.append((self._loop.now, channel, str(item.snapshot)))
            effects = process.recorder.on_marker(ChannelName(channel), item.snapshot, process.state)
            self._perform(process, effects)
            return
        process.recorder.on_message(ChannelName(channel), item.number, item.stamp_us)
        if process.stopped_since is not None:
            process.waiting.append((channel, item))
        else:
            self._receive(process, channel, item)

    def _take_unblocked(self, process: _Process) -> None:
        """Alignment is over, at least for some channels: take their items in order, before new ones."""
        for channel in list(process.blocked):
            items = process.blocked[channel]
            while items and not process.recorder.is_blocked(ChannelName(channel)):
                self._take(process, channel, items.popleft())
            if not items:
                del process.blocked[channel]
