"""The methods that are compared with Chandy and Lamport's snapshot (CL-4): clocks, and a world that is stopped.

Both are from the course on consistent snapshots.

*Synchronised clocks*: every process records its state at an agreed time of its own clock.  A message received later
belongs to its channel if the sender's clock had not reached that time when the message was sent.  That is a cut only if
the clocks differ by less than the time of the fastest message; nothing shows when they do not.

*Global synchronisation*: every process is ordered to stop, records its state, takes what is in its inputs, and goes on
when all have.  That is always a cut, and meanwhile no process works.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..protocol.chandy_lamport import (
    ChannelName,
    Contribute,
    Contribution,
    ProcessName,
    Recorder,
    RecorderEffect,
    SnapshotName,
)
from ..vocabulary.errors import ProtocolViolated


class ByTheClock:
    """One process's part in snapshots by synchronised clocks; no marker is sent."""

    def __init__(self, process: ProcessName, inputs: Sequence[ChannelName], outputs: Sequence[ChannelName]) -> None:
        self._process = process
        self._inputs = tuple(inputs)
        self._taken: dict[SnapshotName, tuple[int, Any, dict[ChannelName, list[Any]]]] = {}

    def begin(self, snapshot: SnapshotName, state: Any, clock_us: int = 0) -> list[RecorderEffect]:
        """This process's clock has reached `clock_us`, the time of the snapshot at every process."""
        self._taken[snapshot] = (clock_us, state, {channel: [] for channel in self._inputs})
        return []

    def on_marker(self, channel: ChannelName, snapshot: SnapshotName, state: Any) -> list[RecorderEffect]:
        """Raises ProtocolViolated: this method sends no markers."""
        raise ProtocolViolated("no marker is sent by the clock")

    def on_message(self, channel: ChannelName, message: Any, stamp_us: int = 0) -> None:
        """A message arrived; its sender's clock was at `stamp_us` when it was sent."""
        for clock_us, _, channels in self._taken.values():
            if stamp_us < clock_us:
                channels[channel].append(message)

    def is_blocked(self, channel: ChannelName) -> bool:
        return False

    def settle(self, snapshot: SnapshotName) -> list[RecorderEffect]:
        """The snapshot is final: every message sent before its time has arrived."""
        _, state, channels = self._taken.pop(snapshot)
        held = {channel: tuple(messages) for channel, messages in channels.items()}
        contribution = Contribution(snapshot=snapshot, process=self._process, state=state, channels=held)
        return [Contribute(contribution=contribution)]


class _Never:
    """No marker makes a process record: it is ordered to stop, or nothing happens."""

    blocks_channels = False

    def has_come(self, markers: int, inputs: int) -> bool:
        return False


class Stopping(Recorder):
    """One process's part in a snapshot for which every process stops.

    `begin` is the order to stop; the markers flush the channels.  Messages that arrive while the process stands still
    are recorded, and its driver keeps them for it.
    """

    def __init__(self, process: ProcessName, inputs: Sequence[ChannelName], outputs: Sequence[ChannelName]) -> None:
        super().__init__(process, inputs, outputs, _Never())
