"""A PostgreSQL server that tests may kill, and the three stores behind one face."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Protocol

from cutproof.harness.reference_engine.orchestrator import ports
from cutproof.harness.reference_engine.orchestrator.signals import handle_of
from cutproof.harness.reference_engine.services import postgres
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.core.vocabulary.transactions import (
    AnyRequest,
    BeginTransaction,
    Denied,
    Done,
    Fence,
    Outcome,
    PreCommit,
    Row,
    Standing,
    Unfinished,
    Write,
)
from cutproof.reference_impl.processes.launching import offspring
from cutproof.reference_impl.processes.stores import database, sqlite_store
from cutproof.reference_impl.processes.stores.sinks import SinkPlace
from cutproof.reference_impl.simulated.external import TransactionStore

PASSED_ON = (TaskId("operator-0"),)
"""Writers whose commits the job's output does not show."""
ROWS: tuple[Row, ...] = ((1, 10, 100, 0), (None, 20, 200, 0))
WITHIN_S = 20
RUNS = itertools.count(1)


PREFIX = "cutproof-test-postgres-"
PASSWORD = "hush-hush"
ON_A_PORT = ("-c", "listen_addresses=127.0.0.1")


def remove_what_killed_tests_left() -> None:
    """Their servers have died with them; a folder's name tells whose it was."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal():
            with contextlib.suppress(PermissionError):  # it lives, and is another user's
                try:
                    os.kill(int(owner), 0)
                except ProcessLookupError:
                    shutil.rmtree(folder, ignore_errors=True)


class RunningServer:
    """A server on a folder of its own, outside pytest's, which shut everybody else out;
    `stop` and `start` at will.  It dies with this process.  Like one of the user's it has a port."""

    def __init__(self, *, trusting: bool = False) -> None:
        """`trusting`: it lets everybody in who reaches its port."""
        remove_what_killed_tests_left()
        self.folder = folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        folder.chmod(0o711)
        self.server = postgres.Server.find(folder)
        self.data = folder / "data"
        self.log = (folder / "log").open("wb")
        self.socket = folder / "db"
        self.server.make_folder(self.socket)
        self.server.prepare(self.data, PASSWORD)
        if trusting:
            (self.data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
        self.port = ports.pick()
        self.dsn = f"host=127.0.0.1 port={self.port} user={postgres.USER} password={PASSWORD} dbname=postgres"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        here = os.getpid()
        self.process = subprocess.Popen(
            [*self.server.command(self.data, self.socket), *ON_A_PORT, "-p", str(self.port)],
            user=self.server.uid,
            group=self.server.gid,
            extra_groups=None if self.server.uid is None else [],
            env=self.server.environment(),
            cwd="/",
            stderr=self.log,
            preexec_fn=lambda: offspring.die_with(here),
        )
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                postgres.check(self.dsn)
            except postgres.PostgresMissing:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.01)
            else:
                return

    def stop(self, number: int = signal.SIGQUIT) -> None:
        if self.process is None:
            return
        if number == signal.SIGKILL:
            self._kill(self.process.pid)
        else:
            self.process.send_signal(number)
        self.process.wait(WITHIN_S)
        self.process = None

    def _kill(self, postmaster: int) -> None:
        """With each of its processes: one that it made amid this could wait for good for a lock of one that is dead,
        and keep the next server from starting."""
        os.kill(postmaster, signal.SIGSTOP)
        processes = [handle for pid in offspring.children_of(postmaster) if (handle := handle_of(pid)) is not None]
        for handle in processes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.kill(postmaster, signal.SIGKILL)
        for handle in processes:
            ended, _, _ = select.select([handle], [], [], WITHIN_S)
            os.close(handle)
            assert ended, "a process of the killed server lives on"

    def close(self) -> None:
        self.stop()
        self.log.close()
        shutil.rmtree(self.folder)


class AnyStore(Protocol):
    def handle(self, request: AnyRequest) -> Outcome: ...


class Processes:
    """A store as several processes meet in it: each `process()` is an object of its own."""

    def __init__(self, kind: str, folder: Path, dsn: str = "") -> None:
        self.kind, self.folder, self.dsn = kind, folder, dsn
        self.run = f"test_{os.getpid()}_{next(RUNS)}"
        self.simulated = TransactionStore(PASSED_ON)
        self.made: list[Any] = []
        if kind == "sqlite":
            sqlite_store.create(folder)
        elif kind == "database":
            database.create(dsn, self.run)
        self.reader: Any = None if kind == "simulated" else self.keep(self._reader())

    def keep(self, one: Any) -> Any:
        self.made.append(one)
        return one

    def _reader(self) -> Any:
        if self.kind == "sqlite":
            return sqlite_store.SqliteReader(self.folder)
        return database.Reader(self.dsn, self.run)

    def process(self) -> Asker:
        store: AnyStore = self.simulated
        if self.kind == "sqlite":
            store = self.keep(sqlite_store.SqliteStore(self.folder, PASSED_ON))
        elif self.kind == "database":
            store = self.keep(database.Database(self.dsn, self.run, PASSED_ON))
        return Asker(store)

    def rows(self) -> list[Row]:
        """What a reader sees of transactions and plain rows."""
        if self.reader is None:
            return list(self.simulated.visible)
        return [row for _, row in self.reader.committed()]

    def table(self) -> dict[tuple[Any, ...], Row]:
        return self.simulated.table if self.reader is None else self.reader.table()

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        if self.reader is not None:
            found: list[tuple[str, str, int | None]] = self.reader.unfinished()
            return found
        accounts = self.simulated.accounts.values()
        shown = {Standing.OPEN: "open", Standing.SEALED: "prepared", Standing.FINAL: "prepared"}
        return [
            (one.name, shown[one.standing], one.sealed_by.checkpoint if one.sealed_by is not None else None)
            for one in accounts
            if one.standing in shown
        ]

    def expire(self, name: str) -> bool:
        """The store gives a transaction up by itself."""
        if self.kind == "simulated":
            return self.simulated.expire(name)
        return SinkPlace(store=self.kind, folder=self.folder, dsn=self.dsn, run=self.run).expire(name)

    def close(self) -> None:
        if self.reader is not None:
            self.reader.purge()
        for one in self.made:
            one.close()


class Asker:
    """A store, with requests as calls."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def __call__(
        self, kind: type[Any], name: str | None = None, attempt: int = 1, writer: str = "sink-0", **more: Any
    ) -> Outcome:
        request = {"writer": writer, "attempt": attempt, **({} if name is None else {"name": name}), **more}
        outcome: Outcome = self.store.handle(kind(**request))
        return outcome

    def written(self, name: str, *rows: Row, **who: Any) -> None:
        done(self(BeginTransaction, name, **who))
        done(self(Write, name, rows=rows or ROWS, **who))

    def sealed(self, name: str, *rows: Row, checkpoint: int = 1, **who: Any) -> None:
        self.written(name, *rows, **who)
        done(self(PreCommit, name, checkpoint=checkpoint, **who))

    def fenced(self, attempt: int, writer: str = "sink-0") -> tuple[Unfinished, ...]:
        """The answer to a fence: what is unfinished."""
        return done(self(Fence, attempt=attempt, writer=writer)).unfinished


def done(outcome: Outcome) -> Done:
    assert isinstance(outcome, Done), outcome
    return outcome


def denied(outcome: Outcome) -> str:
    assert isinstance(outcome, Denied), outcome
    return outcome.reason
