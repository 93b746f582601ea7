"""order: what it sees, and that it accuses no correct run."""

from __future__ import annotations

import pytest

from cutproof.properties.invariants.order import check
from cutproof.properties.model.history import History, TaskRun
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.model.workload import SINK
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered
from unit.properties.toy import Toy

judged = Asked(check).judged


def run_of(history: History, operator: str, at_least: int) -> TaskRun:
    """The last run of an operator that took several records of its first channel."""
    for run in reversed(history.runs):
        if run.operator == operator and sum(channel == 0 for channel, _ in run.applies) >= at_least:
            return run
    raise AssertionError("no such run")


def finished() -> Toy:
    toy = recovered(counting(per_split=12, splits=1, parallelism=1))
    toy.finish()
    return toy


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs():
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


def test_a_restore_between_two_records_is_exercise() -> None:
    verdict = judged(finished())
    assert verdict == Holds(exercised=2)


def test_without_restore_or_alignment_nothing_is_known() -> None:
    toy = Toy(counting(splits=1, parallelism=1))
    toy.start()
    toy.finish()
    assert judged(toy) == Unknown(
        reason="not exercised", detail="no restore or alignment lay between two records of a channel"
    )


def test_an_alignment_that_blocked_a_channel_is_exercise() -> None:
    toy = Toy(counting(splits=2, parallelism=1))
    toy.start()
    for _ in range(2):
        toy.read("numbers-0")
        toy.read("numbers-1")
        toy.settle()
        toy.checkpoint_now()
    toy.finish()
    verdict = judged(toy)
    assert isinstance(verdict, Holds)
    assert verdict.exercised == 2


def test_at_least_once_promises_no_order() -> None:
    toy = Toy(counting(), guarantee="at-least-once")
    toy.start()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"


def test_without_the_networks_log_nothing_is_observable() -> None:
    toy = finished()
    history = toy.history()
    history.channels = []
    verdict = check(Case(toy.workload, toy.topology, history))
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not observable"


@pytest.mark.parametrize("operator", ["count", SINK])
def test_swapped_records_are_out_of_order(operator: str) -> None:
    toy = finished()
    run = run_of(toy.history(), operator, 3)
    run.applies[0], run.applies[1] = run.applies[1], run.applies[0]
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "records out of order"
    assert verdict.tasks[1] == run.task
    assert "split 0" in verdict.records[0]


def test_a_record_left_out_is_a_gap() -> None:
    toy = finished()
    run = run_of(toy.history(), "count", 4)
    del run.applies[1]
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "gap in a channel"


def test_a_record_left_out_across_a_restore_is_a_gap() -> None:
    """The sender's cut lies behind the receiver's: the record between them is never sent again."""
    toy = finished()
    history = toy.history()
    mark = next(run for run in history.runs if run.task == "numbers-0" and run.marks).marks[0]
    mark.sent[0] += 1
    mark.reads += 1
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference in ("gap in a channel", "records out of order")


def test_a_record_taken_twice() -> None:
    toy = finished()
    run = run_of(toy.history(), "count", 4)
    run.applies.insert(2, run.applies[1])
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference in ("record taken twice", "records out of order")


def test_a_record_never_sent() -> None:
    toy = finished()
    run = run_of(toy.history(), "count", 4)
    run.applies[2] = (0, 1 << 60)
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "record never sent"


def test_a_source_that_reads_backwards_breaks_the_order_of_offsets() -> None:
    """Send and apply agree with each other; the offsets tell."""
    toy = finished()
    history = toy.history()
    for channel in history.channels:
        if channel.name.startswith("numbers-0>") and len(channel.sent) > 3:
            channel.sent.reverse()
    for run in history.runs:
        if run.operator == "count" and len(run.applies) > 3:
            run.applies.reverse()
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "offsets do not increase"


def test_a_record_that_was_sent_twice_breaks_the_order_of_offsets() -> None:
    toy = finished()
    history = toy.history()
    run = run_of(history, "count", 4)
    log = next(one for one in history.channels if one.name == run.inputs[0] and one.attempt == run.attempt)
    log.sent.insert(1, log.sent[0])
    run.applies.insert(1, run.applies[0])
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "offsets do not increase"


def test_the_witness_shows_the_neighbours() -> None:
    toy = Toy(counting(per_split=8, splits=1, parallelism=1))
    toy.start()
    toy.finish()
    run = run_of(toy.history(), "count", 8)
    run.applies[3], run.applies[4] = run.applies[4], run.applies[3]
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    sent, took = verdict.events[:2]
    offsets = [int(words.split("record ")[1].split(" ")[0]) for words in sent.split("; ")]
    assert offsets == [1, 2, 3, 4, 5]
    offsets = [int(words.split("record ")[1].split(" ")[0]) for words in took.split("; ")]
    assert offsets == [1, 2, 4, 3, 5]


def test_a_record_beyond_all_that_was_sent() -> None:
    toy = Toy(counting(per_split=3, splits=1, parallelism=1))
    toy.start()
    toy.finish()
    run = run_of(toy.history(), "count", 3)
    run.applies.append(run.applies[0])
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "record taken twice"
    assert verdict.message.endswith("but nothing more was sent")
    assert len(verdict.records) == 1


@pytest.mark.parametrize("early", [True, False])
def test_an_alignment_at_the_edge_of_a_channels_records_shows_nothing(early: bool) -> None:
    toy = Toy(counting(splits=2, parallelism=1, bounded=False))
    toy.start()
    if early:
        toy.checkpoint_now()
    toy.read("numbers-0")
    toy.read("numbers-1")
    toy.settle()
    if not early:
        toy.checkpoint_now()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not exercised"
