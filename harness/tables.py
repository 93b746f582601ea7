"""Columns out of CSV and Parquet files, as plain Python values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .config import nearest
from .exit_codes import UsageError

KINDS = (".csv", ".parquet")


def read_columns(path: Path, wanted: Sequence[str]) -> dict[str, list[Any]]:
    """The wanted columns of a file, empty fields as None; raises UsageError in one line.

    CSV is read as whole numbers where a column has only such, else as text or
    numbers as pyarrow sees them; dates and times stay what they are.
    """
    if not path.exists():
        raise UsageError(f"there is no input file {path}")
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"{path} is neither .csv nor .parquet")
    if path.is_file() and path.stat().st_size == 0:
        raise UsageError(f"{path} is empty")
    import pyarrow as pa

    try:
        table = _read(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{path} cannot be read as {path.suffix[1:].upper()}: {reason}") from error
    for name in wanted:
        if name not in table.column_names:
            raise UsageError(f"{path} has no column {name!r}{nearest(name, table.column_names)}")
    return {name: table.column(name).to_pylist() for name in dict.fromkeys(wanted)}


def _read(path: Path) -> Any:
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path)
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA", "NULL", "null"])
    return pyarrow.csv.read_csv(path, convert_options=options)
