"""exactly-once: the committed output is what a run without any failure would have committed.

K are the rows that an independent reader sees.  P are the rows of transactions that are
prepared for a completed checkpoint of the closing cut and not yet committed.  Out(L) are
the rows expected up to the closing cut.  K plus P equals Out(L), as multisets of all
columns.  An idempotent sink's table holds the result of Out(L)'s upserts (see `idempotent_table`),
and each of its upserts is a row that the lineage yields.

For class H, whose rows follow the merge order of the run, every expected record must
also have been applied exactly once at each operator: the engine may choose nothing but
the order.  For class W the watermarks must also have advanced as the received watermarks
require (see `timekeeping`), and the operator's clock as the world's clock did (see
`clocks`).

Exercised by restores amid records and by disturbed commits of rows.
"""

from __future__ import annotations

from collections import Counter

from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..quick_checker.case import Case
from ..quick_checker.compare import loss_by_expiry, same, violated_rows
from ..quick_checker.idempotent_table import differences, ever_made, expected_table
from .parts.clocks import misclocked
from .parts.hazards import disturbed_commits, restores
from .parts.routes import misapplied
from .parts.timekeeping import mistimed


def check(case: Case) -> Verdict:
    if "exactly-once" not in case.promised:
        detail = f"{case.history.guarantee} mode with a {case.history.sink} sink"
        return Unknown(reason=Reason.NOT_PROMISED, detail="resumed from an older snapshot" if case.rewound else detail)
    by_applies = case.expected.follows_applies
    if not case.rows_are_known:
        return Unknown(
            reason=Reason.NOT_OBSERVABLE, detail="the history does not show which row was applied at which subtask"
        )
    found = _table(case) if case.history.sink == "idempotent" else _output(case)
    if found is None and by_applies:
        found = misapplied(case) or mistimed(case) or misclocked(case)
    if found is not None:
        return found
    exercised = sum(restore.amid_records for restore in restores(case)) + len(disturbed_commits(case))
    if not case.history.committed:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no row was committed")
    if not exercised:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no restore amid records, no disturbed commit of a row")
    return Holds(exercised=exercised)


def _output(case: Case) -> Verdict | None:
    expected = case.expected.rows_up_to(case.closing.epoch)
    found = case.settled
    if same(found, expected):
        return None
    lost, extra = expected - found, found - expected
    if not extra:
        excused = loss_by_expiry(case, lost)
        if excused is not None:
            return excused
    return violated_rows(
        case,
        lost=lost,
        extra=extra,
        expected=expected,
        where="the committed output",
        checkpoint=case.closing.checkpoint,
    )


def _table(case: Case) -> Violated | None:
    lost, extra = differences(case)
    if lost or extra:
        return violated_rows(
            case,
            lost=lost,
            extra=extra,
            expected=expected_table(case),
            where="the table",
            checkpoint=case.closing.checkpoint,
        )
    return _upserts(case)


def _upserts(case: Case) -> Violated | None:
    everything = ever_made(case)
    foreign = Counter(written.row for written in case.history.written if written.row not in everything)
    if foreign:
        return violated_rows(
            case, lost=Counter(), extra=foreign, expected=everything, where="the upserts", checkpoint=None
        )
    return None
