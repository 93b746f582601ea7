"""In-flight data: what an unaligned barrier overtook is part of the checkpoint (FLIP-76).

A task that takes part unaligned snapshots at the first barrier, and sends it on
ahead of whatever waits in its outputs.  Of a channel the checkpoint then owns
what was sent before the barrier and taken after the snapshot: `queued`, what
the task took of it until the barrier was there, and then what the barrier had
overtaken in the input queue; and `unsent`, what the sender's barrier had
overtaken in its output queue.  That is the channel state of Chandy and Lamport
("Distributed Snapshots", 1985), recorded at both ends.

The snapshot is written when every channel has delivered its barrier, or has
ended, and the driver has told what was overtaken in the outputs.  Several
checkpoints may be recorded at a time, each with a record of its own.

A restored task puts `queued` back into its inputs, before anything new, and
sends `unsent` before anything else.  Ends of data are in no snapshot: who had
ended says so again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from .ids import CheckpointId
from .messages import Element, Idle, Record, Watermark
from .part import Part
from .state import Passing, Snapshot

Channels = tuple[int, ...]


def pack(elements: Iterable[Element]) -> list[Passing]:
    """Elements as a snapshot holds them; of what is not data nothing is kept."""
    packed: list[Passing] = []
    for one in elements:
        if isinstance(one, Record):
            packed.append((one.key, one.value, one.tag, one.tag2, one.origin, one.ts))
        elif isinstance(one, Watermark):
            packed.append((one.time,))
        elif isinstance(one, Idle):
            packed.append(())
    return packed


def unpack(passing: Iterable[Passing]) -> tuple[Element, ...]:
    """The elements that a snapshot holds."""
    return tuple(_unpacked(one) for one in passing)


def _unpacked(one: Passing) -> Element:
    if not one:
        return Idle()
    return Watermark(*one) if len(one) == 1 else Record(*one)  # type: ignore[arg-type]


class Recording(msgspec.Struct, kw_only=True):
    """One checkpoint's in-flight data, while it is not complete here."""

    missing: list[int]
    """input channels that have neither delivered the barrier nor ended"""
    queued: dict[int, list[Passing]] = {}
    unsent: dict[int, list[Passing]] | None = None
    """None until the driver has told what the barrier overtook"""
    snapshot: Snapshot | None = None
    """None until the task's own state may be written"""

    @property
    def is_whole(self) -> bool:
        return not self.missing and self.unsent is not None and self.snapshot is not None


class Capture(Part):
    """What of the data in flight belongs to a checkpoint, and what becomes of it."""

    def recorded(self, checkpoint: CheckpointId, channel: int, element: Element) -> bool:
        """Whether what is taken from a channel, that has not delivered the barrier, is kept."""
        return True

    def overtaken(self, checkpoint: CheckpointId, channel: int, passed: Sequence[Element]) -> Sequence[Element]:
        """What is kept of the elements that a barrier overtook in an input queue: all of them, what a task was
        restored with and has not taken yet included."""
        return passed

    def missing(self, checkpoint: CheckpointId, channels: Channels) -> Channels:
        """Which channels are recorded until they deliver the barrier."""
        return channels

    def awaits_outputs(self) -> bool:
        """Whether the snapshot waits for what the barrier overtook in the outputs."""
        return True

    def restored(self, queued: Mapping[int, Sequence[Passing]]) -> dict[int, tuple[Passing, ...]]:
        """What a restored task puts back into its inputs."""
        return {channel: tuple(passing) for channel, passing in queued.items()}

    def in_front(self) -> bool:
        """Whether that comes before what the channel holds by then."""
        return True

    def given_up(self, checkpoint: CheckpointId) -> bool:
        """Whether a checkpoint that is aborted is recorded no more."""
        return True


class InFlight:
    """The recordings of one task, by checkpoint."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._recordings: dict[CheckpointId, Recording] = {}

    def __bool__(self) -> bool:
        """Whether anything is being recorded."""
        return bool(self._recordings)

    def begin(self, checkpoint: CheckpointId, missing: Channels, *, overtakes_outputs: bool) -> None:
        """The task snapshots now; these channels have not delivered the barrier."""
        waits = overtakes_outputs and self._capture.awaits_outputs()
        kept = list(self._capture.missing(checkpoint, missing))
        if kept or waits:
            self._recordings[checkpoint] = Recording(missing=kept, unsent=None if waits else {})

    def took(self, channel: int, element: Element) -> None:
        """The task takes something from a channel: it is in flight for whoever waits for the channel's barrier."""
        for checkpoint, recording in self._recordings.items():
            if channel in recording.missing and self._capture.recorded(checkpoint, channel, element):
                recording.queued.setdefault(channel, []).extend(pack((element,)))

    def delivered(self, checkpoint: CheckpointId, channel: int, passed: Sequence[Element] = ()) -> None:
        """The barrier is here, and overtook these elements in the channel's queue."""
        recording = self._recordings.get(checkpoint)
        if recording is None:
            return
        packed = pack(self._capture.overtaken(checkpoint, channel, passed))
        if packed:
            recording.queued.setdefault(channel, []).extend(packed)
        if channel in recording.missing:
            recording.missing.remove(channel)

    def ended(self, channel: int) -> None:
        """No barrier will come from it any more: all that it sent has been taken."""
        for recording in self._recordings.values():
            if channel in recording.missing:
                recording.missing.remove(channel)

    def overtook(self, checkpoint: CheckpointId, passed: Mapping[int, Sequence[Element]]) -> None:
        """What the barrier overtook in the output queues, by channel."""
        recording = self._recordings.get(checkpoint)
        if recording is not None:
            packed = {channel: pack(elements) for channel, elements in passed.items()}
            recording.unsent = {channel: kept for channel, kept in packed.items() if kept}

    def hold(self, checkpoint: CheckpointId, snapshot: Snapshot) -> bool:
        """Keep a snapshot until its in-flight data is whole; False when it need not wait."""
        recording = self._recordings.get(checkpoint)
        if recording is None:
            return False
        recording.snapshot = snapshot
        return True

    def drop(self, checkpoint: CheckpointId) -> None:
        """The checkpoint was given up."""
        if checkpoint in self._recordings and self._capture.given_up(checkpoint):
            del self._recordings[checkpoint]

    def whole(self) -> list[tuple[CheckpointId, Snapshot]]:
        """The snapshots that can be written now, with what was in flight; each is told once."""
        done = []
        for checkpoint, one in list(self._recordings.items()):
            if one.is_whole and one.snapshot is not None:
                del self._recordings[checkpoint]
                done.append((checkpoint, one.snapshot.with_in_flight(one.queued, one.unsent or {})))
        return done
