"""A launcher starts, signals, watches and reaps, and says what it cannot do."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.processes.launching.cluster import Launcher, LauncherFailed, ProcessTerminated
from cutproof.reference_impl.processes.launching.orders import BadFrame, Exited, Fork, Frames, asked, frame
from unit.processes.same_number import PID
from unit.processes.toys import MODULE, SLEEP, WITHIN_S, ask, exits, state, wait_for_end


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with Launcher(module=MODULE) as made:
        yield made


def test_a_killed_process_is_reaped_and_reported_when_the_call_returns(launcher: Launcher) -> None:
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


def test_an_exit_is_reported_without_being_asked_for() -> None:
    arrived: list[Exited] = []
    with Launcher(module=MODULE, on_exit=arrived.append) as launcher:
        pid = launcher.fork("node-1", "leaver", b"7")
        assert exits(launcher, 1) == arrived == [Exited(pid=pid, name="node-1", code=7)]
        assert arrived[0].how == "exit code 7"


def test_what_has_been_reaped_cannot_be_signalled(launcher: Launcher) -> None:
    pid = launcher.fork("node-1", "leaver", b"0")
    exits(launcher, 1)
    with pytest.raises(ProcessTerminated, match=rf"^process {pid} \(node-1, exit code 0\) is not running$"):
        launcher.signal(pid, signal.SIGKILL)
    with pytest.raises(ProcessTerminated, match=f"^process {os.getpid()} is not running$"):
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
    reason_text = (launcher.folder() / "program.txt").read_text(encoding="utf-8").splitlines()
    # Four descriptors: the streams, and the folder that is being listed.
    assert sorted(reason_text) == ["['one', 'two'] b 4", "complaint"]


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


def test_what_cannot_be_done_is_reported_and_the_launcher_goes_on(launcher: Launcher) -> None:
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


def test_a_process_has_not_ended_because_an_earlier_one_of_its_number_has(launcher: Launcher) -> None:
    pid = launcher.fork("node-1", "pauser", b"")
    assert launcher.end_of(pid) is None
    launcher.signal(pid, signal.SIGKILL)
    end = launcher.end_of(pid)
    assert end is not None
    assert end.how == "SIGKILL"
    with Launcher(module="unit.processes.same_number") as another:
        assert another.fork("node-1", "pauser", b"") == PID
        assert [each.pid for each in exits(another, 1)] == [PID]
        assert another.end_of(PID) is not None
        assert another.fork("node-1", "pauser", b"") == PID
        assert another.end_of(PID) is None
        assert [each.pid for each in another.exits] == [PID]


def test_a_launcher_that_cannot_start_reports_why() -> None:
    with pytest.raises(LauncherFailed, match=r"^the launcher has ended with 1: .*No module named unit\.nowhere$"):
        Launcher(module="unit.nowhere")


def test_a_launcher_that_is_killed_is_reported_and_takes_its_children_along(launcher: Launcher) -> None:
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
    os.write(launcher.fileno(), b"\0\0\0\3abc")
    assert wait_for_end(launcher.pid, WITHIN_S)
    with pytest.raises(LauncherFailed, match="was sent what it cannot read"):
        exits(launcher, 1)
    assert wait_for_end(pid, WITHIN_S)
    assert not folder.exists()


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_cleanup_is_run_when_everything_else_has_ended(tmp_path: Path, cancelled: bool) -> None:
    """Also when nobody closed the launcher; not when it was cancelled."""
    left = tmp_path / "left"
    launcher = Launcher(module=MODULE)
    launcher.register_cleanup("will", "write", str(left).encode())
    if cancelled:
        launcher.cancel_cleanup("will")
    launcher.close()
    assert left.exists() is not cancelled
