"""Expected rows paired with committed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..properties.model.workload import Row
from .model import RowPair, RowStatus


def side_by_side(expected: Iterable[Row], committed: Iterable[Row]) -> tuple[RowPair, ...]:
    """Pair two multisets of rows, each copy by itself.

    Rows are sorted by key, then value, with NULL first.  A committed row beyond its expected
    copies is *repeated*.  A committed row that was never expected is *unexpected*.
    """
    expected_counts, seen = Counter(expected), Counter(committed)
    pairs: list[RowPair] = []
    for row in sorted({*expected_counts, *seen}, key=_sort_key):
        both = min(expected_counts[row], seen[row])
        surplus: RowStatus = "repeated" if expected_counts[row] else "unexpected"
        pairs += [RowPair(status="ok", expected=row, committed=row)] * both
        pairs += [RowPair(status="lost", expected=row)] * (expected_counts[row] - both)
        pairs += [RowPair(status=surplus, committed=row)] * (seen[row] - both)
    return tuple(pairs)


def _sort_key(row: Row) -> tuple[tuple[bool, int], tuple[bool, int], int, int]:
    key, value, tag, tag2 = row
    return (key is not None, key or 0), (value is not None, value or 0), tag, tag2
