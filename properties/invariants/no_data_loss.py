"""no-data-loss: everything up to the closing cut is in the output, or sealed to be committed.

Out(L) minus K and P is empty: no expected row is missing from the visible rows and the
transactions that are sealed for the closing cut (exactly-once finds rows that are too
many).  Each record below L was read on the lineage, and each message sent within L was
applied within L, whether or not it yielded a row.  If all input ended, L is at the end
of the workload's splits, so a missing tail is found.

Exercised by uncommitted rows at a restore, by transactions whose commit was disturbed,
and by rows that only the last checkpoint covered.
"""

from __future__ import annotations

from collections import Counter

from ..model.verdict import Holds, Reason, Unknown, Verdict
from ..quick_checker.case import Case
from ..quick_checker.compare import loss_by_expiry, violated_rows
from ..quick_checker.idempotent_table import missing
from .parts.hazards import disturbed_commits, restores
from .parts.routes import unapplied, unread


def check(case: Case) -> Verdict:
    if "no-data-loss" not in case.promised:
        return case.not_promised("no-data-loss", f"{case.history.guarantee} mode may lose records")
    found = unread(case) or unapplied(case)
    if found is not None:
        return found
    if not case.rows_are_known:
        return Unknown(
            reason=Reason.NOT_OBSERVABLE, detail="the history does not show which row was applied at which subtask"
        )
    expected = case.expected.rows_up_to(case.closing.epoch)
    lost = missing(case, expected) if case.history.sink == "idempotent" else expected - case.settled
    if lost:
        return loss_by_expiry(case, lost) or violated_rows(
            case,
            lost=lost,
            extra=Counter(),
            expected=expected,
            where="the output",
            checkpoint=case.closing.checkpoint,
        )
    exercised = sum(restore.in_doubt + restore.uncommitted for restore in restores(case))
    exercised += sum(len(one.rows) for one in disturbed_commits(case)) + _tail(case)
    if not exercised:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="nothing was uncommitted at a restore or at the end")
    return Holds(exercised=exercised)


def _tail(case: Case) -> int:
    """How many records only the last checkpoint covered: those of the closing epoch and, where all input ended, those
    that no checkpoint covered."""
    if not case.expected.rows():
        return 0
    if case.closing.kind == "newest":
        return sum(len(one.rows) for one in case.pending_transactions)
    return sum(
        epoch in (case.closing.checkpoint, case.closing.epoch)
        for source in case.workload.inputs
        for segment in case.lineage.of_operator(source.name)
        for epoch in segment.read_epochs()
    )
