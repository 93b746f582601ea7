"""Enumerators: who is given which split, what a checkpoint says of it, how it is given again (OPS-3)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.enumerating import Enumerating
from cutproof.reference_impl.core.extensions.sources.enumerator import Enumerator
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.vocabulary.effects import Effect, Store
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ask, Assign, Assigned, Running, Trigger
from cutproof.reference_impl.core.vocabulary.state import EnumeratorState
from cutproof.reference_impl.core.vocabulary.status_changes import CheckpointTriggered
from cutproof.reference_impl.core.vocabulary.timeouts import RetryAssignments, SplitAppears
from unit.core.coordinator_rig import CoordinatorRig, changes, complete_snapshot, handles, of, sent_to_tasks, timers

READERS = FIRST, SECOND = TaskId("source-0"), TaskId("source-1")
TASKS = (*READERS, TaskId("sink-0"))


def graph(splits: int, *appears_us: int) -> JobGraph:
    return JobGraph(
        (
            OperatorSpec(
                name="source",
                parallelism=2,
                splits=tuple(range(splits)),
                role="source",
                enumerated=True,
                appears_us=appears_us,
            ),
            OperatorSpec(
                name="sink",
                parallelism=1,
                inputs=(EdgeSpec(sender="source", partitioning="hash"),),
                role="sink",
            ),
        ),
        16,
    )


def job(splits: int, *appears_us: int, **settings: Any) -> CoordinatorRig:
    return CoordinatorRig(graph=graph(splits, *appears_us), **settings)


def asks(rig: CoordinatorRig, reader: str, number: int = 1) -> list[Effect]:
    return rig.report(Ask, reader, number=number)


def takes(rig: CoordinatorRig, reader: str, serial: int) -> list[Effect]:
    return rig.report(Assigned, reader, serial=serial)


def given(effects: list[Effect]) -> list[tuple[str, dict[int, int]]]:
    """Who is told of which splits, each with its position."""
    return [(task, message.splits) for task, message in sent_to_tasks(Assign, effects)]


def stored(effects: list[Effect]) -> EnumeratorState:
    (store,) = of(Store, effects)
    return store.snapshot.enumerators["source"]


def snapshot(**more: Any) -> CompletedCheckpoint:
    states = dict(zip(TASKS, handles(1, tasks=TASKS), strict=True))
    return complete_snapshot(1, handles=states, parallelism=graph(1).parallelism, **more)


# -- giving ------------------------------------------------------------------------------------------------------


def test_who_asks_is_given_half_of_its_share_and_nobody_else_the_same() -> None:
    rig = job(6).up()
    assert given(asks(rig, FIRST)) == [(FIRST, {0: 0, 1: 0})]
    assert given(asks(rig, SECOND)) == [(SECOND, {2: 0})]
    assert given(asks(rig, FIRST, 2)) == [(FIRST, {0: 0, 1: 0, 3: 0})], "it is told all that it was ever given"


def test_who_asked_before_the_attempt_ran_is_given_splits_when_it_runs() -> None:
    rig = job(2)
    rig.start()
    rig.saved()
    rig.running(FIRST)
    assert given(asks(rig, FIRST)) == []
    assert given(rig.running(SECOND, "sink-0")) == [(FIRST, {0: 0})]


def test_a_question_that_comes_again_is_answered_again_and_brings_nothing_more() -> None:
    rig = job(6).up()
    first = sent_to_tasks(Assign, asks(rig, FIRST))
    assert sent_to_tasks(Assign, asks(rig, FIRST)) == first


def test_what_was_not_confirmed_is_reported_again() -> None:
    rig = job(1).up()
    effects = asks(rig, FIRST)
    assert RetryAssignments() in timers(effects)
    again = rig.timer(RetryAssignments())
    assert given(again) == [(FIRST, {0: 0})]
    assert RetryAssignments() in timers(again)
    takes(rig, FIRST, 1)
    assert rig.timer(RetryAssignments()) == []


def test_the_last_word_is_that_there_is_no_more() -> None:
    rig = job(1).up()
    asks(rig, FIRST)
    ((task, message),) = sent_to_tasks(Assign, asks(rig, SECOND))
    assert (task, message.splits, message.more) == (SECOND, {}, False)


def test_a_split_is_given_when_it_is_discovered_to_who_waits() -> None:
    rig = job(2, 0, 700)
    rig.start()
    rig.saved()
    assert SplitAppears(1) in timers(rig.running()), "counted from when the attempt runs"
    asks(rig, FIRST)
    ((task, message),) = sent_to_tasks(Assign, asks(rig, SECOND))
    assert (task, message.splits, message.more, message.answers) == (SECOND, {}, True, 1), "it was heard, and waits"
    assert given(rig.timer(SplitAppears(1))) == [(SECOND, {1: 0})]
    assert rig.timer(SplitAppears(1)) == [], "it is discovered once"


def test_whose_input_has_ended_is_notified_of_nothing_again() -> None:
    rig = job(1).up()
    asks(rig, FIRST)
    takes(rig, FIRST, 1)
    asks(rig, FIRST, 2)
    rig.ended(FIRST)
    assert rig.timer(RetryAssignments()) == []


def test_an_older_attempt_asks_in_vain() -> None:
    rig = job(1).up()
    assert rig.report(Ask, FIRST, 7, number=1) == []


# -- checkpoints -------------------------------------------------------------------------------------------------


def test_a_checkpoint_begins_when_all_that_was_given_has_been_taken() -> None:
    rig = job(2).up()
    asks(rig, FIRST)
    assert sent_to_tasks(Trigger, rig.trigger()) == []
    assert [task for task, _ in sent_to_tasks(Trigger, takes(rig, FIRST, 1))] == list(READERS)


def test_nothing_is_given_between_the_cut_of_the_enumerator_and_that_of_the_reader() -> None:
    rig = job(4).up()
    rig.trigger()
    assert given(asks(rig, FIRST)) == [(FIRST, {})], "it is told that it was heard, and no more"
    assert given(rig.ack(1, SECOND)) == []
    assert given(rig.ack(1, FIRST)) == [(FIRST, {0: 0})]
    assert stored(rig.ack(1, "sink-0")) == EnumeratorState(unassigned={0: 0, 1: 0, 2: 0, 3: 0})


def test_a_checkpoint_that_is_aborted_holds_nothing_back() -> None:
    rig = job(4).up()
    rig.trigger()
    asks(rig, FIRST)
    assert given(rig.decline(1, SECOND)) == [(FIRST, {0: 0})]


def test_the_next_checkpoint_waits_for_what_an_older_one_holds_back() -> None:
    rig = job(4, concurrent_checkpoints=2).up()
    rig.trigger()
    asks(rig, FIRST)
    assert changes(rig.trigger()) == [], "or nothing would ever be given while checkpoints overlap"
    rig.ack(1, FIRST)
    assert changes(takes(rig, FIRST, 1)) == [(CheckpointTriggered, 2)]


def test_what_waited_for_an_attempt_that_failed_does_not_begin() -> None:
    rig = job(2).up()
    asks(rig, FIRST)
    rig.trigger()
    rig.lose(FIRST)
    rig.again()
    rig.running()
    assert changes(asks(rig, FIRST)) == []
    assert changes(takes(rig, FIRST, 1)) == []


def test_a_checkpoint_states_who_has_which_split() -> None:
    rig = job(3, 0, 0, 700).up()
    asks(rig, FIRST)
    takes(rig, FIRST, 1)
    rig.trigger()
    assert stored(rig.ack(1)) == EnumeratorState(unassigned={1: 0}, assigned={0: FIRST}), "2 is not known yet"


# -- again -------------------------------------------------------------------------------------------------------


def resumed(before: EnumeratorState) -> CoordinatorRig:
    initial = (snapshot(enumerators={"source": before}),)
    rig = CoordinatorRig(graph=graph(4, 0, 0, 0, 700), coordinator={"initial": initial})
    rig.start()
    rig.saved()
    return rig


def test_what_readers_had_is_given_again_from_where_it_stood() -> None:
    rig = resumed(EnumeratorState(unassigned={2: 5}, assigned={0: FIRST, 1: SECOND}))
    rig.report(Running, FIRST, returned={0: 3})
    rig.report(Running, SECOND, returned={1: 4})
    assert SplitAppears(3) in timers(rig.running("sink-0")), "the snapshot did not know it"
    assert given(asks(rig, SECOND)) == [(SECOND, {0: 3})]
    assert given(asks(rig, FIRST)) == [(FIRST, {1: 4})]
    assert given(asks(rig, SECOND, 2)) == [(SECOND, {0: 3, 2: 5})]


def test_what_was_given_after_the_snapshot_is_given_again() -> None:
    rig = job(1).up()
    asks(rig, FIRST)
    takes(rig, FIRST, 1)
    rig.lose(FIRST)
    rig.again()
    rig.running()
    assert given(asks(rig, SECOND)) == [(SECOND, {0: 0})]


def test_a_mode_that_keeps_no_state_is_refused() -> None:
    with pytest.raises(Refused, match="source has an enumerator, and at-most-once keeps no state of it"):
        job(1, guarantee="at-most-once", sink="plain")


def test_what_nobody_hands_back_is_still_with_who_had_it() -> None:
    """A source that had finished as a whole comes up finished: its splits are never to be read again."""
    spec = OperatorSpec(name="source", parallelism=2, splits=(0, 1), role="source", enumerated=True)
    readers = dict.fromkeys(TaskId(f"source-{number}") for number in range(2))
    before = EnumeratorState(assigned={0: TaskId("source-0"), 1: TaskId("source-1")})
    enumerator = Enumerator(1, spec, readers, before, Enumerating())
    assert enumerator.snapshot() == before
    enumerator.forget([0])
    enumerator.take_back({0: 7})
    assert enumerator.snapshot() == EnumeratorState(unassigned={0: 7}, assigned={1: TaskId("source-1")})
