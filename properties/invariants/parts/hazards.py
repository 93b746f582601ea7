"""The hazards of a run: restores amid records, and disturbed commits.

If a history has no hazard, its verdict proves nothing.  So these counts decide
between *holds* and *not exercised*.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from ...model.history import AttemptStarted, FaultFired, Transaction
from ...quick_checker.case import Case

COMMIT_FAULTS = frozenset({"fail-commit", "lose-message", "late-message", "repeat-message", "kill-coordinator"})
"""Fault kinds that can disturb a commit without bringing a task down."""


class Restore(msgspec.Struct, frozen=True, kw_only=True):
    """The start of an attempt after the first one.

    `in_doubt` counts the records that the previous attempt had read after its newest
    completed checkpoint, `uncommitted` the rows in transactions that were neither
    committed nor aborted.  `before` counts the records that earlier attempts read,
    `after` those that this attempt and later ones read.
    """

    attempt: int
    order: int
    in_doubt: int
    uncommitted: int
    before: int
    after: int

    @property
    def amid_records(self) -> bool:
        return self.before > 0 and (self.in_doubt > 0 or self.uncommitted > 0 or self.after > 0)


def restores(case: Case) -> list[Restore]:
    """The starts of all attempts but the first, in order."""
    read_by: dict[int, int] = {}
    for run in case.history.runs:
        if run.reads:
            read_by[run.attempt] = read_by.get(run.attempt, 0) + len(run.reads)
    starts = [case.lineages.starts[attempt] for attempt in sorted(case.lineages.starts)]
    return [
        Restore(
            attempt=start.attempt,
            order=start.order,
            in_doubt=_in_doubt(case, previous.attempt, start),
            uncommitted=sum(len(one.rows) for one in case.history.transactions if _is_undecided(one, start.order)),
            before=sum(count for attempt, count in read_by.items() if attempt < start.attempt),
            after=sum(count for attempt, count in read_by.items() if attempt >= start.attempt),
        )
        for previous, start in pairwise(starts)
    ]


def disturbed_commits(case: Case) -> list[Transaction]:
    """Transactions with rows that a fault hit between their sealing and their commit."""
    hits = [
        entry.order for entry in case.history.journal if isinstance(entry, FaultFired) and entry.kind in COMMIT_FAULTS
    ]
    return [
        one
        for one in case.history.transactions
        if one.rows
        and one.prepared is not None
        and one.aborted is None
        and any(one.prepared <= order and (one.committed is None or order <= one.committed) for order in hits)
    ]


def _is_undecided(transaction: Transaction, order: int) -> bool:
    return (
        bool(transaction.rows)
        and transaction.begun < order
        and (transaction.committed is None or transaction.committed > order)
        and (transaction.aborted is None or transaction.aborted > order)
    )


def _in_doubt(case: Case, attempt: int, start: AttemptStarted) -> int:
    count = 0
    for run in case.history.runs:
        restarts = not start.tasks or run.task in start.tasks
        if run.reads and restarts and run.attempt == case.lineages.serving(run.task, attempt):
            taken = case.lineages.taken_by(run.task, run.attempt)
            newest = max((entry.checkpoint for entry in taken if entry.order < start.order), default=None)
            mark = None if newest is None else case.lineages.mark(run.task, run.attempt, newest)
            count += len(run.reads) - (mark.reads if mark else 0)
    return count
