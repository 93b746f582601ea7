"""Where a run's sinks write, and the independent reader of it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

import msgspec

from ..core.vocabulary.errors import Refused
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.transactions import Row
from ..driver.ports import External

DATABASE = "database"
FILES = "files"


class Reader(Protocol):
    """Reads what sinks have written, apart from the writers; see `look`."""

    def seen(self) -> list[str]:
        """The names of the transactions that are visible now."""

    def passing(self) -> list[str]:
        """The names of committed transactions that are not part of the job's output."""

    def committed(self) -> list[tuple[str, Row]]:
        """(transaction or "", row), in the order in which they became visible, as far as that is known."""

    def table(self) -> dict[tuple[int | None, ...], Row]:
        """The rows of idempotent sinks, by identity."""

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        """(transaction, open or prepared, the checkpoint it was sealed for)."""

    def purge(self) -> None:
        """Remove everything that the run has made."""

    def close(self) -> None: ...


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sinks of one run write: a database (`dsn`, and `run`, its name there), or a folder."""

    store: str
    folder: Path
    dsn: str = ""
    run: str = ""

    def check(self) -> None:
        """Raise Refused for a kind of store that there is not."""
        if self.store not in (DATABASE, FILES):
            raise Refused(f"there is no sink store {self.store!r}; there are {FILES} and {DATABASE}")

    def create(self) -> None:
        """Make the place, empty."""
        if self.store == DATABASE:
            from . import database_reader

            database_reader.create(self.dsn, self.run)
        else:
            from . import transaction_folders

            transaction_folders.create(self.folder)

    def external(self, passing: Collection[TaskId] = ()) -> External:
        """A writer's access; it connects when it is first used.

        What the writers in `passing` commit is not part of the job's output.
        """
        if self.store == DATABASE:
            from .database import Database

            return Database(self.dsn, self.run, passing)
        from .transaction_files import TransactionFiles

        return TransactionFiles(self.folder, passing)

    def reader(self) -> Reader:
        """A reader, independent of the writers."""
        if self.store == DATABASE:
            from .database_reader import Reader as DatabaseReader

            return DatabaseReader(self.dsn, self.run)
        from .transaction_reader import FileReader

        return FileReader(self.folder)

    def expire(self, name: str) -> bool:
        """The store, or its administrator, aborts a sealed transaction; returns whether there was one."""
        if self.store == DATABASE:
            from . import database_reader

            try:
                return database_reader.expire(self.dsn, self.run, name)
            except database_reader.Unreachable:
                return False
        from . import transaction_versions

        return transaction_versions.expire(self.folder, name)


def visible_transactions(place: Place, reader: Reader) -> list[str] | None:
    """The names of the transactions that a reader sees now; None when it cannot read."""
    if place.store == FILES:
        return reader.seen()
    from .database_reader import Unreachable

    try:
        return reader.seen()
    except Unreachable:
        return None
