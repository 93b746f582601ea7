"""What counts as a hazard: restores amid records, and disturbed commits of rows."""

from __future__ import annotations

import pytest

from cutproof.properties.invariants.parts.hazards import Restore, disturbed_commits, restores
from cutproof.properties.model.history import FaultFired
from cutproof.properties.quick_checker.case import Case
from unit.properties.histories import counting, recovered
from unit.properties.toy import Toy


def case_of(toy: Toy) -> Case:
    return Case(toy.workload, toy.topology, toy.history())


def test_a_restore_reports_what_was_in_doubt() -> None:
    toy = recovered(counting(per_split=8))
    (found,) = restores(case_of(toy))
    rows = sum(len(one.rows) for one in toy.seen.transactions if one.attempt == 1 and one.status == "aborted")
    assert rows == 4
    assert (found.attempt, found.in_doubt, found.uncommitted, found.before, found.after) == (2, 4, rows, 8, 2)
    assert found.amid_records


def test_an_attempt_without_a_checkpoint_is_in_doubt_altogether() -> None:
    toy = Toy(counting(per_split=8))
    toy.start()
    toy.read("numbers-0")
    toy.kill("numbers-1")
    toy.restart()
    (found,) = restores(case_of(toy))
    assert (found.in_doubt, found.before, found.after) == (1, 1, 0)


def test_committed_and_aborted_rows_are_decided() -> None:
    toy = Toy(counting(per_split=8))
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    toy.checkpoint_now()
    for _ in range(2):
        toy.kill("numbers-1")
        toy.restart()
    assert [found.uncommitted for found in restores(case_of(toy))] == [0, 0]


@pytest.mark.parametrize(
    ("before", "after", "in_doubt", "uncommitted", "amid"),
    [(0, 5, 0, 0, False), (3, 0, 0, 0, False), (3, 1, 0, 0, True), (3, 0, 1, 0, True), (3, 0, 0, 1, True)],
)
def test_records_on_both_sides_or_in_doubt(
    before: int, after: int, in_doubt: int, uncommitted: int, amid: bool
) -> None:
    found = Restore(attempt=2, order=1, in_doubt=in_doubt, uncommitted=uncommitted, before=before, after=after)
    assert found.amid_records is amid


@pytest.mark.parametrize(
    ("kind", "when", "disturbs"),
    [
        ("fail-commit", "between", True),
        ("lose-message", "between", True),
        ("delay-channel", "between", False),
        ("fail-commit", "before", False),
        ("fail-commit", "after", False),
    ],
)
def test_a_commit_is_disturbed_between_seal_and_commit(kind: str, when: str, disturbs: bool) -> None:
    toy = Toy(counting(per_split=8))
    toy.start()
    toy.read("numbers-0")

    def hit(now: str) -> None:
        if now == when:
            toy.note(FaultFired, fault=0, kind=kind, phase="committing")

    hit("before")
    number = toy.trigger()
    toy.settle()
    hit("between")
    toy.complete(number)
    hit("after")
    found = disturbed_commits(case_of(toy))
    assert [len(one.rows) for one in found] == ([1] if disturbs else [])
