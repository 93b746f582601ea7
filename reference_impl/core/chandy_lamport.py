"""The general snapshot: any processes, any channels between them, begun by any of them (CL-1).

Chandy and Lamport, "Distributed Snapshots" (1985); the course on consistent snapshots has it in three steps.

*Begin.*  A process records its state and sends a marker into each of its output
channels, with nothing in between; then it records what comes in on its inputs.
*Go on.*  The first marker of a snapshot makes a process do the same, and the
channel it came by is empty in this snapshot.  A later one closes its channel:
what was recorded of it since is the channel's state.
*End.*  A process has contributed when all its inputs are closed; the snapshot is
complete when the collector has all contributions.

Channels are first in, first out, and neither lose nor repeat.  The graph may have
cycles, several channels between two processes, and a process's channel to itself:
what is in that one was sent and not yet received, like anything else in a channel,
while what a process did alone is in its state or not in the snapshot.

Nothing here is about streams: a state is whatever a process hands over, and so is a
message.  The aligned snapshots of the engine (barrier_alignment.py) are this with another
moment of recording, `LastMarker`, and sources that begin all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NewType, Protocol

import msgspec

from .errors import require

ProcessName = NewType("ProcessName", str)
ChannelName = NewType("ChannelName", str)
SnapshotName = NewType("SnapshotName", str)


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """What one process knows of a snapshot: its own state, and what was under way to it."""

    snapshot: SnapshotName
    process: ProcessName
    state: Any
    channels: dict[ChannelName, tuple[Any, ...]]
    """each input channel's messages, oldest first"""


class SendMarker(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: put the snapshot's marker into an output channel: behind what was sent, before what will be."""

    channel: ChannelName
    snapshot: SnapshotName


class Contribute(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: notify the collector."""

    contribution: Contribution


Effect = SendMarker | Contribute


class TakesPart(Protocol):
    """The base of the recorders of every method: the events that the world which carries their messages passes to
    them."""

    def begin(self, snapshot: SnapshotName, state: Any, clock_us: int = 0) -> list[Effect]:
        """Start a snapshot here; `clock_us` is what the process's own clock says, if the method goes by clocks."""

    def on_marker(self, channel: ChannelName, snapshot: SnapshotName, state: Any) -> list[Effect]:
        """A marker came; raises ProtocolViolated where none can."""

    def on_message(self, channel: ChannelName, message: Any, stamp_us: int = 0) -> None:
        """A message came; `stamp_us` is what its sender's clock said."""

    def is_blocked(self, channel: ChannelName) -> bool:
        """Whether nothing may be received from a channel for the moment."""

    def settle(self, snapshot: SnapshotName) -> list[Effect]:
        """So much time has passed that nothing sent before the snapshot can still be under way."""


class Moment(Protocol):
    """When a process that did not begin the snapshot records its state."""

    def has_come(self, markers: int, inputs: int) -> bool:
        """After so many markers, of so many inputs."""

    @property
    def blocks_channels(self) -> bool:
        """Whether a channel whose marker has come is not read until the state is recorded."""


class FirstMarker:
    """Chandy and Lamport's: at once; what is on its way then is the channels' state."""

    blocks_channels = False

    def has_come(self, markers: int, inputs: int) -> bool:
        return markers == 1


class LastMarker:
    """Alignment (ABS-2): once every input has delivered its marker, so that no channel has a state.

    On a cycle it may never come: a process that has another input besides waits for its own marker.
    """

    blocks_channels = True

    def has_come(self, markers: int, inputs: int) -> bool:
        return markers == inputs


class _Taking:
    """One snapshot at one process."""

    def __init__(self, inputs: Sequence[ChannelName]) -> None:
        self.state: Any = None
        self.recorded = False
        self.closed: list[ChannelName] = []
        self.channels: dict[ChannelName, list[Any]] = {channel: [] for channel in inputs}

    @property
    def complete(self) -> bool:
        return self.recorded and len(self.closed) == len(self.channels)


class Recorder:
    """One process's part in all snapshots, several at a time.

    `state` is always the process's state as it is now, a value that does not
    change afterwards.
    """

    def __init__(
        self,
        process: ProcessName,
        inputs: Sequence[ChannelName],
        outputs: Sequence[ChannelName],
        moment: Moment | None = None,
    ) -> None:
        self._process = process
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._moment = moment or FirstMarker()
        self._takings: dict[SnapshotName, _Taking] = {}
        self._contributed: set[SnapshotName] = set()
        """by name alone: whoever begins one again, or repeats a marker, is to find that it is over here"""

    def begin(self, snapshot: SnapshotName, state: Any, clock_us: int = 0) -> list[Effect]:
        """Start a snapshot here, whatever the clock says; nothing if it has reached this process already."""
        if snapshot in self._takings or snapshot in self._contributed:
            return []
        return self._record(snapshot, state) + self._end(snapshot)

    def on_marker(self, channel: ChannelName, snapshot: SnapshotName, state: Any) -> list[Effect]:
        """A marker came; raises ProtocolViolated for a channel that is not an input.

        A second marker of one snapshot by one channel says nothing new: only a
        channel that repeats brings it.
        """
        require(channel in self._inputs, f"{channel} is no input of {self._process}")
        if snapshot in self._contributed:
            return []
        taking = self._taking(snapshot)
        if channel in taking.closed:
            return []
        taking.closed.append(channel)
        effects: list[Effect] = []
        if not taking.recorded and self._moment.has_come(len(taking.closed), len(self._inputs)):
            effects = self._record(snapshot, state)
        return effects + self._end(snapshot)

    def on_message(self, channel: ChannelName, message: Any, stamp_us: int = 0) -> None:
        """A message came: it is under way in each snapshot that has this state recorded, and this channel open.

        `stamp_us` is what the sender's clock said; a snapshot by clocks asks for it, this one does not.
        """
        for taking in self._takings.values():
            if taking.recorded and channel not in taking.closed:
                taking.channels[channel].append(message)

    def is_blocked(self, channel: ChannelName) -> bool:
        """Until the state is recorded, if the moment of recording says so."""
        return self._moment.blocks_channels and any(
            channel in taking.closed and not taking.recorded for taking in self._takings.values()
        )

    def settle(self, snapshot: SnapshotName) -> list[Effect]:
        """Nothing: that no more can come is what the markers say."""
        return []

    def _taking(self, snapshot: SnapshotName) -> _Taking:
        return self._takings.setdefault(snapshot, _Taking(self._inputs))

    def _record(self, snapshot: SnapshotName, state: Any) -> list[Effect]:
        taking = self._taking(snapshot)
        taking.state, taking.recorded = state, True
        return [SendMarker(channel=channel, snapshot=snapshot) for channel in self._outputs]

    def _end(self, snapshot: SnapshotName) -> list[Effect]:
        taking = self._takings[snapshot]
        if not taking.complete:
            return []
        del self._takings[snapshot]
        self._contributed.add(snapshot)
        channels = {channel: tuple(messages) for channel, messages in taking.channels.items()}
        contribution = Contribution(snapshot=snapshot, process=self._process, state=taking.state, channels=channels)
        return [Contribute(contribution=contribution)]


class Collector:
    """Puts contributions together; a snapshot is complete when every process has contributed, and handed over then."""

    def __init__(self, processes: Sequence[ProcessName]) -> None:
        self._processes = tuple(processes)
        self._parts: dict[SnapshotName, dict[ProcessName, Contribution]] = {}
        self._complete: set[SnapshotName] = set()

    def on_contribution(self, contribution: Contribution) -> tuple[Contribution, ...]:
        """The whole snapshot, in the order of the processes, if this completed it; () otherwise.

        Raises ProtocolViolated for a second contribution of one process, and for a stranger's.
        """
        require(contribution.process in self._processes, f"{contribution.process} is no process of the system")
        parts = self._parts.setdefault(contribution.snapshot, {})
        again = contribution.process in parts or contribution.snapshot in self._complete
        require(not again, f"{contribution.process} contributed to {contribution.snapshot} twice")
        parts[contribution.process] = contribution
        if len(parts) < len(self._processes):
            return ()
        del self._parts[contribution.snapshot]
        self._complete.add(contribution.snapshot)
        return tuple(parts[process] for process in self._processes)
