"""Delta and Iceberg tables: which files the newest version of a table consists of, as the table itself says.

Only what says so is read here, by the libraries deltalake and pyiceberg.  The rows are read from these files of
Parquet, by as many tasks as Spark makes of them.  A table whose rows are not simply those of its files, such as one
with deletion vectors, is refused (Delta) or read by its library (Iceberg, `iceberg_source`).
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..errors import CheckInputError, error_text

METADATA = ".metadata.json"
"""how the name of a file with an Iceberg table's metadata ends"""
READ_AS_STORED = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "columnMapping"})
"""Delta's features with which the rows of a table are those of its files; `columnMapping` as long as it is not used"""


def is_delta(path: Path) -> bool:
    return (path / "_delta_log").is_dir()


def is_iceberg(path: Path) -> bool:
    return any((path / "metadata").glob(f"*{METADATA}"))


def delta_files(path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The files, and the columns in the names of their folders; raises CheckInputError."""
    table = _delta(path)
    try:
        protocol, described = table.protocol(), table.metadata()
        uris = table.file_uris()
    except Exception as error:  # deltalake's errors have no common class
        raise CheckInputError(f"{path} cannot be read as a Delta table: {error_text(error)}") from error
    features = set(protocol.reader_features or ()) - READ_AS_STORED
    if described.configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if features:
        raise CheckInputError(
            f"{path} uses {' and '.join(sorted(features))}, which check cannot read; let the engine that wrote the"
            " Delta table write its rows as Parquet, and name that folder"
        )
    whole = path.resolve()  # deltalake's paths are absolute, and have no symbolic links
    files = (_local(uri, path) for uri in uris)
    own = (path / file.relative_to(whole) if file.is_relative_to(whole) else file for file in files)
    return sorted(own), tuple(described.partition_columns)


def delta_schema(path: Path) -> Any:
    """The columns of a Delta table without files, as an Arrow schema."""
    import pyarrow as pa

    return pa.schema(_delta(path).schema().to_arrow())


def _delta(path: Path) -> Any:
    try:
        deltalake = importlib.import_module("deltalake")
    except ImportError as error:
        raise CheckInputError(f"{path} is a Delta table: reading it needs `pip install deltalake`") from error
    try:
        return deltalake.DeltaTable(str(path))
    except Exception as error:
        raise CheckInputError(f"{path} cannot be read as a Delta table: {error_text(error)}") from error


def iceberg_table(metadata: Path) -> Any:
    """The table that a file of metadata describes; raises CheckInputError."""
    try:
        table = importlib.import_module("pyiceberg.table")
    except ImportError as error:
        raise CheckInputError(
            f"{metadata.parent.parent} is an Iceberg table: reading it needs `pip install 'pyiceberg[pyarrow]'`"
        ) from error
    try:
        return table.StaticTable.from_metadata(str(metadata))
    except Exception as error:  # of pyiceberg, of Pydantic, of the file system
        raise unreadable(metadata, error) from error


def iceberg_files(metadata: Path) -> list[Path]:
    """The files with the rows of the current snapshot, in the order of their names; raises CheckInputError."""
    try:
        scan = iceberg_table(metadata).scan()
        uris = [task.file.file_path for task in scan.plan_files()]
    except CheckInputError:
        raise
    except Exception as error:
        raise unreadable(metadata, error) from error
    return sorted(_local(uri, metadata.parent.parent) for uri in uris)


def unreadable(metadata: Path, error: Exception) -> CheckInputError:
    return CheckInputError(f"{metadata.parent.parent} cannot be read as an Iceberg table: {error_text(error)}")


def newest_metadata(path: Path) -> Path:
    """The file with the newest metadata of an Iceberg table in a folder; raises CheckInputError if two are the newest.

    Catalogs number these files, `v12.metadata.json` or `00012-….metadata.json`.  A commit that was refused may leave
    a file with the number of the commit that came first; only the catalog knows which of the two it is.
    """
    found: dict[int, list[Path]] = {}
    for file in (path / "metadata").glob(f"*{METADATA}"):
        number = re.match(r"v?(\d+)", file.name)
        found.setdefault(int(number[1]) if number else -1, []).append(file)
    newest = sorted(found[max(found)])
    if len(newest) > 1:
        raise CheckInputError(
            f"{path} has two files of newest metadata, {newest[0].name} and {newest[1].name}: name the one that the"
            " table's catalog names"
        )
    return newest[0]


def _local(uri: str, table: Path) -> Path:
    """The path of a file; raises CheckInputError if it is not in a file system of this machine."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme != "file":
        raise CheckInputError(f"{table} has files at {scheme}://, and check reads files that have a path here")
    if uri.startswith("file:"):
        return Path("/" + unquote(rest or uri.removeprefix("file:")).lstrip("/"))
    return Path(uri)
