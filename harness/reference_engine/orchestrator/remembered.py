"""Notes of what runs create in a PostgreSQL of the user's: written before it is created, deleted after it is removed.

The launcher removes it when the harness has ended.  A server that hangs or is down at
that moment would keep it for ever.  So a file in the user's state folder names the
run and the server, without the password.  The harness holds a lock on the file while
it lives, so that no other command removes what a running run uses.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....reference_impl.processes import purge
from ....reference_impl.processes.cluster import Launcher
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
    """A launcher that notes what is bequeathed to it, until that has been revoked or done."""

    def __init__(self, *, warm: Sequence[str], module: str, network: str) -> None:
        self._notes: dict[str, tuple[Note, Path, int]] = {}
        super().__init__(warm=warm, module=module, network=network)

    def bequeath(self, name: str, entry: str, config: bytes) -> None:
        """Raises HarnessFailed too, when it cannot be noted."""
        if entry == PURGE:
            will = purge.decode(config)
            note = Note(run=will.place.run, dsn=without_password(will.place.dsn))
            path = places.bequests() / f"{note.run}.json"
            self._notes[name] = (note, path, _noted(note, path))
            config = purge.encode(will.place, note=path)
        super().bequeath(name, entry, config)

    def revoke(self, name: str) -> None:
        super().revoke(name)
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

    def bequests(self) -> list[Note]:
        """What nobody has taken away, when it has been closed."""
        return [note for note, path, _ in self._notes.values() if path.exists()]


def bequests() -> list[tuple[Path, Note]]:
    """Every note whose harness has ended; raises CutproofError if there is no folder for notes."""
    return [(path, note) for path in sorted(places.bequests().glob("*.json")) if (note := _read(path)) is not None]


def clear_away(path: Path, note: Note) -> str:
    """Remove what a note names, and the note; returns why that is impossible, or an empty text."""
    import psycopg

    from ....reference_impl.processes.database_reader import Reader, Unreachable

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
    """How to get to a server, as far as anybody may read it."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    return make_conninfo("", **{name: value for name, value in conninfo_to_dict(dsn).items() if name != "password"})


def _noted(note: Note, path: Path) -> int:
    """Write it, locked by the descriptor that is returned."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        lock = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, msgspec.json.encode(note))
        os.rename(hidden, path)
    except OSError as error:
        raise HarnessFailed(
            f"what a run makes in PostgreSQL cannot be noted in {path.parent} ({one_line(error)}); "
            "name another place with XDG_STATE_HOME"
        ) from error
    return lock


def _read(path: Path) -> Note | None:
    """None while its harness lives, and for what is no note."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return msgspec.json.decode(file.read(), type=Note)
    except (OSError, msgspec.DecodeError):
        return None
