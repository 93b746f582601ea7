"""Per column: the number of changed rows in which it differs, and the greatest difference."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import EMPTY, FALSE, TEXT, to_arrow, to_numpy
from .request import ColumnDifference
from .row_ids import row_ids

T = pa.types
_SECOND = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}


def column_differences(changed: Any, key: Sequence[str]) -> tuple[ColumnDifference, ...]:
    """The differences of each column that differs in a table of changed rows (`differing.counted`)."""
    names = [name.removeprefix("expected_") for name in changed.column_names if name.startswith("expected_")]
    times = to_numpy(changed.column("times"))
    half = len(names)
    found = []
    for place, name in enumerate(names):
        if name in key or not len(changed):
            continue
        one, other = changed.column(2 + place), changed.column(2 + half + place)
        ids, _ = row_ids([pa.chunked_array([*one.chunks, *other.chunks], one.type)])
        unlike = ids[: len(one)] != ids[len(one) :]
        if unlike.any():
            mask = to_arrow(unlike)
            found.append(_difference(name, one.filter(mask), other.filter(mask), times[unlike]))
    return tuple(found)


def _difference(name: str, one: Any, other: Any, times: Any) -> ColumnDifference:
    lone = to_numpy(pc.xor(pc.is_null(one), pc.is_null(other)))
    empty = 0
    if one.type == TEXT:
        blank = pc.or_(*(pc.fill_null(pc.equal(side, EMPTY), FALSE) for side in (one, other)))
        empty = int(times[to_numpy(blank) & lone].sum())
    greatest, relative = _greatest(one.filter(to_arrow(~lone)), other.filter(to_arrow(~lone)))
    return ColumnDifference(
        column=name,
        rows=int(times.sum()),
        greatest=greatest,
        relative=relative,
        nulls=int(times[lone].sum()),
        empty=empty,
    )


def _greatest(one: Any, other: Any) -> tuple[float | None, float | None]:
    """(the greatest absolute difference, for times in seconds; the greatest relative one); None if there is none."""
    kind = one.type
    if not len(one):
        return None, None
    if T.is_timestamp(kind) or T.is_date(kind):
        ticks = max(abs(a - b) for a, b in zip(_ticks(one), _ticks(other), strict=True))
        return float(ticks / (_SECOND[kind.unit] if T.is_timestamp(kind) else 1 / 86_400)), None
    if T.is_integer(kind) or T.is_decimal(kind):
        gaps = [(abs(Decimal(a) - Decimal(b)), max(abs(a), abs(b)))
                for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True)]  # fmt: skip
        return float(max(gap for gap, _ in gaps)), max(float(gap) / float(most) for gap, most in gaps)
    if not T.is_floating(kind):
        return None, None
    left, right = (to_numpy(side).astype(np.float64) for side in (one, other))
    finite = np.isfinite(left) & np.isfinite(right)
    if not finite.any():
        return None, None
    left, right = left[finite], right[finite]
    with np.errstate(over="ignore"):
        gap = np.abs(left - right)
        share = gap / np.maximum(np.abs(left), np.abs(right))
    return float(gap.max()), float(share.max())


def _ticks(side: Any) -> list[int]:
    wide = side.cast(pa.int32()) if T.is_date32(side.type) else side
    return [int(tick) for tick in wide.cast(pa.int64()).to_pylist()]
