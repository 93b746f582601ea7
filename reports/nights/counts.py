"""Counts in rows and columns, as they stand in the record of a night: short, and still plain text.

A night hits some ten thousand coverage targets.  A line of text for each of them would make a record a hundred times
as large as everything else in it.  So a row is one text: its counts in the order of the columns, with commas between
them, nothing in the place of a column without a count, and nothing behind the last count.  A night leaves out what it
counted 0 times; a summary writes a 0 where something could have been counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress

import msgspec

LONGEST_ROW = 4_000
"""characters"""
MOST = 2**53


class CountTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of counts; a row without any is left out."""

    columns: list[str] = []
    rows: dict[str, str] = {}
    """by row: `3,,1` is 3 in the first column and 1 in the third"""

    def __post_init__(self) -> None:
        """Raises ValueError, which makes a file that holds such a table unreadable."""
        if "".join(self.rows.values()).encode().translate(None, b"0123456789,"):
            raise ValueError("a table of counts has something else in a row")
        most = len(self.columns)
        for row, cells in self.rows.items():
            if cells.count(",") >= most or len(cells) > LONGEST_ROW:
                raise ValueError(f"the row {row[:60]!r} of a table of counts is longer than its columns")

    def by_row(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Each row with its counts by column, those that are 0 included."""
        for row, cells in self.rows.items():
            found = zip(self.columns, cells.split(","), strict=False)
            yield row, {column: min(int(cell), MOST) for column, cell in found if cell}

    def counts(self) -> Iterator[tuple[str, str, int]]:
        """Row, column and count of each cell that has one."""
        for row, cells in self.rows.items():
            for column, cell in zip(self.columns, cells.split(","), strict=False):
                if cell:
                    yield row, column, min(int(cell), MOST)


def table_of(counts: Mapping[tuple[str, str], int], columns: Sequence[str]) -> CountTable:
    """The table of counts by row and column, without those that are 0."""
    places = {column: place for place, column in enumerate(columns)}
    rows: dict[str, list[str]] = {}
    for (row, column), count in counts.items():
        if count:
            rows.setdefault(row, [""] * len(columns))[places[column]] = str(count)
    return CountTable(columns=list(columns), rows={row: ",".join(rows[row]).rstrip(",") for row in sorted(rows)})


class Together:
    """The cells that some of several tables count, without a text for each: a thousand tables take a second."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """by column: its bit"""
        self._found: dict[str, int] = {}
        """by row: the bits of the columns that some table counts"""

    def add(self, table: CountTable) -> int:
        """Add a table; returns how many cells it counts itself."""
        bits = [1 << self._places.setdefault(column, len(self._places)) for column in table.columns]
        own = 0
        for row, cells in table.rows.items():
            mask = sum(compress(bits, cells.split(",")))
            own += mask.bit_count()
            self._found[row] = self._found.get(row, 0) | mask
        return own

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self._found.values())
