"""The request and the result of a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from .errors import CheckInputError
from .sources.addresses import PostgresTable

GUARANTEES = {
    "exactly-once": ("lost", "unexpected", "repeated", "changed"),
    "at-least-once": ("lost", "unexpected", "changed"),
    "at-most-once": ("repeated", "unexpected", "changed"),
}
"""The kinds of difference that each guarantee excludes."""

KINDS = ("lost", "repeated", "unexpected")
SIDES = ("expected", "actual")

OURS = "\x1f"
"""The prefix of columns that this package adds; no column of a table may have it."""
COUNT = f"{OURS}count"
IS_EXPECTED = f"{OURS}is_expected"
"""The added columns of a differing row: how many times more often expected has it (below 0: actual), and whether
expected has it at all."""


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two tables and how they are compared.

    `rename` has, by expected column, its name in the actual table; `cast` has, by column, the type in
    which it is compared.  `tolerance` is absolute, `relative_tolerance` a share of the greater of two
    numbers.  `delimiters` are those of CSV, by side.  `nulls` are the unquoted texts of CSV that are
    NULL; with `empty_is_null` every empty text of either side is NULL too.  `limit` is the number of
    rows of each kind that are shown.
    """

    expected: Path | PostgresTable
    actual: Path | PostgresTable
    key: tuple[str, ...] = ()
    guarantee: str = "exactly-once"
    ignore: tuple[str, ...] = ()
    where: str | None = None
    rename: dict[str, str] = {}
    cast: dict[str, str] = {}
    tolerance: dict[str, float] = {}
    relative_tolerance: dict[str, float] = {}
    delimiters: dict[str, str] = {}
    nulls: tuple[str, ...] = ("",)
    empty_is_null: bool = False
    limit: int = 20
    exact: bool = False

    @property
    def tolerated(self) -> tuple[str, ...]:
        """The columns in which numbers may differ."""
        return tuple(dict.fromkeys((*self.tolerance, *self.relative_tolerance)))


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A differing row, which is lost, repeated or unexpected `count` times.

    For a changed row, `row` is the expected row and `actual` the actual one.
    """

    kind: str
    row: dict[str, Any]
    count: int = 1
    actual: dict[str, Any] | None = None


class ColumnDifference(msgspec.Struct, frozen=True, kw_only=True):
    """In how many of the changed rows a column differs, and by how much at most.

    `greatest` is absolute (for times in seconds), `relative` a share of the greater number; columns
    that are no numbers or times have neither.  `nulls` counts the rows in which only one side is
    NULL, `empty` those of them in which the other side is an empty text.
    """

    column: str
    rows: int
    greatest: float | None = None
    relative: float | None = None
    nulls: int = 0
    empty: int = 0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result; `held` says that no difference occurred that the guarantee excludes.

    The counts are of rows; a `changed` row counts neither as lost nor as unexpected.
    """

    held: bool
    expected_rows: int
    actual_rows: int
    lost: int = 0
    repeated: int = 0
    unexpected: int = 0
    changed: int = 0
    samples: tuple[Sample, ...] = ()
    exact: bool = True
    """whether the tables were compared without hashes"""
    engine: str = "spark"
    """the engine that compared the tables: arrow or spark"""
    conversions: tuple[str, ...] = ()
    """a sentence for each conversion"""
    warnings: tuple[str, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()
    """the columns that differ in changed rows"""

    @property
    def equal(self) -> bool:
        return not (self.lost or self.repeated or self.unexpected or self.changed)


def demand_request(request: CheckRequest) -> None:
    """Raise CheckInputError for a request that is invalid for any table."""
    if request.guarantee not in GUARANTEES:
        raise CheckInputError(f"the guarantee can be {', '.join(GUARANTEES)}, not {request.guarantee}")
    if request.tolerated and not request.key:
        raise CheckInputError("a tolerance needs a key: it says which rows are to be compared")
