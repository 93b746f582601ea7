"""The Arrow engine: two tables compared as multisets of rows, in this process, without hashing.

Equal rows at the same place are removed first, since most outputs are in the order
of the expected rows.  The remaining rows are numbered, so that equal rows have the
same number, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import FALSE, TRUE, no_rows, number, to_arrow, to_numpy
from .differing import Compared, counted, judged
from .pair import Pair
from .repeated_keys import repeated_keys
from .request import COUNT, IS_EXPECTED, SIDES
from .row_ids import Numbers, RowNumbers, row_ids
from .tolerance import without_tolerated

FEW = 5
"""Equal rows at the same place are removed if at most one row in this many remains."""


def compare(pair: Pair, *, bounded: bool = True) -> Compared:
    """Compare two tables in this process; raises CheckInputError, and TooLarge if `bounded` and they are too large."""
    for side in pair.sides:
        side.hold(pair.names, bounded=bounded)
    pair.bring()
    expected, actual = (_whole(pair, side) for side in pair.sides)
    request = pair.request
    differing = differences(expected, actual, request.key)
    if request.tolerated:
        differing = without_tolerated(differing, request)
    warnings = []
    if request.key:
        for name, table in zip(SIDES, (expected, actual), strict=True) if len(differing) else [("both", expected)]:
            if line := repeated_keys(table.select(list(request.key)), name):
                warnings.append(line)
    found = counted(differing, request)
    result = judged(
        found,
        request,
        expected_rows=len(expected),
        actual_rows=len(actual),
        exact=True,
        engine="arrow",
        conversions=pair.conversions,
        warnings=tuple(warnings),
    )
    return Compared(result, found)


def _whole(pair: Pair, side: Any) -> Any:
    schema = pa.schema(list(pair.types.items()))
    return pa.concat_tables([no_rows(schema), *(table.cast(schema) for table in pair.converted(side))])


def differences(expected: Any, actual: Any, key: Sequence[str] = ()) -> Any:
    """The rows that one side has more often, with `COUNT` and `IS_EXPECTED`."""
    none = np.zeros(0, np.int64)
    if len(expected) == len(actual):
        unlike = pc.invert(_alike(expected, actual))
        left = pc.sum(unlike).as_py() or 0
        if left == 0:
            return _with_counts(expected.slice(0, 0), none, none > 0)
        if left * FEW <= len(expected):
            return _expected_too(_counted(expected.filter(unlike), actual.filter(unlike), key), expected)
    return _counted(expected, actual, key)


def _alike(expected: Any, actual: Any) -> Any:
    """For each row, whether the other table has an equal row at the same place."""
    alike = pa.chunked_array([pa.repeat(TRUE, len(expected))])
    for one, other in zip(expected.columns, actual.columns, strict=True):
        if pa.types.is_nested(one.type):
            same = _same(one, other)
        elif pa.types.is_null(one.type):
            continue
        else:
            equal = pc.equal(one, other)
            if pa.types.is_floating(one.type):
                equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
            same = pc.or_(pc.fill_null(equal, FALSE), pc.and_(pc.is_null(one), pc.is_null(other)))
        alike = pc.and_(alike, same)
    return alike


def _same(one: Any, other: Any) -> Any:
    ids, _ = row_ids([pa.chunked_array([*one.chunks, *other.chunks], one.type)])
    return pa.chunked_array([to_arrow(ids[: len(one)] == ids[len(one) :])])


def _counted(expected: Any, actual: Any, key: Sequence[str]) -> Any:
    """The rows that one side has more often; as soon as some columns identify the rows of each side, `_side_by_side`
    compares the other columns."""
    both = pa.concat_tables([expected, actual])
    names = sorted(both.column_names, key=lambda name: (name not in key, _cost(both.schema.field(name).type)))
    numbers = RowNumbers(len(both))
    split = len(expected)
    for place, name in enumerate(names, 1):
        numbers.add(both.column(name))
        if place < len(names):
            ids, many = numbers.dense()
            if _once(ids[:split], many) and _once(ids[split:], many):
                return _side_by_side(expected, actual, ids, many, names[place:])
    ids, many = numbers.dense()
    expected_counts = np.bincount(ids[:split], minlength=many)
    found = np.bincount(ids[split:], minlength=many)
    counts = expected_counts - found
    differing = np.flatnonzero(counts)
    rows = both.take(to_arrow(_places(ids, many)[differing]))
    return _with_counts(rows, counts[differing], expected_counts[differing] > 0)


def _cost(kind: Any) -> int:
    """A rank: low if values of a type are cheap to number, and likely to identify a row."""
    if pa.types.is_integer(kind):
        return 0
    return 3 if pa.types.is_nested(kind) else 2 if pa.types.is_floating(kind) or pa.types.is_boolean(kind) else 1


def _once(ids: Numbers, many: int) -> bool:
    return not len(ids) or int(np.bincount(ids, minlength=many).max()) <= 1


def _places(ids: Numbers, many: int) -> Numbers:
    """The first place of each number; -1 if it does not occur."""
    places = np.full(many, -1, np.int64)
    places[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    return places


def _side_by_side(expected: Any, actual: Any, ids: Numbers, many: int, others: list[str]) -> Any:
    """The differing rows, if the columns numbered in `ids` identify each row: only rows of one number can be equal."""
    split = len(expected)
    one, other = _places(ids[:split], many), _places(ids[split:], many)
    shared = np.flatnonzero((one >= 0) & (other >= 0))
    pairs = [_taken(table.select(others), places[shared]) for table, places in ((expected, one), (actual, other))]
    unlike = shared[~to_numpy(_alike(*pairs))]
    lost = np.sort(np.r_[one[unlike], one[(one >= 0) & (other < 0)]])
    extra = np.sort(np.r_[other[unlike], other[(other >= 0) & (one < 0)]])
    rows = pa.concat_tables([expected.take(to_arrow(lost)), actual.take(to_arrow(extra))])
    counts = np.r_[np.full(len(lost), 1), np.full(len(extra), -1)]
    return _with_counts(rows, counts, counts > 0)


def _taken(table: Any, places: Numbers) -> Any:
    """The rows at these places; all rows in order are not copied."""
    if len(places) == len(table) and np.array_equal(places, np.arange(len(table))):
        return table
    return table.take(to_arrow(places))


def _with_counts(rows: Any, counts: Any, is_expected: Any) -> Any:
    rows = rows.append_column(COUNT, to_arrow(counts))
    return rows.append_column(IS_EXPECTED, to_arrow(is_expected))


def _expected_too(differing: Any, expected: Any) -> Any:
    """Set `IS_EXPECTED` for an extra row if the expected table has an equal row that was removed before."""
    names = expected.column_names
    extra = differing.filter(pc.less(differing.column(COUNT), number(0)))
    if not len(extra):
        return differing
    candidates, wanted = expected, extra.select(names)
    for name in names:
        kind = candidates.schema.field(name).type
        if not pa.types.is_nested(kind) and not pa.types.is_null(kind):
            values = wanted.column(name).combine_chunks().unique()
            candidates = candidates.filter(pc.is_in(candidates.column(name), value_set=values))
    both = pa.concat_tables([wanted, candidates])
    ids, many = row_ids(both.columns)
    there = np.bincount(ids[len(wanted) :], minlength=many) > 0
    is_expected = to_numpy(differing.column(IS_EXPECTED)).copy()
    places = np.flatnonzero(to_numpy(pc.less(differing.column(COUNT), number(0))))
    is_expected[places] |= there[ids[: len(wanted)]]
    place = differing.column_names.index(IS_EXPECTED)
    return differing.set_column(place, IS_EXPECTED, to_arrow(is_expected))
