"""Notes of the tables that runs create in a user's PostgreSQL: written before a run creates them, deleted after their
removal.

The launcher removes the tables when the harness has ended.  A server that hangs or is down at
that moment would keep them for ever.  So a file in the user's state folder names the run and
the server, without the password.  The harness locks the file while it lives, so that no other
command removes the tables of a running run.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....reference_impl.processes.launching.cluster import Launcher
from ....reference_impl.processes.stores import purge
from ...runtime.exit_codes import HarnessFailed, one_line
from ..services import places, postgres

PURGE = "purge"
"""the launcher's entry that removes the tables of a run"""


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a note: a run's name in a database, and how to connect to it, without the password."""

    run: str
    dsn: str

    @property
    def what(self) -> str:
        return f"the schema {self.run}, and prepared transactions whose names begin with {self.run}|"


class Remembering(Launcher):
    """A launcher that keeps a note of each registered cleanup, until the cleanup is cancelled or done."""

    def __init__(self, *, warm: Sequence[str], module: str, network: str) -> None:
        self._notes: dict[str, tuple[Note, Path, int]] = {}
        super().__init__(warm=warm, module=module, network=network)

    def register_cleanup(self, name: str, entry: str, config: bytes) -> None:
        """As in `Launcher`; also raises HarnessFailed if the note cannot be written."""
        if entry == PURGE:
            cleanup = purge.decode(config)
            note = Note(run=cleanup.place.run, dsn=without_password(cleanup.place.dsn))
            path = places.pending_cleanups() / f"{note.run}.json"
            self._notes[name] = (note, path, _noted(note, path))
            config = purge.encode(cleanup.place, note=path)
        super().register_cleanup(name, entry, config)

    def cancel_cleanup(self, name: str) -> None:
        super().cancel_cleanup(name)
        if name in self._notes:
            _, path, lock = self._notes.pop(name)
            path.unlink(missing_ok=True)
            os.close(lock)

    def close(self) -> None:
        try:
            super().close()
        finally:
            for name, (note, path, lock) in self._notes.items():
                if lock >= 0:
                    os.close(lock)
                    self._notes[name] = (note, path, -1)

    def pending_cleanups(self) -> list[Note]:
        """After `close`: the notes of cleanups that were not done."""
        return [note for note, path, _ in self._notes.values() if path.exists()]


def pending_cleanups() -> list[tuple[Path, Note]]:
    """Every note whose harness has ended; raises CutproofError if there is no folder for notes."""
    return [
        (path, note) for path in sorted(places.pending_cleanups().glob("*.json")) if (note := _read(path)) is not None
    ]


def clear_away(path: Path, note: Note) -> str:
    """Remove the tables that a note names, and the note; returns why that is impossible, or an empty text."""
    import psycopg

    from ....reference_impl.processes.stores.database_reader import Reader
    from ....reference_impl.processes.stores.readers import Unreachable

    named = os.environ.get(postgres.DSN_VARIABLE, "")
    try:
        dsn = named if named and without_password(named) == note.dsn else note.dsn
        reader = Reader(dsn, note.run)
        try:
            reader.purge()
        finally:
            reader.close()
    except (psycopg.Error, Unreachable, ValueError) as error:
        return one_line(error)
    path.unlink(missing_ok=True)
    return ""


def without_password(dsn: str) -> str:
    """The address of a server without its password, which anybody may read."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    return make_conninfo("", **{name: value for name, value in conninfo_to_dict(dsn).items() if name != "password"})


def _noted(note: Note, path: Path) -> int:
    """Write a note; the descriptor that is returned holds the lock on its file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        lock = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, msgspec.json.encode(note))
        os.rename(hidden, path)
    except OSError as error:
        raise HarnessFailed(
            f"the note on a run's tables in PostgreSQL cannot be written in {path.parent} ({one_line(error)}); "
            "name another place with XDG_STATE_HOME"
        ) from error
    return lock


def _read(path: Path) -> Note | None:
    """The note in a file; None while its harness lives, or if the file is no note."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return msgspec.json.decode(file.read(), type=Note)
    except (OSError, msgspec.DecodeError):
        return None
