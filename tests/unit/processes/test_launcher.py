"""A launcher starts, watches, kills and reaps; its client may die at any moment, and nothing stays."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, SpawnContext
from pathlib import Path

import pytest

from cutproof.reference_impl.processes import cluster
from cutproof.reference_impl.processes.children import GENTLE_S
from cutproof.reference_impl.processes.cluster import Launcher, LauncherFailed, ProcessGone
from cutproof.reference_impl.processes.orders import BadFrame, Exited, Fork, Frames, asked, frame
from unit.processes.toys import MARK, MODULE, marked, remaining, wait_for_end

WITHIN_S = 10.0
SLEEP = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with Launcher(module=MODULE) as made:
        yield made


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


def test_a_killed_process_is_reaped_and_told_when_the_call_returns(launcher: Launcher) -> None:
    pid = launcher.fork("node-1", "pauser", b"")
    assert state(pid) in "RS"
    launcher.signal(pid, signal.SIGKILL)
    assert not Path(f"/proc/{pid}").exists()
    (exited,) = launcher.poll()
    assert exited == Exited(pid=pid, name="node-1", signal=signal.SIGKILL)
    assert exited.how == "SIGKILL"
    assert launcher.poll() == []


def test_a_stopped_process_has_stopped_when_the_call_returns_and_goes_on_afterwards(launcher: Launcher) -> None:
    port = launcher.listen("node-1")
    pid = launcher.fork("node-1", "echo", b"hello", ["node-1"])
    for _ in range(3):
        launcher.signal(pid, signal.SIGSTOP)
        assert state(pid) == "T"
        launcher.signal(pid, signal.SIGSTOP)  # again: it is stopped already, so this is answered too
        launcher.signal(pid, signal.SIGCONT)
        assert ask(port) == b"hello %d" % pid
    assert launcher.poll() == []


def test_a_stopped_process_can_be_killed(launcher: Launcher) -> None:
    pid = launcher.fork("node-1", "pauser", b"")
    launcher.signal(pid, signal.SIGSTOP)
    launcher.signal(pid, signal.SIGKILL)
    assert [each.how for each in launcher.exits] == ["SIGKILL"]


def test_an_exit_is_told_without_being_asked_for(launcher: Launcher) -> None:
    heard: list[Exited] = []
    launcher._on_exit = heard.append
    pid = launcher.fork("node-1", "leaver", b"7")
    assert exits(launcher, 1) == heard == [Exited(pid=pid, name="node-1", code=7)]
    assert heard[0].how == "exit code 7"


def test_what_has_been_reaped_cannot_be_signalled(launcher: Launcher) -> None:
    pid = launcher.fork("node-1", "leaver", b"0")
    exits(launcher, 1)
    with pytest.raises(ProcessGone, match=rf"^process {pid} \(node-1, exit code 0\) is not running$"):
        launcher.signal(pid, signal.SIGKILL)
    with pytest.raises(ProcessGone, match=f"^process {os.getpid()} is not running$"):
        launcher.signal(os.getpid(), signal.SIGCONT)


def test_an_exception_in_an_entry_is_in_its_log_with_its_traceback(launcher: Launcher) -> None:
    launcher.fork("node-1", "raiser", b"the reason")
    assert [each.code for each in exits(launcher, 1)] == [1]
    text = launcher.log("node-1").read_text(encoding="utf-8")
    assert text.startswith("about to raise\nTraceback")
    assert text.endswith("ValueError: the reason\n")


def test_a_port_stays_over_the_deaths_of_its_owner(launcher: Launcher) -> None:
    port = launcher.listen("node-1")
    for attempt in (b"first", b"second", b"third"):
        pid = launcher.fork("node-1", "echo", attempt, ["node-1"])
        assert ask(port) == attempt + b" %d" % pid
        launcher.signal(pid, signal.SIGKILL)
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as early:
        launcher.fork("node-1", "echo", b"fourth", ["node-1"])
        assert early.recv(6) == b"fourth"


def test_a_port_that_is_given_up_refuses_connections(launcher: Launcher) -> None:
    port = launcher.listen("node-1")
    launcher.unlisten(["node-1"])
    with pytest.raises(ConnectionRefusedError):
        ask(port)
    assert launcher.listen("node-1") > 0


def test_a_node_holds_its_own_socket_and_nothing_else(launcher: Launcher) -> None:
    ports = {name: launcher.listen(name) for name in ("node-1", "node-2", "node-3")}
    launcher.fork("other", "echo", b"", ["node-3"])
    launcher.fork("node-2", "descriptors", b"", ["node-2"])
    exits(launcher, 1)
    assert launcher.log("node-2").read_text(encoding="utf-8") == f"own\nnode-2 {ports['node-2']}\n"


def test_a_program_gets_its_arguments_environment_and_streams(launcher: Launcher) -> None:
    script = (
        "import os, sys; print(sys.argv[1:], dict(os.environ)['A'], len(os.listdir('/dev/fd'))); sys.exit('complaint')"
    )
    argv = [sys.executable, "-c", script, "one", "two"]
    launcher.execute("program", argv, env={"A": "b"}, stdout="program.txt")
    assert [(each.name, each.code) for each in exits(launcher, 1)] == [("program", 1)]
    said = (launcher.folder() / "program.txt").read_text(encoding="utf-8").splitlines()
    # Four descriptors: the streams, and the folder that is being listed.
    assert sorted(said) == ["['one', 'two'] b 4", "complaint"]


def test_a_program_that_is_not_there_is_one_clear_line(launcher: Launcher) -> None:
    with pytest.raises(LauncherFailed, match=r"^cannot start no-such-program: No such file or directory$"):
        launcher.execute("program", ["no-such-program"])
    assert launcher.poll() == []


def test_a_program_runs_as_another_user_where_that_is_allowed_and_still_dies_with_the_launcher(
    launcher: Launcher,
) -> None:
    another = 65534
    if os.geteuid() != 0:
        with pytest.raises(LauncherFailed, match="only root can start a program as another user"):
            launcher.execute("program", SLEEP, uid=another)
        return
    pid = launcher.execute("program", ["sleep", "1000"], uid=another)
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    assert f"Uid:\t{another}\t{another}\t{another}\t{another}\n" in status
    assert "Groups:\t \n" in status
    os.kill(launcher.pid, signal.SIGKILL)
    assert wait_for_end(pid, WITHIN_S)


def test_what_cannot_be_done_is_said_and_the_launcher_goes_on(launcher: Launcher) -> None:
    pid = launcher.fork("node-1", "pauser", b"")
    launcher.listen("taken")
    with pytest.raises(LauncherFailed, match=r"^unknown entry 'nobody': there are descriptors, echo, "):
        launcher.fork("node-2", "nobody", b"")
    with pytest.raises(LauncherFailed, match=r"^unit\.processes\.nowhere:main cannot be imported: ModuleNotFoundError"):
        launcher.fork("node-2", "missing", b"")
    with pytest.raises(LauncherFailed, match=r"^no socket listens under the name 'node-2'$"):
        launcher.fork("node-2", "echo", b"", ["node-2"])
    with pytest.raises(LauncherFailed, match=r"^no socket listens under the name 'node-2'$"):
        launcher.unlisten(["node-2"])
    with pytest.raises(LauncherFailed, match=r"^'taken' has a listening socket already$"):
        launcher.listen("taken")
    with pytest.raises(LauncherFailed, match=r"^'\.\./x' cannot name a process"):
        launcher.fork("../x", "pauser", b"")
    with pytest.raises(LauncherFailed, match=r"^signal 10 is none of SIGKILL, SIGSTOP, SIGCONT"):
        launcher.signal(pid, 10)
    launcher.signal(pid, signal.SIGKILL)
    assert [each.pid for each in launcher.exits] == [pid]


def test_a_launcher_that_cannot_start_says_why() -> None:
    with pytest.raises(LauncherFailed, match=r"^the launcher has ended with 1: .*No module named unit\.nowhere$"):
        Launcher(module="unit.nowhere")


def test_a_launcher_that_is_killed_is_told_and_takes_its_children_along(launcher: Launcher) -> None:
    folder, pid = launcher.folder(), launcher.fork("node-1", "pauser", b"")
    launcher.signal(pid, signal.SIGSTOP)
    os.kill(launcher.pid, signal.SIGKILL)
    with pytest.raises(LauncherFailed, match=r"^the launcher has ended with -9"):
        exits(launcher, 1)
    assert wait_for_end(pid, WITHIN_S)
    launcher.close()
    assert not folder.exists()
    with pytest.raises(LauncherFailed, match=r"^the launcher has been closed$"):
        launcher.listen("node-1")


def test_the_terminals_signals_are_the_clients_business(launcher: Launcher) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(launcher.pid, number)
    pid = launcher.fork("node-1", "pauser", b"")
    assert os.getsid(pid) == launcher.pid != os.getsid(0)
    launcher.signal(pid, signal.SIGTERM)  # a child hears what its launcher does not
    assert [each.how for each in exits(launcher, 1)] == ["SIGTERM"]


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


def gentle(launcher: Launcher, script: str) -> None:
    """A program that is asked before it is killed, and has run its script."""
    launcher.execute("database", [sys.executable, "-u", "-c", script], gently=True)
    while b"up" not in launcher.log("database").read_bytes():
        assert launcher.poll() == []


def test_a_database_is_asked_to_stop_even_if_it_is_stopped() -> None:
    launcher = Launcher(module=MODULE)
    gentle(
        launcher,
        "import signal, sys; signal.signal(signal.SIGQUIT, lambda *_: sys.exit(5)); print('up'); signal.pause()",
    )
    launcher.fork("node-1", "pauser", b"")
    database = launcher.execute("quiet", SLEEP, gently=True)
    launcher.signal(database, signal.SIGSTOP)
    launcher.close()
    how = {each.name: each.how for each in launcher.exits}
    assert how == {"database": "exit code 5", "quiet": "SIGQUIT", "node-1": "SIGKILL"}


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


def ends_abruptly(mark: str, told: Connection) -> None:
    os.environ[MARK] = mark
    launcher = Launcher(module=MODULE)
    launcher.fork("node-1", "pauser", b"")
    told.send(str(launcher.folder()))
    os._exit(0)


@pytest.mark.parametrize(
    "context", [multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")], ids=["forked", "spawned"]
)
def test_a_worker_process_that_ends_without_a_word_leaves_nothing(context: ForkContext | SpawnContext) -> None:
    mark = uuid.uuid4().hex
    here, there = context.Pipe()
    worker = context.Process(target=ends_abruptly, args=(mark, there))
    worker.start()
    folder = Path(here.recv())
    worker.join(WITHIN_S)
    assert remaining(mark, WITHIN_S) == []
    assert not folder.exists()


def test_a_forked_copy_of_the_client_neither_ends_the_launcher_nor_keeps_it(tmp_path: Path) -> None:
    """The copy holds the control socket open: the end of the stream alone would never come."""
    mark = uuid.uuid4().hex
    script = f"""
import os, signal
from cutproof.reference_impl.processes.cluster import Launcher
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
import os, signal, sys
print("imports", flush=True)
from pathlib import Path
from cutproof.reference_impl.processes.cluster import Launcher
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
if sys.argv[1:] == ["closes"]:
    launcher.close()
signal.pause()
"""
LINES = 13


def kill_after(lines: int, folder: Path) -> tuple[list[int], list[str], list[str]]:
    """Kill a harness when it has said so many lines; what remains of it: processes, files, listening sockets."""
    mark = uuid.uuid4().hex
    folder.mkdir()
    with harness(DOOMED, mark, folder) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
    assert all(said), "the harness came to an end of its own"
    processes = remaining(mark, WITHIN_S)
    sockets = [line.split()[1] for line in said if line.startswith("listens")]
    listening = {line.split()[9] for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]}
    return processes, [each.name for each in folder.iterdir()], [each for each in sockets if each in listening]


def test_nothing_remains_of_a_harness_that_is_killed_at_any_moment(tmp_path: Path) -> None:
    """Twenty of them, four at a time, at every point of a run and, by their racing, between the points."""
    moments = [number % (LINES + 1) for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        left = list(pool.map(kill_after, moments, (tmp_path / str(number) for number in range(20))))
    assert left == [([], [], [])] * 20


def test_frames_come_out_however_the_bytes_come_in() -> None:
    sent = [Fork(serial=number, name="n", entry="e", config=bytes(number * 50)) for number in range(4)]
    stream = b"".join(frame(each) for each in sent)
    for size in (1, 3, 64, len(stream)):
        frames, received = Frames(), []
        for at in range(0, len(stream), size):
            frames.add(stream[at : at + size])
            while (body := frames.next()) is not None:
                received.append(asked.decode(body))
        assert received == sent


def test_a_frame_that_would_never_end_is_refused() -> None:
    frames = Frames()
    frames.add(b"\xff\xff\xff\xff")
    with pytest.raises(BadFrame, match="4294967295 bytes is announced"):
        frames.next()


def test_bytes_that_are_no_request_end_the_launcher_and_leave_nothing(launcher: Launcher) -> None:
    folder, pid = launcher.folder(), launcher.fork("node-1", "pauser", b"")
    launcher._control.sendall(b"\0\0\0\3abc")
    launcher._process.wait(WITHIN_S)
    with pytest.raises(LauncherFailed, match="was sent what it cannot read"):
        exits(launcher, 1)
    assert wait_for_end(pid, WITHIN_S)
    assert not folder.exists()
