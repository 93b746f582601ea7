"""The PostgreSQL server of a harness process.  It is killed as a whole, and restarts on the same socket and data."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import time
from pathlib import Path

import psycopg

from ....reference_impl.processes.launching.cluster import Launcher
from ....reference_impl.processes.launching.offspring import children_of
from ....reference_impl.processes.launching.orders import Exited
from ...runtime.exit_codes import HarnessFailed
from ..services import places, postgres
from . import signals
from .printed import last_words

UP_WITHIN_S = 20.0
POLL_S = 0.02
ENDED_WITHIN_S = 1.0
"""how long the end of a process is waited for after SIGKILL; usually it takes a millisecond"""
NAME = "postgres"
INITDB = "initdb"


class DatabaseServer:
    """A PostgreSQL server: one that the launcher starts, or one of the user's, which is never killed."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._server: postgres.Server | None = None
        self._folder = Path()
        self._socket = Path()
        self.pid = 0
        """0: the server is down, or is the user's"""
        self.is_starting = True
        """the server has not answered since its last kill"""
        external = postgres.external_dsn()
        if external is not None:
            self.dsn = external
            return
        places.check_socket(postgres.SOCKET)
        self._server = postgres.Server.find(launcher.folder())
        self._folder = launcher.folder() / "postgres"
        self._socket = (launcher.folder() / postgres.SOCKET).parent
        password = postgres.new_password()
        self.dsn = self._server.dsn(self._socket, password)
        self._initialise(self._server, password)
        self.wait_until_up(UP_WITHIN_S)

    def _initialise(self, server: postgres.Server, password: str) -> None:
        """Make the server's folders.  The launcher runs initdb, so that it cannot outlive this process."""
        server.make_folder(self._folder)
        server.make_folder(self._socket)
        password_file = server.write_password(self._launcher.folder() / "postgres-password", password)
        try:
            command = server.initdb(self._folder, password_file)
            pid = self._launcher.execute(INITDB, command, env=server.environment(), uid=server.uid)
            end = self._end_of(pid, postgres.INITDB_TIMEOUT_S)
        finally:
            password_file.unlink(missing_ok=True)
        if end is None:
            raise HarnessFailed(f"PostgreSQL's initdb has not ended within {postgres.INITDB_TIMEOUT_S:g} s")
        if end.code != 0:
            raise HarnessFailed(f"PostgreSQL's initdb failed with {end.how}: {last_words(self._launcher.log(INITDB))}")

    def _end_of(self, pid: int, within_s: float) -> Exited | None:
        """How a process ended; None if it did not end in time."""
        deadline = time.monotonic() + within_s
        while (end := self._launcher.end_of(pid)) is None:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return None
            select.select([self._launcher], [], [], remaining_s)
            self._launcher.poll()
        return end

    @property
    def is_ours(self) -> bool:
        return self._server is not None

    def start(self) -> None:
        """Start the server, without waiting until it answers."""
        server = self._server
        if server is None:
            return
        server.clear(self._socket)
        command = server.command(self._folder, self._socket)
        env = server.environment()
        self.pid = self._launcher.execute(NAME, command, env=env, uid=server.uid, gently=True)

    def answers(self) -> bool:
        """Whether the server accepts a session now.  If it ended during its start, it is started again."""
        if self.is_ours and self.pid and self._launcher.end_of(self.pid) is not None:
            self.start()  # some processes of the previous server had not ended yet
        try:
            with psycopg.connect(self.dsn, connect_timeout=2, autocommit=True) as session:
                session.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        self.is_starting = False
        return True

    def wait_until_up(self, within_s: float) -> None:
        """Start the server if it is down, and wait until it answers.  Raises HarnessFailed."""
        if not self.pid:
            self.start()
        deadline = time.monotonic() + within_s
        while not self.answers():
            if time.monotonic() > deadline:
                raise HarnessFailed(self._silence(within_s))
            time.sleep(POLL_S)
            self._launcher.poll()

    def _silence(self, within_s: float) -> str:
        if not self.is_ours:
            return f"the PostgreSQL that {postgres.DSN_VARIABLE} names has not answered for {within_s:g} s"
        return f"PostgreSQL does not answer within {within_s:g} s: {last_words(self._launcher.log(NAME))}"

    def kill(self) -> None:
        """Send SIGKILL to the postmaster and each of its processes, which would outlive it for a moment.

        The postmaster is stopped first, so that it creates no process meanwhile.  Such a process could wait for ever
        for the lock of a killed one, and keep the next server from starting.
        """
        pid, self.pid = self.pid, 0
        if not pid:
            return
        self.is_starting = True
        if not signals.stop(self._launcher, pid):
            return
        with contextlib.ExitStack() as handles:
            watched = [handle for child in children_of(pid) if (handle := signals.handle_of(child)) is not None]
            for handle in watched:
                handles.callback(os.close, handle)
            for handle in watched:
                signals.kill_by_handle(handle)
            signals.kill(self._launcher, pid)
            _wait_for(watched, ENDED_WITHIN_S)

    def discard(self) -> None:
        """Kill the server and delete its data."""
        self.kill()
        if self.is_ours:
            shutil.rmtree(self._folder, ignore_errors=True)


def _wait_for(handles: list[int], within_s: float) -> None:
    """Wait until the processes have ended, or for `within_s`."""
    deadline, remaining = time.monotonic() + within_s, handles
    while remaining and time.monotonic() < deadline:
        ended, _, _ = select.select(remaining, [], [], max(0.0, deadline - time.monotonic()))
        remaining = [handle for handle in remaining if handle not in ended]
