"""What an idempotent sink's table has to hold, by key and by row, while a run goes on and at its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.properties.invariants.at_least_once import check as at_least_once
from cutproof.properties.invariants.exactly_once import check
from cutproof.properties.invariants.no_data_loss import check as no_data_loss
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Verdict, Violated
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.quick_checker.idempotent_table import expected_table
from unit.properties.histories import copying, counting, recovered, run
from unit.properties.mutated import mutated
from unit.properties.shapes import drawn
from unit.properties.toy import Toy


def table(toy: Toy, mutation: Callable[[History], object] | None = None) -> Case:
    history = toy.history()
    return Case(toy.workload, toy.topology, mutated(history, mutation) if mutation else history)


def difference(verdict: Verdict) -> str:
    assert isinstance(verdict, Violated), verdict
    return verdict.difference


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("identity", ["key", "row"])
def test_no_correct_run_of_any_shape_is_accused(identity: str, guarantee: str) -> None:
    held = 0
    for seed in range(80):
        history = run(drawn(seed), seed=seed, steps=60, sink="idempotent", identity=identity, guarantee=guarantee)
        case = Case(*drawn(seed), history)
        verdicts = (check(case), no_data_loss(case), at_least_once(case))
        assert not any(isinstance(verdict, Violated) for verdict in verdicts), (seed, verdicts)
        held += any(isinstance(verdict, Holds) for verdict in verdicts)
    assert held > 40


def by_row() -> Toy:
    toy = recovered(copying(), sink="idempotent", identity="row")
    toy.finish()
    return toy


def test_by_row_the_table_is_the_set_of_the_rows() -> None:
    toy = by_row()
    assert isinstance(check(table(toy)), Holds)
    assert expected_table(table(toy)) == table(toy).committed
    assert len({row[0] for row in toy.history().committed}) < len(toy.history().committed)


def test_by_row_another_row_of_the_key_does_not_stand_in() -> None:
    dropped = table(by_row(), lambda history: history.committed.pop())
    assert difference(check(dropped)) == "lost row"
    assert difference(no_data_loss(dropped)) == "lost row"


def test_by_row_nothing_shows_twice_or_unasked() -> None:
    toy = by_row()
    twice = table(toy, lambda history: history.committed.append(history.committed[0]))
    assert difference(check(twice)) == "repeated row"
    foreign = table(toy, lambda history: history.committed.append((0, 77, 7, 0)))
    assert difference(check(foreign)) == "unexpected row"


def beyond_the_cut() -> Toy:
    """A key-wise table with rows of a dead attempt beyond the savepoint that the job stopped with."""
    toy = Toy(counting(per_split=8, parallelism=1), sink="idempotent")
    toy.start()
    for _ in range(5):
        toy.read("numbers-0")
    toy.settle()
    toy.checkpoint_now()
    while toy.read("numbers-0"):
        toy.settle()
    toy.kill("count-0")
    toy.restart()
    toy.read("numbers-0")
    toy.settle()
    toy.stop()
    return toy


def test_a_table_may_hold_more_than_the_cut() -> None:
    toy = beyond_the_cut()
    assert isinstance(check(table(toy)), Holds)
    assert expected_table(table(toy)) != table(toy).committed


def test_a_table_never_lags_behind_the_cut() -> None:
    toy = beyond_the_cut()
    key, last, *_ = max(expected_table(table(toy)), key=lambda row: row[1] or 0)
    assert last is not None
    assert last > 1

    def holding(count: int) -> Verdict:
        def alter(history: History) -> None:
            history.committed = [(key, count, 0, 0) if row[0] == key else row for row in history.committed]

        return check(table(toy, alter))

    assert isinstance(holding(last), Holds)
    assert isinstance(holding(last + 1), Holds)
    assert difference(holding(last - 1)) == "wrong row"
    assert difference(holding(99)) == "wrong row"


def test_an_outdated_row_is_reported_with_the_one_that_is_expected() -> None:
    toy = recovered(counting(per_split=8), sink="idempotent")
    toy.finish()
    key, last = next((row[0], row[1]) for row in toy.history().committed if (row[1] or 0) > 1)

    def outdate(history: History) -> None:
        at = next(at for at, row in enumerate(history.committed) if row[0] == key)
        history.committed[at] = (key, (last or 0) - 1, 0, 0)

    verdict = check(table(toy, outdate))
    assert isinstance(verdict, Violated)
    assert set(verdict.records) == {f"key {key}, value {value}, tag 0" for value in (last, (last or 0) - 1)}
