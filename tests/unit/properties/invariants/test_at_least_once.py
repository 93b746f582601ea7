"""at-least-once: loss and foreign rows are seen, repeats are not, and no correct run is accused."""

from __future__ import annotations

import pytest

from cutproof.properties.invariants.at_least_once import check, replayed_records
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Violated
from cutproof.properties.model.workload import Sum
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered, run
from unit.properties.mutated import mutated, runs_of
from unit.properties.shapes import drawn
from unit.properties.toy import Toy

judged = Asked(check).judged


def finished(guarantee: str = "at-least-once") -> Toy:
    toy = recovered(counting(per_split=8), sink="plain", guarantee=guarantee)
    toy.finish()
    return toy


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs(range(4)):
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


@pytest.mark.parametrize(
    ("sink", "guarantee"),
    [
        ("plain", "exactly-once"),
        ("plain", "at-least-once"),
        ("transactional", "at-least-once"),
        ("idempotent", "at-least-once"),
    ],
)
def test_no_correct_run_of_any_shape_is_accused(sink: str, guarantee: str) -> None:
    held = 0
    for seed in range(100):
        case = drawn(seed)
        verdict = check(Case(*case, run(case, seed=seed, steps=60, sink=sink, guarantee=guarantee)))
        assert not isinstance(verdict, Violated), (seed, verdict)
        held += isinstance(verdict, Holds)
    assert held > 30


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_records_read_again_are_exercise(guarantee: str) -> None:
    toy = finished(guarantee)
    assert judged(toy) == Holds(exercised=4)
    assert replayed_records(Case(toy.workload, toy.topology, toy.history())) == 4


def test_a_lost_row() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.remove(history.committed[-1])))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"


def test_a_row_that_no_attempt_yields() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.append((0, 77, 0, 0))))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "unexpected row"


def test_a_row_shown_more_often_than_it_was_yielded() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.append(history.committed[-1])))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "repeated row"


def test_an_unread_record() -> None:
    toy = finished()
    reader = runs_of(toy.history(), "numbers")[-1]

    def mutation(history: History) -> None:
        last = runs_of(history, "numbers")[-1].reads.pop()
        assert last == reader.reads[-1]

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "record never read"


def test_a_gap_is_not_filled_by_a_later_message() -> None:
    """A channel that is not set aside goes on delivering after its barrier, before the snapshot."""
    toy = Toy(counting(parallelism=1), sink="plain", guarantee="at-least-once")
    toy.start()
    toy.read("numbers-0")
    toy.read("numbers-0")
    toy.trigger()
    toy.read("numbers-0")
    for _ in range(4):
        toy.take("count-0", 0)
    toy.settle()
    toy.complete(1)
    toy.cancel()
    assert not isinstance(judged(toy), Violated)

    def skip_the_second(history: History) -> None:
        (counter,) = runs_of(history, "count")
        del counter.applies[1]
        assert counter.marks[0].applies - 1 == len(counter.applies)
        counter.marks[0].applies -= 1

    verdict = judged(toy, mutated(toy.history(), skip_the_second))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "message never applied"
    assert [record[: len("record 1 of split 0")] for record in verdict.records] == ["record 1 of split 0"]


def test_a_record_in_the_snapshot_and_replayed_shifts_what_follows() -> None:
    """At-least-once does not align: the sum counts a record that its source will read again."""
    case = counting(per_split=4, parallelism=1)
    node = case[0].nodes[0]
    workload = type(case[0])(
        name="summing", inputs=case[0].inputs, nodes=(type(node)(name="count", operator=Sum(), inputs=node.inputs),)
    )
    toy = Toy((workload, case[1]), sink="plain", guarantee="at-least-once")
    toy.start()
    toy.trigger()
    toy.read("numbers-0")
    toy.take("count-0", 0)
    toy.take("count-0", 0)
    toy.settle()
    toy.complete(1)
    toy.kill("count-0")
    toy.restart()
    toy.finish()
    first = workload.inputs[0].splits[0][0]
    twice = (first[0], 2 * (first[1] or 0), 2 * first[2], 0)
    assert twice in toy.history().committed
    assert judged(toy) == Holds(exercised=1)


def test_nothing_replayed_shows_nothing() -> None:
    toy = Toy(counting(), sink="plain", guarantee="at-least-once")
    toy.start()
    toy.finish()
    assert judged(toy) == Unknown(reason=Reason.NOT_EXERCISED, detail="no record was read again")


def test_exactly_once_output_is_for_another_invariant() -> None:
    toy = recovered(counting())
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"
