"""Barrier alignment: when a task with several inputs takes its snapshot.

Aligned (Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows",
2015, section 4.2, and Flink's first description of its checkpoints): a channel that
delivered barrier n is blocked until the last channel has delivered barrier n too.  Then
the task takes its snapshot, sends barrier n on, and takes the records that waited before
new ones (ABS-2).  `TABLE` holds all transitions: for a state and a signal it names the
move, by how the signal's checkpoint stands to the state.  What is not in the table is a bug, and raises.

The states are types.  `Flowing` remembers the last checkpoint that was begun or
*cancelled* here, so that its late barriers change nothing.  A task cancels a checkpoint
by sending its cancel barrier on.  Each state also has the checkpoints that the coordinator *aborted*
before the task saw a barrier of them: the task must still send a cancel barrier for
each, or the tasks downstream would wait for ever.

At-least-once blocks no channel (ABS-7).  `Counting` only counts barriers, for several
checkpoints at a time.  Records behind barrier n of a fast channel are processed before the snapshot, so a restore
repeats them.

Unaligned (FLIP-76): the task takes its snapshot at the first barrier that overtakes,
and does not wait for the other channels.  What these deliver before their barrier is
recorded (`in_flight`).  An alignment under way becomes unaligned when its alignment
timeout is over.

A channel whose sender has finished counts as having delivered every barrier
(FIN-1; FLIP-147).  When all senders of a task have finished, the coordinator triggers
the checkpoint at the task, as it does at a source.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from ..decisions.alignment import AwaitedBarriers
from ..vocabulary.errors import ProtocolViolated, expect
from ..vocabulary.ids import CheckpointId

Channels = tuple[int, ...]


class Flowing(msgspec.Struct, frozen=True):
    """No checkpoint is being aligned."""

    last: CheckpointId | None
    """the newest that was begun or cancelled here, if any was: late signals of it, and of those before it, change
    nothing"""
    aborted: tuple[CheckpointId, ...] = ()
    """by the coordinator, before their barriers came; their cancel barriers are still to be sent"""


class Aligning(msgspec.Struct, frozen=True):
    """`arrived` have delivered the barrier of `checkpoint`, the others have not."""

    checkpoint: CheckpointId
    arrived: Channels
    aborted: tuple[CheckpointId, ...] = ()


class Counting(msgspec.Struct, frozen=True):
    """At-least-once: which channels delivered each pending barrier, oldest first."""

    last: CheckpointId | None
    pending: tuple[tuple[CheckpointId, Channels], ...] = ()
    aborted: tuple[CheckpointId, ...] = ()
    cancelled: tuple[CheckpointId, ...] = ()
    """here, and newer than `last`; checkpoints between, which are pending, can still complete"""


State = Flowing | Aligning | Counting


class Relation(StrEnum):
    """Of a signal's checkpoint to the state."""

    new = "new"
    """none of the others"""
    current = "current"
    """it is being aligned"""
    aborted = "aborted"
    """the coordinator aborted it before its barrier came"""
    obsolete = "obsolete"
    """it was cancelled here, or it or a newer one was begun here"""


Transition = tuple[type, type, Relation | None]
"""a key of `TABLE`"""
OnTransition = Callable[[Transition], None]
"""whom to tell of each transition that a task takes"""


class BarrierCame(msgspec.Struct, frozen=True):
    checkpoint: CheckpointId
    channel: int


class OvertakingCame(msgspec.Struct, frozen=True):
    """A barrier overtook the elements before it."""

    checkpoint: CheckpointId
    channel: int


class WaitedEnough(msgspec.Struct, frozen=True):
    """The alignment timeout of the checkpoint is over."""

    checkpoint: CheckpointId


class CancelCame(msgspec.Struct, frozen=True):
    """A cancel barrier: the checkpoint was aborted upstream."""

    checkpoint: CheckpointId
    channel: int


class AbortCame(msgspec.Struct, frozen=True):
    """The coordinator aborted the checkpoint."""

    checkpoint: CheckpointId


class TriggerCame(msgspec.Struct, frozen=True):
    """The coordinator starts the checkpoint at this task, since all its senders have finished."""

    checkpoint: CheckpointId


class PartitionEnded(msgspec.Struct, frozen=True):
    """The channel's sender has finished; the channel is not among `inputs` any more."""

    channel: int


OfCheckpoint = BarrierCame | OvertakingCame | WaitedEnough | CancelCame | AbortCame | TriggerCame
Signal = OfCheckpoint | PartitionEnded


class BlockChannel(msgspec.Struct, frozen=True):
    """Take no more elements from the channel."""

    channel: int


class UnblockChannels(msgspec.Struct, frozen=True):
    """Take elements from these channels again; those that waited come first (ABS-2)."""

    channels: Channels


class TakeSnapshot(msgspec.Struct, frozen=True):
    """Take the snapshot now and send the barrier on.

    `delivered` is None if the snapshot is aligned: every channel has delivered the barrier.  In an unaligned snapshot
    these are the channels that delivered it behind all their earlier elements.
    """

    checkpoint: CheckpointId
    delivered: Channels | None = None


class SendCancelBarrier(msgspec.Struct, frozen=True):
    """Send a cancel barrier on.  With `declines` also decline the checkpoint: the coordinator's abort is not what came,
    so it may not know."""

    checkpoint: CheckpointId
    declines: bool


Action = BlockChannel | UnblockChannels | TakeSnapshot | SendCancelBarrier


class Alignment:
    """The transitions; `inputs` is the number of channels that have not ended.  It has no state of its own: one
    serves all tasks of a job."""

    def __init__(self, awaited: AwaitedBarriers, on_transition: OnTransition | None = None) -> None:
        self._awaited = awaited
        self._on_transition = on_transition

    def initial(self, blocking: bool, last: CheckpointId | None) -> State:
        return Flowing(last) if blocking else Counting(last)

    def step(self, state: State, signal: Signal, inputs: int) -> tuple[State, list[Action]]:
        """The state after the signal, and the actions, in order."""
        relation = None if isinstance(signal, PartitionEnded) else self.relation(state, signal.checkpoint)
        transition = (type(state), type(signal), relation)
        move = TABLE.get(transition)
        if move is None:
            raise ProtocolViolated(f"no transition for {state} at {signal}")
        if self._on_transition is not None:
            self._on_transition(transition)
        return move(self, state, signal, inputs)

    def relation(self, state: State, checkpoint: CheckpointId) -> Relation:
        """The relation of a signal's checkpoint to the state."""
        if type(state) is Aligning and checkpoint == state.checkpoint:
            return Relation.current
        begun = state.checkpoint if isinstance(state, Aligning) else state.last
        cancelled = state.cancelled if isinstance(state, Counting) else ()
        if self._awaited.is_obsolete(checkpoint, begun, cancelled):
            return Relation.obsolete
        return Relation.aborted if checkpoint in state.aborted else Relation.new

    def skip(self, checkpoint: CheckpointId) -> list[Action]:
        """The task takes no part in an aborted checkpoint, and sends a cancel barrier downstream."""
        return [SendCancelBarrier(checkpoint, declines=False)]

    # -- the moves -----------------------------------------------------------------

    def ignore(self, state: State, signal: Signal, inputs: int) -> tuple[State, list[Action]]:
        return state, []

    def first_barrier(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The first channel has delivered the barrier: block it until the others have (ABS-2).  With one channel there
        is nobody to wait for."""
        signal = expect(signal, BarrierCame)
        checkpoint = signal.checkpoint
        if inputs == 1:
            return Flowing(checkpoint, _after(state.aborted, checkpoint)), [TakeSnapshot(checkpoint)]
        aligning = Aligning(checkpoint, (signal.channel,), state.aborted)
        return aligning, [BlockChannel(signal.channel)]

    def next_barrier(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """One more channel has delivered the barrier: block it.  Or it was the last: take the snapshot, and unblock the
        others (the last one was never blocked)."""
        state = expect(state, Aligning)
        signal = expect(signal, BarrierCame)
        arrived = (*state.arrived, signal.channel)
        if len(arrived) < inputs:
            return msgspec.structs.replace(state, arrived=arrived), [BlockChannel(signal.channel)]
        rest = _after(state.aborted, state.checkpoint)
        return Flowing(state.checkpoint, rest), [TakeSnapshot(state.checkpoint), UnblockChannels(state.arrived)]

    def newer_barrier(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """A channel is past the current barrier without having delivered it: the current checkpoint cannot complete.  A
        newer cancel barrier says the same of its channel."""
        state = expect(state, Aligning)
        flowing, actions = self.cancel_alignment(state, signal, inputs)
        then, more = self.step(flowing, signal, inputs)
        return then, actions + more

    def overtake(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The snapshot is taken at the first barrier, without waiting for other channels."""
        return self._past(state, signal.checkpoint), [TakeSnapshot(signal.checkpoint, ())]

    def go_unaligned(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The alignment goes on unaligned."""
        state = expect(state, Aligning)
        return self._past(state, state.checkpoint), [
            TakeSnapshot(state.checkpoint, state.arrived),
            UnblockChannels(state.arrived),
        ]

    def cancel_alignment(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        state = expect(state, Aligning)
        known = isinstance(signal, AbortCame)
        flowing = Flowing(state.checkpoint, _after(state.aborted, state.checkpoint))
        return flowing, [SendCancelBarrier(state.checkpoint, declines=not known), UnblockChannels(state.arrived)]

    def pass_cancel(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        return self._past(state, signal.checkpoint), [SendCancelBarrier(signal.checkpoint, declines=True)]

    def remember(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The checkpoint was aborted before its barrier came: the barrier, or a cancel barrier, is still to come."""
        return msgspec.structs.replace(state, aborted=tuple(sorted((*state.aborted, signal.checkpoint)))), []

    def skip_aborted(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The first barrier (or cancel) of a checkpoint that was aborted before it."""
        if isinstance(state, Counting):
            return self._without(state, signal.checkpoint), self.skip(signal.checkpoint)
        if isinstance(state, Aligning):
            flowing, actions = self.cancel_alignment(state, signal, inputs)
            return self._past(flowing, signal.checkpoint), actions + self.skip(signal.checkpoint)
        return self._past(state, signal.checkpoint), self.skip(signal.checkpoint)

    def count(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        state, signal = expect(state, Counting), expect(signal, BarrierCame)
        delivered = dict(state.pending)
        delivered[signal.checkpoint] = (*delivered.get(signal.checkpoint, ()), signal.channel)
        if len(delivered[signal.checkpoint]) < inputs:
            return msgspec.structs.replace(state, pending=tuple(sorted(delivered.items()))), []
        return self._past(state, signal.checkpoint), [TakeSnapshot(signal.checkpoint)]

    def triggered(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """All channels have ended: the trigger stands for the barriers of all of them."""
        checkpoint = expect(signal, TriggerCame).checkpoint
        return self._past(state, checkpoint), [TakeSnapshot(checkpoint)]

    def end_aligned(self, state: State, signal: PartitionEnded, inputs: int) -> tuple[State, list[Action]]:
        """The channel that ended may have been the last whose barrier was missing."""
        state = expect(state, Aligning)
        if not self._awaited.ended_channel_completes(state.arrived, inputs):
            return state, []
        rest = _after(state.aborted, state.checkpoint)
        return Flowing(state.checkpoint, rest), [TakeSnapshot(state.checkpoint), UnblockChannels(state.arrived)]

    def end_counted(self, state: State, signal: PartitionEnded, inputs: int) -> tuple[State, list[Action]]:
        """No pending checkpoint waits for the channel that ended."""
        counting, ended = expect(state, Counting), signal.channel
        pending = tuple(
            (checkpoint, tuple(channel for channel in delivered if channel != ended))
            for checkpoint, delivered in counting.pending
        )
        after: State = msgspec.structs.replace(counting, pending=pending)
        actions: list[Action] = []
        for checkpoint, delivered in pending:
            if self._awaited.ended_channel_completes(delivered, inputs):
                after = self._past(after, checkpoint)
                actions.append(TakeSnapshot(checkpoint))
        return after, actions

    def cancel_counted(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """Cancel one checkpoint, and go on counting for older ones."""
        state = expect(state, Counting)
        known = isinstance(signal, AbortCame)
        if known and signal.checkpoint not in dict(state.pending):
            return self.remember(state, signal, inputs)
        return self._without(state, signal.checkpoint), [SendCancelBarrier(signal.checkpoint, declines=not known)]

    @staticmethod
    def _without(state: Counting, checkpoint: CheckpointId) -> Counting:
        return Counting(
            state.last,
            tuple(item for item in state.pending if item[0] != checkpoint),
            tuple(aborted for aborted in state.aborted if aborted != checkpoint),
            (*state.cancelled, checkpoint),
        )

    @staticmethod
    def _past(state: State, checkpoint: CheckpointId) -> State:
        """The state when all checkpoints up to this one are begun or cancelled."""
        rest = _after(state.aborted, checkpoint)
        if isinstance(state, Counting):
            pending = tuple(item for item in state.pending if item[0] > checkpoint)
            return Counting(checkpoint, pending, rest, _after(state.cancelled, checkpoint))
        return Flowing(checkpoint, rest)


def _after(checkpoints: tuple[CheckpointId, ...], last: CheckpointId) -> tuple[CheckpointId, ...]:
    return tuple(checkpoint for checkpoint in checkpoints if checkpoint > last)


TABLE: dict[Transition, Callable[[Alignment, State, Any, int], tuple[State, list[Action]]]] = {
    (Flowing, BarrierCame, Relation.new): Alignment.first_barrier,
    (Flowing, BarrierCame, Relation.aborted): Alignment.skip_aborted,
    (Flowing, BarrierCame, Relation.obsolete): Alignment.ignore,
    (Flowing, OvertakingCame, Relation.new): Alignment.overtake,
    (Flowing, OvertakingCame, Relation.aborted): Alignment.skip_aborted,
    (Flowing, OvertakingCame, Relation.obsolete): Alignment.ignore,
    (Flowing, WaitedEnough, Relation.obsolete): Alignment.ignore,
    (Flowing, CancelCame, Relation.new): Alignment.pass_cancel,
    (Flowing, CancelCame, Relation.aborted): Alignment.skip_aborted,
    (Flowing, CancelCame, Relation.obsolete): Alignment.ignore,
    (Flowing, AbortCame, Relation.new): Alignment.remember,
    (Flowing, AbortCame, Relation.aborted): Alignment.ignore,
    (Flowing, AbortCame, Relation.obsolete): Alignment.ignore,
    (Aligning, BarrierCame, Relation.current): Alignment.next_barrier,
    (Aligning, BarrierCame, Relation.new): Alignment.newer_barrier,
    (Aligning, BarrierCame, Relation.aborted): Alignment.skip_aborted,
    (Aligning, BarrierCame, Relation.obsolete): Alignment.ignore,
    (Aligning, OvertakingCame, Relation.current): Alignment.go_unaligned,
    (Aligning, OvertakingCame, Relation.new): Alignment.newer_barrier,
    (Aligning, OvertakingCame, Relation.aborted): Alignment.skip_aborted,
    (Aligning, OvertakingCame, Relation.obsolete): Alignment.ignore,
    (Aligning, WaitedEnough, Relation.current): Alignment.go_unaligned,
    (Aligning, WaitedEnough, Relation.obsolete): Alignment.ignore,
    (Aligning, CancelCame, Relation.current): Alignment.cancel_alignment,
    (Aligning, CancelCame, Relation.new): Alignment.newer_barrier,
    (Aligning, CancelCame, Relation.aborted): Alignment.skip_aborted,
    (Aligning, CancelCame, Relation.obsolete): Alignment.ignore,
    (Aligning, AbortCame, Relation.current): Alignment.cancel_alignment,
    (Aligning, AbortCame, Relation.new): Alignment.remember,
    (Aligning, AbortCame, Relation.aborted): Alignment.ignore,
    (Aligning, AbortCame, Relation.obsolete): Alignment.ignore,
    (Counting, BarrierCame, Relation.new): Alignment.count,
    (Counting, BarrierCame, Relation.aborted): Alignment.skip_aborted,
    (Counting, BarrierCame, Relation.obsolete): Alignment.ignore,
    (Counting, CancelCame, Relation.new): Alignment.cancel_counted,
    (Counting, CancelCame, Relation.aborted): Alignment.skip_aborted,
    (Counting, CancelCame, Relation.obsolete): Alignment.ignore,
    (Counting, AbortCame, Relation.new): Alignment.cancel_counted,
    (Counting, AbortCame, Relation.aborted): Alignment.ignore,
    (Counting, AbortCame, Relation.obsolete): Alignment.ignore,
    (Flowing, TriggerCame, Relation.new): Alignment.triggered,
    (Flowing, TriggerCame, Relation.aborted): Alignment.skip_aborted,
    (Flowing, TriggerCame, Relation.obsolete): Alignment.ignore,
    (Counting, TriggerCame, Relation.new): Alignment.triggered,
    (Counting, TriggerCame, Relation.aborted): Alignment.skip_aborted,
    (Counting, TriggerCame, Relation.obsolete): Alignment.ignore,
    (Flowing, PartitionEnded, None): Alignment.ignore,
    (Aligning, PartitionEnded, None): Alignment.end_aligned,
    (Counting, PartitionEnded, None): Alignment.end_counted,
}
"""(state, signal, relation of the signal's checkpoint to the state) → move.

The end of a channel has no relation.  The coordinator never triggers a task amid an alignment: a channel that the task
waits for has not ended.
"""
