"""How differences between rows are named and put into words."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cutproof.properties.model.history import AttemptStarted, FaultFired, JobEnded, TaskFailed
from cutproof.properties.model.struck import StruckCommit
from cutproof.properties.model.verdict import Unknown
from cutproof.properties.model.workload import Row
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.quick_checker.compare import (
    difference_of,
    loss_by_expiry,
    transaction_in_words,
    violated_rows,
)
from unit.properties.histories import counting, recovered
from unit.properties.mutated import with_rows

EXPIRED = "transaction sink-0/1 expired"

A: Row = (1, 2, 3, 0)
B: Row = (4, 5, 6, 0)


@pytest.mark.parametrize(
    ("lost", "extra", "expected", "kind"),
    [
        ((), (A,), (A,), "repeated row"),
        ((B,), (A,), (A, B), "repeated row"),
        ((A,), (B,), (A,), "wrong row"),
        ((A,), (), (A,), "lost row"),
        ((), (B,), (A,), "unexpected row"),
    ],
)
def test_the_kind_of_a_difference(
    lost: tuple[Row, ...], extra: tuple[Row, ...], expected: tuple[Row, ...], kind: str
) -> None:
    assert difference_of(Counter(lost), Counter(extra), Counter(expected)) == kind


def test_a_witness_names_rows_checkpoint_and_the_transactions_that_held_them() -> None:
    toy = recovered(counting(per_split=8))
    toy.finish()
    case = Case(toy.workload, toy.topology, toy.history())
    one = with_rows(case.history)
    row = one.rows[0]
    holders = [each for each in case.history.transactions if row in each.rows]
    verdict = violated_rows(
        case, lost=Counter({row: 2}), extra=Counter([B]), expected=Counter([row, row]), where="the output", checkpoint=3
    )
    assert verdict.message == (
        "the output: 1 more of (key 4, value 5, tag 6) than expected;"
        f" 2 too few of (key {row[0]}, value {row[1]}, tag 0)"
    )
    assert verdict.records == ("key 4, value 5, tag 6", f"key {row[0]}, value {row[1]}, tag 0")
    assert verdict.checkpoint == 3
    assert verdict.tasks == tuple(sorted({each.task for each in holders}))
    assert verdict.events[: len(holders)] == tuple(map(transaction_in_words, holders))
    assert any("job ended" in event for event in verdict.events[len(holders) :])


def test_a_transaction_in_words() -> None:
    toy = recovered(counting(per_split=8))
    number = toy.checkpoint_now()
    one = next(each for each in toy.seen.transactions if each.rows and each.checkpoint == number)
    assert transaction_in_words(one) == (
        f"{one.task} of attempt 2 wrote {len(one.rows)} rows into transaction {one.name},"
        " sealed for checkpoint 2: committed"
    )
    one.checkpoint = None
    assert transaction_in_words(one).endswith(f"into transaction {one.name}, sealed for no checkpoint: committed")
    one.prepared = None
    assert transaction_in_words(one).endswith(f"into transaction {one.name}: committed")


@pytest.mark.parametrize(
    ("status", "reason", "of_a_task", "excused"),
    [
        ("failed", EXPIRED, "", True),
        ("failed", "too many restarts", "", False),
        ("failed", "too many restarts", EXPIRED, True),
        ("cancelled", "by its user", "", False),
        ("cancelled", "by its user", EXPIRED, True),
        ("finished", "", EXPIRED, False),
    ],
)
def test_only_a_loud_failure_excuses_an_expired_transaction(
    status: str, reason: str, of_a_task: str, excused: bool
) -> None:
    toy = recovered(counting(per_split=8))
    toy.checkpoint_now()
    one = with_rows(toy.history())
    one.status, one.aborted = "aborted", toy.tick()
    if of_a_task:
        toy.note(TaskFailed, task="sink-0", attempt=2, reason=of_a_task)
    toy.note(JobEnded, job=1, status=status, reason=reason)
    case = Case(toy.workload, toy.topology, toy.history())
    verdict = loss_by_expiry(case, one.rows)
    assert isinstance(verdict, Unknown) is excused
    assert loss_by_expiry(case, [*one.rows, B]) is None


@pytest.mark.parametrize("names_it", [True, False])
@pytest.mark.parametrize(("other", "went_on"), [("", False), ("", True), ("0", False)])
def test_an_expiry_that_nobody_could_report_excuses_a_job_that_fails_and_never_went_on(
    other: str, went_on: bool, names_it: bool
) -> None:
    """With `other` another transaction expired.  Histories of older runs do not name it but in a sentence."""
    toy = recovered(counting(per_split=8))
    toy.checkpoint_now()
    one = with_rows(toy.history())
    one.status, one.aborted = "aborted", toy.tick()
    struck = StruckCommit(transactions=(f"{one.name}{other}",), how="expired")
    told: dict[str, Any] = (
        {"struck": struck, "detail": "too late"}
        if names_it
        else {"detail": f"the commit of {one.name}{other}: expired"}
    )
    toy.note(FaultFired, fault=0, kind="fail-commit", phase="recovering", **told)
    if went_on:
        toy.note(AttemptStarted, attempt=3, job=1, restores=None, cause="a new coordinator took over")
    toy.note(JobEnded, job=1, status="failed", reason="its snapshots are gone")
    verdict = loss_by_expiry(Case(toy.workload, toy.topology, toy.history()), one.rows)
    assert isinstance(verdict, Unknown) is not (went_on or bool(other))


def test_nothing_excuses_a_loss_while_the_job_lives() -> None:
    toy = recovered(counting(per_split=8))
    assert loss_by_expiry(Case(toy.workload, toy.topology, toy.history()), [A]) is None
