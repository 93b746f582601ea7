"""However a launcher's client ends, and at whatever moment, nothing of the run stays."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkContext, SpawnContext
from pathlib import Path

import pytest

from cutproof.reference_impl.processes.launching import cluster
from cutproof.reference_impl.processes.launching.children import GENTLE_S
from cutproof.reference_impl.processes.launching.cluster import Launcher
from cutproof.reference_impl.processes.stores.segments import segments
from unit.processes.toys import (
    MARK,
    MODULE,
    SLEEP,
    WITHIN_S,
    ask,
    ends_abruptly,
    marked,
    remaining,
    state,
    wait_for_end,
)


def test_closing_leaves_neither_process_nor_orphan_nor_folder_nor_port(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    launcher = Launcher(module=MODULE)
    folder, port = launcher.folder(), launcher.listen("node-1")
    note = folder / "grandchild"
    family = launcher.fork("family", "parent", str(note).encode())
    launcher.fork("node-1", "echo", b"up", ["node-1"])
    launcher.signal(launcher.fork("stopped", "pauser", b""), signal.SIGSTOP)
    program = launcher.execute("program", SLEEP)
    ask(port)
    while not (note.exists() and note.read_text(encoding="utf-8")):
        assert state(family) != "Z"
    grandchild = int(note.read_text(encoding="utf-8"))
    unwritable = folder / "deep" / "unwritable"
    unwritable.mkdir(parents=True)
    (unwritable / "file").touch()
    unwritable.chmod(0o500)
    assert {family, grandchild, program, launcher.pid} <= set(marked(mark))

    launcher.close()

    assert set(marked(mark)) <= {os.getpid()}  # at once: not soon
    assert not folder.exists()
    with pytest.raises(ConnectionRefusedError):
        ask(port)
    assert {each.name for each in launcher.poll()} == {"family", "node-1", "stopped", "program"}


def gentle(launcher: Launcher, script: str, name: str = "database") -> int:
    """A program that is asked before it is killed, and has run its script."""
    pid = launcher.execute(name, [sys.executable, "-u", "-c", script], gently=True)
    while b"up" not in launcher.log(name).read_bytes():
        assert launcher.poll() == []
    return pid


def test_a_database_is_asked_to_stop_even_if_it_is_stopped() -> None:
    launcher = Launcher(module=MODULE)
    gentle(
        launcher,
        "import signal, sys; signal.signal(signal.SIGQUIT, lambda *_: sys.exit(5)); print('up'); signal.pause()",
    )
    launcher.fork("node-1", "pauser", b"")
    leaves = "import signal, sys; signal.signal(signal.SIGQUIT, lambda *_: sys.exit(6)); print('up'); signal.pause()"
    quiet = gentle(launcher, leaves, "quiet")
    launcher.signal(quiet, signal.SIGSTOP)
    while state(quiet) != "T":
        assert launcher.poll() == []
    launcher.close()
    how = {each.name: each.how for each in launcher.exits}
    assert how == {"database": "exit code 5", "quiet": "exit code 6", "node-1": "SIGKILL"}


def test_a_database_that_does_not_listen_is_killed_in_the_end() -> None:
    launcher = Launcher(module=MODULE)
    gentle(
        launcher,
        "import signal; signal.signal(signal.SIGQUIT, signal.SIG_IGN); print('up')\nwhile True: signal.pause()",
    )
    began = time.monotonic()
    launcher.close()
    assert [each.how for each in launcher.exits] == ["SIGKILL"]
    assert GENTLE_S <= time.monotonic() - began <= cluster.END_S


SHARES = """
import ctypes, signal
calls = ctypes.CDLL(None)
print(calls.shmget(0, 56, 0o1600), flush=True)
signal.pause()
"""


def test_shared_memory_of_a_killed_database_goes_and_that_of_others_stays() -> None:
    calls = ctypes.CDLL(None)
    others = calls.shmget(0, 56, 0o1600)
    launcher = Launcher(module=MODULE)
    try:
        pid = launcher.execute("database", [sys.executable, "-c", SHARES], gently=True)
        while not (reason_text := launcher.log("database").read_text(encoding="utf-8")).endswith("\n"):
            assert launcher.poll() == []
        launcher.signal(pid, signal.SIGKILL)
        assert {int(reason_text), others} <= {each.id for each in segments()}
    finally:
        launcher.close()
        left = {each.id for each in segments()}
        calls.shmctl(others, 0, None)
    assert others in left
    assert int(reason_text) not in left


@pytest.mark.parametrize(
    "context", [multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")], ids=["forked", "spawned"]
)
def test_a_worker_process_that_ends_without_a_word_leaves_nothing(context: ForkContext | SpawnContext) -> None:
    mark = uuid.uuid4().hex
    here, there = context.Pipe()
    worker = context.Process(target=ends_abruptly, args=(mark, there))
    worker.start()
    there.close()  # a worker that dies unheard is then heard of
    folder = Path(here.recv())
    worker.join(WITHIN_S)
    assert remaining(mark, WITHIN_S) == []
    assert not folder.exists()


def test_a_forked_copy_of_the_client_neither_ends_the_launcher_nor_keeps_it(tmp_path: Path) -> None:
    """The copy holds the control socket open: the end of the stream alone would never come."""
    mark = uuid.uuid4().hex
    script = f"""
import os, signal
from cutproof.reference_impl.processes.launching.cluster import Launcher
launcher = Launcher(module={MODULE!r})
launcher.fork("node-1", "pauser", b"")
copy = os.fork()
if copy == 0:
    signal.pause()
if os.fork() == 0:
    launcher.close()
    os._exit(0)
os.waitpid(-1, 0)
launcher.fork("node-2", "pauser", b"")
print(copy, flush=True)
signal.pause()
"""
    with harness(script, mark, tmp_path) as process:
        assert process.stdout is not None
        copy = int(process.stdout.readline())
        assert len(marked(mark)) == 5
        process.kill()
    try:
        for pid in marked(mark):
            assert pid == copy or wait_for_end(pid, WITHIN_S)
        assert marked(mark) == [copy]
        assert list(tmp_path.iterdir()) == []
    finally:
        os.kill(copy, signal.SIGKILL)


def harness(script: str, mark: str, folder: Path) -> subprocess.Popen[str]:
    """A harness process with a mark on it and all that comes of it, and a temporary folder of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), MARK: mark, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )


DOOMED = f"""
import os, signal
print("imports", flush=True)
from pathlib import Path
from cutproof.reference_impl.processes.launching.cluster import Launcher
def inode(port):
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == "0100007F:%04X" % port and fields[3] == "0A":
            return fields[9]
print("starts", flush=True)
launcher = Launcher(module={MODULE!r})
print("ready", flush=True)
names = ["node-1", "node-2", "node-3"]
for name in names:
    print("listens", inode(launcher.listen(name)), flush=True)
pids = [launcher.fork(name, "echo", b"", [name]) for name in names]
print("forked", flush=True)
for pid in pids[:2]:
    launcher.signal(pid, signal.SIGSTOP)
print("stopped", flush=True)
launcher.fork("family", "parent", str(launcher.folder() / "grandchild").encode())
print("family", flush=True)
launcher.execute("program", {SLEEP!r}, gently=True)
print("program", flush=True)
while not (launcher.folder() / "grandchild").exists():
    launcher.poll()
print("grandchild", flush=True)
launcher.signal(pids[2], signal.SIGKILL)
print("killed", flush=True)
launcher.fork(names[2], "echo", b"", [names[2]])
print("restarted", flush=True)
launcher.close()
print("closed", flush=True)
signal.pause()
"""
LINES = 14


def kill_after(lines: int, folder: Path) -> tuple[list[int], list[str], list[str]]:
    """Kill a harness when it has said so many lines; what remains of it: processes, files, listening sockets."""
    mark = uuid.uuid4().hex
    folder.mkdir()
    with harness(DOOMED, mark, folder) as process:
        assert process.stdout is not None
        reason_text = [process.stdout.readline() for _ in range(lines)]
        process.kill()
    assert all(reason_text), "the harness came to an end of its own"
    processes = remaining(mark, WITHIN_S)
    sockets = [line.split()[1] for line in reason_text if line.startswith("listens")]
    listening = {line.split()[9] for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]}
    return processes, [each.name for each in folder.iterdir()], [each for each in sockets if each in listening]


def test_nothing_remains_of_a_harness_that_is_killed_at_any_moment(tmp_path: Path) -> None:
    """Twenty of them, four at a time, at every point of a run and, by their racing, between the points."""
    moments = [number % (LINES + 1) for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        left = list(pool.map(kill_after, moments, (tmp_path / str(number) for number in range(20))))
    assert left == [([], [], [])] * 20
