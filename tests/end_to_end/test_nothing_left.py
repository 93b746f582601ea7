"""`verify --subject processes`, killed with SIGKILL at any moment: half a minute later nothing of it is there."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from end_to_end.command_line import command, environment, without_java
from unit.processes.stores import RunningServer
from unit.processes.toys import wait_for_end

KILLS = 12
SIDE_BY_SIDE = 4
WITHIN_S = 25.0
"""in which all has to be gone; it takes a second or two where nobody else wants the machine"""
MOMENT_S = 40.0
POLL_S = 0.005

MOMENTS = ("", "*", "cutproof-*/logs", *(f"cutproof-*/c*_{number}/journal/*.0" for number in (1, 1, 1, 2, 2, 3)))
"""What is in the temporary folder when it is time: nothing yet, anything, a launcher's folder, so many runs."""
KILLED = ("harness", "harness and workers", "worker")


@pytest.fixture(scope="module")
def theirs() -> Iterator[RunningServer]:
    """A PostgreSQL of the user's, which stays."""
    server = RunningServer()
    yield server
    server.close()


def processes_of(folder: Path) -> list[int]:
    """Processes, but for zombies, that have a temporary folder by their environment or their command line."""
    path = os.fsencode(folder)
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            process_text = (each / "environ").read_bytes() + (each / "cmdline").read_bytes()
        except OSError:
            continue
        if path in process_text:
            found.append(int(each.name))
    return found


def sockets_of(processes: list[int]) -> set[str]:
    """The inodes of their sockets."""
    found = set()
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended, or closes this descriptor just now
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                    if target.startswith("socket:["):
                        found.add(target[len("socket:[") : -1])
    return found


def listening() -> set[str]:
    lines = Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    return {fields[9] for fields in map(str.split, lines) if fields[3] == "0A"}


def workers_of(harness: int) -> list[int]:
    """Those that multiprocessing has started to run scenarios."""
    children = Path(f"/proc/{harness}/task/{harness}/children").read_text(encoding="utf-8").split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def remaining(folder: Path) -> list[int]:
    """Its processes that are there when all are gone, or the time is."""
    deadline = time.monotonic() + WITHIN_S
    # Twice: one that was forked during a look may have been passed over.
    while (found := processes_of(folder) or processes_of(folder)) and (not_ended := deadline - time.monotonic()) > 0:
        wait_for_end(found[0], not_ended)
    return found


class Doomed:
    """A verification with a temporary folder of its own, which comes to a bad end."""

    def __init__(self, number: int, folder: Path, dsn: str, *, spark: bool) -> None:
        self._chance = random.Random(number)
        self._moment = MOMENTS[number % len(MOMENTS)]
        self.kind = KILLED[number % len(KILLED)]
        self.temporary = folder / "temporary"
        for each in (folder, self.temporary):
            each.mkdir()
            each.chmod(0o711)
        workers = "2" if number % 4 == 0 else "1"
        words = ("--scenarios", "1000", "--seed", str(number), "--workers", workers, "--out", "run", "--quiet")
        changes = {"TMPDIR": str(self.temporary)} | ({"CUTPROOF_POSTGRES": dsn} if dsn else {})
        self._output = (folder / "said").open("wb")
        self.process = subprocess.Popen(
            command("verify", "--subject", "processes", *words),
            cwd=folder,
            env={**(environment() if spark else without_java(folder)), **changes},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )

    def kill(self) -> set[str]:
        """At its moment, or by chance a little later; its sockets that were listening just before."""
        deadline = time.monotonic() + MOMENT_S
        while self._moment and not any(self.temporary.glob(self._moment)):
            assert self.process.poll() is None, "it came to an end of its own"
            assert time.monotonic() < deadline, "its moment has not come"
            select.select([], [], [], POLL_S)
        select.select([], [], [], self._chance.uniform(0.0, 0.4))
        before = sockets_of(processes_of(self.temporary)) & listening()
        self._strike()
        self.process.wait(WITHIN_S)
        self._output.close()
        return before

    def _strike(self) -> None:
        workers = workers_of(self.process.pid)
        if self.kind == "worker" and workers:
            os.kill(self._chance.choice(workers), signal.SIGKILL)
            return
        self.process.kill()
        for worker in workers if self.kind == "harness and workers" else ():
            with contextlib.suppress(ProcessLookupError):  # it ends with the harness
                os.kill(worker, signal.SIGKILL)


def left_by(number: int, folder: Path, dsn: str) -> dict[str, object]:
    """What is left of one, by kind."""
    doomed = Doomed(number, folder, dsn, spark=number % 5 == 0)
    sockets = doomed.kill()
    not_ended: dict[str, object] = {
        "processes": remaining(doomed.temporary),
        "files": sorted(path.name for path in doomed.temporary.iterdir()),
        "ports": sorted(sockets & listening()),
    }
    return {what: found for what, found in not_ended.items() if found}


def left_in(dsn: str) -> list[tuple[str, ...]]:
    """What runs have left in a database."""
    with psycopg.connect(dsn) as session:
        found = session.execute(
            r"SELECT 'schema', nspname FROM pg_namespace WHERE nspname ~ '^c[0-9a-f]{8}_'"
            r" UNION ALL SELECT 'prepared', gid FROM pg_prepared_xacts"
            r" UNION ALL SELECT 'session', application_name FROM pg_stat_activity WHERE application_name ~ '^c[0-9a-f]'"
        )
        return found.fetchall()


@pytest.mark.usefixtures("toxiproxy_server")
def test_nothing_is_left_of_a_verification_that_is_killed_at_any_moment(
    open_folder: Path, theirs: RunningServer
) -> None:
    """Every second one writes to a PostgreSQL of the user's, every fifth has Spark."""

    def one(number: int) -> dict[str, object]:
        return left_by(number, open_folder / str(number), theirs.dsn if number % 2 else "")

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        not_ended = list(pool.map(one, range(KILLS)))
    found = {number: found for number, found in enumerate(not_ended) if found}
    assert (found, left_in(theirs.dsn)) == ({}, [])
