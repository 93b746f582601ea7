"""In-flight data: what an unaligned barrier overtook is part of the checkpoint (FLIP-76).

In an unaligned checkpoint a task takes its snapshot at the first barrier, and sends the
barrier on before the elements that wait in its outputs.  The in-flight data of a channel
are the elements sent before the barrier and taken after the snapshot.  `queued` is the
receiver's part: the elements that it takes until the barrier comes, then those that the
barrier overtook in the input queue.  `unsent` is the sender's part: the elements that the
barrier overtook in the output queue.  Both together are the channel state of Chandy and
Lamport ("Distributed Snapshots", 1985).

The snapshot is written when every channel has delivered its barrier or has ended, and
when the driver has reported what was overtaken in the outputs.  Several checkpoints may
be recorded at a time, each on its own.

With persistent channels the snapshot refers to their logs, and is written when the
elements that it refers to are durable (`persistent`).

A restored task puts `queued` back into its inputs before any new element, and sends
`unsent` before any other output.  Ends of data are in no snapshot: a sender whose input
had ended sends the end again.

A checkpoint during that replay holds the restored elements that are not taken yet, and
behind them the new ones.  After a rescale, or when a split has another reader, records of
one key and one split can come from two channels, one restored and one new.  So a snapshot
counts how often each element has been put back.  Those put back more often come first,
over all channels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ...decisions.in_flight import Capture, Recorded
from ...vocabulary.effects import Effect, Refill, Restored, Send
from ...vocabulary.ids import CheckpointId
from ...vocabulary.messages import Element, Idle, Record, Watermark
from ...vocabulary.state import Passing, Snapshot, TaskState
from .persistent import Ledger, LedgerEntry, Logged

Channels = tuple[int, ...]
NEVER_BEFORE: Mapping[int, Sequence[int]] = {}


def pack(elements: Iterable[Element]) -> list[Passing]:
    """Elements as a snapshot holds them; barriers and ends are left out."""
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


def with_rows(state: TaskState, elements: Iterator[Sequence[Element]]) -> TaskState:
    """A state with elements in place of its references; `elements` are those of each reference, in order."""
    queued = {channel: [one for _ in refs for one in pack(next(elements))] for channel, refs in state.spilled.items()}
    return msgspec.structs.replace(state, queued=state.queued | queued, spilled={})


class Recording(msgspec.Struct, kw_only=True):
    """One checkpoint's in-flight data, until the task has all of it."""

    missing: list[int]
    """input channels that have neither delivered the barrier nor ended"""
    queued: dict[int, list[Passing]] = {}
    replays: dict[int, list[int]] = {}
    """how often each of the first elements in `queued` was put back"""
    spilled: dict[int, list[LedgerEntry]] = {}
    """the counterpart of `queued` for persistent channels: the ledger's entries"""
    logged: Logged | None = None
    """when the entries of `spilled` are durable; None until that is requested"""
    overtaken: Channels = ()
    """output channels in which the barrier overtakes, until the driver has reported what"""
    unsent: dict[int, list[Passing]] = {}
    snapshot: Snapshot | None = None
    """None until the task's own state may be written"""

    @property
    def recorded(self) -> Recorded:
        """So far."""
        return Recorded(tuple(self.missing), {channel: tuple(passing) for channel, passing in self.queued.items()})


class InFlight:
    """The recordings of one task, by checkpoint."""

    def __init__(
        self,
        capture: Capture,
        ledger: Ledger | None = None,
    ) -> None:
        self._capture = capture
        self.ledger = ledger
        """of persistent channels; None if there are none"""
        self._recordings: dict[CheckpointId, Recording] = {}
        self._replayed: dict[int, deque[int]] = {}
        """by channel: how often each restored element that is still in it was put back"""
        self.recording = False
        """the in-flight data of some checkpoint is not complete, or its snapshot not written"""
        self.listening = ledger is not None
        """takes of elements must be reported (`took`); looked at before each record"""

    def _changed(self) -> None:
        self.recording = bool(self._recordings)
        self.listening = bool(self._recordings or self._replayed or self.ledger is not None)

    # -- what is in flight -----------------------------------------------------------

    def restored(self, checkpoint: CheckpointId, state: TaskState, now: TaskState) -> list[Effect]:
        """The task has restored `state`, and is in the state `now`: put back what was in flight, before anything
        else."""
        held = {channel: list(passing) for channel, passing in state.queued.items()}
        whole = msgspec.structs.replace(now, queued=held, unsent=state.unsent, replays=state.replays)
        unsent = [Send(channel, one) for channel, passing in state.unsent.items() for one in unpack(passing)]
        return [Restored(checkpoint, whole), *self.put_back(state.queued, state.replays), *unsent]

    def put_back(
        self, queued: Mapping[int, Sequence[Passing]], replays: Mapping[int, Sequence[int]] = NEVER_BEFORE
    ) -> list[Effect]:
        """Put restored elements back into the task's inputs; `replays` is a field of the snapshot."""
        refills: list[Effect] = []
        self._replayed = {}
        for channel, passing in queued.items():
            before = tuple(replays.get(channel, ()))[: len(passing)]
            refills.append(Refill(channel, unpack(passing), before))
            if passing:
                self._replayed[channel] = deque(1 + times for times in (*before, *[0] * (len(passing) - len(before))))
        self._changed()
        return refills

    def begin(self, checkpoint: CheckpointId, missing: Channels, overtaken_outputs: Channels = ()) -> None:
        """The task takes its snapshot now; the channels in `missing` have not delivered the barrier, and it overtakes
        in these outputs."""
        recorded = {one: recording.recorded for one, recording in self._recordings.items()}
        begun = self._capture.begun(checkpoint, {**recorded, checkpoint: Recorded(missing)})
        queued = {channel: list(passing) for channel, passing in begun.queued.items()}
        if begun.missing or overtaken_outputs:
            self._recordings[checkpoint] = Recording(
                missing=list(begun.missing), queued=queued, overtaken=overtaken_outputs
            )
            self._changed()

    def took(self, channel: int, element: Element) -> None:
        """The task takes an element from a channel: it is in flight for every checkpoint that waits for the channel's
        barrier."""
        replayed = channel in self._replayed
        times = (self._replayed[channel][0],) if replayed else ()
        entry = self.ledger.took(channel, element) if self.ledger is not None else None
        for recording in self._recordings.values():
            if channel not in recording.missing:
                continue
            kept = self._capture.before_barrier(*(((element,), ()) if replayed else ((), (element,))))
            if kept:
                self._keep(recording, channel, kept, (entry,), times)
        if replayed:
            self._replayed[channel].popleft()
            if not self._replayed[channel]:
                del self._replayed[channel]
                self._changed()

    def delivered(self, checkpoint: CheckpointId, channel: int, passed: Sequence[Element] = ()) -> None:
        """A channel delivered the barrier, which overtook the elements `passed` in the channel's queue."""
        recording = self._recordings.get(checkpoint)
        if recording is None:
            return
        if passed:
            replayed = tuple(self._replayed.get(channel, ()))
            kept = self._capture.before_barrier(passed[: len(replayed)], passed[len(replayed) :])
            self._keep(recording, channel, kept, self._entries(channel, passed, kept), replayed)
        if channel in recording.missing:
            recording.missing.remove(channel)

    def _entries(self, channel: int, passed: Sequence[Element], kept: Sequence[Element]) -> list[LedgerEntry | None]:
        """The ledger's entry of each kept element, of those that a barrier overtook."""
        if self.ledger is None:
            return []
        entries: list[LedgerEntry | None] = []
        for element, entry in zip(passed, self.ledger.passed(channel, passed), strict=True):
            if len(entries) < len(kept) and kept[len(entries)] is element:
                entries.append(entry)
        return entries

    def _keep(
        self,
        recording: Recording,
        channel: int,
        elements: Sequence[Element],
        places: Sequence[LedgerEntry | None],
        replays: Sequence[int],
    ) -> None:
        """Add elements of a channel to a checkpoint: as rows, or as entries of the ledger.  `replays` says how often
        each of the first ones was put back."""
        if self.ledger is not None:
            entries = [one for one in places if one is not None]
            if entries:
                recording.spilled.setdefault(channel, []).extend(entries)
            kept = len(entries)
        else:
            packed = pack(elements)
            if packed:
                recording.queued.setdefault(channel, []).extend(packed)
            kept = len(packed)
        if kept and replays:
            recording.replays.setdefault(channel, []).extend(replays[:kept])

    def ended(self, channel: int) -> None:
        """A channel has ended, and all of it has been taken: no barrier will come from it."""
        for recording in self._recordings.values():
            if channel in recording.missing:
                recording.missing.remove(channel)

    def overtook(self, checkpoint: CheckpointId, passed: Mapping[int, Sequence[Element]]) -> None:
        """The barrier overtook these elements in the output queues, by channel."""
        recording = self._recordings.get(checkpoint)
        if recording is not None:
            packed = {channel: pack(elements) for channel, elements in passed.items()}
            recording.unsent = {channel: kept for channel, kept in packed.items() if kept}
            recording.overtaken = ()

    def hold(self, checkpoint: CheckpointId, snapshot: Snapshot) -> bool:
        """Keep a snapshot until its in-flight data is complete; False if it need not wait."""
        recording = self._recordings.get(checkpoint)
        if recording is None:
            return False
        recording.snapshot = snapshot
        return True

    def _is_whole(self, recording: Recording) -> bool:
        """The task's own state may be written, and waits for no data in flight any more."""
        snapshot = recording.snapshot
        if snapshot is None:
            return False
        return not self._capture.waits(tuple(recording.missing), recording.overtaken, ended=snapshot.ended)

    def aborted(self, checkpoint: CheckpointId) -> None:
        if checkpoint in self._recordings:
            kept = self._capture.kept(tuple(self._recordings), checkpoint)
            self._recordings = {one: self._recordings[one] for one in kept}
            self._changed()

    def secure(self) -> list[Effect]:
        """Request that references be made durable, for each snapshot that lacks nothing else."""
        if self.ledger is None or not self._recordings:
            return []
        effects: list[Effect] = []
        for one in self._recordings.values():
            if self._is_whole(one) and one.logged is None:
                one.logged, asked = self.ledger.secure(one.spilled)
                effects.extend(asked)
        return effects

    def whole(self) -> list[tuple[CheckpointId, Snapshot]]:
        """The snapshots that can be written now, with their in-flight data; each is returned once."""
        if not self._recordings:
            return []
        done = []
        for checkpoint, one in list(self._recordings.items()):
            if self._is_whole(one) and one.snapshot is not None and self._is_safe(one):
                del self._recordings[checkpoint]
                refs = self.ledger.refs(one.spilled) if self.ledger is not None else {}
                snapshot = one.snapshot.with_in_flight(one.queued, one.unsent, refs)
                done.append((checkpoint, snapshot.with_replays(one.replays) if one.replays else snapshot))
        if done:
            self._changed()
        return done

    def _is_safe(self, recording: Recording) -> bool:
        return self.ledger is None or (recording.logged is not None and self.ledger.is_safe(recording.logged))
