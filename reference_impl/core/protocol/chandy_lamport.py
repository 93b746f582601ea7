"""General snapshots: of any processes, joined by any channels; any process may begin one (CL-1).

Chandy and Lamport, "Distributed Snapshots" (1985); the course on consistent snapshots has it in three steps.

*Begin.*  A process records its state and sends a marker into each of its output
channels, with no message between the two.  From then on it records the messages that
it receives.
*Go on.*  When a process receives the first marker of a snapshot, it does the same.
The channel of that marker is empty in this snapshot.  A later marker closes its
channel: the messages recorded since are the channel's state.
*End.*  A process has contributed when all its inputs are closed.  The snapshot is
complete when the collector has all contributions.

Channels are first in, first out, and neither lose nor repeat messages.  The graph may
have cycles, several channels between two processes, and a channel from a process to
itself.  The state of such a channel is, as of any other, the messages sent and not yet
received.

Nothing here is about streams: a state is whatever a process hands over, and so is a
message.  The aligned snapshots of the engine (barrier_alignment.py) differ in two things:
sources begin all of them, and a process records its state at the last marker (`LastMarker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NewType, Protocol

import msgspec

from ..vocabulary.errors import require

ProcessName = NewType("ProcessName", str)
ChannelName = NewType("ChannelName", str)
SnapshotName = NewType("SnapshotName", str)


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """One process's part of a snapshot: its own state, and the state of its input channels."""

    snapshot: SnapshotName
    process: ProcessName
    state: Any
    channels: dict[ChannelName, tuple[Any, ...]]
    """each input channel's messages, oldest first"""


class SendMarker(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: put the snapshot's marker into an output channel, behind everything sent before."""

    channel: ChannelName
    snapshot: SnapshotName


class Contribute(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: notify the collector."""

    contribution: Contribution


RecorderEffect = SendMarker | Contribute


class TakesPart(Protocol):
    """What a world that carries messages calls on the recorder of a process, whatever its method."""

    def begin(self, snapshot: SnapshotName, state: Any, clock_us: int = 0) -> list[RecorderEffect]:
        """Start a snapshot here; `clock_us` is what its own clock says, for a method by clocks."""

    def on_marker(self, channel: ChannelName, snapshot: SnapshotName, state: Any) -> list[RecorderEffect]:
        """A marker arrived; raises ProtocolViolated where none can."""

    def on_message(self, channel: ChannelName, message: Any, stamp_us: int = 0) -> None:
        """A message arrived; `stamp_us` is the time of its sender's clock when it was sent."""

    def is_blocked(self, channel: ChannelName) -> bool:
        """Whether the process must not receive from a channel for the moment."""

    def settle(self, snapshot: SnapshotName) -> list[RecorderEffect]:
        """Enough time has passed: no message sent before the snapshot can still be in a channel."""


class Moment(Protocol):
    """When a process that did not begin the snapshot records its state."""

    def has_come(self, markers: int, inputs: int) -> bool:
        """Whether the process records now that it has received so many markers, of so many inputs."""

    @property
    def blocks_channels(self) -> bool:
        """Whether a channel that has delivered its marker is blocked until the state is recorded."""


class FirstMarker:
    """Chandy and Lamport's: at the first marker.  Messages that are in channels then are the channels' state."""

    blocks_channels = False

    def has_come(self, markers: int, inputs: int) -> bool:
        return markers == 1


class LastMarker:
    """As aligned barriers do: when every input has delivered its marker, so that no channel has a state, except at the
    process that began the snapshot: it has recorded before its inputs delivered theirs.

    On a cycle that may never happen: a process with a second input waits for a marker that only its own would bring.
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

    `state` is always the process's state at the call, a value that does not change afterwards.
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
        """so that a snapshot that is begun again, or whose marker is repeated, changes nothing here"""

    def begin(self, snapshot: SnapshotName, state: Any, clock_us: int = 0) -> list[RecorderEffect]:
        """Start a snapshot here; nothing if it has reached this process already.  `clock_us` is not used."""
        if snapshot in self._takings or snapshot in self._contributed:
            return []
        return self._record(snapshot, state) + self._end(snapshot)

    def on_marker(self, channel: ChannelName, snapshot: SnapshotName, state: Any) -> list[RecorderEffect]:
        """A marker came; raises ProtocolViolated for a channel that is not an input.

        A second marker of one snapshot in one channel changes nothing: only a
        channel that repeats delivers it.
        """
        require(channel in self._inputs, f"{channel} is no input of {self._process}")
        if snapshot in self._contributed:
            return []
        taking = self._taking(snapshot)
        if channel in taking.closed:
            return []
        taking.closed.append(channel)
        effects: list[RecorderEffect] = []
        if not taking.recorded and self._moment.has_come(len(taking.closed), len(self._inputs)):
            effects = self._record(snapshot, state)
        return effects + self._end(snapshot)

    def on_message(self, channel: ChannelName, message: Any, stamp_us: int = 0) -> None:
        """A message arrived: it is in flight in each snapshot for which this state is recorded and this channel open.

        `stamp_us` is not used: only a snapshot by clocks needs it.
        """
        for taking in self._takings.values():
            if taking.recorded and channel not in taking.closed:
                taking.channels[channel].append(message)

    def is_blocked(self, channel: ChannelName) -> bool:
        """Whether the channel waits for the state to be recorded, if the moment of recording wants that."""
        return self._moment.blocks_channels and any(
            channel in taking.closed and not taking.recorded for taking in self._takings.values()
        )

    def settle(self, snapshot: SnapshotName) -> list[RecorderEffect]:
        """Nothing: here markers show that no more messages can come."""
        return []

    def _taking(self, snapshot: SnapshotName) -> _Taking:
        return self._takings.setdefault(snapshot, _Taking(self._inputs))

    def _record(self, snapshot: SnapshotName, state: Any) -> list[RecorderEffect]:
        taking = self._taking(snapshot)
        taking.state, taking.recorded = state, True
        return [SendMarker(channel=channel, snapshot=snapshot) for channel in self._outputs]

    def _end(self, snapshot: SnapshotName) -> list[RecorderEffect]:
        taking = self._takings[snapshot]
        if not taking.complete:
            return []
        del self._takings[snapshot]
        self._contributed.add(snapshot)
        channels = {channel: tuple(messages) for channel, messages in taking.channels.items()}
        contribution = Contribution(snapshot=snapshot, process=self._process, state=taking.state, channels=channels)
        return [Contribute(contribution=contribution)]


class Collector:
    """Puts contributions together, and returns a snapshot when every process has contributed."""

    def __init__(self, processes: Sequence[ProcessName]) -> None:
        self._processes = tuple(processes)
        self._parts: dict[SnapshotName, dict[ProcessName, Contribution]] = {}
        self._complete: set[SnapshotName] = set()

    def on_contribution(self, contribution: Contribution) -> tuple[Contribution, ...]:
        """The whole snapshot, in the order of the processes, if this contribution completed it; else ().

        Raises ProtocolViolated for a second contribution of one process, and for a process that is not in the system.
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
