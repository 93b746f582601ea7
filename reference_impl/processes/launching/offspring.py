"""A forked child's first steps and its end, and what the kernel is asked to do about orphans.

A child dies with its launcher (PR_SET_PDEATHSIG).  A process that a child leaves behind becomes the launcher's child
(PR_SET_CHILD_SUBREAPER), so that the launcher can kill and reap it.  Where there is no prctl, on macOS, a launcher that
is killed leaves its children, and orphans are not found.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

Entry = Callable[[bytes, dict[str, socket.socket]], None]

FAILED = 1
"""Exit code of a child whose entry raised."""
NOT_STARTED = 127
"""Exit code of a child that never ran its entry."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
# Looked up before any fork: a child does as little as possible before it has detached itself.
_prctl = ctypes.CDLL(None, use_errno=True).prctl if LINUX else None
_RESET = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def _ask_kernel(option: int, value: int) -> None:
    if _prctl is not None and _prctl(option, *(ctypes.c_ulong(each) for each in (value, 0, 0, 0))) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def adopt_orphans() -> None:
    """Make this process the parent of every process that its descendants leave behind."""
    _ask_kernel(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """Be killed when `parent` dies, also if it died before this call."""
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(NOT_STARTED)


def children_of(parent: int) -> list[int]:
    """Processes whose parent is `parent`, as /proc has it now; none where there is no /proc."""
    found = []
    for each in sorted(os.listdir("/proc")) if LINUX else []:
        if each.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                # Past the command, which may hold blanks and parentheses: state, parent, …
                if int(Path(f"/proc/{each}/stat").read_bytes().rpartition(b")")[2].split()[1]) == parent:
                    found.append(int(each))
    return found


def close_all_but(kept: Iterable[int]) -> None:
    """Close every descriptor above 2 that is not kept."""
    spared = {0, 1, 2, *kept}
    # Listed, not counted up to the limit, which is a thousand million on some machines.
    for each in sorted(int(name) for name in os.listdir("/dev/fd")):
        if each not in spared:
            with contextlib.suppress(OSError):  # the one that listed the folder
                os.close(each)


def become_named(parent: int, output: int) -> None:
    """The steps of every child: signals, streams, and to die with the launcher."""
    signal.set_wakeup_fd(-1)
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    os.dup2(output, 1)
    os.dup2(output, 2)
    die_with(parent)


def run_entry(
    entry: Entry, config: bytes, sockets: dict[str, socket.socket], parent: int, output: int, failure: int
) -> NoReturn:
    """In a fresh child: run an entry and end the process with its exit code.

    `failure` is closed when the child has detached itself; if the child cannot, it writes the reason into `failure`.
    """
    try:
        become_named(parent, output)
        for each in sockets.values():
            each.setblocking(True)  # an earlier process may have changed what all of them share
        for stream in (sys.stdout, sys.stderr):
            # What a killed process printed should be in its log.
            getattr(stream, "reconfigure", lambda **_: None)(line_buffering=True)
        # On the descriptors, below Python's file objects: frames of the callers keep those until the end.
        close_all_but(each.fileno() for each in sockets.values())
    except BaseException as error:
        _not_started(failure, "a child", error)
    code = FAILED
    try:
        entry(config, sockets)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else FAILED if ended.code else 0
        if not isinstance(ended.code, int | None):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):  # a full disk; a stream that the entry closed
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def run_program(
    argv: Sequence[str], env: Mapping[str, str], uid: int | None, parent: int, output: int, failure: int
) -> NoReturn:
    """In a fresh child: become a program.

    `failure` closes by itself when that succeeds; else the child writes the reason into it.
    """
    try:
        # A program expects the system's defaults; exec would hand Python's own settings on.
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        if uid is not None and uid != os.geteuid():
            become_user(uid)
        become_named(parent, output)  # last: a change of user undoes the wish to die with the parent
        close_all_but((failure,))
        os.execvpe(argv[0], list(argv), dict(env))
    except BaseException as error:
        _not_started(failure, argv[0], error)


def _not_started(failure: int, what: str, error: BaseException) -> NoReturn:
    try:
        os.write(failure, f"{what}: {getattr(error, 'strerror', None) or error}".encode())
    finally:
        os._exit(NOT_STARTED)


def become_user(uid: int) -> None:
    try:
        gid = pwd.getpwuid(uid).pw_gid
    except KeyError:
        gid = uid
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
