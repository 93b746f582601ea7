"""Entries for a launcher that do one small thing each, and what the tests of it share."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from cutproof.reference_impl.processes.launching.cluster import Launcher
from cutproof.reference_impl.processes.launching.launcher import main
from cutproof.reference_impl.processes.launching.orders import Exited

MODULE = "unit.processes.toys"
MARK = "CUTPROOF_TEST_MARK"
WITHIN_S = 10.0
SLEEP = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


def exits(launcher: Launcher, number: int) -> list[Exited]:
    """The first `number` exits, waited for as a selector's loop would."""
    deadline = time.monotonic() + WITHIN_S
    while len(launcher.exits) < number and (left := deadline - time.monotonic()) > 0:
        select.select([launcher], [], [], left)
        launcher.poll()
    return launcher.exits


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def ask(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as connection:
        received = b""
        while data := connection.recv(1024):
            received += data
        return received


def pauser(config: bytes, sockets: dict[str, socket.socket]) -> None:
    while True:
        signal.pause()


def echo(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """Answers each connection with its config and its pid."""
    (listener,) = sockets.values()
    while True:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(config + b" %d" % os.getpid())


def write(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """Leaves a file where its config says."""
    Path(config.decode()).write_text("done", encoding="utf-8")


def raiser(config: bytes, sockets: dict[str, socket.socket]) -> None:
    print("about to raise")
    raise ValueError(config.decode())


def leaver(config: bytes, sockets: dict[str, socket.socket]) -> None:
    sys.exit(int(config))


def descriptors(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """Prints what it has open above the three streams, and the sockets it was given."""
    own = {each.fileno() for each in sockets.values()}
    for each in sorted(int(name) for name in os.listdir("/dev/fd")):
        if each > 2 and (each in own or os.path.exists(f"/dev/fd/{each}")):
            print("own" if each in own else "foreign")
    for name, listener in sockets.items():
        print(name, listener.getsockname()[1])


def parent(config: bytes, sockets: dict[str, socket.socket]) -> None:
    """Starts a process in a session of its own, which ignores what it can, says so and waits."""
    grandchild = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"],
        start_new_session=True,
    )
    Path(config.decode()).write_text(str(grandchild.pid), encoding="utf-8")
    signal.pause()


def marked(mark: str) -> list[int]:
    """Processes, but for zombies, that have the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                environment = (each / "environ").read_bytes()
            except OSError:
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(each.name))
    return found


def wait_for_end(pid: int, within_s: float) -> bool:
    """Of a process that need not be a child."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within_s)[0])
    finally:
        os.close(watched)


def remaining(mark: str, within_s: float) -> list[int]:
    """The marked processes that are still there when all are gone, or the time is."""
    deadline = time.monotonic() + within_s
    # Twice: one that was forked during a look may have been passed over.
    while (found := marked(mark) or marked(mark)) and (left := deadline - time.monotonic()) > 0:
        wait_for_end(found[0], left)
    return found


def ends_abruptly(mark: str, note: Connection) -> None:
    """What a worker of the harness does that is not given the time for a last word.  (Here, and not beside its test,
    since a spawned process imports it by the name of its module.)"""
    os.environ[MARK] = mark
    launcher = Launcher(module=MODULE)
    launcher.fork("node-1", "pauser", b"")
    note.send(str(launcher.folder()))
    os._exit(0)


if __name__ == "__main__":
    main(
        {name: f"{MODULE}:{name}" for name in ("pauser", "echo", "raiser", "leaver", "descriptors", "parent", "write")}
        | {"missing": "unit.processes.nowhere:main"}
    )
