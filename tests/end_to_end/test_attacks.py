"""`verify --subject processes`, attacked by another user of the machine at every port that it opens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cutproof.harness.reference_engine.orchestrator.services import MODULE
from cutproof.reference_impl.processes.network.entrance import MOST_CALLERS
from end_to_end.attacker import LEAK, Attacker
from end_to_end.command_line import environment
from end_to_end.test_nothing_left import processes_of, sockets_of

ONE_JUDGE = str(Path(__file__).with_name("one_judge.py"))
VERIFY = ("verify", "--subject", "processes", "--workers", "1", "--out", "run")
POLL_S = 0.15
ENDS_WITHIN_S = 500
"""Half a minute where nobody else wants the machine."""


def places_of(folder: Path) -> set[str]:
    """The ports on which the processes of a run with that temporary folder listen, and the sockets of its PostgreSQL.
    (Those of PySpark are not the run's.)"""
    ours = [pid for pid in processes_of(folder) if _is_of_the_run(pid)]
    inodes = sockets_of(ours)
    found = set()
    for pid in ours:
        for line in _table(pid, "tcp")[1:]:
            fields = line.split()
            port = int(fields[1].rpartition(":")[2], 16)
            if fields[3] == "0A" and fields[9] in inodes and not _is_anothers(pid, port):
                found.add(str(port))
        for line in _table(pid, "unix"):
            path = line.split()[-1]
            if path.startswith(str(folder)) and ".s.PGSQL." in path:
                found.add(path)
    return found


def _table(pid: int, name: str) -> list[str]:
    """Of the network that a process is in, which may be the run's own; nothing when the process has ended."""
    try:
        return Path(f"/proc/{pid}/net/{name}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _is_anothers(pid: int, port: int) -> bool:
    """Whether a process in a network of its own has a port whose number some other program has in the machine's."""
    try:
        apart = os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return True
    return apart and listens(port)


def _is_of_the_run(pid: int) -> bool:
    """A launcher or a process that it has forked, or one of the two servers."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return any(name in arguments for name in (MODULE.encode(), b"toxiproxy-server", b"bin/postgres"))


class Attacked:
    """A verification, in the machine's network unless told otherwise, attacked until it ends."""

    def __init__(self, folder: Path, attacks: str, *words: str, network: str = "host") -> None:
        temporary = folder / "temporary"
        temporary.mkdir()
        for each in (folder, temporary):
            each.chmod(0o711)
        open_to_all = folder / "all"
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        self.target = open_to_all / "started"
        self.attacker = Attacker(attacks, self.target)
        printed_file = folder / "said"
        try:
            with printed_file.open("wb") as to:
                running = subprocess.Popen(
                    [sys.executable, ONE_JUDGE, *VERIFY, *words],
                    cwd=folder,
                    env=environment(TMPDIR=str(temporary), CUTPROOF_NETWORK=network),
                    stdin=subprocess.DEVNULL,
                    stdout=to,
                    stderr=subprocess.STDOUT,
                )
                deadline = time.monotonic() + ENDS_WITHIN_S
                while running.poll() is None:
                    assert time.monotonic() < deadline, "it does not end"
                    self.attacker.at(places_of(temporary))
                    time.sleep(POLL_S)  # only a look shows that a port is new
            self.code = running.returncode
        finally:
            running.kill()
            running.wait()
            self.attacker.close()
        self.printed = printed_file.read_text(encoding="utf-8")
        self.summary: dict[str, Any] = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))


def listens(port: int) -> bool:
    """Anybody, at that port of this machine."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="utf-8").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


@pytest.mark.usefixtures("toxiproxy_server")
def test_nobody_gets_into_the_database_and_no_foreign_frame_is_received(open_folder: Path) -> None:
    run = Attacked(open_folder, "frames database", "--scenarios", "3", "--seed", "3")
    assert set(run.attacker.got("database")) == {"out"}
    assert not run.target.exists()
    assert len(run.attacker.got("frames")) > 12, "every process of every scenario has a port"
    assert any(one["at"].startswith("/") for one in run.attacker.done), "a PostgreSQL had a socket"
    assert run.code == 0, run.printed
    assert (run.summary["scenarios"]["run"], run.summary["scenarios"]["violated"]) == (3, 0)
    foreign = run.summary["foreign_connections"]
    assert foreign > len(run.attacker.got("frames"))
    assert f"{foreign:,} connections to the runs' ports came from another program" in " ".join(run.printed.split())


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_crowd_that_comes_and_goes_at_every_port_accuses_nobody(open_folder: Path) -> None:
    run = Attacked(open_folder, "crowd", "--scenarios", "3", "--seed", "3")
    came = [int(got.removeprefix("came ")) for got in run.attacker.got("crowd")]
    assert sum(number > MOST_CALLERS for number in came) > 12, "every process of every scenario had more than it keeps"
    assert run.code == 0, run.printed
    assert "Traceback" not in run.printed
    assert (run.summary["scenarios"]["run"], run.summary["scenarios"]["violated"]) == (3, 0)
    assert run.summary["foreign_connections"] > sum(came) // 20, "those that said something wrong were counted"


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_proxy_that_somebody_else_makes_ends_the_run_and_is_removed(open_folder: Path) -> None:
    run = Attacked(open_folder, "proxy", "--scenarios", "200", "--seed", "3")
    (made,) = [got for got in run.attacker.got("proxy") if got.startswith("made ")]
    assert run.code == 4, run.printed
    assert run.summary["scenarios"]["violated"] == 0
    (failure,) = run.summary["failures"]
    assert failure.endswith(
        "another program on this machine has used the control port of the run's Toxiproxy (the proxy "
        f"'{LEAK}' from {made.removeprefix('made ')} to 127.0.0.1:1): "
        "the server was killed, and the run is not judged; run again"
    )
    assert not listens(int(made.rpartition(":")[2]))


@pytest.mark.usefixtures("toxiproxy_server")
def test_in_a_network_of_their_own_no_port_can_be_reached(open_folder: Path) -> None:
    """Where the machine allows none, the run says so instead: it was demanded."""
    from cutproof.reference_impl.processes.launching import namespace

    reason = namespace.why_not()
    if reason:
        run = Attacked(open_folder, "frames proxy database", "--scenarios", "2", "--seed", "3", network="own")
        assert (run.code, reason in run.printed) == (4, True)
        return
    run = Attacked(open_folder, "frames proxy database", "--scenarios", "3", "--seed", "3", network="own")
    sockets = [one for one in run.attacker.done if one["at"].startswith("/")]
    assert sockets, "a PostgreSQL had a socket"
    assert set(run.attacker.got("frames")) == {"said 0"}, "every port refuses"
    assert set(run.attacker.got("proxy")) == {"out"}
    assert set(run.attacker.got("database")) == {"out"}
    assert not run.target.exists()
    assert run.code == 0, run.printed
    assert run.summary["foreign_connections"] == 0
