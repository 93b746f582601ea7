"""A process of its own that starts a pipeline's commands, and lets none of their processes outlive the harness.

It is run as a script, without the package: `python -I keeper_script.py FOLDER`.  It makes the folder, and
says so in one line.  Then it reads requests from standard input, one JSON object a line, and answers
each in one line.  When its input ends, because the harness asks for it or was killed, it kills
everything that it started, and deletes the folder.  Each command has a session of its own, and what
a command left behind becomes the keeper's own child (PR_SET_CHILD_SUBREAPER).  Linux only.

Requests: {"start": [argument, ...], "environment": {...}, "folder": "...", "log": "...", "output": "..."} answers
{"pid": n} or {"error": "..."}, and standard output goes to the file `output` if it is not ""; with "waits": true the
command waits for a line of standard input, which {"go": pid} gives it, and answers {"sent": bool}; {"unread": pid}
answers {"unread": bool}, whether that line was given and not read so far; {"signal": n, "pid": n} sends a signal to
the command's whole session and answers {"sent": bool};
{"poll": pid} answers {"code": n or null}; {"end": pid} kills what is left of a command and answers {"code": n}.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
ROUNDS = 200
"""how often what is left is looked for and killed, 10 ms apart"""

_codes: dict[int, int] = {}
_started: set[int] = set()
_waiting: dict[int, int] = {}
"""by command: where the line is written that it waits for"""
_lines: dict[int, int] = {}
"""by command that waits, or that has been given its line: the end of the pipe from which the command reads.  The keeper
reads nothing; it asks how much is left."""


def main() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the input decides
    os.mkdir(sys.argv[1], 0o700)
    try:
        print(json.dumps({"folder": sys.argv[1]}), flush=True)
        for line in sys.stdin:
            print(json.dumps(_answer(json.loads(line))), flush=True)
    finally:
        _kill_all()
        shutil.rmtree(sys.argv[1], ignore_errors=True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if "start" in request:
        return _start(request)
    if "poll" in request:
        _reap()
        return {"code": _codes.get(request["poll"])}
    if "go" in request:
        return {"sent": _go(request["go"])}
    if "unread" in request:
        return {"unread": _has_unread_line(request["unread"])}
    if "end" in request:
        return {"code": _end(request["end"])}
    return {"sent": _signal(request["pid"], request["signal"])}


def _start(request: dict[str, Any]) -> dict[str, Any]:
    read, write = os.pipe()
    line, to_line = os.pipe() if request.get("waits") else (os.open(os.devnull, os.O_RDONLY), None)
    pid = os.fork()
    if pid == 0:
        _become(request, write, line)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        error = told.read().decode()  # ends as the command begins: the pipe is closed by exec
    if to_line is None:
        os.close(line)
    else:
        _waiting[pid], _lines[pid] = to_line, line
    if error:
        os.waitpid(pid, 0)
        _forget_line(pid)
        return {"error": error}
    _started.add(pid)
    return {"pid": pid}


def _go(pid: int) -> bool:
    """Give a command the line that it waits for; whether the command still ran."""
    _reap()
    if pid not in _waiting or pid in _codes:
        return False
    os.write(_waiting[pid], b"go\n")
    os.close(_waiting.pop(pid))
    return True


def _has_unread_line(pid: int) -> bool:
    """Whether a command was given its line, and has not read it."""
    if pid not in _lines or pid in _waiting:
        return False
    (left,) = struct.unpack("i", fcntl.ioctl(_lines[pid], termios.FIONREAD, b"\0" * 4))
    return bool(left)


def _forget_line(pid: int) -> None:
    for ends in (_waiting, _lines):
        if pid in ends:
            os.close(ends.pop(pid))


def _become(request: dict[str, Any], errors: int, line: int) -> None:
    """In the child: become the command, or report why that is impossible."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if request["output"] else log
        for source, target in ((line, 0), (output, 1), (log, 2)):
            os.dup2(source, target)
        os.chdir(request["folder"])
        command = request["start"]
        os.execvpe(command[0], command, request["environment"])
    except OSError as error:
        os.write(errors, (error.strerror or str(error)).encode())
    finally:
        os._exit(127)


def _signal(pid: int, number: int) -> bool:
    """Send a signal to every process of a command's session; whether the command itself still ran."""
    _reap()
    was_alive = pid in _started and pid not in _codes
    for one in _of_session(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, number)
    return was_alive


def _end(pid: int) -> int | None:
    """Kill what is left of a command, and wait for it."""
    for _ in range(ROUNDS):
        left = list(_of_session(pid))
        for one in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        _reap()
        if not left and (pid in _codes or pid not in _started):
            break
        time.sleep(0.01)
    _forget_line(pid)  # not before: a command that waits would find the end of its input, and begin
    return _codes.get(pid)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            _codes[pid] = os.waitstatus_to_exitcode(status)


def _kill_all() -> None:
    """Kill all descendants, also those in sessions of their own, until there are none."""
    for _ in range(ROUNDS):
        left = list(_descendants())
        for one in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        _reap()
        if not left:
            return
        time.sleep(0.01)


def _processes() -> Iterator[tuple[int, int, int, str]]:
    """(pid, parent, session, state) of every process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), int(words[1]), int(words[3]), words[0]


def _of_session(pid: int) -> Iterator[int]:
    """The living processes of a command's session."""
    return (one for one, _, session, state in _processes() if session == pid and state not in "ZX")


def _descendants() -> Iterator[int]:
    parents = {pid: parent for pid, parent, _, state in _processes() if state not in "ZX"}
    own = os.getpid()
    for pid in parents:
        above: int | None = pid
        while above not in (None, 0, own):
            above = parents.get(above)
        if above == own and pid != own:
            yield pid


if __name__ == "__main__":
    main()
