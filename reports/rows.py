"""Expected rows paired with committed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..properties.model.workload import Row
from .model import RowPair, RowStatus


def side_by_side(
    expected: Iterable[Row], committed: Iterable[Row], changed: Iterable[tuple[Row, Row]] = ()
) -> tuple[RowPair, ...]:
    """Pair two multisets of rows, each copy by itself.

    Rows are sorted by key, then value, with NULL first.  A committed row beyond its expected
    copies is *repeated*.  A committed row that was never expected is *unexpected*.  The pairs (expected, committed)
    of `changed` stand side by side.
    """
    changed = tuple(changed)
    expected_counts = Counter(expected) - Counter(was for was, _ in changed)
    seen = Counter(committed) - Counter(now for _, now in changed)
    pairs = [RowPair(status="changed", expected=was, committed=now) for was, now in changed]
    for row in sorted({*expected_counts, *seen}, key=_sort_key):
        both = min(expected_counts[row], seen[row])
        surplus: RowStatus = "repeated" if expected_counts[row] else "unexpected"
        pairs += [RowPair(status="ok", expected=row, committed=row)] * both
        pairs += [RowPair(status="lost", expected=row)] * (expected_counts[row] - both)
        pairs += [RowPair(status=surplus, committed=row)] * (seen[row] - both)
    return tuple(sorted(pairs, key=lambda pair: _sort_key(pair.expected or pair.committed or (None, None, 0, 0))))


def _sort_key(row: Row) -> tuple[tuple[bool, int], tuple[bool, int], int, int]:
    key, value, tag, tag2 = row
    return (key is not None, key or 0), (value is not None, value or 0), tag, tag2
