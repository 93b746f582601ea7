"""The comparison of expected rows with the rows found; a difference becomes a witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.history import JobEnded, TaskFailed, Transaction
from ..model.verdict import Unknown, Violated
from ..model.words import LIMIT, journal_until, plural, row_in_words
from ..model.workload import Row
from .case import Case


def difference_of(lost: Counter[Row], extra: Counter[Row], expected: Counter[Row]) -> str:
    """The kind of a difference in two words."""
    if any(row in expected for row in extra):
        return "repeated row"
    if lost and extra:
        return "wrong row"
    return "lost row" if lost else "unexpected row"


def violated_rows(
    case: Case, *, lost: Counter[Row], extra: Counter[Row], expected: Counter[Row], where: str, checkpoint: int | None
) -> Violated:
    """The verdict on rows that are missing or too many; `where` says where they were compared."""
    phrases = [f"{count} more of ({row_in_words(row)}) than expected" for row, count in _first(extra)]
    phrases += [f"{count} too few of ({row_in_words(row)})" for row, count in _first(lost)]
    writers = [one for one in case.history.transactions if any(row in extra or row in lost for row in one.rows)]
    return Violated(
        difference=difference_of(lost, extra, expected),
        message=f"{where}: " + "; ".join(phrases[:LIMIT]),
        records=tuple(row_in_words(row) for row, _ in [*_first(extra), *_first(lost)][:LIMIT]),
        checkpoint=checkpoint,
        tasks=tuple(sorted({one.task for one in writers})),
        events=(*map(transaction_in_words, writers[:LIMIT]), *journal_until(case.history, None)),
    )


def transaction_in_words(transaction: Transaction) -> str:
    """What became of a transaction, as one phrase."""
    phrases = f"{transaction.task} of attempt {transaction.attempt} wrote {plural(len(transaction.rows), 'row')}"
    phrases += f" into transaction {transaction.name}"
    if transaction.checkpoint is not None:
        phrases += f", sealed for checkpoint {transaction.checkpoint}"
    return f"{phrases}: {transaction.status}"


def loss_by_expiry(case: Case, lost: Iterable[Row]) -> Unknown | None:
    """Unknown when the store aborted the sealed transactions of all lost rows, and the job ended with this reason.

    No engine can survive that.  A failed task may also have given the reason, if the job was then cancelled or failed
    for another one.
    """
    ended = case.ended
    if not isinstance(ended, JobEnded) or ended.status not in ("failed", "cancelled"):
        return None
    reasons = [ended.reason, *(entry.reason for entry in case.history.journal if isinstance(entry, TaskFailed))]
    why = next((reason for reason in reasons if "transaction" in reason.lower()), None)
    given_up = {row for one in case.history.transactions if one.prepared and one.aborted for row in one.rows}
    if why is not None and all(row in given_up for row in lost):
        return Unknown(reason="assumption broken", detail=f"the job ended and gave its reason: {why}")
    return None


def _first(rows: Counter[Row]) -> list[tuple[Row, int]]:
    return sorted(rows.items(), key=lambda item: tuple(map(str, item[0])))[:LIMIT]
