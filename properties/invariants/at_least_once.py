"""at-least-once: no expected row is missing, and no row is invented.  Rows may be repeated.

Each record below the closing cut was applied.  Each row that the lineage's applied
records yield, repeated ones included, is visible (or sealed, and must become visible).
Each visible row is one that some attempt's applied records yield.

In the at-least-once mode the expected rows follow the records that the lineage applied.
A record may be both in a snapshot and replayed after it, and then rightly changes every
later running sum.  In the exactly-once mode with a plain sink the output is
at-least-once, while state stays exactly-once.

Exercised by records that a later attempt read again.
"""

from __future__ import annotations

from collections import Counter

from ..model.verdict import Holds, Reason, Unknown, Verdict
from ..quick_checker.case import Case
from ..quick_checker.compare import loss_by_expiry, violated_rows
from ..quick_checker.idempotent_table import missing
from .parts.routes import unapplied, unread


def check(case: Case) -> Verdict:
    if "at-least-once" not in case.promised:
        return case.not_promised("at-least-once", f"{case.history.guarantee} is another promise")
    found = unread(case) or unapplied(case)
    if found is not None:
        return found
    if not case.is_determined(every_attempt=True):
        return Unknown(
            reason=Reason.NOT_OBSERVABLE, detail="the history does not show which row was applied at which subtask"
        )
    visible = case.settled
    expected = case.expected.rows_up_to(case.closing.epoch)
    yielded = case.expected.replay.yielded()
    lost = expected - visible
    extra = visible - yielded
    if case.history.sink == "idempotent":
        lost = missing(case, expected)
        extra = Counter(row for row in visible if row not in yielded)
    excused = loss_by_expiry(case, lost) if lost and not extra else None
    if excused is not None:
        return excused
    if lost or extra:
        return violated_rows(
            case, lost=lost, extra=extra, expected=expected, where="the output", checkpoint=case.closing.checkpoint
        )
    again = replayed_records(case)
    if not again:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no record was read again")
    return Holds(exercised=again)


def replayed_records(case: Case) -> int:
    """How many records a later attempt read again."""
    reads: Counter[tuple[int, int]] = Counter()
    for run in case.history.runs:
        reads.update(run.reads)
    return sum(count - 1 for count in reads.values() if count > 1)
