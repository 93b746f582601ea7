"""Columns out of CSV and Parquet files, as plain Python values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..runtime.config import nearest
from ..runtime.exit_codes import UsageError
from ..scenario.reading import demand_file

KINDS = (".csv", ".parquet")
LIMIT_BYTES = 256 * 1024 * 1024
"""of a CSV file, which is read as a whole"""
LIMIT_ROWS = 1_000_000
"""of any file"""


def read_columns(path: Path, wanted: Sequence[str]) -> dict[str, list[Any]]:
    """The wanted columns of a file, empty fields as None; raises UsageError in one line.

    A column of CSV is read as whole numbers if it has no others, else as text or numbers as pyarrow decides; dates and
    times stay what they are.
    """
    if not path.exists():
        raise UsageError(f"there is no input file {path}")
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"{path} is neither .csv nor .parquet")
    if not path.is_dir():
        demand_file(path, LIMIT_BYTES if path.suffix.lower() == ".csv" else None)
    if path.is_file() and path.stat().st_size == 0:
        raise UsageError(f"{path} is empty")
    import pyarrow as pa

    try:
        table = _read(path, wanted)
        return {name: table.column(name).to_pylist() for name in dict.fromkeys(wanted)}
    except (pa.ArrowException, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} cannot be read as {path.suffix[1:].upper()}: {error}") from error


def _read(path: Path, wanted: Sequence[str]) -> Any:
    """The wanted columns; of a file with more rows than a workload may have, one row more than that."""
    if path.suffix.lower() == ".parquet":
        import pyarrow.dataset

        found = pyarrow.dataset.dataset(path, format="parquet")
        _demand_columns(path, wanted, found.schema.names)
        return found.head(LIMIT_ROWS + 1, columns=list(dict.fromkeys(wanted)))
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA", "NULL", "null"])
    table = pyarrow.csv.read_csv(path, convert_options=options)
    _demand_columns(path, wanted, table.column_names)
    return table


def _demand_columns(path: Path, wanted: Sequence[str], there: Sequence[str]) -> None:
    for name in wanted:
        if name not in there:
            raise UsageError(f"{path} has no column {name!r}{nearest(name, there)}")
