"""visibility: no row of a transactional sink shows before the snapshot that covers it.

There are three claims.  A transaction holds the rows of one epoch: no completed snapshot
of its writer lies between two of its rows, nor between its rows and its seal.  Its commit
is requested only after a snapshot at or after its rows is complete: a transaction that
was never sealed, or was sealed for a snapshot that never completed, is never committed.
The rows that a reader saw lie within Out(c), where c is the newest snapshot whose
completion was durable before the read ended.  With a global committer there is a fourth
claim: either all rows of a checkpoint show, or none.

The external store records the transactions, the writer's program order has the marks,
the snapshot store's log the completions, and a reader the reads.  `Transaction.applied`
gives the place of a row: a row made of the n-th record taken lies before a mark with at
least n applies.  Exercised by each read between the sealing of rows and the completion
that covers them, and by each attempt that died with rows not yet committed.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ..model.history import Completed, Read, Transaction
from ..model.stages import COMMITTERS
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, journal_until, plural, row_in_words
from ..model.workload import Row
from ..quick_checker.case import Case
from ..reconstruct.lineage import INFINITE


def check(case: Case) -> Verdict:
    if "visibility" not in case.promised:
        detail = f"a {case.history.sink} sink in {case.history.guarantee} mode"
        return Unknown(reason=Reason.NOT_PROMISED, detail=detail)
    bounds = _Bounds(case)
    for transaction in (*case.history.transactions, *case.history.passing):
        found = _one_epoch(case, bounds, transaction) or _commit_covered(case, bounds, transaction)
        if found is not None:
            return found
    seen = _reads_within(case) or _half_seen(case)
    if seen is not None:
        return seen
    exercised = sum(_died_with_rows(case, one) for one in case.history.transactions)
    exercised += _reads_while_waiting(bounds, case.history.reads, case.history.transactions)
    if exercised:
        return Holds(exercised=exercised)
    return Unknown(reason=Reason.NOT_EXERCISED, detail="no read came before a completion, no attempt died with rows")


class _Writer:
    """Where the completed snapshots of one attempt of a sink subtask lie among the records that it took."""

    def __init__(self, marked: Iterable[tuple[int, Completed]]) -> None:
        """`marked`: (records taken before it, snapshot), in any order."""
        pairs = sorted(marked, key=lambda pair: pair[0])
        self.applies = [applies for applies, _ in pairs]
        self.completed = [entry for _, entry in pairs]
        self.at = {entry.checkpoint: applies for applies, entry in pairs}
        self._first = list(accumulate(reversed(self.completed), _earlier))[::-1]

    def within(self, first: int, last: int) -> Completed | None:
        """A completed snapshot between the `first` record taken and the `last` one."""
        at = bisect_left(self.applies, first)
        return self.completed[at] if at < len(self.applies) and self.applies[at] < last else None

    def covering(self, last: int) -> Completed | None:
        """The first completed snapshot at or after a record."""
        at = bisect_left(self.applies, last)
        return self._first[at] if at < len(self._first) else None


def _earlier(one: Completed, other: Completed) -> Completed:
    return min(one, other, key=lambda entry: entry.order)


class _Bounds:
    """Where the completed snapshots of every writer lie."""

    def __init__(self, case: Case) -> None:
        self._lineages = case.lineages
        self._committing = {one.checkpoint: one for one in case.committing}
        self._writers: dict[tuple[str, int], _Writer] = {}

    def observed(self, transaction: Transaction) -> bool:
        return (transaction.task, transaction.attempt) in self._lineages.runs

    def writer(self, transaction: Transaction) -> _Writer:
        task, attempt = transaction.task, transaction.attempt
        if (task, attempt) not in self._writers:
            committing = self._committing
            taken = [
                committing[one.checkpoint]
                for one in self._lineages.taken_by(task, attempt)
                if one.checkpoint in committing
            ]
            marks = ((self._lineages.mark(task, attempt, one.checkpoint), one) for one in taken)
            self._writers[task, attempt] = _Writer((mark.applies, one) for mark, one in marks if mark is not None)
        return self._writers[task, attempt]

    def covering(self, transaction: Transaction) -> Completed | None:
        """The first completed snapshot at or after all rows of the transaction."""
        return self.writer(transaction).covering(max(transaction.applied))


def _one_epoch(case: Case, bounds: _Bounds, transaction: Transaction) -> Violated | None:
    if not transaction.rows:
        return None
    first, last = min(transaction.applied), max(transaction.applied)
    writer = bounds.writer(transaction)
    between = writer.within(first, last)
    if between is not None:
        message = f"transaction {transaction.name} holds rows from both sides of checkpoint {between.checkpoint}"
        return _violated(case, "rows of two epochs", message, transaction, between.checkpoint)
    sealed = transaction.checkpoint
    if sealed is not None and first > writer.at.get(sealed, first):
        message = f"transaction {transaction.name}, sealed for checkpoint {sealed}, holds rows after it"
        return _violated(case, "rows of two epochs", message, transaction, sealed)
    return None


def _commit_covered(case: Case, bounds: _Bounds, transaction: Transaction) -> Violated | None:
    asked = [order for order in (transaction.commit_requested, transaction.committed) if order is not None]
    if not asked or not transaction.rows or not bounds.observed(transaction):
        return None
    if transaction.prepared is None and transaction.committed is not None:
        message = f"transaction {transaction.name} was committed without having been sealed"
        return _violated(case, "unsealed rows committed", message, transaction, None)
    covering = bounds.covering(transaction)
    if covering is None:
        message = (
            f"the commit of transaction {transaction.name} was requested, and no completed snapshot covers its rows"
        )
        return _violated(case, "commit without a snapshot", message, transaction, transaction.checkpoint)
    if min(asked) < covering.order:
        message = (
            f"the commit of transaction {transaction.name} was requested before "
            f"checkpoint {covering.checkpoint}, the first to cover its rows, was complete"
        )
        return _violated(case, "commit before completion", message, transaction, covering.checkpoint)
    return None


def _reads_within(case: Case) -> Violated | None:
    """A reader that saw rows before a completed snapshot covered them."""
    if case.expected.follows_applies and not case.is_determined(every_attempt=case.by_applies):
        return None
    orders, newest_after = _newest(case)
    early = _Early(case)
    for read in case.history.reads:
        before = bisect_left(orders, read.ended)
        newest = newest_after[before - 1] if before else -1
        if newest is None or not early.move(newest, read.rows):
            continue
        what = f"checkpoint {newest} was the newest complete" if newest >= 0 else "no checkpoint was complete"
        rows = early.rows()
        return Violated(
            difference="rows seen too early",
            message=f"a reader saw {plural(len(rows), 'row')} that no snapshot covered: {what}",
            records=_rows(rows),
            checkpoint=newest if newest >= 0 else None,
            events=journal_until(case.history, read.ended),
        )
    return None


def _half_seen(case: Case) -> Violated | None:
    """A reader that saw some rows of a checkpoint, and not yet all rows up to this checkpoint.

    A global committer publishes all of them in one step.
    """
    if not any(run.operator == COMMITTERS[-1] for run in case.history.runs):
        return None
    sealed = [one for one in case.history.transactions if one.rows and one.prepared is not None and one.aborted is None]
    for read in case.history.reads:
        shown = [one.checkpoint or 0 for one in sealed if one.committed is not None and one.committed < read.began]
        newest = max(shown, default=-1)
        for one in sealed:
            if (one.checkpoint or 0) <= newest and (one.committed is None or one.committed > read.ended):
                message = f"a reader saw rows of checkpoint {newest}, and those of transaction {one.name} were missing"
                return _violated(case, "half a checkpoint seen", message, one, newest)
    return None


class _Early:
    """The rows that a reader saw and that are not expected yet.

    The rows seen and the rows expected both grow from read to read, so a read
    costs only as much as it has new rows.
    """

    def __init__(self, case: Case) -> None:
        self._committed = case.history.committed
        self._expected = sorted((at, rows) for at, rows in case.expected.rows().items() if rows)
        self._seen = 0
        self._epochs = 0
        self._balance: Counter[Row] = Counter()
        self._excess = 0

    def move(self, epoch: int, seen: int) -> int:
        """How many of the first `seen` committed rows are not expected up to an epoch."""
        seen = min(seen, len(self._committed))
        self._shift(self._committed[self._seen : seen], 1)
        self._shift(self._committed[seen : self._seen], -1)
        self._seen = seen
        while self._epochs < len(self._expected) and self._expected[self._epochs][0] <= epoch:
            self._shift(self._expected[self._epochs][1], -1)
            self._epochs += 1
        while self._epochs and self._expected[self._epochs - 1][0] > epoch:
            self._epochs -= 1
            self._shift(self._expected[self._epochs][1], 1)
        return self._excess

    def _shift(self, rows: Iterable[Row], by: int) -> None:
        balance = self._balance
        for row in rows:
            before = balance.get(row, 0)
            balance[row] = before + by
            if before >= 0 if by > 0 else before > 0:
                self._excess += by

    def rows(self) -> list[Row]:
        return list((+self._balance).elements())


def _newest(case: Case) -> tuple[list[int], list[int | None]]:
    """(the orders at which snapshots completed, the newest snapshot after each of them).

    The newest is None if it is off the lineage of the run's end: the rows that it covered are then unknown.
    """
    lineage = set(case.lineage.checkpoints)
    completed = sorted((entry.order, entry.checkpoint) for entry in case.committing)
    newest = accumulate((checkpoint for _, checkpoint in completed), max)
    return [order for order, _ in completed], [one if one in lineage else None for one in newest]


def _died_with_rows(case: Case, transaction: Transaction) -> bool:
    """Whether a transaction's writer failed or was killed before its rows were committed."""
    run = case.runs.get((transaction.task, transaction.attempt))
    if run is None or run.ended is None or run.how == "finished" or not transaction.rows:
        return False
    return transaction.committed is None or transaction.committed > run.ended


def _reads_while_waiting(bounds: _Bounds, reads: Iterable[Read], transactions: Iterable[Transaction]) -> int:
    """How many reads, over all transactions, fell between the seal of a transaction's rows and the completion that
    covers these rows."""
    sealed = sorted(
        ((one.prepared, _covered_at(bounds, one)) for one in transactions if one.rows and one.prepared is not None),
        reverse=True,
    )
    waiting: list[int] = []
    uncovered = found = 0
    for read in sorted(reads, key=lambda read: read.began):
        while sealed and sealed[-1][0] <= read.began:
            covered = sealed.pop()[1]
            if covered == INFINITE:
                uncovered += 1
            else:
                heapq.heappush(waiting, covered)
        while waiting and waiting[0] <= read.began:
            heapq.heappop(waiting)
        found += uncovered + sum(covered > read.ended for covered in waiting)
    return found


def _covered_at(bounds: _Bounds, transaction: Transaction) -> int:
    covering = bounds.covering(transaction)
    return INFINITE if covering is None else covering.order


def _rows(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(row_in_words(row) for row in rows[:LIMIT])


def _violated(case: Case, difference: str, message: str, transaction: Transaction, checkpoint: int | None) -> Violated:
    asked = transaction.commit_requested or transaction.committed
    covered = "no checkpoint" if transaction.checkpoint is None else f"checkpoint {transaction.checkpoint}"
    sealed = f"sealed for {covered}" if transaction.prepared is not None else "never sealed"
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
