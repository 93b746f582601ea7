"""Where a run's sinks write, and the reader that looks there on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from ..core.errors import Refused
from ..driver.ports import External


class Reader(Protocol):
    """Reads what is committed, apart from who writes."""

    def seen(self) -> list[str]:
        """The names of the transactions that are visible now."""


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """The store that requests go to, and a reader of it."""

    store: External
    reader: Reader | None

    def seen(self) -> list[str] | None:
        """What the reader sees; None when it cannot read now."""
        if self.reader is None:
            return None
        try:
            return self.reader.seen()
        except OSError:
            return None


def sink_of(store: str, dsn: str, run: str, folder: Path) -> Sink:
    """`store` is files or database; nothing is connected before it is used."""
    if store == "database":
        from .database import Database
        from .database_reader import Reader as DatabaseReader

        return Sink(store=Database(dsn, run), reader=DatabaseReader(dsn, run))
    if store == "files":
        from .transaction_files import TransactionFiles

        files = TransactionFiles(folder)
        return Sink(store=files, reader=files)
    raise Refused(f"there is no sink store {store!r}; there are files and database")
