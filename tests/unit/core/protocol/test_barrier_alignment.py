"""Barrier alignment: what each transition must do, written again here."""

from __future__ import annotations

import itertools

import pytest

from cutproof.reference_impl.core.decisions.alignment import AwaitedBarriers
from cutproof.reference_impl.core.protocol.barrier_alignment import (
    TABLE,
    AbortCame,
    Action,
    Aligning,
    Alignment,
    BarrierCame,
    BlockChannel,
    CancelCame,
    Counting,
    Flowing,
    OvertakingCame,
    PartitionEnded,
    Relation,
    SendCancelBarrier,
    Signal,
    State,
    TakeSnapshot,
    TriggerCame,
    UnblockChannels,
    WaitedEnough,
)
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId

F, A, C = Flowing, Aligning, Counting
NONE, ONE, TWO, THREE = 0, 1, 2, 3

TRANSITIONS: dict[str, tuple[State, Signal, int, State, list[Action]]] = {
    # -- exactly-once, nothing under way -----------------------------------------------------------------------
    "the only input delivers the barrier": (F(0), BarrierCame(1, 0), ONE, F(1), [TakeSnapshot(1)]),
    "… which settles what was aborted below it": (F(0, (1, 3)), BarrierCame(2, 0), ONE, F(2, (3,)), [TakeSnapshot(2)]),
    "the first of two blocks its channel": (F(0), BarrierCame(1, 1), TWO, A(1, (1,)), [BlockChannel(1)]),
    "… and aborts stay remembered": (F(0, (3,)), BarrierCame(1, 1), TWO, A(1, (1,), (3,)), [BlockChannel(1)]),
    "a barrier of an aborted checkpoint": (
        F(0, (1, 2)),
        BarrierCame(1, 0),
        TWO,
        F(1, (2,)),
        [SendCancelBarrier(1, False)],
    ),
    "a barrier of the last checkpoint": (F(2), BarrierCame(2, 0), TWO, F(2), []),
    "a barrier of an older one": (F(2, (3,)), BarrierCame(1, 0), ONE, F(2, (3,)), []),
    "a cancel barrier before any barrier": (
        F(0, (1, 3)),
        CancelCame(2, 0),
        TWO,
        F(2, (3,)),
        [SendCancelBarrier(2, True)],
    ),
    "a cancel barrier after the abort": (
        F(0, (1, 2)),
        CancelCame(1, 0),
        TWO,
        F(1, (2,)),
        [SendCancelBarrier(1, False)],
    ),
    "a cancel barrier of the last one": (F(2), CancelCame(2, 1), TWO, F(2), []),
    "an abort before any barrier leaves a tombstone": (F(0, (3,)), AbortCame(2), TWO, F(0, (2, 3)), []),
    "an abort told twice": (F(0, (2,)), AbortCame(2), TWO, F(0, (2,)), []),
    "an abort of what was begun": (F(2), AbortCame(2), TWO, F(2), []),
    # -- exactly-once, barriers that overtake ------------------------------------------------------------------
    "the first that overtakes begins it": (F(0, (1, 3)), OvertakingCame(2, 1), TWO, F(2, (3,)), [TakeSnapshot(2, ())]),
    "… but not if it was aborted": (F(0, (1, 2)), OvertakingCame(1, 0), TWO, F(1, (2,)), [SendCancelBarrier(1, False)]),
    "another of the last checkpoint": (F(2), OvertakingCame(2, 1), TWO, F(2), []),
    "one that overtakes amid its alignment": (
        A(2, (1,), (1, 3)),
        OvertakingCame(2, 0),
        THREE,
        F(2, (3,)),
        [TakeSnapshot(2, (1,)), UnblockChannels((1,))],
    ),
    "a newer one that overtakes": (
        A(1, (0,)),
        OvertakingCame(2, 1),
        TWO,
        F(2),
        [SendCancelBarrier(1, True), UnblockChannels((0,)), TakeSnapshot(2, ())],
    ),
    "a newer one that overtakes and was aborted": (
        A(1, (0,), (2, 3)),
        OvertakingCame(2, 1),
        TWO,
        F(2, (3,)),
        [SendCancelBarrier(1, True), UnblockChannels((0,)), SendCancelBarrier(2, False)],
    ),
    "an older one that overtakes": (A(2, (0,)), OvertakingCame(1, 1), TWO, A(2, (0,)), []),
    "the timeout ends amid the alignment": (
        A(2, (2, 0), (1, 3)),
        WaitedEnough(2),
        THREE,
        F(2, (3,)),
        [TakeSnapshot(2, (2, 0)), UnblockChannels((2, 0))],
    ),
    "… of an older one": (A(2, (0,)), WaitedEnough(1), TWO, A(2, (0,)), []),
    "… behind it": (F(2), WaitedEnough(2), TWO, F(2), []),
    # -- exactly-once, one being aligned -----------------------------------------------------------------------
    "the last barrier": (A(1, (0,)), BarrierCame(1, 1), TWO, F(1), [TakeSnapshot(1), UnblockChannels((0,))]),
    "… settles older tombstones": (
        A(2, (1,), (1, 3)),
        BarrierCame(2, 0),
        TWO,
        F(2, (3,)),
        [TakeSnapshot(2), UnblockChannels((1,))],
    ),
    "the second of three": (A(1, (2,)), BarrierCame(1, 0), THREE, A(1, (2, 0)), [BlockChannel(0)]),
    "a newer barrier": (
        A(1, (0,)),
        BarrierCame(2, 1),
        TWO,
        A(2, (1,)),
        [SendCancelBarrier(1, True), UnblockChannels((0,)), BlockChannel(1)],
    ),
    "a newer barrier that was aborted": (
        A(1, (0,), (2, 3)),
        BarrierCame(2, 1),
        TWO,
        F(2, (3,)),
        [SendCancelBarrier(1, True), UnblockChannels((0,)), SendCancelBarrier(2, False)],
    ),
    "an older barrier": (A(2, (0,)), BarrierCame(1, 1), TWO, A(2, (0,)), []),
    "a cancel barrier of it": (
        A(1, (0,)),
        CancelCame(1, 1),
        TWO,
        F(1),
        [SendCancelBarrier(1, True), UnblockChannels((0,))],
    ),
    "a newer cancel barrier": (
        A(1, (0,)),
        CancelCame(2, 1),
        TWO,
        F(2),
        [SendCancelBarrier(1, True), UnblockChannels((0,)), SendCancelBarrier(2, True)],
    ),
    "a newer cancel barrier after the abort": (
        A(1, (0,), (2,)),
        CancelCame(2, 1),
        TWO,
        F(2),
        [SendCancelBarrier(1, True), UnblockChannels((0,)), SendCancelBarrier(2, False)],
    ),
    "an older cancel barrier": (A(2, (0,)), CancelCame(1, 1), TWO, A(2, (0,)), []),
    "an abort of it": (
        A(1, (0,), (2,)),
        AbortCame(1),
        TWO,
        F(1, (2,)),
        [SendCancelBarrier(1, False), UnblockChannels((0,))],
    ),
    "an abort of a newer one": (A(1, (0,)), AbortCame(2), TWO, A(1, (0,), (2,)), []),
    "an abort of a newer one told twice": (A(1, (0,), (2,)), AbortCame(2), TWO, A(1, (0,), (2,)), []),
    "an abort of an older one": (A(2, (0,)), AbortCame(1), TWO, A(2, (0,)), []),
    # -- at-least-once: barriers are counted, nothing is set aside ---------------------------------------------
    "counted: the only input": (C(0), BarrierCame(1, 0), ONE, C(1), [TakeSnapshot(1)]),
    "counted: the first of two": (C(0), BarrierCame(1, 0), TWO, C(0, ((1, (0,)),)), []),
    "counted: the last of two": (C(0, ((1, (0,)),)), BarrierCame(1, 1), TWO, C(1), [TakeSnapshot(1)]),
    "counted: two at a time": (C(0, ((1, (0,)),)), BarrierCame(2, 0), TWO, C(0, ((1, (0,)), (2, (0,)))), []),
    "counted: the newer overtakes": (
        C(0, ((1, (0,)), (2, (0,)), (3, (0,)))),
        BarrierCame(2, 1),
        TWO,
        C(2, ((3, (0,)),)),
        [TakeSnapshot(2)],
    ),
    "… and forgets what was cancelled below it": (
        C(0, ((3, (0,)),), (2, 5), (1, 4)),
        BarrierCame(3, 1),
        TWO,
        C(3, (), (5,), (4,)),
        [TakeSnapshot(3)],
    ),
    "counted: the older beside a newer one that was cancelled": (
        C(0, ((1, (0,)),), (), (2,)),
        BarrierCame(1, 1),
        TWO,
        C(1, (), (), (2,)),
        [TakeSnapshot(1)],
    ),
    "counted: of an aborted one": (
        C(0, ((1, (0,)),), (2, 3)),
        BarrierCame(2, 0),
        TWO,
        C(0, ((1, (0,)),), (3,), (2,)),
        [SendCancelBarrier(2, False)],
    ),
    "counted: of one that was cancelled": (C(0, (), (), (1,)), BarrierCame(1, 1), TWO, C(0, (), (), (1,)), []),
    "counted: of an older one": (C(2), BarrierCame(2, 0), TWO, C(2), []),
    "counted: cancelled amid counting": (
        C(0, ((1, (0,)), (2, (0,)))),
        CancelCame(1, 1),
        TWO,
        C(0, ((2, (0,)),), (), (1,)),
        [SendCancelBarrier(1, True)],
    ),
    "counted: cancelled amid an older one": (
        C(0, ((1, (0,)), (2, (0,)))),
        CancelCame(2, 1),
        TWO,
        C(0, ((1, (0,)),), (), (2,)),
        [SendCancelBarrier(2, True)],
    ),
    "counted: cancelled before any barrier": (
        C(0, ((1, (0,)),), (3,)),
        CancelCame(2, 0),
        TWO,
        C(0, ((1, (0,)),), (3,), (2,)),
        [SendCancelBarrier(2, True)],
    ),
    "counted: cancelled after the abort": (
        C(0, ((1, (0,)),), (2,)),
        CancelCame(2, 0),
        TWO,
        C(0, ((1, (0,)),), (), (2,)),
        [SendCancelBarrier(2, False)],
    ),
    "counted: cancelled on every channel": (C(0, (), (), (1,)), CancelCame(1, 1), TWO, C(0, (), (), (1,)), []),
    "counted: cancelled when over": (C(2), CancelCame(1, 0), TWO, C(2), []),
    "counted: aborted amid counting": (
        C(0, ((1, (0,)), (2, (0,))), (3,)),
        AbortCame(2),
        TWO,
        C(0, ((1, (0,)),), (3,), (2,)),
        [SendCancelBarrier(2, False)],
    ),
    "counted: aborted when cancelled": (C(0, (), (), (1,)), AbortCame(1), TWO, C(0, (), (), (1,)), []),
    "counted: aborted before any barrier": (C(0, (), (3,)), AbortCame(2), TWO, C(0, (), (2, 3)), []),
    "counted: aborted twice": (C(0, (), (2,)), AbortCame(2), TWO, C(0, (), (2,)), []),
    "counted: aborted when over": (C(2), AbortCame(2), TWO, C(2), []),
    # -- a checkpoint that the coordinator starts here, since no sender is left --------------------------------
    "told": (F(0, (1, 3)), TriggerCame(2), NONE, F(2, (3,)), [TakeSnapshot(2)]),
    "told of an aborted one": (F(0, (2, 3)), TriggerCame(2), NONE, F(2, (3,)), [SendCancelBarrier(2, False)]),
    "told of an older one": (F(2), TriggerCame(2), NONE, F(2), []),
    "counted: told": (C(0, (), (1, 3)), TriggerCame(2), NONE, C(2, (), (3,)), [TakeSnapshot(2)]),
    "counted: told of an aborted one": (
        C(0, (), (2,)),
        TriggerCame(2),
        NONE,
        C(0, (), (), (2,)),
        [SendCancelBarrier(2, False)],
    ),
    "counted: told of an older one": (C(2), TriggerCame(1), NONE, C(2), []),
    # -- a channel whose sender has finished counts as having delivered every barrier --------------------------
    "an end with nothing under way": (F(2, (3,)), PartitionEnded(0), ONE, F(2, (3,)), []),
    "the end of the one that was waited for": (
        A(2, (0,), (1, 3)),
        PartitionEnded(1),
        ONE,
        F(2, (3,)),
        [TakeSnapshot(2), UnblockChannels((0,))],
    ),
    "the end of one of two that were waited for": (A(1, (2,)), PartitionEnded(1), TWO, A(1, (2,)), []),
    "counted: the end of the one that was waited for": (
        C(0, ((1, (0,)), (2, (0,)))),
        PartitionEnded(1),
        ONE,
        C(2),
        [TakeSnapshot(1), TakeSnapshot(2)],
    ),
    "counted: the end of one that had delivered": (
        C(0, ((1, (0, 1)), (2, (1,)))),
        PartitionEnded(0),
        TWO,
        C(0, ((1, (1,)), (2, (1,)))),
        [],
    ),
    "counted: the end of the last": (C(0, ((1, (0,)),)), PartitionEnded(0), NONE, C(1), [TakeSnapshot(1)]),
}


@pytest.mark.parametrize("title", TRANSITIONS)
def test_transition(title: str) -> None:
    state, signal, inputs, after, actions = TRANSITIONS[title]
    assert Alignment(AwaitedBarriers()).step(state, signal, inputs) == (after, actions)


def test_every_transition_of_the_table_is_written_again_here() -> None:
    alignment = Alignment(AwaitedBarriers())
    seen = {
        (
            type(state),
            type(signal),
            None if isinstance(signal, PartitionEnded) else alignment.relation(state, signal.checkpoint),
        )
        for state, signal, *_ in TRANSITIONS.values()
    }
    assert seen == set(TABLE)


def test_the_table_is_total() -> None:
    """Every state knows every signal of every checkpoint; only what is being aligned can be current, and nothing is
    once every sender has finished, when alone the coordinator tells.  Where channels are not blocked nothing is
    overtaken, and only an alignment has a timeout."""
    relations = ("new", "aborted", "obsolete")
    everywhere = itertools.product((F, A, C), (BarrierCame, CancelCame, AbortCame), relations)
    current = itertools.product((A,), (BarrierCame, CancelCame, AbortCame), ("current",))
    overtaking = [*itertools.product((F, A), (OvertakingCame,), relations), (A, OvertakingCame, "current")]
    alignment_timeout_us = [*itertools.product((F, A), (WaitedEnough,), ("obsolete",)), (A, WaitedEnough, "current")]
    triggered = itertools.product((F, C), (TriggerCame,), relations)
    ends = itertools.product((F, A, C), (PartitionEnded,), (None,))
    assert set(TABLE) == {*everywhere, *current, *overtaking, *alignment_timeout_us, *triggered, *ends}


def test_a_pair_that_is_not_listed_raises() -> None:
    class Confused(Alignment):
        def relation(self, state: State, checkpoint: CheckpointId) -> Relation:
            return Relation.current

    with pytest.raises(ProtocolViolated, match="no transition for Flowing"):
        Confused(AwaitedBarriers()).step(F(0), BarrierCame(1, 0), TWO)


def test_only_exactly_once_blocks() -> None:
    assert Alignment(AwaitedBarriers()).initial(True, CheckpointId(4)) == F(4)
    assert Alignment(AwaitedBarriers()).initial(False, CheckpointId(4)) == C(4)
