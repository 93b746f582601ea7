"""Barrier alignment: what each transition must do, written again here, and a model beside it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cutproof.reference_impl.core.alignment import (
    TABLE,
    AbortCame,
    Action,
    Aligning,
    Alignment,
    BarrierCame,
    Begin,
    CancelCame,
    Counting,
    Flowing,
    GiveUp,
    PartitionEnded,
    SetAside,
    Signal,
    State,
    TakeAgain,
    TriggerCame,
)
from cutproof.reference_impl.core.errors import ProtocolViolated
from cutproof.reference_impl.core.ids import CheckpointId

F, A, C = Flowing, Aligning, Counting
NONE, ONE, TWO, THREE = 0, 1, 2, 3

TRANSITIONS: dict[str, tuple[State, Signal, int, State, list[Action]]] = {
    # -- exactly-once, nothing under way -----------------------------------------------------------------------
    "the only input delivers the barrier": (F(0), BarrierCame(1, 0), ONE, F(1), [Begin(1)]),
    "… which settles what was aborted below it": (F(0, (1, 3)), BarrierCame(2, 0), ONE, F(2, (3,)), [Begin(2)]),
    "the first of two sets its channel aside": (F(0), BarrierCame(1, 1), TWO, A(0, 1, (1,)), [SetAside(1)]),
    "… and aborts stay remembered": (F(0, (3,)), BarrierCame(1, 1), TWO, A(0, 1, (1,), (3,)), [SetAside(1)]),
    "a barrier of an aborted checkpoint": (F(0, (1, 2)), BarrierCame(1, 0), TWO, F(1, (2,)), [GiveUp(1, False)]),
    "a barrier of the last checkpoint": (F(2), BarrierCame(2, 0), TWO, F(2), []),
    "a barrier of an older one": (F(2, (3,)), BarrierCame(1, 0), ONE, F(2, (3,)), []),
    "a cancel barrier before any barrier": (F(0, (1, 3)), CancelCame(2, 0), TWO, F(2, (3,)), [GiveUp(2, True)]),
    "a cancel barrier after the abort": (F(0, (1, 2)), CancelCame(1, 0), TWO, F(1, (2,)), [GiveUp(1, False)]),
    "a cancel barrier of the last one": (F(2), CancelCame(2, 1), TWO, F(2), []),
    "an abort before any barrier leaves a tombstone": (F(0, (3,)), AbortCame(2), TWO, F(0, (2, 3)), []),
    "an abort told twice": (F(0, (2,)), AbortCame(2), TWO, F(0, (2,)), []),
    "an abort of what was begun": (F(2), AbortCame(2), TWO, F(2), []),
    # -- exactly-once, one being aligned -----------------------------------------------------------------------
    "the last barrier": (A(0, 1, (0,)), BarrierCame(1, 1), TWO, F(1), [Begin(1), TakeAgain((0,))]),
    "… settles older tombstones": (
        A(0, 2, (1,), (1, 3)),
        BarrierCame(2, 0),
        TWO,
        F(2, (3,)),
        [Begin(2), TakeAgain((1,))],
    ),
    "the second of three": (A(0, 1, (2,)), BarrierCame(1, 0), THREE, A(0, 1, (2, 0)), [SetAside(0)]),
    "a newer barrier": (
        A(0, 1, (0,)),
        BarrierCame(2, 1),
        TWO,
        A(1, 2, (1,)),
        [GiveUp(1, True), TakeAgain((0,)), SetAside(1)],
    ),
    "a newer barrier that was aborted": (
        A(0, 1, (0,), (2, 3)),
        BarrierCame(2, 1),
        TWO,
        F(2, (3,)),
        [GiveUp(1, True), TakeAgain((0,)), GiveUp(2, False)],
    ),
    "an older barrier": (A(0, 2, (0,)), BarrierCame(1, 1), TWO, A(0, 2, (0,)), []),
    "a cancel barrier of it": (A(0, 1, (0,)), CancelCame(1, 1), TWO, F(1), [GiveUp(1, True), TakeAgain((0,))]),
    "a newer cancel barrier": (
        A(0, 1, (0,)),
        CancelCame(2, 1),
        TWO,
        F(2),
        [GiveUp(1, True), TakeAgain((0,)), GiveUp(2, True)],
    ),
    "a newer cancel barrier after the abort": (
        A(0, 1, (0,), (2,)),
        CancelCame(2, 1),
        TWO,
        F(2),
        [GiveUp(1, True), TakeAgain((0,)), GiveUp(2, False)],
    ),
    "an older cancel barrier": (A(0, 2, (0,)), CancelCame(1, 1), TWO, A(0, 2, (0,)), []),
    "an abort of it": (A(0, 1, (0,), (2,)), AbortCame(1), TWO, F(1, (2,)), [GiveUp(1, False), TakeAgain((0,))]),
    "an abort of a newer one": (A(0, 1, (0,)), AbortCame(2), TWO, A(0, 1, (0,), (2,)), []),
    "an abort of a newer one told twice": (A(0, 1, (0,), (2,)), AbortCame(2), TWO, A(0, 1, (0,), (2,)), []),
    "an abort of an older one": (A(0, 2, (0,)), AbortCame(1), TWO, A(0, 2, (0,)), []),
    # -- at-least-once: barriers are counted, nothing is set aside ---------------------------------------------
    "counted: the only input": (C(0), BarrierCame(1, 0), ONE, C(1), [Begin(1)]),
    "counted: the first of two": (C(0), BarrierCame(1, 0), TWO, C(0, ((1, (0,)),)), []),
    "counted: the last of two": (C(0, ((1, (0,)),)), BarrierCame(1, 1), TWO, C(1), [Begin(1)]),
    "counted: two at a time": (C(0, ((1, (0,)),)), BarrierCame(2, 0), TWO, C(0, ((1, (0,)), (2, (0,)))), []),
    "counted: the newer overtakes": (
        C(0, ((1, (0,)), (2, (0,)), (3, (0,)))),
        BarrierCame(2, 1),
        TWO,
        C(2, ((3, (0,)),)),
        [Begin(2)],
    ),
    "… and forgets what was given up below it": (
        C(0, ((3, (0,)),), (2, 5), (1, 4)),
        BarrierCame(3, 1),
        TWO,
        C(3, (), (5,), (4,)),
        [Begin(3)],
    ),
    "counted: the older beside a newer one that was given up": (
        C(0, ((1, (0,)),), (), (2,)),
        BarrierCame(1, 1),
        TWO,
        C(1, (), (), (2,)),
        [Begin(1)],
    ),
    "counted: of an aborted one": (
        C(0, ((1, (0,)),), (2, 3)),
        BarrierCame(2, 0),
        TWO,
        C(0, ((1, (0,)),), (3,), (2,)),
        [GiveUp(2, False)],
    ),
    "counted: of one that was given up": (C(0, (), (), (1,)), BarrierCame(1, 1), TWO, C(0, (), (), (1,)), []),
    "counted: of an older one": (C(2), BarrierCame(2, 0), TWO, C(2), []),
    "counted: cancelled amid counting": (
        C(0, ((1, (0,)), (2, (0,)))),
        CancelCame(1, 1),
        TWO,
        C(0, ((2, (0,)),), (), (1,)),
        [GiveUp(1, True)],
    ),
    "counted: cancelled amid an older one": (
        C(0, ((1, (0,)), (2, (0,)))),
        CancelCame(2, 1),
        TWO,
        C(0, ((1, (0,)),), (), (2,)),
        [GiveUp(2, True)],
    ),
    "counted: cancelled before any barrier": (
        C(0, ((1, (0,)),), (3,)),
        CancelCame(2, 0),
        TWO,
        C(0, ((1, (0,)),), (3,), (2,)),
        [GiveUp(2, True)],
    ),
    "counted: cancelled after the abort": (
        C(0, ((1, (0,)),), (2,)),
        CancelCame(2, 0),
        TWO,
        C(0, ((1, (0,)),), (), (2,)),
        [GiveUp(2, False)],
    ),
    "counted: cancelled on every channel": (C(0, (), (), (1,)), CancelCame(1, 1), TWO, C(0, (), (), (1,)), []),
    "counted: cancelled when over": (C(2), CancelCame(1, 0), TWO, C(2), []),
    "counted: aborted amid counting": (
        C(0, ((1, (0,)), (2, (0,))), (3,)),
        AbortCame(2),
        TWO,
        C(0, ((1, (0,)),), (3,), (2,)),
        [GiveUp(2, False)],
    ),
    "counted: aborted when given up": (C(0, (), (), (1,)), AbortCame(1), TWO, C(0, (), (), (1,)), []),
    "counted: aborted before any barrier": (C(0, (), (3,)), AbortCame(2), TWO, C(0, (), (2, 3)), []),
    "counted: aborted twice": (C(0, (), (2,)), AbortCame(2), TWO, C(0, (), (2,)), []),
    "counted: aborted when over": (C(2), AbortCame(2), TWO, C(2), []),
    # -- a checkpoint that the coordinator starts here, since no sender is left --------------------------------
    "told": (F(0, (1, 3)), TriggerCame(2), NONE, F(2, (3,)), [Begin(2)]),
    "told of an aborted one": (F(0, (2, 3)), TriggerCame(2), NONE, F(2, (3,)), [GiveUp(2, False)]),
    "told of an older one": (F(2), TriggerCame(2), NONE, F(2), []),
    "counted: told": (C(0, (), (1, 3)), TriggerCame(2), NONE, C(2, (), (3,)), [Begin(2)]),
    "counted: told of an aborted one": (C(0, (), (2,)), TriggerCame(2), NONE, C(0, (), (), (2,)), [GiveUp(2, False)]),
    "counted: told of an older one": (C(2), TriggerCame(1), NONE, C(2), []),
    # -- a channel whose sender has finished counts as having delivered every barrier --------------------------
    "an end with nothing under way": (F(2, (3,)), PartitionEnded(0), ONE, F(2, (3,)), []),
    "the end of the one that was waited for": (
        A(0, 2, (0,), (1, 3)),
        PartitionEnded(1),
        ONE,
        F(2, (3,)),
        [Begin(2), TakeAgain((0,))],
    ),
    "the end of one of two that were waited for": (A(0, 1, (2,)), PartitionEnded(1), TWO, A(0, 1, (2,)), []),
    "counted: the end of the one that was waited for": (
        C(0, ((1, (0,)), (2, (0,)))),
        PartitionEnded(1),
        ONE,
        C(2),
        [Begin(1), Begin(2)],
    ),
    "counted: the end of one that had delivered": (
        C(0, ((1, (0, 1)), (2, (1,)))),
        PartitionEnded(0),
        TWO,
        C(0, ((1, (1,)), (2, (1,)))),
        [],
    ),
    "counted: the end of the last": (C(0, ((1, (0,)),)), PartitionEnded(0), NONE, C(1), [Begin(1)]),
}


@pytest.mark.parametrize("title", TRANSITIONS)
def test_transition(title: str) -> None:
    state, signal, inputs, after, actions = TRANSITIONS[title]
    assert Alignment().step(state, signal, inputs) == (after, actions)


def test_every_transition_of_the_table_is_written_again_here() -> None:
    alignment = Alignment()
    seen = {
        (
            type(state),
            type(signal),
            "" if isinstance(signal, PartitionEnded) else alignment.relation(state, signal.checkpoint),
        )
        for state, signal, *_ in TRANSITIONS.values()
    }
    assert seen == set(TABLE)


def test_the_table_is_total() -> None:
    """Every state knows every signal of every checkpoint; only what is being aligned can be current, and nothing is
    once every sender has finished, when alone the coordinator tells."""
    relations = ("new", "aborted", "obsolete")
    everywhere = itertools.product((F, A, C), (BarrierCame, CancelCame, AbortCame), relations)
    current = itertools.product((A,), (BarrierCame, CancelCame, AbortCame), ("current",))
    told = itertools.product((F, C), (TriggerCame,), relations)
    ends = itertools.product((F, A, C), (PartitionEnded,), ("",))
    assert set(TABLE) == {*everywhere, *current, *told, *ends}


def test_a_pair_that_is_not_listed_raises() -> None:
    class Confused(Alignment):
        def relation(self, state: State, checkpoint: CheckpointId) -> str:
            return "current"

    with pytest.raises(ProtocolViolated, match="no transition for Flowing"):
        Confused().step(F(0), BarrierCame(1, 0), TWO)


def test_only_exactly_once_blocks() -> None:
    assert Alignment().initial(True, CheckpointId(4)) == F(4)
    assert Alignment().initial(False, CheckpointId(4)) == C(4)


class AlignmentModel(RuleBasedStateMachine):
    """Channels that deliver barriers or cancel barriers in order, and a coordinator that aborts.

    The model knows only what was delivered and when.  A checkpoint must begin
    exactly when the barrier of the last channel comes in and nobody gave it up
    before.
    """

    blocking = True

    @initialize(inputs=st.integers(1, 4))
    def start(self, inputs: int) -> None:
        self.alignment = Alignment()
        self.state = self.alignment.initial(self.blocking, CheckpointId(0))
        self.inputs = inputs
        self.latest = [0] * inputs
        self.ended: set[int] = set()
        self.barriers: dict[int, set[int]] = {}
        self.aborted: set[int] = set()
        self.aside: set[int] = set()
        self.begun: list[int] = []
        self.given_up: list[int] = []

    def feed(self, signal: Signal) -> list[Action]:
        self.state, actions = self.alignment.step(self.state, signal, self.inputs - len(self.ended))
        for action in actions:
            if isinstance(action, SetAside):
                assert action.channel not in self.aside
                self.aside.add(action.channel)
            elif isinstance(action, TakeAgain):
                assert set(action.channels) == self.aside
                self.aside.clear()
            elif isinstance(action, Begin):
                assert self.is_everywhere(action.checkpoint), "a barrier is missing"
                assert action.checkpoint not in self.aborted
                assert action.checkpoint > max(self.begun, default=0)
                self.begun.append(action.checkpoint)
            else:
                assert action.checkpoint not in self.given_up
                if action.checkpoint in self.aborted:
                    assert not action.declined, "the coordinator knows already"
                self.given_up.append(action.checkpoint)
        return actions

    @rule(
        channel=st.integers(0, 3), skips=st.sampled_from((0, 0, 0, 1)), is_barrier=st.sampled_from((True, True, False))
    )
    def deliver(self, channel: int, skips: int, is_barrier: bool) -> None:
        channel %= self.inputs
        if channel in self.aside | self.ended:
            return
        checkpoint = CheckpointId(self.latest[channel] + 1 + skips)
        self.latest[channel] = checkpoint
        if not is_barrier:
            self.judge_cancel(checkpoint, checkpoint in self.given_up, self.feed(CancelCame(checkpoint, channel)))
            return
        arrived = self.barriers.setdefault(checkpoint, set())
        arrived.add(channel)
        is_given_up = checkpoint in self.given_up
        complete = self.is_everywhere(checkpoint) and not is_given_up and checkpoint not in self.aborted
        actions = self.feed(BarrierCame(checkpoint, channel))
        assert (Begin(checkpoint) in actions) == complete
        if not complete:
            self.judge_barrier(checkpoint, is_given_up, actions)

    def is_everywhere(self, checkpoint: int) -> bool:
        """A channel that has ended delivers every barrier that it did not."""
        return self.barriers.get(checkpoint, set()) | self.ended == set(range(self.inputs))

    @rule(channel=st.integers(0, 3))
    def end(self, channel: int) -> None:
        channel %= self.inputs
        if channel in self.aside | self.ended:
            return
        self.ended.add(channel)
        before = len(self.begun)
        over = {*self.begun, *self.given_up, *self.aborted}
        last = max(self.begun, default=0)
        due = [one for one in sorted(self.barriers) if one not in over and one > last and self.is_everywhere(one)]
        self.feed(PartitionEnded(channel))
        assert self.begun[before:] == due

    @rule(ahead=st.integers(0, 2))
    def tell(self, ahead: int) -> None:
        if len(self.ended) < self.inputs:
            return
        checkpoint = CheckpointId(max([*self.latest, *self.begun]) + 1 + ahead)
        self.latest = [checkpoint] * self.inputs
        over = checkpoint in self.given_up or checkpoint in self.aborted
        assert (Begin(checkpoint) in self.feed(TriggerCame(checkpoint))) == (not over)

    @rule(ahead=st.integers(-1, 2))
    def abort(self, ahead: int) -> None:
        checkpoint = CheckpointId(max(1, max(self.latest) + ahead))
        if checkpoint not in self.begun:
            self.aborted.add(checkpoint)
        self.judge_abort(checkpoint, checkpoint in self.given_up, self.feed(AbortCame(checkpoint)))

    def judge_barrier(self, checkpoint: CheckpointId, is_given_up: bool, actions: list[Action]) -> None:
        """What a barrier that does not complete its checkpoint may set off."""

    def judge_cancel(self, checkpoint: CheckpointId, is_given_up: bool, actions: list[Action]) -> None:
        """What a cancel barrier may set off."""
        assert Begin(checkpoint) not in actions

    def judge_abort(self, checkpoint: CheckpointId, is_given_up: bool, actions: list[Action]) -> None:
        """What an abort may set off."""
        assert Begin(checkpoint) not in actions

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def the_channels_set_aside_are_those_that_arrived(self) -> None:
        arrived = set(self.state.arrived) if isinstance(self.state, Aligning) else set()
        assert self.aside == arrived
        if isinstance(self.state, Aligning):
            assert all(self.latest[channel] == self.state.checkpoint for channel in arrived)

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def nothing_stays_aside_once_every_channel_is_past(self) -> None:
        waited_for = set(range(self.inputs)) - self.ended - self.aside
        assert not self.aside or waited_for
        assert not self.aside or min(self.latest[channel] for channel in waited_for) < max(self.latest)

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def a_checkpoint_is_begun_or_given_up_never_both(self) -> None:
        assert not set(self.begun) & set(self.given_up)


class CountingModel(AlignmentModel):
    """At-least-once: no channel is ever set aside, and a checkpoint's fate touches no other one.

    Whoever hears first that a checkpoint is given up says so once to those
    downstream: at its first barrier or cancel barrier when it was aborted before,
    and at the abort when some of its barriers have come in.
    """

    blocking = False

    def judge_barrier(self, checkpoint: CheckpointId, is_given_up: bool, actions: list[Action]) -> None:
        told = checkpoint in self.aborted and not is_given_up
        assert actions == ([GiveUp(checkpoint, declined=False)] if told else [])

    def judge_cancel(self, checkpoint: CheckpointId, is_given_up: bool, actions: list[Action]) -> None:
        declined = checkpoint not in self.aborted
        assert actions == ([] if is_given_up else [GiveUp(checkpoint, declined)])

    def judge_abort(self, checkpoint: CheckpointId, is_given_up: bool, actions: list[Action]) -> None:
        counted = checkpoint in self.barriers and checkpoint > max(self.begun, default=0)
        assert actions == ([GiveUp(checkpoint, declined=False)] if counted and not is_given_up else [])

    @precondition(lambda self: hasattr(self, "inputs"))
    @invariant()
    def no_channel_is_set_aside(self) -> None:
        assert not self.aside


TestAlignmentModel = AlignmentModel.TestCase
TestCountingModel = CountingModel.TestCase
TestAlignmentModel.settings = TestCountingModel.settings = settings(max_examples=60, stateful_step_count=24)
