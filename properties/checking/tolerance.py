"""Differing rows without the pairs, one row of each side, that are equal within the tolerance.

Rows that are equal in the other columns are paired in the order of the tolerated columns.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .request import COUNT, IS_EXPECTED, CheckRequest
from .row_ids import row_ids


def without_tolerated(differing: Any, request: CheckRequest) -> Any:
    """A table of differing rows without the tolerated pairs."""
    if not len(differing):
        return differing
    names = [name for name in differing.column_names if name not in (COUNT, IS_EXPECTED)]
    others = [name for name in names if name not in request.tolerated]
    counts = differing.column(COUNT).to_numpy()
    rows = np.repeat(np.arange(len(differing)), np.abs(counts))
    signs = np.sign(counts)[rows]
    groups = row_ids([differing.column(name) for name in others])[0][rows]
    order = pc.sort_indices(differing, sort_keys=[(name, "ascending") for name in request.tolerated]).to_numpy()
    ranks = np.empty(len(differing), np.int64)
    ranks[order] = np.arange(len(differing))
    sorting = np.lexsort((ranks[rows], signs, groups))
    rows, signs, groups = rows[sorting], signs[sorting], groups[sorting]
    begins = np.r_[True, (groups[1:] != groups[:-1]) | (signs[1:] != signs[:-1])]
    place = np.arange(len(rows)) - np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))
    sorting = np.lexsort((signs, place, groups))
    rows, signs, groups, place = rows[sorting], signs[sorting], groups[sorting], place[sorting]
    paired = np.flatnonzero((groups[1:] == groups[:-1]) & (place[1:] == place[:-1]))
    actual, expected = rows[paired], rows[paired + 1]
    near = np.ones(len(paired), bool)
    for name in request.tolerated:
        column = differing.column(name)
        near &= _near(column.take(pa.array(expected)), column.take(pa.array(actual)),
                      request.tolerance.get(name, 0.0), request.relative_tolerance.get(name, 0.0))  # fmt: skip
    matched = np.bincount(np.r_[actual[near], expected[near]], minlength=len(differing))
    left = counts - np.sign(counts) * matched
    place_of_count = differing.column_names.index(COUNT)
    return differing.set_column(place_of_count, COUNT, pa.array(left, pa.int64())).filter(pa.array(left != 0))


def _near(one: Any, other: Any, most: float, share: float) -> npt.NDArray[np.bool_]:
    """Whether numbers differ by at most `most`, or by at most `share` of the greater one; NULL is near NULL."""
    absent = pc.is_null(one).to_numpy(zero_copy_only=False) & pc.is_null(other).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(one.type):
        left, right = (side.to_numpy(zero_copy_only=False) for side in (one, other))
        same = (left == right) | (np.isnan(left) & np.isnan(right) & ~_lone_null(one, other))
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.abs(left - right)
            near = (gap <= most) | (gap <= share * np.maximum(np.abs(left), np.abs(right)))
            near &= np.isfinite(left) & np.isfinite(right)
        return np.asarray(absent | same | near)
    pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
    close = (a == b or (a is not None and b is not None and _within(a, b, most, share)) for a, b in pairs)
    return np.asarray(absent | np.fromiter(close, bool, len(one)))


def _lone_null(one: Any, other: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_null(one).to_numpy(zero_copy_only=False) | pc.is_null(other).to_numpy(zero_copy_only=False))


def _within(one: int | Decimal, other: int | Decimal, most: float, share: float) -> bool:
    left, right = Decimal(one), Decimal(other)
    gap = float(abs(left - right))
    return gap <= most or gap <= share * float(max(abs(left), abs(right)))
