"""A number for each row, equal for equal rows only, so that numpy can compare rows.

Each column's values are numbered (Arrow's dictionary encoding, by value and not
by hash alone), and the numbers of a row are combined into one.  If this one would
exceed 63 bits, the numbers combined so far are numbered anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import to_arrow, to_numpy, whole

Numbers = npt.NDArray[np.int64]
_MOST = 1 << 62
_NARROW = 1 << 40
SPARSE = 4


class RowNumbers:
    """The rows' numbers by the columns that were added so far; only `dense` makes them dense."""

    def __init__(self, rows: int) -> None:
        self._ids, self._many = np.zeros(rows, np.int64), 1

    def add(self, column: Any) -> None:
        """Distinguish rows by one more column, a chunked array."""
        own, kinds = _numbered(column)
        if self._many * kinds > _MOST:
            self._ids, self._many = _dense(self._ids)
        self._ids, self._many = self._ids * kinds + own, self._many * kinds

    def dense(self) -> tuple[Numbers, int]:
        """(a number from 0 for each row, a bound above all of them); the bound is at most a few times the rows."""
        if self._many > SPARSE * len(self._ids) + 1:
            self._ids, self._many = _dense(self._ids)
        return self._ids, self._many


def row_ids(columns: Sequence[Any]) -> tuple[Numbers, int]:
    """(a dense number from 0 for each row of the columns, which are chunked arrays; how many numbers there are)."""
    numbers = RowNumbers(len(columns[0]))
    for column in columns:
        numbers.add(column)
    return _dense(numbers.dense()[0])


def _numbered(column: Any) -> tuple[Numbers, int]:
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([pa.array([canonical(value) for value in column.to_pylist()], pa.large_string())])
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), 1
    array = whole(column)
    if pa.types.is_integer(column.type) and len(array) and not array.null_count:
        ends = pc.min_max(array)
        least, most = ends["min"].as_py(), ends["max"].as_py()
        if most - least < _NARROW:
            return to_numpy(array) - least, most - least + 1
    encoded = array.dictionary_encode(null_encoding="encode")
    return to_numpy(encoded.indices).astype(np.int64), max(1, len(encoded.dictionary))


def _dense(ids: Numbers) -> tuple[Numbers, int]:
    encoded = to_arrow(ids).dictionary_encode()
    return to_numpy(encoded.indices).astype(np.int64), len(encoded.dictionary)


def canonical(value: Any) -> str | None:
    """A nested value as a text that only equal values share; a map's entries are sorted."""
    return None if value is None else _canonical(value)


def _canonical(value: Any) -> str:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, dict):
        return "{" + ",".join(f"{name!r}:{_canonical(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        items = [_canonical(item) for item in value]
        if value and all(isinstance(item, tuple) for item in value):
            items.sort()
        return "[" + ",".join(items) + "]"
    if isinstance(value, tuple):  # an entry of a map
        return "(" + ",".join(map(_canonical, value)) + ")"
    return repr(value)
