"""The keeper of a pipeline's processes: what it starts, kills, and never leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.user_pipelines.description import Role, Run
from cutproof.harness.user_pipelines.processes import keeper as processes
from cutproof.harness.user_pipelines.processes.keeper import Keeper, environment_of
from cutproof.harness.user_pipelines.processes.process import Process
from cutproof.harness.user_pipelines.processes.programs import Programs
from cutproof.harness.user_pipelines.reading import read_pipeline
from unit.harness.user_pipelines.toys import TOY, toy

WITHIN_S = 10.0
SLEEPER = ["sleep", "600"]
FAMILY = ["sh", "-c", "sleep 601 & (setsid sleep 602 &) ; sleep 603"]
"""A command with a child, and with a grandchild that has left its session."""
WAITING = ["sh", "-c", "read line; exec sleep 606"]
"""A spare that would begin if its input just ended."""


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    one = Keeper()
    yield one
    one.close()


def running(marker: str) -> bool:
    """Whether a process lives whose command line has these arguments."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words.strip() == marker:
            return True
    return False


def until(holds: bool, marker: str) -> bool:
    """Wait, for a bounded time, until a process runs (or does not)."""
    deadline = time.monotonic() + WITHIN_S
    while running(marker) is not holds and time.monotonic() < deadline:
        time.sleep(0.005)
    return running(marker) is holds


def started(keeper: Keeper, command: list[str], folder: Path) -> int:
    return keeper.start(command, environment_of({}), folder, folder / "log")


def ended(keeper: Keeper, pid: int) -> int | None:
    deadline = time.monotonic() + WITHIN_S
    while (code := keeper.exit_code(pid)) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return code


def test_how_a_command_ended_is_known_and_what_it_printed(keeper: Keeper, tmp_path: Path) -> None:
    pid = started(keeper, ["sh", "-c", "echo $WORD; exit 3"], tmp_path)
    assert ended(keeper, pid) == 3
    pid = keeper.start(["sh", "-c", "echo $WORD"], environment_of({"WORD": "given"}), tmp_path, tmp_path / "log")
    assert ended(keeper, pid) == 0
    assert (tmp_path / "log").read_text() == "\ngiven\n"


def test_a_kill_reports_whether_the_command_still_ran(keeper: Keeper, tmp_path: Path) -> None:
    pid = started(keeper, SLEEPER, tmp_path)
    assert keeper.exit_code(pid) is None
    assert keeper.kill(pid)
    assert ended(keeper, pid) == -signal.SIGKILL
    assert not keeper.kill(pid)


def test_a_kill_hits_all_processes_of_a_command(keeper: Keeper, tmp_path: Path) -> None:
    pid = started(keeper, ["sh", "-c", "sleep 604 & sleep 605"], tmp_path)
    assert until(True, "sleep 604")
    assert keeper.kill(pid)
    assert until(False, "sleep 604")
    assert until(False, "sleep 605")


LEAVING = "(setsid sleep 607 &) ; sleep 608"
"""A shell's text: a daemon, whose parent ends at once, and a process that stays."""


def test_a_kill_hits_processes_that_have_left_the_session(keeper: Keeper, tmp_path: Path) -> None:
    """Neither those of a command that ran before, nor the next command's."""
    server = started(keeper, ["sh", "-c", "setsid sleep 609 &"], tmp_path)
    assert ended(keeper, server) == 0
    assert until(True, "sleep 609")
    keeper.end(server)
    pid = started(keeper, ["sh", "-c", f"setsid sh -c '{LEAVING}' & wait"], tmp_path)
    assert until(True, "sleep 607")
    assert until(True, "sleep 608")
    assert keeper.kill(pid)
    assert until(False, "sleep 607")
    assert until(False, "sleep 608")
    assert keeper.end(pid, strayed=True) == []
    assert running("sleep 609"), "a server that a command before the first start has left"


def test_a_kill_that_may_have_missed_a_process_is_told(keeper: Keeper) -> None:
    role = Role(start=("sh", "-c", "(env -i setsid sleep 610 &) ; sleep 611"))
    one = Process("store", role, keeper, {}, lambda *_: 0)
    one.start()
    assert until(True, "sleep 610")
    assert until(True, "sleep 611")
    with pytest.raises(SubjectFailed, match=r"^roles\.store: sleep has left its session and its environment"):
        one.kill()


def test_what_cannot_be_handed_to_a_program_is_told(keeper: Keeper, tmp_path: Path) -> None:
    with pytest.raises(SubjectFailed, match="the command echo cannot be started: embedded null byte"):
        started(keeper, ["echo", "a\0b"], tmp_path)


def test_a_program_that_does_not_exist_is_named(keeper: Keeper, tmp_path: Path) -> None:
    with pytest.raises(SubjectFailed, match="the command no-such-program cannot be started: No such file"):
        started(keeper, ["no-such-program"], tmp_path)
    assert ended(keeper, started(keeper, ["true"], tmp_path)) == 0, "and the keeper goes on"
    with pytest.raises(SubjectFailed, match="cannot be started: embedded null byte"):
        keeper.start(["true", "a\0b"], environment_of({}), tmp_path, tmp_path / "log")


def test_a_command_that_waits_goes_on_when_it_is_told(keeper: Keeper, tmp_path: Path) -> None:
    pid = keeper.start(["sh", "-c", "read line; exit 7"], environment_of({}), tmp_path, tmp_path / "log", waits=True)
    assert keeper.exit_code(pid) is None
    assert keeper.go(pid)
    assert ended(keeper, pid) == 7
    assert not keeper.go(pid)


def test_a_process_that_is_stopped_has_time_to_end(keeper: Keeper, tmp_path: Path) -> None:
    """It may undo a transaction: otherwise the reader would find an output that nobody can read."""
    handler = f"trap 'sleep 0.3; echo undone > {tmp_path}/words; exit' TERM; echo up; while :; do sleep 0.02; done"
    one = Process("pipeline", Run(start=("bash", "-c", handler)), keeper, {}, lambda *_: 0)
    one.start()
    deadline = time.monotonic() + WITHIN_S
    while not one.printed() and time.monotonic() < deadline:
        time.sleep(0.005)
    one.stop()
    assert (tmp_path / "words").read_text() == "undone\n"


ASKS = """\
[roles.server]
start = ["sh", "-c", "while sleep 0.01; do if test -f asked; then echo {} > draft; mv draft answer; fi; done"]

[restored]"""
ANSWERED = """\
format = "command"
command = ["sh", "-c", "touch asked; until test -s answer; do sleep 0.01; done; cat answer"]"""
SQLITE = 'format = "sqlite"\npath = "{state}/toy.db"\nquery = "SELECT key, n AS value, 0 AS tag FROM rows"'


def test_a_command_may_ask_a_process_that_is_paused(keeper: Keeper, tmp_path: Path) -> None:
    pipeline = read_pipeline(toy(tmp_path, ("[restored]", ASKS), (SQLITE, ANSWERED)))
    programs = Programs(pipeline, keeper, {}, lambda *_: 0)
    (server,) = programs.roles
    programs.start_role(server)
    assert server.pause(0.1)
    assert programs.printed_rows(within_s=2.0) == "{}\n"


OWN = f'start = ["{{python}}", "{TOY}", "{{input}}", "{{state}}/toy.db", "careful"]'
TEMPORARY = 'start = ["sh", "-c", "mktemp; sleep 608"]'


def test_temporary_files_of_a_killed_process_go_with_the_run(keeper: Keeper, tmp_path: Path) -> None:
    pipeline = read_pipeline(toy(tmp_path, (OWN, TEMPORARY)))
    own = Programs(pipeline, keeper, {}, lambda *_: 0).own
    own.start()
    deadline = time.monotonic() + WITHIN_S
    while not own.printed() and time.monotonic() < deadline:
        time.sleep(0.005)
    own.kill()
    left = Path(own.printed(0).strip())
    assert left.is_file()
    keeper.close()
    assert not left.exists()


SERVER = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
)


def test_no_process_of_another_command_is_hit_at_a_port(keeper: Keeper) -> None:
    other = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    try:
        port = int(other.stdout.readline())
        assert not keeper.signal_at(port, signal.SIGKILL)
        assert other.poll() is None
    finally:
        other.communicate("\n")


# -- a spare ------------------------------------------------------------------------------

UP = ["sh", "-c", "echo up; read line && echo begun && exec sleep 604"]


def with_spare(keeper: Keeper, command: list[str]) -> Process:
    """A process that has begun, and its spare, which has come up."""
    one = Process("pipeline", Run(start=tuple(command), spare=True), keeper, {}, lambda *_: 0)
    one.start()
    one.start_spare()
    deadline = time.monotonic() + WITHIN_S
    logs = (keeper.folder / "log-pipeline", keeper.folder / "log-pipeline-spare-1")
    while not all(log.exists() and "up" in log.read_text() for log in logs) and time.monotonic() < deadline:
        time.sleep(0.005)
    return one


def test_a_spare_takes_over_after_a_kill_and_not_before(keeper: Keeper) -> None:
    one = with_spare(keeper, UP)
    assert until(True, "sleep 604")
    assert one.printed(0).split().count("begun") == 1, "the spare waits"
    before = one.pid
    assert one.kill()
    assert until(False, "sleep 604"), "the spare is no victim of the kill, and has not begun"
    one.start()
    assert until(True, "sleep 604")
    assert one.pid != before
    assert (one.printed(0).split().count("up"), one.printed()) == (2, "begun\n"), "no third process was started"


def test_a_spare_that_nothing_needed_is_ended_with_its_process(keeper: Keeper) -> None:
    one = with_spare(keeper, ["sh", "-c", "echo up; read line; exec sleep 605"])
    one.stop()
    assert until(False, "sh -c echo up; read line; exec sleep 605")


def test_a_spare_that_did_not_wait_is_told(keeper: Keeper) -> None:
    one = with_spare(keeper, ["sh", "-c", "echo up"])
    one.go_on_as_after_a_kill()
    with pytest.raises(SubjectFailed, match=r"run\.spare: it ended before it was given a line to go on: up"):
        one.start()


def test_a_line_that_a_process_does_not_read_is_seen(keeper: Keeper) -> None:
    reads = with_spare(keeper, UP)
    assert until(True, "sleep 604"), "it has read its line"
    assert not reads.has_unread_line()
    ignores = Process("other", Run(start=("sleep", "605"), spare=True), keeper, {}, lambda *_: 0)
    ignores.start()
    assert ignores.has_unread_line()
    assert keeper.kill(ignores.pid or 0)
    assert ignores.has_unread_line(), "also once it has ended"


def test_a_spare_does_not_begin_when_it_is_ended(keeper: Keeper, tmp_path: Path) -> None:
    """Its line is forgotten only once it is dead: a shell takes the end of its input for a line."""
    one = with_spare(keeper, ["sh", "-c", f"echo up; read line; echo begun >> {tmp_path}/begun; exec sleep 605"])
    assert until(True, "sleep 605")
    one.end_spare()
    assert (tmp_path / "begun").read_text() == "begun\n", "the first process has begun, and nobody else"


def test_a_spare_prints_into_a_log_of_its_own_until_it_takes_over(keeper: Keeper) -> None:
    one = with_spare(keeper, UP)
    assert until(True, "sleep 604")
    marked = one.end_of_log()
    assert (one.printed(0), one.last_words()) == ("up\nbegun\n", "up | begun"), "not a line of the spare"
    one.kill()
    one.start()
    assert until(True, "sleep 604")
    assert (one.printed(0), one.printed(marked), one.printed()) == ("up\nbegun\nup\nbegun\n", "up\nbegun\n", "begun\n")
    one.start_spare()
    assert one.printed(marked) == "up\nbegun\n"


def test_nothing_is_left_when_the_keeper_is_closed(tmp_path: Path) -> None:
    keeper = Keeper()
    assert keeper.folder.is_dir()
    started(keeper, FAMILY, tmp_path)
    assert until(True, "sleep 602")
    keeper.close()
    for marker in ("sleep 601", "sleep 602", "sleep 603"):
        assert not running(marker)
    assert not keeper.folder.exists()


def test_commands_for_the_end_are_run_when_the_harness_has_died(tmp_path: Path) -> None:
    """They find the roles, of which one was paused, and not the pipeline's own process."""
    keeper = Keeper()
    server = ("bash", "-c", "while sleep 0.01; do test -f asked && touch answered; done")
    role = Process("server", Role(start=server), keeper, {}, lambda *_: 0)
    own = Process("pipeline", Run(start=("sleep", "612")), keeper, {"where": str(tmp_path)}, lambda *_: 0)
    role.start()
    own.start()
    assert role.pause(600.0)
    asks = "touch asked; until test -f answered; do sleep 0.01; done; kill -0 $0 || echo alone > {where}/words"
    own.run_after([("sh", "-c", asks, str(own.pid)), ("no-such-program",), ("touch", "{where}/more")])
    keeper.close()
    assert (tmp_path / "words").read_text() == "alone\n"
    assert (tmp_path / "more").exists()
    assert not keeper.folder.exists()


def test_nothing_is_left_when_the_process_group_of_the_harness_is_killed(tmp_path: Path) -> None:
    program = f"""
import time
from pathlib import Path
from cutproof.harness.user_pipelines.description import Run
from cutproof.harness.user_pipelines.processes.keeper import Keeper, environment_of
from cutproof.harness.user_pipelines.processes.process import Process
folder, keeper = Path({str(tmp_path)!r}), Keeper()
keeper.start({FAMILY!r}, environment_of({{}}), folder, folder / "log")
Process("pipeline", Run(start={tuple(WAITING)!r}, spare=True), keeper, {{}}, print).start_spare()
print("started", flush=True)
time.sleep(600)
"""
    harness = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert harness.stdout is not None
    assert harness.stdout.readline() == "started\n"
    assert until(True, "sleep 602")
    os.killpg(harness.pid, signal.SIGKILL)
    harness.wait()
    harness.stdout.close()
    for marker in ("sleep 601", "sleep 602", "sleep 603", " ".join(WAITING), "sleep 606"):
        assert until(False, marker), marker


def test_pipelines_are_for_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.sys, "platform", "darwin")
    with pytest.raises(Exception, match="Linux only"):
        Keeper()
