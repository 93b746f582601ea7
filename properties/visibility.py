"""visibility: nothing of a transactional sink shows before the snapshot that covers it.

Three claims.  A transaction holds the rows of one epoch: no snapshot of its
writer that completed lies between two of them, nor between them and its seal.
Its commit is asked for only after a snapshot at or behind its rows is complete,
so what was never sealed, or sealed for a snapshot that never completed, is
never committed.  And what a reader saw lies within Out(c), c the newest
snapshot whose completion was durable before the read ended.

The transactions are the external store's account, the marks the writer's
program order, the completions the snapshot store's log, the reads a reader's.
Rows are placed by `Transaction.applied`: a row made of the n-th record taken
lies before a mark with at least n applies.  Exercised by each read between the
sealing of rows and the completion that covers them, and by each attempt that
died with rows not yet committed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from .case import Case
from .history import Completed, Mark, TaskRun, Transaction
from .replay import is_determined
from .verdict import Holds, Unknown, Verdict, Violated
from .words import LIMIT, journal_until, row_in_words
from .workload import Row


def check(case: Case) -> Verdict:
    if "visibility" not in case.promised:
        detail = f"a {case.history.sink} sink in {case.history.guarantee} mode"
        return Unknown(reason="not promised", detail=detail)
    bounds = _Bounds(case)
    for transaction in case.history.transactions:
        found = _one_epoch(case, bounds, transaction) or _commit_covered(case, bounds, transaction)
        if found is not None:
            return found
    seen = _reads_within(case)
    if seen is not None:
        return seen
    exercised = sum(_died_with_rows(case, one) for one in case.history.transactions)
    exercised += sum(_reads_while_waiting(case, bounds, one) for one in case.history.transactions)
    if exercised:
        return Holds(exercised=exercised)
    return Unknown(reason="not exercised", detail="no read came before a completion, no attempt died with rows")


class _Bounds:
    """Where the completed snapshots of a writer lie among the records it took."""

    def __init__(self, case: Case) -> None:
        self.runs = case.runs
        self.mark = case.lines.mark
        self.completed: dict[int, list[Completed]] = {}
        for entry in case.history.completed:
            self.completed.setdefault(entry.attempt, []).append(entry)

    def run(self, transaction: Transaction) -> TaskRun | None:
        return self.runs.get((transaction.task, transaction.attempt))

    def marks(self, transaction: Transaction) -> list[tuple[Mark, Completed]]:
        """The marks of completed snapshots that the transaction's writer took."""
        task, attempt = transaction.task, transaction.attempt
        pairs = ((self.mark(task, attempt, entry.checkpoint), entry) for entry in self.completed.get(attempt, ()))
        return [(mark, entry) for mark, entry in pairs if mark is not None]

    def covering(self, transaction: Transaction) -> Completed | None:
        """The first completed snapshot at or behind all rows of the transaction."""
        last = max(transaction.applied)
        return min(
            (entry for mark, entry in self.marks(transaction) if mark.applies >= last),
            key=lambda entry: entry.order,
            default=None,
        )


def _one_epoch(case: Case, bounds: _Bounds, transaction: Transaction) -> Violated | None:
    if not transaction.rows:
        return None
    first, last = min(transaction.applied), max(transaction.applied)
    for mark, entry in bounds.marks(transaction):
        if first <= mark.applies < last:
            message = f"transaction {transaction.name} holds rows from both sides of checkpoint {entry.checkpoint}"
            return _violated(case, "rows of two epochs", message, transaction, entry.checkpoint)
        if entry.checkpoint == transaction.checkpoint and first > mark.applies:
            message = f"transaction {transaction.name}, sealed for checkpoint {entry.checkpoint}, holds rows after it"
            return _violated(case, "rows of two epochs", message, transaction, entry.checkpoint)
    return None


def _commit_covered(case: Case, bounds: _Bounds, transaction: Transaction) -> Violated | None:
    asked = [order for order in (transaction.commit_requested, transaction.committed) if order is not None]
    if not asked or not transaction.rows or bounds.run(transaction) is None:
        return None
    if transaction.prepared is None and transaction.committed is not None:
        message = f"transaction {transaction.name} was committed without having been sealed"
        return _violated(case, "unsealed rows committed", message, transaction, None)
    covering = bounds.covering(transaction)
    if covering is None:
        message = (
            f"the commit of transaction {transaction.name} was asked for, and no completed snapshot covers its rows"
        )
        return _violated(case, "commit without a snapshot", message, transaction, transaction.checkpoint)
    if min(asked) < covering.order:
        message = (
            f"the commit of transaction {transaction.name} was asked for before "
            f"checkpoint {covering.checkpoint}, the first to cover its rows, was complete"
        )
        return _violated(case, "commit before completion", message, transaction, covering.checkpoint)
    return None


def _reads_within(case: Case) -> Violated | None:
    """Whether each reader saw only rows that a snapshot covered by the time it had read."""
    if case.expected.follows_applies and not is_determined(case.workload, case.topology):
        return None
    orders, newest_after = _newest(case)
    owed: dict[int, Counter[Row]] = {}
    judged: set[tuple[int, int]] = set()
    for read in case.history.reads:
        before = bisect_left(orders, read.ended)
        newest = newest_after[before - 1] if before else -1
        if newest is None or (newest, read.rows) in judged:
            continue
        judged.add((newest, read.rows))
        if newest not in owed:
            owed[newest] = case.expected.rows_up_to(newest)
        early = Counter(case.history.committed[: read.rows]) - owed[newest]
        if early:
            what = f"checkpoint {newest} was the newest complete" if newest >= 0 else "no checkpoint was complete"
            return Violated(
                difference="rows seen too early",
                message=f"a reader saw {early.total()} rows that no snapshot covered: {what}",
                records=_rows(list(early.elements())),
                checkpoint=newest if newest >= 0 else None,
                events=journal_until(case.history, read.ended),
            )
    return None


def _newest(case: Case) -> tuple[list[int], list[int | None]]:
    """The orders at which snapshots completed, and after each of them the newest: None when the
    line of the run's end does not go through it (what it covered is not known there)."""
    line = set(case.line.checkpoints)
    completed = sorted((entry.order, entry.checkpoint) for entry in case.history.completed)
    newest = accumulate((checkpoint for _, checkpoint in completed), max)
    return [order for order, _ in completed], [one if one in line else None for one in newest]


def _died_with_rows(case: Case, transaction: Transaction) -> bool:
    """Whether its writer ended badly before its rows were committed."""
    run = case.runs.get((transaction.task, transaction.attempt))
    if run is None or run.ended is None or run.how == "finished" or not transaction.rows:
        return False
    return transaction.committed is None or transaction.committed > run.ended


def _reads_while_waiting(case: Case, bounds: _Bounds, transaction: Transaction) -> int:
    """How many reads fell between the seal of a transaction's rows and the completion that covers them."""
    if not transaction.rows or transaction.prepared is None:
        return 0
    sealed, covering = transaction.prepared, bounds.covering(transaction)
    return sum(
        read.began >= sealed and (covering is None or read.ended < covering.order) for read in case.history.reads
    )


def _rows(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(row_in_words(row) for row in rows[:LIMIT])


def _violated(case: Case, difference: str, message: str, transaction: Transaction, checkpoint: int | None) -> Violated:
    asked = transaction.commit_requested or transaction.committed
    sealed = f"sealed for checkpoint {transaction.checkpoint}" if transaction.prepared is not None else "never sealed"
    return Violated(
        difference=difference,
        message=message,
        records=_rows(transaction.rows),
        checkpoint=checkpoint,
        tasks=(transaction.task,),
        events=(
            f"{transaction.name}: begun in attempt {transaction.attempt}, {sealed}, now {transaction.status}",
            *journal_until(case.history, asked),
        ),
    )
