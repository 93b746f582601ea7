"""Conversions between Arrow and numpy without pyarrow's own.

The first call of `pa.array`, `pa.scalar` or `to_numpy` imports pandas, even if no value comes from pandas.  This import
takes longer than the comparison of a million rows.  The functions here pass buffers, and import nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TEXT = pa.large_string()
_KINDS = {
    np.dtype(np.uint8): pa.uint8(),
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.float32): pa.float32(),
    np.dtype(np.float64): pa.float64(),
}


def to_arrow(values: npt.NDArray[Any]) -> Any:
    """Whole numbers, floats or truth values as an Arrow array."""
    if values.dtype == bool:
        return to_arrow(values.view(np.uint8)).cast(pa.bool_())
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(_KINDS[values.dtype], len(values), [None, pa.py_buffer(values)])


def to_numpy(column: Any) -> npt.NDArray[Any]:
    """The values of an array or a chunked array of whole numbers, floats or truth values; none may be NULL."""
    array = whole(column) if isinstance(column, pa.ChunkedArray) else column
    if array.null_count:
        raise ValueError("a NULL is no number")
    if pa.types.is_boolean(array.type):
        return to_numpy(array.cast(pa.uint8())).view(bool)
    dtype = np.dtype(np.float32 if pa.types.is_float32(array.type) else str(array.type))
    if not len(array):
        return np.zeros(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def whole(column: Any) -> Any:
    """A chunked array as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def text(value: str) -> Any:
    """A text as an Arrow scalar."""
    data = value.encode()
    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    return pa.Array.from_buffers(TEXT, 1, [None, ends, pa.py_buffer(data)])[0]


def texts_of(values: list[bytes]) -> Any:
    """An array of texts, which are given in UTF-8."""
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=ends[1:])
    return pa.Array.from_buffers(TEXT, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def number(value: int) -> Any:
    """A whole number as an Arrow scalar."""
    return to_arrow(np.array([value], np.int64))[0]


def null(kind: Any) -> Any:
    """NULL of a type as an Arrow scalar."""
    return pa.nulls(1, kind)[0]


def no_rows(schema: Any) -> Any:
    """A table of no rows."""
    return pa.table([pa.nulls(0, field.type) for field in schema], schema=schema)


TRUE, FALSE = to_arrow(np.array([True, False]))
EMPTY = text("")
