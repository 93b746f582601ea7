"""What a check is asked, and what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from .addresses import PostgresTable
from .errors import CheckInputError

GUARANTEES = {
    "exactly-once": ("lost", "unexpected", "repeated", "changed"),
    "at-least-once": ("lost", "unexpected", "changed"),
    "at-most-once": ("repeated", "unexpected", "changed"),
}
"""What each guarantee rules out."""

KINDS = ("lost", "repeated", "unexpected")
SIDES = ("expected", "actual")

OURS = "\x1f"
"""What columns of our own begin with, and none of a table may."""
COUNT = f"{OURS}count"
IS_EXPECTED = f"{OURS}is_expected"
"""The columns that tell of a row that differs by how much expected has it more often (below 0: actual), and
whether expected has it at all."""


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two tables and how they are to be compared.

    `rename` tells of expected columns how the actual table calls them, `cast` as which type a column
    of both is compared; `tolerance` is absolute, `relative_tolerance` a share of the greater of two
    numbers.  `delimiters` are those of CSV by side; `nulls` are the unquoted texts of CSV that are
    NULL, and with `empty_is_null` so is every empty text of either side.  `limit` is how many rows
    of each kind are shown.
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
    """A row that differs: `count` of it are lost, repeated or unexpected; of a changed row,
    `row` is what was expected and `actual` what is there."""

    kind: str
    row: dict[str, Any]
    count: int = 1
    actual: dict[str, Any] | None = None


class ColumnDifference(msgspec.Struct, frozen=True, kw_only=True):
    """In how many of the changed rows a column differs, and by how much at most.

    `greatest` is absolute (of times in seconds), `relative` a share of the greater number; neither
    is there for what is no number or time.  `nulls` counts the rows in which one side alone is
    NULL, `empty` those of them in which the other is an empty text.
    """

    column: str
    rows: int
    greatest: float | None = None
    relative: float | None = None
    nulls: int = 0
    empty: int = 0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """`held`: what the guarantee rules out did not happen.  The counts are of rows; a `changed`
    one is counted neither as lost nor as unexpected."""

    held: bool
    expected_rows: int
    actual_rows: int
    lost: int = 0
    repeated: int = 0
    unexpected: int = 0
    changed: int = 0
    samples: tuple[Sample, ...] = ()
    exact: bool = True
    """whether no hash took part in finding the tables equal"""
    engine: str = "spark"
    """what compared them: arrow or spark"""
    conversions: tuple[str, ...] = ()
    """each conversion that was made, in a sentence"""
    warnings: tuple[str, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()
    """those that differ in changed rows"""

    @property
    def equal(self) -> bool:
        return not (self.lost or self.repeated or self.unexpected or self.changed)


def demand_request(request: CheckRequest) -> None:
    """Raise CheckInputError on what no table can be asked."""
    if request.guarantee not in GUARANTEES:
        raise CheckInputError(f"the guarantee can be {', '.join(GUARANTEES)}, not {request.guarantee}")
    if request.tolerated and not request.key:
        raise CheckInputError("a tolerance needs a key: it says which rows are to be compared")
