"""A process of its own that starts a pipeline's commands, and lets none of their processes outlive the harness.

It is run as a script, without the package: `python -I keeper_script.py FOLDER`.  It makes the folder, and
says so in one line.  Then it reads requests from standard input, one JSON object a line, and answers
each in one line.  When its input ends, because the harness asks for it or was killed, it kills
everything that it started, and deletes the folder.  Each command has a session of its own, and what
a command left behind becomes the keeper's own child (PR_SET_CHILD_SUBREAPER).  Linux only.

A process is a command's if it is in the command's session, descends from it, or has its mark in the environment.  So
one is found too that `setsid`, or the double fork of a daemon, has taken out of the session.

{"start": [argument, ...], "environment": {...}, "folder": "...", "log": "...", "output": "..."}
    Starts a command; its standard output goes to the file `output` if that is not "".  With "waits": true it waits for
    a line of standard input.  With "outlasts": true it goes on while the commands of "after" are run.
    Answers {"pid": n} or {"error": "..."}.
{"go": pid}
    Gives a command the line that it waits for.  Answers {"sent": bool}.
{"unread": pid}
    Asks whether that line was given, and not read so far.  Answers {"unread": bool}.
{"signal": n, "pid": pid}
    Sends a signal to all processes of a command.  Answers {"sent": bool}.
{"signal": n, "port": port}
    Sends a signal to those processes that listen at a TCP port and descend from the keeper, and, if it kills them,
    waits until they have ended.  Answers {"sent": bool}, whether there was one.
{"poll": pid}
    Asks how a command has ended.  Answers {"code": n or null}.
{"end": pid, "strayed": bool}
    Kills what is left of a command in its session, or also elsewhere.  Answers {"strays": [name, ...]}: processes that
    may be the command's, and have neither the session nor the mark of any.
{"after": [a request to start a command, ...]}
    Has these commands run, one after the other, when the input ends, in place of those that it was given before: the
    commands that outlast them go on, such as a database, and no others.  Answers {}.
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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
MARK = "CUTPROOF_COMMAND"
"""a variable in the environment of a command, which all its processes inherit"""
ROUNDS = 200
"""how often what is left is looked for and killed, 10 ms apart"""
LISTENS = "0A"
"""the state of a TCP socket that listens, in /proc/net/tcp"""
AFTER_S = 60.0
"""how long a command may take that is run in the end"""
STRAYS_LAST = 20
"""so many of these rounds a stray has to be there: one that just begins another program has no environment"""

_codes: dict[int, int] = {}
_started: set[int] = set()
_outlasting: set[int] = set()
_after: list[dict[str, Any]] = []
_begun: dict[int, int] = {}
"""by command: when it was started, in ticks of the system's clock"""
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
        with contextlib.suppress(Exception):  # whatever happens, no process is left
            _run_after()
        _kill_all()
        shutil.rmtree(sys.argv[1], ignore_errors=True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if "start" in request:
        return _start(request)
    if "poll" in request:
        _reap()
        return {"code": _codes.get(request["poll"])}
    if "after" in request:
        _after[:] = request["after"]
        return {}
    if "go" in request:
        return {"sent": _go(request["go"])}
    if "unread" in request:
        return {"unread": _has_unread_line(request["unread"])}
    if "end" in request:
        return {"strays": _end(request["end"], strayed=request["strayed"])}
    if "port" in request:
        return {"sent": _signal_at(request["port"], request["signal"])}
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
    if request.get("outlasts"):
        _outlasting.add(pid)
    _begun[pid] = _begun_at(pid)
    return {"pid": pid}


def _run_after() -> None:
    """Run the commands that were handed in for the end, if there are any."""
    if not _after:
        return
    _reap()
    for pid in sorted(_started.difference(_codes)):
        if pid in _outlasting:
            _signal(pid, signal.SIGCONT)
        else:
            _end(pid, strayed=True)
    for request in _after:
        begun = _start(request).get("pid")
        deadline = time.monotonic() + AFTER_S
        while begun is not None and begun not in _codes and time.monotonic() < deadline:
            time.sleep(0.01)
            _reap()
        if begun is not None:
            _end(begun, strayed=False)


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
        os.execvpe(command[0], command, {**request["environment"], MARK: _mark(os.getpid(), os.getppid())})
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument, say
        os.write(errors, (getattr(error, "strerror", "") or str(error)).encode())
    finally:
        os._exit(127)


def _signal(pid: int, number: int) -> bool:
    """Send a signal to every process of a command; whether the command itself still ran."""
    _reap()
    was_alive = pid in _started and pid not in _codes
    _send(number, _of_command(pid, strayed=True))
    return was_alive


def _signal_at(port: int, number: int) -> bool:
    """Send a signal to what listens at a port, if the keeper has started it; whether there was such a process."""
    listening = _listening_at(port)
    hit = {one for one, *_ in _descendants() if listening.intersection(_sockets_of(one))}
    _send(number, hit)
    for _ in range(ROUNDS if number == signal.SIGKILL else 0):
        _reap()
        if not hit.intersection(one for one, *_ in _descendants()):
            break
        time.sleep(0.01)
    return bool(hit)


def _end(pid: int, *, strayed: bool) -> list[str]:
    """Kill what is left of a command, and wait for it; the names of the strays that have come since it was started."""
    strays: list[int] = []
    for number in range(ROUNDS):
        left = _of_command(pid, strayed=strayed)
        _send(signal.SIGKILL, left)
        _reap()
        strays = [one for one in _strays() if _begun_at(one) >= _begun.get(pid, 0)] if strayed else []
        if not left and (pid in _codes or pid not in _started) and (not strays or number >= STRAYS_LAST):
            break
        time.sleep(0.01)
    _forget_line(pid)  # not before: a command that waits would find the end of its input, and begin
    return [_name_of(one) for one in strays]


def _send(number: int, processes: Iterable[int]) -> None:
    for one in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, number)


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
        left = [one for one, *_ in _descendants()]
        _send(signal.SIGKILL, left)
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


def _of_command(pid: int, *, strayed: bool) -> list[int]:
    """The living processes of a command; if `strayed`, also those whose parent has ended outside its session."""
    mark = _mark(pid, os.getpid())
    return [
        one
        for one, line, sessions in _descendants()
        if pid in line or pid in sessions or (strayed and mark in map(_marked, line))
    ]


def _strays() -> list[int]:
    """The keeper's own children that are no command, and of which nothing shows from which command they come."""
    return [
        one
        for one, line, sessions in _descendants()
        if len(line) == 1 and not _started.intersection((*line, *sessions)) and not _marked(one)
    ]


def _descendants() -> Iterator[tuple[int, list[int], list[int]]]:
    """Every living process that descends from the keeper: itself, the line from it up to the keeper's own child, and
    the sessions of these."""
    known = {pid: (parent, session) for pid, parent, session, state in _processes() if state not in "ZX"}
    own = os.getpid()
    for pid in known:
        line, above = [], pid
        while above in known and above != own:
            line.append(above)
            above = known[above][0]
        if above == own and line:
            yield pid, line, [known[one][1] for one in line]


def _listening_at(port: int) -> set[str]:
    """The sockets that listen at a TCP port, by their numbers (proc(5), /proc/net/tcp)."""
    found = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{words[9]}]")
    return found


def _sockets_of(pid: int) -> Iterator[str]:
    """What a process has open, as Linux names it."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                yield os.readlink(entry.path)


def _mark(pid: int, keeper: int) -> str:
    """The mark of a command."""
    return f"{keeper}.{pid}"


def _marked(pid: int) -> str:
    """The mark of a process; empty if it has none."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = entry.decode(errors="replace").partition("=")
            if name == MARK:
                return value
    return ""


def _begun_at(pid: int) -> int:
    """When a process was started, in ticks of the system's clock; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return 0


def _name_of(pid: int) -> str:
    """What a process is called."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return f"process {pid}"


if __name__ == "__main__":
    main()
