"""The harness's side of a launcher: starts one, asks it to start, signal and watch processes, and lets it go."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TypeVar, cast

import msgspec

from . import offspring
from .children import GENTLE_S, SWEEP_S
from .launcher import CHUNK_BYTES, CLEANUPS_S, HOST_NETWORK, LOGS, remove
from .orders import (
    Answer,
    Ask,
    BadFrame,
    CancelCleanup,
    Done,
    Execute,
    Exited,
    Failed,
    Fork,
    Frames,
    LauncherMessage,
    Listen,
    Listening,
    Ready,
    RegisterCleanup,
    Signal,
    Started,
    Unlisten,
    frame,
    message_decoder,
)

MODULE = f"{__package__}.launcher"
TIMEOUT_S = 10.0
"""within which a launcher answers"""
START_S = 30.0
END_S = GENTLE_S + 2 * SWEEP_S + CLEANUPS_S + 3.0

A = TypeVar("A", bound=Answer)


class LauncherFailed(Exception):
    """A launcher could not do what was requested, or has ended; one line."""


class ProcessTerminated(LauncherFailed):
    """The process that was to be signalled has ended; its exit has been reported."""


class Launcher:
    """One launcher process, from construction to `close`.  Every call blocks, for a bounded time, and raises
    LauncherFailed.  For one thread; a forked copy of it may only be closed, which does nothing to the original.

    It can sit in a selector's loop: when `fileno()` is readable, `poll()`.  Calls take in exits too, so a loop that
    makes any should look at `poll()` after them as well, or be given `on_exit`.
    """

    def __init__(
        self,
        *,
        on_exit: Callable[[Exited], None] | None = None,
        warm: Sequence[str] = (),
        module: str = MODULE,
        network: str = HOST_NETWORK,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`on_exit` is called from within `poll` and all other calls; it must make none.  `warm` names entries to
        import while nobody waits.  `module` runs as the launcher: one that calls `launcher.main` with its entries.
        `network`: host; own, a network namespace that nobody else is in; or any: that, where the machine allows it."""
        self.exits: list[Exited] = []
        """every exit so far, in the order of the reaping; of one process, see `end_of`"""
        self._ends: dict[int, Exited] = {}
        self._ports: dict[str, int] = {}
        self._reported = 0
        self._on_exit = on_exit
        self._timeout_s = timeout_s
        self._owner = os.getpid()
        self._serial = 0
        self._frames = Frames()
        self._answers: dict[int, Answer] = {}
        self._folder: Path | None = None
        self._door: str | None = None
        self._closed = False
        # What it says when it cannot even start; no stream of the harness's own is held open by it.
        self._complaints = _scratch()
        self._control, other = socket.socketpair()
        try:
            with other:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", module, str(other.fileno()), str(self._owner), network, *warm],
                    stdin=subprocess.DEVNULL,
                    stdout=self._complaints,
                    stderr=self._complaints,
                    pass_fds=(other.fileno(),),
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": _path()},
                )
        except OSError as error:
            self._control.close()
            self._complaints.close()
            raise LauncherFailed(f"the launcher cannot be started: {error}") from error
        try:
            self._wait_for(lambda: self._folder is not None, START_S, "is not ready")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Launcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        return self._control.fileno()

    def folder(self) -> Path:
        """A private folder for all that the run writes; the launcher removes it in the end."""
        if self._folder is None:
            raise LauncherFailed("the launcher is not ready")
        return self._folder

    def log(self, name: str) -> Path:
        """Where processes of that name write; several, one after another, share it."""
        return self.folder() / LOGS / f"{name}.log"

    def fork(self, name: str, entry: str, config: bytes, listen: Sequence[str] = ()) -> int:
        """Start a process that runs an entry with `config` and the named listening sockets; its pid."""
        serial = self._next()
        return self._ask(Fork(serial=serial, name=name, entry=entry, config=config, listen=tuple(listen)), Started).pid

    def execute(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        uid: int | None = None,
        stdout: str | None = None,
        gently: bool = False,
    ) -> int:
        """Start a program; its pid.  Its environment is `env`, or this process's.  `uid` needs root.  `stdout` is a
        path in the folder, for both streams; without one it is `log(name)`.  `gently`: SIGQUIT comes before SIGKILL
        when the launcher ends."""
        ask = Execute(
            serial=self._next(),
            name=name,
            argv=tuple(str(each) for each in argv),
            env=dict(os.environ if env is None else env),
            uid=uid,
            stdout=stdout,
            gently=gently,
        )
        return self._ask(ask, Started).pid

    def listen(self, name: str) -> int:
        """A port of 127.0.0.1 that stays the same, and open, over the deaths of whoever listens there.  Connections
        made while nobody does wait for the next one."""
        port = self._ask(Listen(serial=self._next(), name=name), Listening).port
        self._ports[name] = port
        return port

    def ports(self) -> list[int]:
        """Those that have been given out and not given up."""
        return list(self._ports.values())

    @property
    def is_apart(self) -> bool:
        """Whether what it starts is in a network of its own."""
        return self._door is not None

    def new_socket(self) -> socket.socket:
        """A TCP socket, not connected, that reaches the ports of what this launcher has started."""
        if self._door is None:
            return socket.socket()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(self._timeout_s)
            try:
                asking.connect(self._door)
                _, (descriptor, *_), _, _ = socket.recv_fds(asking, 1, 1)
            except (OSError, ValueError) as error:
                raise LauncherFailed(f"the launcher hands out no socket: {error}") from error
        return socket.socket(fileno=descriptor)

    def unlisten(self, names: Iterable[str]) -> None:
        """Give ports up; processes that have them keep them until they end."""
        given_up = tuple(names)
        self._ask(Unlisten(serial=self._next(), names=given_up), Done)
        for name in given_up:
            self._ports.pop(name, None)

    def signal(self, pid: int, number: int) -> None:
        """Signal a process that this launcher started.

        After SIGKILL the process has been reaped, and `exits` has its end; after SIGSTOP it has really stopped.  Raises
        ProcessTerminated if it had ended before.
        """
        self._ask(Signal(serial=self._next(), pid=pid, number=int(number)), Done)

    def register_cleanup(self, name: str, entry: str, config: bytes) -> None:
        """Have an entry run when all other processes have ended, whatever this one dies of, unless the cleanup is
        cancelled."""
        self._ask(RegisterCleanup(serial=self._next(), name=name, entry=entry, config=config), Done)

    def cancel_cleanup(self, name: str) -> None:
        """The cleanup that was registered under this name is not needed any more."""
        self._ask(CancelCleanup(serial=self._next(), name=name), Done)

    def end_of(self, pid: int) -> Exited | None:
        """How the process ended that was started last under this pid; None while it lives, as far as is known.

        A machine has few pids, and gives them again.
        """
        return self._ends.get(pid)

    def poll(self) -> list[Exited]:
        """Exits that no earlier `poll` has returned; does not wait.  Raises LauncherFailed if the launcher ended."""
        if not self._closed:
            while self._receive(0.0):
                pass
        new, self._reported = self.exits[self._reported :], len(self.exits)
        return new

    def close(self) -> None:
        """End every process, remove the folder, and wait until that is done.  Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            if os.getpid() == self._owner:
                self._end_launcher()
        finally:
            self._control.close()
            self._complaints.close()

    def _end_launcher(self) -> None:
        deadline = time.monotonic() + END_S
        with contextlib.suppress(OSError):  # the launcher has ended already
            self._control.shutdown(socket.SHUT_WR)
        with contextlib.suppress(LauncherFailed):  # the stream's end, which is what is waited for
            while self._receive(max(0.0, deadline - time.monotonic())):
                pass
        try:
            self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._folder is not None and self._folder.exists():
            try:
                remove(self._folder)  # the launcher ended before it could remove it
            except OSError as error:
                raise LauncherFailed(f"{self._folder} is left, and cannot be removed: {error}") from error

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _ask(self, ask: Ask, expected: type[A]) -> A:
        """An earlier request that was given up may be answered first; its answer is dropped."""
        if self._closed:
            raise LauncherFailed("the launcher has been closed")
        self._answers.clear()
        try:
            self._control.settimeout(self._timeout_s)
            self._control.sendall(frame(ask))
        except BadFrame as error:
            raise LauncherFailed(f"the request is too long: {error}") from error
        except OSError as error:
            raise self._launcher_ended(error) from error
        what = type(ask).__name__.lower()
        self._wait_for(lambda: ask.serial in self._answers, self._timeout_s, f"has not answered to {what}")
        answer = self._answers.pop(ask.serial)
        if isinstance(answer, Failed):
            raise (ProcessTerminated if answer.has_ended else LauncherFailed)(answer.reason)
        if not isinstance(answer, expected):
            raise LauncherFailed(f"the launcher answered {answer!r} to {what}")
        return answer

    def _wait_for(self, done: Callable[[], bool], within_s: float, what: str) -> None:
        deadline = time.monotonic() + within_s
        while not done():
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not self._receive(remaining):
                raise LauncherFailed(f"the launcher {what} within {within_s:g} s")

    def _receive(self, within_s: float) -> bool:
        """Read a message of the launcher; False if none comes in time.  Raises LauncherFailed at the stream's end."""
        self._control.settimeout(within_s)
        try:
            data = self._control.recv(CHUNK_BYTES)
        except (BlockingIOError, TimeoutError):
            return False
        except OSError as error:
            raise self._launcher_ended(error) from error
        if not data:
            raise self._launcher_ended(None)
        self._frames.add(data)
        try:
            while (body := self._frames.next()) is not None:
                self._on_message(message_decoder.decode(body))
        except (BadFrame, msgspec.MsgspecError) as error:
            raise LauncherFailed(f"the launcher sent what cannot be read: {error}") from error
        return True

    def _on_message(self, message: LauncherMessage) -> None:
        if isinstance(message, Ready):
            self._folder, self._door = Path(message.folder), message.door
        elif isinstance(message, Exited):
            self.exits.append(message)
            self._ends[message.pid] = message
            if self._on_exit is not None:
                self._on_exit(message)
        else:
            if isinstance(message, Started):
                self._ends.pop(message.pid, None)  # an earlier process of that number ended
            self._answers[message.serial] = message

    def _launcher_ended(self, error: OSError | None) -> LauncherFailed:
        """The error for a launcher that has ended, with the last line that it wrote as the reason."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        if self._process.returncode is None:
            return LauncherFailed(f"the launcher does not listen: {error}")
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), str(error or ""))
        return LauncherFailed(f"the launcher has ended with {self._process.returncode}" + (f": {last}" if last else ""))


def _scratch() -> BinaryIO:
    """A file without a name.

    Not by tempfile where that can be avoided: tempfile tries a folder with a named file, which stays if this process is
    killed at that moment.
    """
    if offspring.LINUX:
        return open(os.memfd_create("launcher"), "w+b")
    return cast(BinaryIO, tempfile.TemporaryFile())


def _path() -> str:
    """Where this process finds its modules; the launcher finds the same ones, however they became importable."""
    return os.pathsep.join(dict.fromkeys(str(each) or os.getcwd() for each in sys.path))
