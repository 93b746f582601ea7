"""What single decisions answer, written out."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.checkpointing import Cleanup, RestoreChoice, WhenListed
from cutproof.reference_impl.core.decisions.commits import SinkRecovery
from cutproof.reference_impl.core.decisions.enumerating import Enumerating
from cutproof.reference_impl.core.decisions.event_time import Firing
from cutproof.reference_impl.core.decisions.finishing import Finishing
from cutproof.reference_impl.core.decisions.in_flight import Capture
from cutproof.reference_impl.core.decisions.persisting import Persisting
from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Complete, Piece
from cutproof.reference_impl.core.vocabulary.state import Ref, Sealed, TaskState, without_keyed_state

SINK = TaskId("sink-0")
ROW = (1, 10, 0, 0, 1, 0)


@pytest.mark.parametrize(
    ("unreadable", "tries_left", "then"),
    [
        ((), 4, WhenListed.choose),
        ((), 0, WhenListed.choose),
        ((3,), 1, WhenListed.list_again),
        ((3,), 0, WhenListed.give_up),
    ],
)
def test_no_snapshot_is_chosen_while_a_record_cannot_be_read(
    unreadable: tuple[CheckpointId, ...], tries_left: int, then: WhenListed
) -> None:
    assert RestoreChoice().when_listed(unreadable, tries_left) is then


def test_an_aborted_checkpoint_leaves_nothing_behind_that_a_complete_one_needs() -> None:
    acknowledged = {TaskId("a-0"): Handle("one"), TaskId("b-0"): Handle("two")}
    assert Cleanup().left_behind(acknowledged, (Handle("two"), Handle("three"))) == ("one",)


def test_a_timer_that_the_watermark_has_reached_is_not_left() -> None:
    assert Firing().left([(5, 1, 0), (7, 1, 0), (6, 2, 0)], 6) == [(7, 1, 0)]


@pytest.mark.parametrize("ended", [False, True])
def test_a_snapshot_waits_for_inputs_and_for_outputs(*, ended: bool) -> None:
    waits = [Capture().waits(*one, ended=ended) for one in (((), ()), ((1,), ()), ((), (0,)), ((1,), (0,)))]
    assert waits == [False, True, True, True]


@pytest.mark.parametrize(("logs_from", "needed"), [(None, None), (1, 2), (3, 4), (4, 4), (9, None)])
def test_logs_are_needed_from_the_oldest_snapshot_that_may_be_restored(
    logs_from: CheckpointId | None, needed: CheckpointId | None
) -> None:
    complete = Complete(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(9), logs_from=logs_from)
    assert Persisting().needed_from((CheckpointId(6), CheckpointId(2), CheckpointId(4)), complete) == needed


def test_all_references_are_read_back_in_their_order() -> None:
    first, second, third = Ref("log/0", 3, 5), Ref("log/0", 7, 8), Ref("log/1", 0, 2)
    states = [TaskState(spilled={0: [first, second]}), TaskState(), TaskState(spilled={1: [third]})]
    assert Persisting().read_back(states) == (first, second, third)
    assert Persisting().read_back([]) == ()


def test_data_is_in_flight_to_an_operator_whether_it_has_state_or_not() -> None:
    nothing, stateful = (Piece(), TaskState()), (Piece(), TaskState(entries=[(0, 1, 5)]))
    queued, unsent = (Piece(), TaskState(queued={0: [ROW]})), (Piece(), TaskState(unsent={0: [ROW]}))
    is_in_flight = Redistribution().is_in_flight
    assert is_in_flight([nothing, queued], [nothing])
    assert is_in_flight([nothing], [nothing, unsent])
    assert not is_in_flight([nothing, stateful], [nothing])


def test_a_sink_finishes_once_all_is_answered_and_nothing_is_open() -> None:
    may_finish = Finishing().may_finish
    answers = [may_finish(unanswered, is_open=is_open) for unanswered in (0, 1) for is_open in (False, True)]
    assert answers == [True, False, False, False]


def test_what_was_sealed_up_to_the_restored_checkpoint_is_committed() -> None:
    sealed = [Sealed(f"t{checkpoint}", CheckpointId(checkpoint), SINK) for checkpoint in (2, 3, 4)]
    assert SinkRecovery().to_commit(sealed, CheckpointId(3)) == sealed[:2]
    assert SinkRecovery().to_commit(sealed, None) == []


def test_splits_that_are_handed_back_are_assigned_again_from_where_they_were_read() -> None:
    assert Enumerating().taken_back({0: 0, 3: 4}, {1: 7}) == {0: 0, 3: 4, 1: 7}


def test_a_state_that_is_replaced_is_another_snapshot() -> None:
    """The view of the working state by key stays."""
    snapshot = without_keyed_state(TaskState(turn=1))
    assert snapshot.holding(snapshot.unkeyed) is snapshot
    other = snapshot.holding(msgspec.structs.replace(snapshot.unkeyed, turn=2))
    assert (other.unkeyed.turn, snapshot.unkeyed.turn, other.view) == (2, 1, snapshot.view)
