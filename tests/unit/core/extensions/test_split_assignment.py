"""All enumerators of a job as one: who hears what, and when a checkpoint may be triggered (OPS-3)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.sources.enumerator import SplitAssignment
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.vocabulary.effects import Effect, SendToTask, SetTimer
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ask, Assign, Assigned
from cutproof.reference_impl.core.vocabulary.state import EnumeratorState
from cutproof.reference_impl.core.vocabulary.timeouts import RetryAssignments, SplitAppears
from unit.core.coordinator_rig import GRAPH, complete_snapshot

EAST, WEST, SINK = TaskId("east-0"), TaskId("west-0"), TaskId("sink-0")
SEVEN, ONE, TWO = AttemptId(7), CheckpointId(1), CheckpointId(2)
REMINDER = SetTimer(RetryAssignments(), 30)


def two_sources(*appears_us: int) -> JobGraph:
    """`east` has the splits 0 and 1, `west` the splits 2 and 3."""
    east = OperatorSpec(
        name="east", parallelism=1, splits=(0, 1), role="source", enumerated=True, appears_us=appears_us
    )
    west = OperatorSpec(name="west", parallelism=1, splits=(2, 3), role="source", enumerated=True)
    edges = tuple(EdgeSpec(sender=name, partitioning="hash") for name in ("east", "west"))
    return JobGraph((east, west, OperatorSpec(name="sink", parallelism=1, inputs=edges, role="sink")), 16)


def splits(graph: JobGraph | None = None, **settings: Any) -> SplitAssignment:
    return SplitAssignment(1, graph or two_sources(), Config(retry_us=30, **settings), Parts())


def ask(task: TaskId, number: int = 1) -> Ask:
    return Ask(job=1, attempt=SEVEN, task=task, number=number)


def taken(task: TaskId, serial: int) -> Assigned:
    return Assigned(job=1, attempt=SEVEN, task=task, serial=serial)


def given(effects: list[Effect]) -> dict[TaskId, dict[int, int]]:
    """By task, the splits with which it hears that they are its own."""
    return {
        one.task: one.message.splits
        for one in effects
        if isinstance(one, SendToTask) and isinstance(one.message, Assign)
    }


def test_a_job_without_enumerated_sources_has_none() -> None:
    assert not splits(GRAPH)
    assert splits()


def test_a_guarantee_without_checkpoints_keeps_no_state_of_them() -> None:
    with pytest.raises(Refused, match="east, west has an enumerator"):
        splits(guarantee="at-most-once", sink="plain")


def test_each_reader_hears_of_its_own_sources_splits() -> None:
    assigned = splits()
    for task in (EAST, WEST, SINK):
        assigned.on_message(ask(task))
    effects = assigned.distribute(SEVEN, ())
    assert given(effects) == {EAST: {0: 0}, WEST: {2: 0}}
    assert effects[-1] == REMINDER


def test_one_reminder_serves_all_until_it_has_passed() -> None:
    assigned = splits()
    assigned.on_message(ask(EAST))
    assert REMINDER in assigned.distribute(SEVEN, ())
    assigned.on_message(ask(WEST))
    assert REMINDER not in assigned.distribute(SEVEN, ())
    assert given(assigned.remind(SEVEN)) == {EAST: {0: 0}, WEST: {2: 0}}
    assert assigned.distribute(SEVEN, ()) == [REMINDER]


def test_what_is_confirmed_is_not_sent_again() -> None:
    assigned = splits()
    for task in (EAST, WEST):
        assigned.on_message(ask(task))
    assigned.distribute(SEVEN, ())
    assigned.on_message(taken(EAST, 1))
    assert given(assigned.remind(SEVEN)).keys() == {WEST}
    assigned.end(WEST)
    assigned.end(SINK)
    assert assigned.remind(SEVEN) == []
    assert assigned.distribute(SEVEN, ()) == []


def test_a_checkpoint_is_due_once_every_source_has_settled_and_one_after_the_other() -> None:
    assigned = splits()
    assert assigned.next_due() is None
    assigned.on_message(ask(EAST))
    assigned.on_message(ask(WEST))
    assigned.put_off(ONE)
    assigned.put_off(TWO)
    assert assigned.next_due() is None, "readers wait"
    assigned.distribute(SEVEN, ())
    assigned.on_message(taken(EAST, 1))
    assert assigned.next_due() is None, "one has not confirmed"
    assigned.on_message(taken(WEST, 1))
    assert [assigned.next_due() for _ in range(3)] == [ONE, TWO, None]


def test_a_request_that_comes_again_is_answered_again_and_brings_no_other_split() -> None:
    assigned = splits()
    assigned.on_message(ask(EAST))
    first = assigned.distribute(SEVEN, ())
    assigned.on_message(ask(EAST))
    (again,) = assigned.distribute(SEVEN, ())
    assert again == first[0]
    assert again.message == Assign(job=1, attempt=SEVEN, serial=1, splits={0: 0}, answers=1, more=True)


def test_a_reader_that_takes_part_in_a_checkpoint_gets_no_other_split_meanwhile() -> None:
    assigned = splits()
    assigned.on_message(ask(EAST))
    assert given(assigned.distribute(SEVEN, (EAST,))) == {EAST: {}}, "it hears that it has to wait"
    assert given(assigned.distribute(SEVEN, ())) == {EAST: {0: 0}}


def test_a_split_that_appears_later_is_watched_for_once() -> None:
    assigned = splits(two_sources(0, 50))
    assert assigned.distribute(SEVEN, ()) == [SetTimer(SplitAppears(1), 50)]
    assert assigned.distribute(SEVEN, ()) == []
    assert assigned.states()["east"].unassigned == {0: 0}
    assigned.discover(1)
    assert assigned.states()["east"].unassigned == {0: 0, 1: 0}


def test_an_attempt_begins_from_the_snapshot_and_forgets_what_waited() -> None:
    assigned = splits(two_sources(0, 50))
    assigned.on_message(ask(EAST))
    assigned.distribute(SEVEN, ())
    assigned.put_off(ONE)
    before = {"east": EnumeratorState(unassigned={1: 4}, assigned={0: EAST}), "west": EnumeratorState()}
    assigned.begin(complete_snapshot(1, enumerators=before))
    assert assigned.states() == {**before, "west": EnumeratorState(unassigned={2: 0, 3: 0})}
    assert assigned.next_due() is None
    assert assigned.distribute(SEVEN, ()) == [], "it knows of every split, and has given none"
    assigned.begin(None)
    assert assigned.distribute(SEVEN, ()) == [SetTimer(SplitAppears(1), 50)]


def test_splits_that_a_reader_hands_back_are_free_again_from_where_it_stood() -> None:
    assigned = splits()
    assigned.begin(complete_snapshot(1, enumerators={"east": EnumeratorState(assigned={0: EAST, 1: EAST})}))
    assigned.take_back(EAST, {0: 12})
    assigned.take_back(SINK, {9: 1})
    assert assigned.states()["east"] == EnumeratorState(unassigned={0: 12}, assigned={1: EAST})
