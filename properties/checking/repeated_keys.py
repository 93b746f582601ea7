"""Warnings about keys that identify more than one row, with their number and an example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import to_arrow
from .conversion import shown_as
from .row_ids import RowNumbers

EXAMPLES = 3


def repeated_keys(keys: Any, side: str) -> str:
    """A warning about the key columns of a table; empty if each key occurs once."""
    if not len(keys):
        return ""
    numbers = RowNumbers(len(keys))
    for column in keys.columns:
        numbers.add(column)
    ids, many = numbers.dense()
    times = np.bincount(ids, minlength=many)
    if times.max() == 1:
        return ""
    repeated = np.flatnonzero(times > 1)
    most = repeated[np.argsort(-times[repeated], kind="stable")][:EXAMPLES]
    first = np.empty(many, np.int64)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    rows_shown = pa.table({name: shown_as(keys.column(name)) for name in keys.column_names}).take(to_arrow(first[most]))
    examples = []
    for row, count in zip(rows_shown.to_pylist(), times[most], strict=True):
        values = ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in row.items())
        examples.append(f"{values} {count:,} times")
    rows = int(times[repeated].sum())
    return (
        f"the key {', '.join(keys.column_names)} is not unique in {side}: {len(repeated):,}"
        f" key{'s' * (len(repeated) > 1)} in {rows:,} rows ({'; '.join(examples)})"
    )
