"""Parquet from any writer: dictionaries are resolved, and old 96-bit times are read as microseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import CheckInputError, error_text

ROWS_AT_ONCE = 128 * 1024


def opened(path: Path) -> Any:
    """A pyarrow ParquetFile; raises CheckInputError."""
    import pyarrow.parquet as pq  # slow to import: only if there is Parquet

    try:
        return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise CheckInputError(f"{path} cannot be read as Parquet: {error_text(error)}") from None


def batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Those of the named columns that the file has; raises CheckInputError."""
    with opened(path) as file:
        here = [name for name in columns if name in file.schema_arrow.names]
        rows = 0
        try:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=here):
                rows += batch.num_rows
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise CheckInputError(
                f"{path} cannot be read as Parquet beyond row {rows:,}: {error_text(error)}"
            ) from None
