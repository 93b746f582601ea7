"""What is reported of differing rows: kinds, counts, changed rows, examples, differences by column.

With a key, a lost and an unexpected row of one key are one changed row.  Such rows
are paired in the order of their values, as long as both kinds remain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import null, text, to_arrow, to_numpy
from .columns import column_differences
from .conversion import shown_as
from .request import COUNT, GUARANTEES, IS_EXPECTED, KINDS, CheckRequest, CheckResult, Sample
from .row_ids import row_ids

Numbers = npt.NDArray[np.int64]
KIND = "difference"
TIMES = "times"


class Compared:
    """The result, and the table of all differing rows (`counted`)."""

    def __init__(self, result: CheckResult, differences: Any) -> None:
        self.result, self.differences = result, differences


def counted(differing: Any, request: CheckRequest) -> Any:
    """The table of all differing rows, in order.

    Its columns are `difference` (lost, repeated, unexpected or changed), `times`, and for each
    column c the expected value (`expected_c`) and the actual one (`actual_c`).
    """
    names = [name for name in differing.column_names if name not in (COUNT, IS_EXPECTED)]
    rows = _sorted(differing, names)
    counts = to_numpy(rows.column(COUNT))
    is_expected = to_numpy(rows.column(IS_EXPECTED))
    times = np.abs(counts)
    lost = np.flatnonzero(counts > 0)
    repeated = np.flatnonzero((counts < 0) & is_expected)
    unexpected = np.flatnonzero((counts < 0) & ~is_expected)
    parts = []
    if request.key and len(lost) and len(unexpected):
        keys = row_ids([rows.column(name) for name in request.key])[0]
        one, two, both = _paired(keys, times, lost, unexpected)
        parts.append(("changed", one, two, both))
        times = times.copy()
        np.subtract.at(times, one, both)
        np.subtract.at(times, two, both)
        lost, unexpected = (places[times[places] > 0] for places in (lost, unexpected))
    none = np.full(0, -1)
    for kind, places in zip(KINDS, (lost, repeated, unexpected), strict=True):
        empty = np.full(len(places), -1)
        sides = (places, empty) if kind == "lost" else (empty, places)
        parts.append((kind, *sides, times[places]))
    expected, actual, often = (
        np.concatenate([none, *(part[index] for part in parts)]).astype(np.int64) for index in (1, 2, 3)
    )
    kinds = pa.chunked_array([pa.repeat(text(kind).cast(pa.string()), len(many)) for kind, _, _, many in parts])
    columns = {KIND: kinds, TIMES: to_arrow(often)}
    for side, places in (("expected", expected), ("actual", actual)):
        taken = rows.select(names).take(_where(places))
        columns |= {f"{side}_{name}": taken.column(name) for name in names}
    return pa.table(columns)


def _where(places: Numbers) -> Any:
    """The places from which to take rows; NULL if below 0."""
    return pc.if_else(to_arrow(places < 0), null(pa.int64()), to_arrow(places))


def _sorted(table: Any, names: list[str]) -> Any:
    plain = [name for name in names if _has_order(table.schema.field(name).type)]
    if not plain or not len(table):
        return table
    columns, keys = {}, []
    for number, name in enumerate(plain):
        column = table.column(name)
        if column.null_count:  # NULL first
            columns[f"there{number}"] = pc.is_valid(column)
            keys.append((f"there{number}", "ascending"))
        columns[f"value{number}"] = column
        keys.append((f"value{number}", "ascending"))
    return table.take(pc.sort_indices(pa.table(columns), sort_keys=keys))


def _has_order(kind: Any) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _paired(keys: Numbers, times: Numbers, lost: Numbers, unexpected: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """(places of lost rows, places of unexpected rows of the same keys, how often each pair occurs)."""
    shared = np.intersect1d(keys[lost], keys[unexpected])
    sides = []
    for places in (lost, unexpected):
        there = places[np.isin(keys[places], shared)]
        sides.append(there[np.argsort(keys[there], kind="stable")])
    one, two = sides
    if len(one) == len(two) == len(shared):  # each key once on either side
        return _in_order(one, two, np.minimum(times[one], times[two]))
    pairs: list[tuple[int, int, int]] = []
    left = [int(times[place]) for place in one]
    right = [int(times[place]) for place in two]
    i = j = 0
    while i < len(one) and j < len(two):
        if keys[one[i]] != keys[two[j]]:
            i, j = (i + 1, j) if keys[one[i]] < keys[two[j]] else (i, j + 1)
            continue
        both = min(left[i], right[j])
        pairs.append((int(one[i]), int(two[j]), both))
        left[i] -= both
        right[j] -= both
        i, j = i + (left[i] == 0), j + (right[j] == 0)
    found = np.array(pairs, np.int64).reshape(-1, 3)
    return _in_order(found[:, 0], found[:, 1], found[:, 2])


def _in_order(one: Numbers, two: Numbers, both: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    order = np.lexsort((two, one))
    return one[order], two[order], both[order]


def judged(
    found: Any,
    request: CheckRequest,
    *,
    expected_rows: int,
    actual_rows: int,
    exact: bool,
    engine: str,
    conversions: tuple[str, ...],
    warnings: tuple[str, ...],
) -> CheckResult:
    """The verdict on a table of all differing rows (`counted`)."""
    kinds = found.column(KIND)
    counts = {}
    for kind in ("changed", *KINDS):
        counts[kind] = pc.sum(found.filter(pc.equal(kinds, text(kind))).column(TIMES)).as_py() or 0
    changed = found.filter(pc.equal(kinds, text("changed")))
    columns = column_differences(changed, request.key)
    hints = tuple(
        f"column {one.column}: {one.empty:,} empty texts stand where the other table has NULL, which the CSV of pandas"
        " and of Excel does not tell apart; --empty-is-null takes them for one"
        for one in columns
        if one.empty
    )
    return CheckResult(
        held=not any(counts[kind] for kind in GUARANTEES[request.guarantee]),
        expected_rows=expected_rows,
        actual_rows=actual_rows,
        samples=samples(found, request.limit),
        exact=exact,
        engine=engine,
        conversions=conversions,
        warnings=(*warnings, *hints),
        columns=columns,
        **counts,
    )


def samples(found: Any, limit: int) -> tuple[Sample, ...]:
    """The first differing rows of each kind."""
    shown: list[Sample] = []
    names = [name.removeprefix("expected_") for name in found.column_names if name.startswith("expected_")]
    half = len(names)
    for kind in ("changed", *KINDS):
        some = found.filter(pc.equal(found.column(KIND), text(kind))).slice(0, limit)
        times = some.column(TIMES).to_pylist()
        sides = []
        for first in (2, 2 + half):
            columns = [shown_as(some.column(place)) for place in range(first, first + half)]
            sides.append([dict(zip(names, row, strict=True)) for row in _rows(columns)])
        for expected, actual, count in zip(*sides, times, strict=True):
            row = actual if kind in ("repeated", "unexpected") else expected
            shown.append(Sample(kind=kind, row=row, count=count, actual=actual if kind == "changed" else None))
    return tuple(shown)


def _rows(columns: list[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
