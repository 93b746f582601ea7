"""at-most-once: hidden rewinds and repeats are seen, loss is not, and no correct run is accused."""

from __future__ import annotations

from cutproof.properties.invariants.at_most_once import check
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered, run
from unit.properties.mutated import mutated, runs_of
from unit.properties.shapes import drawn
from unit.properties.toy import Toy

judged = Asked(check).judged


def finished() -> Toy:
    toy = recovered(counting(per_split=8), sink="plain", guarantee="at-most-once")
    toy.finish()
    return toy


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs(range(4)):
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


def test_no_correct_run_of_any_shape_is_accused() -> None:
    held = 0
    for seed in range(100):
        case = drawn(seed)
        verdict = check(Case(*case, run(case, seed=seed, steps=60, sink="plain", guarantee="at-most-once")))
        assert not isinstance(verdict, Violated), (seed, verdict)
        held += isinstance(verdict, Holds)
    assert held > 50


def test_a_failure_after_a_read_is_exercise() -> None:
    assert judged(finished()) == Holds(exercised=1)


def test_a_lost_row_is_allowed() -> None:
    toy = finished()
    assert isinstance(judged(toy, mutated(toy.history(), lambda history: history.committed.pop())), Holds)


def test_a_repeated_row() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.append(history.committed[0])))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "repeated row"


def test_a_hidden_rewind() -> None:
    toy = recovered(counting(per_split=8), sink="plain", guarantee="at-least-once")
    toy.finish()
    history = toy.history()
    history.guarantee = "at-most-once"
    verdict = judged(toy, history)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "record repeated"
    assert verdict.message.startswith("numbers-0 of attempt 1 and numbers-0 of attempt 2 both read record 2 of split 0")


def test_a_record_applied_again() -> None:
    toy = finished()

    def again(history: History) -> None:
        sink = next(one for one in reversed(runs_of(history, "sink")) if one.applies)
        sink.applies.append(sink.applies[-1])

    verdict = judged(toy, mutated(toy.history(), again))
    assert isinstance(verdict, Violated)
    assert "applied again" in verdict.message

    def elsewhere(history: History) -> None:
        first = next(one for one in runs_of(history, "sink") if one.applies and one.attempt == 1)
        later = next(one for one in runs_of(history, "sink") if one.task == first.task and one.attempt == 2)
        later.applies.append(first.applies[0])

    verdict = judged(toy, mutated(toy.history(), elsewhere))
    assert isinstance(verdict, Violated)
    assert "in attempts 1 and 2" in verdict.message


def test_a_record_from_nowhere() -> None:
    toy = finished()

    def mutation(history: History) -> None:
        runs_of(history, "sink")[0].applies.append((0, 5 << 40))

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert "no task had sent" in verdict.message


def test_without_a_failure_nothing_was_shown() -> None:
    toy = Toy(counting(), sink="plain", guarantee="at-most-once")
    toy.start()
    toy.finish()
    assert judged(toy) == Unknown(reason=Reason.NOT_EXERCISED, detail="no failure after a record was read")


def test_other_modes_promise_something_else() -> None:
    verdict = judged(recovered(counting()))
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"
