"""What an idempotent sink's table has to hold: of all rows with one identity, the row that was written last.

If the identity is the key, a row replaces the previous row of its key, and the table
holds the last row of each key.  If the identity is the whole row, no row is ever
replaced, and the table is the set of the rows.

An upsert is visible at once and is never undone.  So the table may be ahead of the
closing cut, by rows that the lineage or a dead attempt wrote after the cut.  The table
is never behind the cut, and cannot be ahead of a cut that covers all records, unless the
cut has some of them in flight: these reach the sink after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.workload import Row
from ..semantics.classes import last_row_is_fixed
from .case import Case


def identity_of(case: Case, row: Row) -> tuple[int | None, ...]:
    """The columns by which a row replaces an earlier one."""
    return row[:1] if case.history.identity == "key" else row


def expected_table(case: Case) -> Counter[Row]:
    """The rows that the table holds at the closing cut, each once.

    If the identity is the key, and the data do not determine which row of a key comes
    last, it is the last row in one of the orders that the run may have had.
    """
    if case.history.identity == "key":
        return Counter(case.expected.last_rows(case.closing.epoch).values())
    return Counter(set(case.expected.rows_up_to(case.closing.epoch)))


def ever_made(case: Case) -> Counter[Row]:
    """Every row that any attempt may have written.

    If a drain was requested, successful or not, some attempts emitted windows early and others did not.  So the rows
    of each attempt then follow the records that this attempt took.
    """
    found = case.expected.yielded()
    if any(one.issued.drain for one in case.commands.asked):
        found = found | case.expected.replay.yielded()
    return found


def missing(case: Case, expected: Iterable[Row]) -> Counter[Row]:
    """One expected row of each identity that the table lacks."""
    held = {identity_of(case, row) for row in case.history.committed}
    lacking = {identity_of(case, row): row for row in expected if identity_of(case, row) not in held}
    return Counter(lacking.values())


def differences(case: Case) -> tuple[Counter[Row], Counter[Row]]:
    """(lost, extra): the rows that the table lacks, and the rows that it should not hold."""
    everything = ever_made(case)
    lost = missing(case, case.expected.rows_up_to(case.closing.epoch))
    extra = Counter(row for row in case.history.committed if row not in everything)
    seen: set[tuple[int | None, ...]] = set()
    for row in case.history.committed:
        if identity_of(case, row) in seen:
            extra[row] += 1
        seen.add(identity_of(case, row))
    if case.history.identity == "key" and last_row_is_fixed(case.workload, case.jobs.topology):
        outdated, last = _outdated(case, everything)
        lost, extra = lost + last, extra | outdated
    return lost, extra


def _outdated(case: Case, everything: Counter[Row]) -> tuple[Counter[Row], Counter[Row]]:
    """The table's rows that are not the last of their key, and the rows that the table should hold instead."""
    last = case.expected.last_rows(case.closing.epoch)
    beyond: Counter[Row] = Counter()
    if not _covers_everything(case):
        beyond = everything - case.expected.rows_up_to(case.closing.epoch)
    wrong = [row for row in case.history.committed if last.get(row[0]) != row and row not in beyond]
    return Counter(wrong), Counter(last[row[0]] for row in wrong if row[0] in last)


def _covers_everything(case: Case) -> bool:
    """Whether the closing cut covers all records, with none in flight: then no row can lie beyond it."""
    closing = case.closing
    if closing.kind == "end":
        return True
    if closing.checkpoint is not None and case.lineages.snapshots.in_flight(closing.checkpoint):
        return False
    return all(closing.positions.get(split, 0) >= len(records) for split, _, records in case.workload.splits())
