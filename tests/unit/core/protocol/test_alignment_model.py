"""A model of alignment beside it: channels that deliver in order, a coordinator that aborts, senders that finish."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cutproof.reference_impl.core.decisions.alignment import AwaitedBarriers
from cutproof.reference_impl.core.protocol.barrier_alignment import (
    AbortCame,
    Action,
    Aligning,
    Alignment,
    BarrierCame,
    BlockChannel,
    CancelCame,
    PartitionEnded,
    SendCancelBarrier,
    Signal,
    TakeSnapshot,
    TriggerCame,
    UnblockChannels,
)
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId


class AlignmentModel(RuleBasedStateMachine):
    """Channels that deliver barriers or cancel barriers in order, and a coordinator that aborts.

    The model knows only what was delivered and when.  A checkpoint must begin
    exactly when the barrier of the last channel comes in and nobody aborted it
    before.
    """

    blocking = True

    @initialize(inputs=st.integers(1, 4))
    def start(self, inputs: int) -> None:
        self.alignment = Alignment(AwaitedBarriers())
        self.state = self.alignment.initial(self.blocking, last=None)
        self.inputs = inputs
        self.latest = [0] * inputs
        self.ended: set[int] = set()
        self.barriers: dict[int, set[int]] = {}
        self.aborted: set[int] = set()
        self.blocked: set[int] = set()
        self.begun: list[int] = []
        self.cancelled: list[int] = []

    def feed(self, signal: Signal) -> list[Action]:
        self.state, actions = self.alignment.step(self.state, signal, self.inputs - len(self.ended))
        for action in actions:
            if isinstance(action, BlockChannel):
                assert action.channel not in self.blocked
                self.blocked.add(action.channel)
            elif isinstance(action, UnblockChannels):
                assert set(action.channels) == self.blocked
                self.blocked.clear()
            elif isinstance(action, TakeSnapshot):
                assert self.is_everywhere(action.checkpoint), "a barrier is missing"
                assert action.checkpoint not in self.aborted
                assert action.checkpoint > max(self.begun, default=0)
                self.begun.append(action.checkpoint)
            else:
                assert action.checkpoint not in self.cancelled
                if action.checkpoint in self.aborted:
                    assert not action.declines, "the coordinator knows already"
                self.cancelled.append(action.checkpoint)
        return actions

    @rule(
        channel=st.integers(0, 3), skips=st.sampled_from((0, 0, 0, 1)), is_barrier=st.sampled_from((True, True, False))
    )
    def deliver(self, channel: int, skips: int, is_barrier: bool) -> None:
        channel %= self.inputs
        if channel in self.blocked | self.ended:
            return
        checkpoint = CheckpointId(self.latest[channel] + 1 + skips)
        self.latest[channel] = checkpoint
        if not is_barrier:
            self.judge_cancel(checkpoint, checkpoint in self.cancelled, self.feed(CancelCame(checkpoint, channel)))
            return
        arrived = self.barriers.setdefault(checkpoint, set())
        arrived.add(channel)
        is_cancelled = checkpoint in self.cancelled
        complete = self.is_everywhere(checkpoint) and not self.is_over(checkpoint)
        actions = self.feed(BarrierCame(checkpoint, channel))
        assert (TakeSnapshot(checkpoint) in actions) == complete
        if not complete:
            self.judge_barrier(checkpoint, is_cancelled, actions)

    def is_everywhere(self, checkpoint: int) -> bool:
        """A channel that has ended delivers every barrier that it did not."""
        return self.barriers.get(checkpoint, set()) | self.ended == set(range(self.inputs))

    def is_over(self, checkpoint: int) -> bool:
        """Begun or cancelled, or older than what was: set-aside channels keep the order of checkpoints."""
        return checkpoint in self.aborted or checkpoint <= max([*self.begun, *self.cancelled], default=0)

    @rule(channel=st.integers(0, 3))
    def end(self, channel: int) -> None:
        channel %= self.inputs
        if channel in self.blocked | self.ended:
            return
        self.ended.add(channel)
        before = len(self.begun)
        due = [one for one in sorted(self.barriers) if self.is_everywhere(one) and not self.is_over(one)]
        self.feed(PartitionEnded(channel))
        assert self.begun[before:] == due

    @rule(above=st.integers(0, 2))
    def announce(self, above: int) -> None:
        if len(self.ended) < self.inputs:
            return
        checkpoint = CheckpointId(max([*self.latest, *self.begun]) + 1 + above)
        self.latest = [checkpoint] * self.inputs
        over = checkpoint in self.cancelled or checkpoint in self.aborted
        assert (TakeSnapshot(checkpoint) in self.feed(TriggerCame(checkpoint))) == (not over)

    @rule(above=st.integers(-1, 2))
    def abort(self, above: int) -> None:
        checkpoint = CheckpointId(max(1, max(self.latest) + above))
        if checkpoint not in self.begun:
            self.aborted.add(checkpoint)
        self.judge_abort(checkpoint, checkpoint in self.cancelled, self.feed(AbortCame(checkpoint)))

    def judge_barrier(self, checkpoint: CheckpointId, is_cancelled: bool, actions: list[Action]) -> None:
        """What a barrier that does not complete its checkpoint may set off."""

    def judge_cancel(self, checkpoint: CheckpointId, is_cancelled: bool, actions: list[Action]) -> None:
        """What a cancel barrier may set off."""
        assert TakeSnapshot(checkpoint) not in actions

    def judge_abort(self, checkpoint: CheckpointId, is_cancelled: bool, actions: list[Action]) -> None:
        """What an abort may set off."""
        assert TakeSnapshot(checkpoint) not in actions

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def the_blocked_channels_are_those_that_arrived(self) -> None:
        arrived = set(self.state.arrived) if isinstance(self.state, Aligning) else set()
        assert self.blocked == arrived
        if isinstance(self.state, Aligning):
            assert all(self.latest[channel] == self.state.checkpoint for channel in arrived)

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def nothing_stays_blocked_once_every_channel_is_past(self) -> None:
        waited_for = set(range(self.inputs)) - self.ended - self.blocked
        assert not self.blocked or waited_for
        assert not self.blocked or min(self.latest[channel] for channel in waited_for) < max(self.latest)

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def a_checkpoint_is_begun_or_cancelled_never_both(self) -> None:
        assert not set(self.begun) & set(self.cancelled)


class CountingModel(AlignmentModel):
    """At-least-once: no channel is ever set aside, and a checkpoint's fate touches no other one.

    Whoever hears first that a checkpoint is aborted says so once to those
    downstream: at its first barrier or cancel barrier when it was aborted before,
    and at the abort when some of its barriers have come in.
    """

    blocking = False

    def is_over(self, checkpoint: int) -> bool:
        past = {*self.aborted, *self.cancelled}
        return checkpoint in past or checkpoint <= max(self.begun, default=0)

    def judge_barrier(self, checkpoint: CheckpointId, is_cancelled: bool, actions: list[Action]) -> None:
        is_reported = checkpoint in self.aborted and not is_cancelled
        assert actions == ([SendCancelBarrier(checkpoint, declines=False)] if is_reported else [])

    def judge_cancel(self, checkpoint: CheckpointId, is_cancelled: bool, actions: list[Action]) -> None:
        declines = checkpoint not in self.aborted
        assert actions == ([] if is_cancelled else [SendCancelBarrier(checkpoint, declines)])

    def judge_abort(self, checkpoint: CheckpointId, is_cancelled: bool, actions: list[Action]) -> None:
        counted = checkpoint in self.barriers and checkpoint > max(self.begun, default=0)
        assert actions == ([SendCancelBarrier(checkpoint, declines=False)] if counted and not is_cancelled else [])

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def no_channel_is_blocked(self) -> None:
        assert not self.blocked


TestAlignmentModel = AlignmentModel.TestCase
TestCountingModel = CountingModel.TestCase
TestAlignmentModel.settings = TestCountingModel.settings = settings(max_examples=60, stateful_step_count=24)
