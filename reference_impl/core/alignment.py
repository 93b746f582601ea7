"""Barrier alignment: when a task with several inputs takes its snapshot.

Flink's first description of its checkpointing: a channel that delivered barrier
n is set aside until the last input has delivered it too; then the task snapshots,
sends barrier n on, and takes the waiting records before new ones (ABS-2).  `TABLE`
is the whole of it: for a state and a signal it names the move, and an unlisted
pair is a bug and raises.

The states are types.  `Flowing` remembers the last checkpoint that was begun or
given up here, so that barriers which arrive late change nothing, and the
checkpoints that the coordinator aborted before any barrier of theirs came: each
still owes those downstream a cancel barrier, or they would wait for ever.

At-least-once does not block (ABS-7): `Counting` only counts barriers, several
checkpoints at a time, and records overtake each other around the cut.

Unaligned (FLIP-76) a task begins at the first barrier that overtakes, without
waiting for the others: what their channels still deliver is recorded
(`in_flight`).  An alignment under way goes on so when one of its barriers has
waited too long.

A channel whose sender has finished counts as having delivered every barrier
(FIN-1; FLIP-147).  A task all of whose senders have finished hears of a
checkpoint from the coordinator, as a source does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .errors import ProtocolViolated, expect
from .ids import CheckpointId

Channels = tuple[int, ...]


class Flowing(msgspec.Struct, frozen=True):
    """No checkpoint is being aligned."""

    last: CheckpointId
    aborted: tuple[CheckpointId, ...] = ()


class Aligning(msgspec.Struct, frozen=True):
    """`arrived` have delivered the barrier of `checkpoint`, the others have not."""

    last: CheckpointId
    checkpoint: CheckpointId
    arrived: Channels
    aborted: tuple[CheckpointId, ...] = ()


class Counting(msgspec.Struct, frozen=True):
    """At-least-once: which channels delivered each pending barrier, oldest first."""

    last: CheckpointId
    pending: tuple[tuple[CheckpointId, Channels], ...] = ()
    aborted: tuple[CheckpointId, ...] = ()
    given_up: tuple[CheckpointId, ...] = ()
    """above `last`, beside older ones that can still complete"""


State = Flowing | Aligning | Counting


class BarrierCame(msgspec.Struct, frozen=True):
    checkpoint: CheckpointId
    channel: int


class OvertakingCame(msgspec.Struct, frozen=True):
    """A barrier that did not wait for its turn."""

    checkpoint: CheckpointId
    channel: int


class WaitedEnough(msgspec.Struct, frozen=True):
    """The checkpoint has been aligned for as long as its barriers have patience."""

    checkpoint: CheckpointId


class CancelCame(msgspec.Struct, frozen=True):
    """A cancel barrier: somebody upstream gave the checkpoint up."""

    checkpoint: CheckpointId
    channel: int


class AbortCame(msgspec.Struct, frozen=True):
    """The coordinator gave the checkpoint up."""

    checkpoint: CheckpointId


class TriggerCame(msgspec.Struct, frozen=True):
    """The coordinator starts the checkpoint here: no sender is left that could."""

    checkpoint: CheckpointId


class PartitionEnded(msgspec.Struct, frozen=True):
    """The channel's sender has finished; the channel is not among `inputs` any more."""

    channel: int


OfCheckpoint = BarrierCame | OvertakingCame | WaitedEnough | CancelCame | AbortCame | TriggerCame
Signal = OfCheckpoint | PartitionEnded


class BlockChannel(msgspec.Struct, frozen=True):
    """Take nothing more from the channel."""

    channel: int


class UnblockChannels(msgspec.Struct, frozen=True):
    """Take from these channels again."""

    channels: Channels


class Begin(msgspec.Struct, frozen=True):
    """Snapshot now and send the barrier on.

    `delivered` are the channels that delivered it in line, where the others are not waited for; None: all have.
    """

    checkpoint: CheckpointId
    delivered: Channels | None = None


class GiveUp(msgspec.Struct, frozen=True):
    """Send a cancel barrier on; `declined` tells the coordinator, who does not know yet."""

    checkpoint: CheckpointId
    declined: bool


Action = BlockChannel | UnblockChannels | Begin | GiveUp


class Alignment:
    """The decisions around a barrier; `inputs` is the number of channels that have not ended."""

    reached = False

    def initial(self, blocking: bool, last: CheckpointId) -> State:
        return Flowing(last) if blocking else Counting(last)

    def step(self, state: State, signal: Signal, inputs: int) -> tuple[State, list[Action]]:
        """The state after the signal, and what is to be done, in order."""
        relation = "" if isinstance(signal, PartitionEnded) else self.relation(state, signal.checkpoint)
        move = TABLE.get((type(state), type(signal), relation))
        if move is None:
            raise ProtocolViolated(f"no transition for {state} at {signal}")
        return move(self, state, signal, inputs)

    def relation(self, state: State, checkpoint: CheckpointId) -> str:
        """How a signal's checkpoint stands to what is going on here."""
        if isinstance(state, Aligning) and checkpoint == state.checkpoint:
            return "current"
        if self.is_obsolete(state, checkpoint):
            return "obsolete"
        return "aborted" if checkpoint in state.aborted else "new"

    def is_obsolete(self, state: State, checkpoint: CheckpointId) -> bool:
        """Begun or given up already: whatever still comes of it changes nothing."""
        if isinstance(state, Counting) and checkpoint in state.given_up:
            return True
        begun = state.checkpoint if isinstance(state, Aligning) else state.last
        return checkpoint <= begun

    def skip(self, checkpoint: CheckpointId) -> list[Action]:
        """A task takes no part in a checkpoint that was aborted: those downstream must hear it."""
        return [GiveUp(checkpoint, declined=False)]

    # -- the moves -----------------------------------------------------------------

    def ignore(self, state: State, signal: Signal, inputs: int) -> tuple[State, list[Action]]:
        return state, []

    def first_barrier(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        signal = expect(signal, BarrierCame)
        checkpoint = signal.checkpoint
        if inputs == 1:
            return Flowing(checkpoint, _after(state.aborted, checkpoint)), [Begin(checkpoint)]
        aligning = Aligning(state.last, checkpoint, (signal.channel,), state.aborted)
        return aligning, [BlockChannel(signal.channel)]

    def next_barrier(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        state = expect(state, Aligning)
        signal = expect(signal, BarrierCame)
        arrived = (*state.arrived, signal.channel)
        if len(arrived) < inputs:
            return msgspec.structs.replace(state, arrived=arrived), [BlockChannel(signal.channel)]
        rest = _after(state.aborted, state.checkpoint)
        return Flowing(state.checkpoint, rest), [Begin(state.checkpoint), UnblockChannels(state.arrived)]

    def newer_barrier(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """A channel that never delivered the current barrier is past it: it cannot complete."""
        state = expect(state, Aligning)
        flowing, actions = self.give_up(state, signal, inputs)
        then, more = self.step(flowing, signal, inputs)
        return then, actions + more

    def overtake(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """Nobody is waited for: the snapshot is taken at the first barrier."""
        return self._past(state, signal.checkpoint), [Begin(signal.checkpoint, ())]

    def turn(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The alignment goes on unaligned."""
        state = expect(state, Aligning)
        return self._past(state, state.checkpoint), [
            Begin(state.checkpoint, state.arrived),
            UnblockChannels(state.arrived),
        ]

    def give_up(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        state = expect(state, Aligning)
        known = isinstance(signal, AbortCame)
        flowing = Flowing(state.checkpoint, _after(state.aborted, state.checkpoint))
        return flowing, [GiveUp(state.checkpoint, declined=not known), UnblockChannels(state.arrived)]

    def pass_cancel(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        return self._past(state, signal.checkpoint), [GiveUp(signal.checkpoint, declined=True)]

    def newer_cancel(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        state = expect(state, Aligning)
        flowing, actions = self.give_up(state, signal, inputs)
        then, more = self.step(flowing, signal, inputs)
        return then, actions + more

    def remember(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """Aborted before its barrier came: it will come, or a cancel barrier will."""
        return msgspec.structs.replace(state, aborted=tuple(sorted((*state.aborted, signal.checkpoint)))), []

    def skip_aborted(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """The first barrier (or cancel) of a checkpoint that was aborted before it."""
        if isinstance(state, Counting):
            return self._without(state, signal.checkpoint), self.skip(signal.checkpoint)
        if isinstance(state, Aligning):
            flowing, actions = self.give_up(state, signal, inputs)
            return self._past(flowing, signal.checkpoint), actions + self.skip(signal.checkpoint)
        return self._past(state, signal.checkpoint), self.skip(signal.checkpoint)

    def count(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        state, signal = expect(state, Counting), expect(signal, BarrierCame)
        delivered = dict(state.pending)
        delivered[signal.checkpoint] = (*delivered.get(signal.checkpoint, ()), signal.channel)
        if len(delivered[signal.checkpoint]) < inputs:
            return msgspec.structs.replace(state, pending=tuple(sorted(delivered.items()))), []
        return self._past(state, signal.checkpoint), [Begin(signal.checkpoint)]

    def begin(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """No channel is left that could deliver a barrier: what was told stands for all of them."""
        checkpoint = expect(signal, TriggerCame).checkpoint
        return self._past(state, checkpoint), [Begin(checkpoint)]

    def end_aligned(self, state: State, signal: PartitionEnded, inputs: int) -> tuple[State, list[Action]]:
        """It may have been the last that a barrier was waited for from."""
        state = expect(state, Aligning)
        if len(state.arrived) < inputs:
            return state, []
        rest = _after(state.aborted, state.checkpoint)
        return Flowing(state.checkpoint, rest), [Begin(state.checkpoint), UnblockChannels(state.arrived)]

    def end_counted(self, state: State, signal: PartitionEnded, inputs: int) -> tuple[State, list[Action]]:
        """Of every pending checkpoint nothing is waited for from it any more."""
        counting, ended = expect(state, Counting), signal.channel
        pending = tuple(
            (checkpoint, tuple(channel for channel in delivered if channel != ended))
            for checkpoint, delivered in counting.pending
        )
        after: State = msgspec.structs.replace(counting, pending=pending)
        actions: list[Action] = []
        for checkpoint, delivered in pending:
            if len(delivered) == inputs:
                after = self._past(after, checkpoint)
                actions.append(Begin(checkpoint))
        return after, actions

    def drop_count(self, state: State, signal: OfCheckpoint, inputs: int) -> tuple[State, list[Action]]:
        """Give one checkpoint up; older ones are counted on."""
        state = expect(state, Counting)
        known = isinstance(signal, AbortCame)
        if known and signal.checkpoint not in dict(state.pending):
            return self.remember(state, signal, inputs)
        return self._without(state, signal.checkpoint), [GiveUp(signal.checkpoint, declined=not known)]

    @staticmethod
    def _without(state: Counting, checkpoint: CheckpointId) -> Counting:
        return Counting(
            state.last,
            tuple(item for item in state.pending if item[0] != checkpoint),
            tuple(aborted for aborted in state.aborted if aborted != checkpoint),
            (*state.given_up, checkpoint),
        )

    @staticmethod
    def _past(state: State, checkpoint: CheckpointId) -> State:
        """The state once everything up to the checkpoint is settled here."""
        rest = _after(state.aborted, checkpoint)
        if isinstance(state, Counting):
            pending = tuple(item for item in state.pending if item[0] > checkpoint)
            return Counting(checkpoint, pending, rest, _after(state.given_up, checkpoint))
        return Flowing(checkpoint, rest)


def _after(checkpoints: tuple[CheckpointId, ...], last: CheckpointId) -> tuple[CheckpointId, ...]:
    return tuple(checkpoint for checkpoint in checkpoints if checkpoint > last)


TABLE: dict[tuple[type, type, str], Callable[[Alignment, State, Any, int], tuple[State, list[Action]]]] = {
    (Flowing, BarrierCame, "new"): Alignment.first_barrier,
    (Flowing, BarrierCame, "aborted"): Alignment.skip_aborted,
    (Flowing, BarrierCame, "obsolete"): Alignment.ignore,
    (Flowing, OvertakingCame, "new"): Alignment.overtake,
    (Flowing, OvertakingCame, "aborted"): Alignment.skip_aborted,
    (Flowing, OvertakingCame, "obsolete"): Alignment.ignore,
    (Flowing, WaitedEnough, "obsolete"): Alignment.ignore,
    (Flowing, CancelCame, "new"): Alignment.pass_cancel,
    (Flowing, CancelCame, "aborted"): Alignment.skip_aborted,
    (Flowing, CancelCame, "obsolete"): Alignment.ignore,
    (Flowing, AbortCame, "new"): Alignment.remember,
    (Flowing, AbortCame, "aborted"): Alignment.ignore,
    (Flowing, AbortCame, "obsolete"): Alignment.ignore,
    (Aligning, BarrierCame, "current"): Alignment.next_barrier,
    (Aligning, BarrierCame, "new"): Alignment.newer_barrier,
    (Aligning, BarrierCame, "aborted"): Alignment.skip_aborted,
    (Aligning, BarrierCame, "obsolete"): Alignment.ignore,
    (Aligning, OvertakingCame, "current"): Alignment.turn,
    (Aligning, OvertakingCame, "new"): Alignment.newer_barrier,
    (Aligning, OvertakingCame, "aborted"): Alignment.skip_aborted,
    (Aligning, OvertakingCame, "obsolete"): Alignment.ignore,
    (Aligning, WaitedEnough, "current"): Alignment.turn,
    (Aligning, WaitedEnough, "obsolete"): Alignment.ignore,
    (Aligning, CancelCame, "current"): Alignment.give_up,
    (Aligning, CancelCame, "new"): Alignment.newer_cancel,
    (Aligning, CancelCame, "aborted"): Alignment.skip_aborted,
    (Aligning, CancelCame, "obsolete"): Alignment.ignore,
    (Aligning, AbortCame, "current"): Alignment.give_up,
    (Aligning, AbortCame, "new"): Alignment.remember,
    (Aligning, AbortCame, "aborted"): Alignment.ignore,
    (Aligning, AbortCame, "obsolete"): Alignment.ignore,
    (Counting, BarrierCame, "new"): Alignment.count,
    (Counting, BarrierCame, "aborted"): Alignment.skip_aborted,
    (Counting, BarrierCame, "obsolete"): Alignment.ignore,
    (Counting, CancelCame, "new"): Alignment.drop_count,
    (Counting, CancelCame, "aborted"): Alignment.skip_aborted,
    (Counting, CancelCame, "obsolete"): Alignment.ignore,
    (Counting, AbortCame, "new"): Alignment.drop_count,
    (Counting, AbortCame, "aborted"): Alignment.ignore,
    (Counting, AbortCame, "obsolete"): Alignment.ignore,
    (Flowing, TriggerCame, "new"): Alignment.begin,
    (Flowing, TriggerCame, "aborted"): Alignment.skip_aborted,
    (Flowing, TriggerCame, "obsolete"): Alignment.ignore,
    (Counting, TriggerCame, "new"): Alignment.begin,
    (Counting, TriggerCame, "aborted"): Alignment.skip_aborted,
    (Counting, TriggerCame, "obsolete"): Alignment.ignore,
    (Flowing, PartitionEnded, ""): Alignment.ignore,
    (Aligning, PartitionEnded, ""): Alignment.end_aligned,
    (Counting, PartitionEnded, ""): Alignment.end_counted,
}
"""(state, signal, relation of the signal's checkpoint to the state) → move.

Relations: `current` is being aligned; `obsolete` was begun or given up here;
`aborted` was aborted by the coordinator before its barrier came; `new` is none
of these.  The end of a channel has none.  A trigger amid an alignment is no
case: a channel that is waited for has not ended.
"""
