"""The comparison of expected rows with the rows found; a difference becomes a witness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..model.history import (
    AttemptStarted,
    CheckpointTriggered,
    CommandIssued,
    FaultFired,
    JobEnded,
    JournalEntry,
    TaskFailed,
    Transaction,
)
from ..model.struck import expired
from ..model.verdict import Reason, Unknown, Violated
from ..model.words import LIMIT, change_in_words, columns_of, journal_until, plural, row_in_words
from ..model.workload import Row
from .case import Case


def same(one: Counter[Any], other: Counter[Any]) -> bool:
    """Whether two counters are equal that count nothing as 0: `Counter` compares them key by key, in Python."""
    return dict.__eq__(one, other)


def difference_of(lost: Counter[Row], extra: Counter[Row], expected: Counter[Row]) -> str:
    """The kind of a difference in two words."""
    if any(row in expected for row in extra):
        return "repeated row"
    if lost and extra:
        return "wrong row"
    return "lost row" if lost else "unexpected row"


def is_by_key(case: Case) -> bool:
    """Whether rows are told apart by their keys: those of a query, and those of a table that is written by key."""
    by_key = case.history.sink == "idempotent" and case.history.identity == "key"
    return case.is_black_box and bool(case.workload.query or by_key)


def changed_rows(lost: Counter[Row], extra: Counter[Row]) -> tuple[tuple[Row, Row], ...]:
    """(expected, committed) of the keys of which one row is lost and one is too many, in the order of the keys."""
    before, now = _single(lost), _single(extra)
    return tuple((before[key], now[key]) for key in sorted(before.keys() & now.keys(), key=str))


def _single(rows: Counter[Row]) -> dict[int | None, Row]:
    """By key, the row of each key that has one."""
    times = Counter(row[0] for row in rows.elements())
    return {row[0]: row for row in rows if times[row[0]] == 1}


def violated_rows(
    case: Case, *, lost: Counter[Row], extra: Counter[Row], expected: Counter[Row], where: str, checkpoint: int | None
) -> Violated:
    """The verdict on rows that are missing or too many; `where` says where they were compared."""
    columns = columns_of(case.history)
    changed = changed_rows(lost, extra) if is_by_key(case) else ()
    changes = [change_in_words(was, now, columns) for was, now in changed]
    too_many, too_few = (rows - Counter(pair[side] for pair in changed) for side, rows in ((1, extra), (0, lost)))
    phrases = [
        *changes,
        *(f"{count} more of ({row_in_words(row, columns)}) than expected" for row, count in _first(too_many)),
    ]
    phrases += [f"{count} too few of ({row_in_words(row, columns)})" for row, count in _first(too_few)]
    records = [*changes, *(row_in_words(row, columns) for row, _ in [*_first(too_many), *_first(too_few)])]
    writers = [one for one in case.history.transactions if any(row in extra or row in lost for row in one.rows)]
    return Violated(
        difference=difference_of(lost, extra, expected),
        message=f"{where}: " + "; ".join(phrases[:LIMIT]),
        records=tuple(records[:LIMIT]),
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
    elif transaction.prepared is not None:
        phrases += ", sealed for no checkpoint"
    return f"{phrases}: {transaction.status}"


def loss_by_expiry(case: Case, lost: Iterable[Row]) -> Unknown | None:
    """Unknown when the store aborted the sealed transactions of all lost rows, and the job ended with this reason.

    No engine can survive that.  A failed task may also have given the reason, if the job was then cancelled or failed
    for another one.  Nobody has to give it if the transactions expired and the job failed without having gone on: the
    task may have been lost before it got the store's answer.  Nor if a cancel was requested before they expired: the
    task may have been cancelled before it got the answer.
    """
    ended = case.ended
    if not isinstance(ended, JobEnded) or ended.status not in ("failed", "cancelled"):
        return None
    causes = [ended.why, *(entry.why for entry in case.history.journal if isinstance(entry, TaskFailed))]
    why = next((one.sentence for one in causes if one.is_lost_transaction), None)
    gone = [one for one in case.history.transactions if one.prepared and one.aborted]
    if why is None:
        gone = [one for one in gone if _expired_at_the_end(case, one)]
        why = ended.reason
    given_up = {row for one in gone for row in one.rows}
    if why is not None and all(row in given_up for row in lost):
        return Unknown(reason=Reason.ASSUMPTION_BROKEN, detail=f"the job ended and gave its reason: {why}")
    return None


def _expired_at_the_end(case: Case, transaction: Transaction) -> bool:
    """Whether an injected fault let it expire, and the job has started no attempt and no checkpoint since."""
    for place, entry in enumerate(case.history.journal):
        if not isinstance(entry, FaultFired) or entry.kind != "fail-commit":
            continue
        if expired(entry.struck, entry.detail, transaction.name):
            before, since = case.history.journal[:place], case.history.journal[place:]
            if isinstance(case.ended, JobEnded) and case.ended.status == "cancelled" and not any(map(_cancels, before)):
                return False
            return not any(isinstance(one, AttemptStarted | CheckpointTriggered) for one in since)
    return False


def _cancels(entry: JournalEntry) -> bool:
    return isinstance(entry, CommandIssued) and entry.kind == "cancel"


def _first(rows: Counter[Row]) -> list[tuple[Row, int]]:
    return sorted(rows.items(), key=lambda item: tuple(map(str, item[0])))[:LIMIT]
