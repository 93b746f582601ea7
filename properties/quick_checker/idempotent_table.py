"""What an idempotent sink's table has to hold: of all rows with one identity, the one written last.

Where the identity is the key, rows replace each other by key: the table holds the last
row of each.  Where it is the whole row, no row is ever replaced: the table is the set of
the rows.

An upsert is visible at once and is never undone.  So a table may be ahead of the closing
cut, by rows that the lineage or a dead attempt wrote beyond it.  It is never behind, and
once the cut covers all records the table cannot be ahead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.workload import Row
from ..semantics.classes import last_row_is_fixed
from .case import Case


def identity_of(case: Case, row: Row) -> tuple[int | None, ...]:
    """By what a row replaces an earlier one."""
    return row[:1] if case.history.identity == "key" else row


def expected_table(case: Case) -> Counter[Row]:
    """What the table holds at the closing cut, each row once.

    By key, where the data do not fix which row comes last, it is the one that
    comes last in one of the orders that the run may have had.
    """
    if case.history.identity == "key":
        return Counter(case.expected.last_rows(case.closing.epoch).values())
    return Counter(set(case.expected.rows_up_to(case.closing.epoch)))


def ever_made(case: Case) -> Counter[Row]:
    """Every row that any attempt may have written.

    Where a drain was requested, successful or not, some attempts emitted windows early and others did not; what each
    attempt took decides what it made.
    """
    found = case.expected.yielded()
    if any(one.issued.drain for one in case.commands.asked):
        found |= case.expected.replay.yielded()
    return found


def missing(case: Case, expected: Iterable[Row]) -> Counter[Row]:
    """One expected row of each identity that the table lacks."""
    held = {identity_of(case, row) for row in case.history.committed}
    lacking = {identity_of(case, row): row for row in expected if identity_of(case, row) not in held}
    return Counter(lacking.values())


def differences(case: Case) -> tuple[Counter[Row], Counter[Row]]:
    """(lost, extra): the rows that the table lacks, and those that it has no right to."""
    everything = ever_made(case)
    lost = missing(case, case.expected.rows_up_to(case.closing.epoch))
    extra = Counter(row for row in case.history.committed if row not in everything)
    seen: set[tuple[int | None, ...]] = set()
    for row in case.history.committed:
        if identity_of(case, row) in seen:
            extra[row] += 1
        seen.add(identity_of(case, row))
    if case.history.identity == "key" and last_row_is_fixed(case.workload, case.topology):
        outdated, last = _outdated(case, everything)
        lost, extra = lost + last, extra | outdated
    return lost, extra


def _outdated(case: Case, everything: Counter[Row]) -> tuple[Counter[Row], Counter[Row]]:
    """The table's rows that are not their key's last, and the rows that should stand in their place."""
    last = case.expected.last_rows(case.closing.epoch)
    beyond: Counter[Row] = Counter()
    if not _covers_everything(case):
        beyond = everything - case.expected.rows_up_to(case.closing.epoch)
    wrong = [row for row in case.history.committed if last.get(row[0]) != row and row not in beyond]
    return Counter(wrong), Counter(last[row[0]] for row in wrong if row[0] in last)


def _covers_everything(case: Case) -> bool:
    """Nothing was offered beyond the closing cut, so no row can be beyond it either."""
    positions = case.closing.positions
    return all(positions.get(split, 0) >= len(records) for split, _, records in case.workload.splits())
