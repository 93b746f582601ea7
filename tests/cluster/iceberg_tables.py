"""Iceberg tables for tests, written by pyiceberg with a catalog in memory, which needs no database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install 'cutproof[iceberg]'")

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import CommitTableResponse, Table


class Catalog(NoopCatalog, MetastoreCatalog):
    """Knows the one table that was written last."""

    table: Any = None

    def create_table(self, identifier: Any, schema: Any, location: Any = None, *more: Any, **named: Any) -> Table:
        staged = self._create_staged_table(identifier, schema, location, *more, **named)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.table = staged
        return self.load_table(identifier)

    def load_table(self, identifier: Any) -> Table:
        known = self.table
        return Table(known.name(), known.metadata, known.metadata_location, known.io, self)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        staged = self._update_and_stage_table(self.table, table.name(), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.table = staged
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)


def written(folder: Path, *appended: Any) -> Table:
    """A table in a folder, with a file for each of the Arrow tables."""
    table = Catalog("memory").create_table(("db", "rows"), appended[0].schema, folder.as_uri())
    for one in appended:
        table.append(one)
    return table
