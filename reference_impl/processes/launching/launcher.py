"""The process that starts, watches, kills and reaps every process of a run, and leaves nothing behind.

Each harness process starts one, and speaks to it over a socket pair (`cluster.Launcher` is that side).  The launcher
has imported the engine once, so that a node is one fork away.  It lives until its client closes the socket or ends.
The kernel reports either, also after SIGKILL: by the end of the stream, and by the client's pidfd (a process that the
client has forked may hold the stream open).  Then the launcher ends every process, removes the folder and exits.  It
has one thread and one selector.  A request that has to wait for a child (to be stopped, or reaped) is answered after a
SIGCHLD.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from . import namespace, offspring
from .children import Children
from .orders import (
    Answer,
    Ask,
    BadFrame,
    CancelCleanup,
    Done,
    Execute,
    Failed,
    Fork,
    Frames,
    LauncherMessage,
    Listen,
    Listening,
    Ready,
    Refused,
    RegisterCleanup,
    Signal,
    Started,
    Unlisten,
    asked,
    frame,
)

_PROCESSES = str(__package__).rpartition(".")[0]
ENTRIES: Mapping[str, str] = {
    "node": f"{_PROCESSES}.node:main",
    "coordinator": f"{_PROCESSES}.coordinator:main",
    "purge": f"{_PROCESSES}.stores.purge:main",
}
"""What a forked child can run: `package.module:function`, imported when it is first needed."""
LOGS = "logs"
DOOR = "door"
CLEANUPS_S = 5.0
"""how long registered cleanups may run when every process has ended; then they are killed too"""
HOST_NETWORK, OWN_NETWORK = "host", "own"
BACKLOG = 128
CHUNK_BYTES = 1 << 16
IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals of a terminal or a service manager: the client reacts to them, and closes its launcher."""


class Launcher:
    """A launcher that serves its client; `run` returns when the client has ended, `end` leaves nothing behind."""

    def __init__(self, control: socket.socket, client: int, folder: Path, entries: Mapping[str, str]) -> None:
        self._pid = os.getpid()
        self._control = control
        self._folder = folder
        self._entries = entries
        self._imported: dict[str, offspring.Entry] = {}
        self._children = Children(self.send)
        self._listening: dict[str, socket.socket] = {}
        self._cleanups: dict[str, RegisterCleanup] = {}
        self._frames = Frames()
        self._unsent = bytearray()
        self._door: socket.socket | None = None
        self._alive = True
        self._selector = selectors.DefaultSelector()
        control.setblocking(False)
        self._watch(self._children.woken, self._children.reap)
        self._watch(control, self._receive)
        self._watch_life_of(client)

    def open_door(self) -> str:
        """Hand out sockets of this process's network at a Unix socket that only its owner may use; returns where
        that is."""
        path = self._folder / DOOR
        self._door = door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            door.bind(str(path))
        finally:
            os.umask(before)
        door.listen(BACKLOG)
        door.setblocking(False)
        self._watch(door, lambda: self._hand_out(door))
        return str(path)

    def _hand_out(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the one that asked has closed its end
            asking, _ = door.accept()
            with asking, socket.socket() as unconnected:
                socket.send_fds(asking, [b"s"], [unconnected.fileno()])

    def warm(self, names: tuple[str, ...]) -> None:
        """Import entries before they are needed; if one cannot be imported, that is reported when it is needed."""
        for name in names:
            with contextlib.suppress(Refused):
                self._entry(name)

    def send(self, message: LauncherMessage) -> None:
        # A client that does not read must not hold up the reaping, so nothing here waits for it.
        self._unsent += frame(message)
        self._send()

    def run(self) -> None:
        while self._alive:
            for key, _ in self._selector.select():
                key.data()

    def end(self) -> None:
        """Leave no process and no socket.  The client still receives the ends of processes, and in the end the
        stream's."""
        for listener in self._listening.values():
            listener.close()
        self._listening.clear()
        if self._door is not None:
            self._door.close()
        self._children.end()
        for cleanup in self._cleanups.values():
            self._fork(Fork(serial=cleanup.serial, name=cleanup.name, entry=cleanup.entry, config=cleanup.config))
        self._children.let_end(CLEANUPS_S)

    def _watch(self, what: socket.socket | int, then: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, then)

    def _watch_life_of(self, client: int) -> None:
        try:
            self._watch(os.pidfd_open(client), self._client_has_ended)
        except ProcessLookupError:
            self._alive = False
        except (AttributeError, OSError):
            # neither macOS nor every sandbox has it: then only the end of the stream shows that the client has ended
            pass

    def _client_has_ended(self) -> None:
        self._alive = False

    # Messages to and from the client.

    def _receive(self) -> None:
        if self._unsent:
            self._send()
        try:
            data = self._control.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._alive = False
            return
        self._frames.add(data)
        try:
            while (body := self._frames.next()) is not None:
                self._answer(body)
        except (BadFrame, msgspec.MsgspecError) as error:
            # What follows cannot be trusted, not even to have a serial.
            print(f"the launcher was sent what it cannot read: {error}", file=sys.stderr)
            self._alive = False

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._control.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()  # the client has ended, which the end of its stream shows too
        if self._alive:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
            self._selector.modify(self._control, wanted, self._receive)

    def _answer(self, body: bytes) -> None:
        ask: Ask = asked.decode(body)
        answer: Answer | None
        try:
            answer = self._do(ask)
        except Refused as refused:
            answer = Failed(serial=ask.serial, reason=str(refused), has_ended=refused.has_ended)
        except (OSError, ValueError) as error:
            answer = Failed(serial=ask.serial, reason=f"{type(error).__name__}: {error}")
        if answer is not None:
            self.send(answer)

    def _do(self, ask: Ask) -> Answer | None:
        match ask:
            case Fork():
                return Started(serial=ask.serial, pid=self._fork(ask))
            case Execute():
                return Started(serial=ask.serial, pid=self._execute(ask))
            case Listen():
                return Listening(serial=ask.serial, port=self._listen(ask.name))
            case Unlisten():
                for name in ask.names:
                    self._listener(name).close()
                    del self._listening[name]
                return Done(serial=ask.serial)
            case Signal():
                return self._children.signal(ask)
            case RegisterCleanup():
                self._entry(ask.entry)
                self._cleanups[ask.name] = ask
                return Done(serial=ask.serial)
            case CancelCleanup():
                self._cleanups.pop(ask.name, None)
                return Done(serial=ask.serial)

    # Sockets.

    def _listen(self, name: str) -> int:
        if name in self._listening:
            raise Refused(f"{name!r} has a listening socket already")
        listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._listening[name] = listener
        port: int = listener.getsockname()[1]
        return port

    def _listener(self, name: str) -> socket.socket:
        if name not in self._listening:
            raise Refused(f"no socket listens under the name {name!r}")
        return self._listening[name]

    # Starting processes.

    def _entry(self, name: str) -> offspring.Entry:
        if name in self._imported:
            return self._imported[name]
        if name not in self._entries:
            raise Refused(f"unknown entry {name!r}: there are {', '.join(sorted(self._entries))}")
        module, _, function = self._entries[name].partition(":")
        try:
            found: offspring.Entry = getattr(importlib.import_module(module), function)
        except Exception as error:  # whatever a module does when it is imported
            raise Refused(f"{self._entries[name]} cannot be imported: {type(error).__name__}: {error}") from error
        # Objects that exist now stay for good: collecting garbage among them in a child would only copy their pages.
        gc.collect()
        gc.freeze()
        self._imported[name] = found
        return found

    def _fork(self, ask: Fork) -> int:
        entry = self._entry(ask.entry)
        sockets = {name: self._listener(name) for name in ask.listen}
        return self._start(
            ask.name,
            self._output(ask.name),
            lambda output, message: offspring.run_entry(entry, ask.config, sockets, self._pid, output, message),
        )

    def _execute(self, ask: Execute) -> int:
        if not ask.argv:
            raise Refused(f"{ask.name!r}: there is no program to start")
        if ask.uid is not None and os.geteuid() not in (0, ask.uid):
            raise Refused(f"{ask.argv[0]}: only root can start a program as another user")
        return self._start(
            ask.name,
            self._output(ask.name, ask.stdout),
            lambda output, message: offspring.run_program(ask.argv, ask.env, ask.uid, self._pid, output, message),
            gently=ask.gently,
        )

    def _start(self, name: str, output: int, run: Callable[[int, int], NoReturn], *, gently: bool = False) -> int:
        """Fork, and return when the child has detached itself: only from then on it dies with this process, holds
        none of its descriptors, and may be stopped."""
        failure, message = os.pipe()
        try:
            pid = os.fork()
            if pid == 0:
                run(output, message)
        finally:
            os.close(output)
            os.close(message)
        with os.fdopen(failure, "rb") as pipe:  # ends when the child has closed the descriptors that are not its own
            reason = pipe.read().decode(errors="replace")
        if reason:
            os.waitpid(pid, 0)
            raise Refused(f"cannot start {reason}")
        return self._children.started(pid, name, gently=gently)

    def _output(self, name: str, path: str | None = None) -> int:
        if not name or "/" in name or "\0" in name:
            raise Refused(f"{name!r} cannot name a process: a file is named after it")
        to = self._folder / (path if path is not None else f"{LOGS}/{name}.log")
        return os.open(to, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def remove(folder: Path) -> None:
    """Remove a folder and all in it, also what was made unwritable."""
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
    if folder.exists():
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o700)  # before the walk enters it
        shutil.rmtree(folder)


def make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="cutproof-"))
    if os.geteuid() == 0:
        folder.chmod(0o711)  # a program that runs as another user must reach its own files in there
    (folder / LOGS).mkdir(mode=0o700)
    return folder


def serve(
    control: socket.socket,
    client: int,
    entries: Mapping[str, str],
    warm: tuple[str, ...] = (),
    network: str = HOST_NETWORK,
) -> None:
    """Serve a client, by its pid and the socket to it, until it has ended; then leave nothing."""
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        offspring.adopt_orphans()
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
            raise
    is_apart = _enter_own(network)
    folder = make_folder()
    try:
        launcher = Launcher(control, client, folder, entries)
        try:
            launcher.send(Ready(folder=str(folder), door=launcher.open_door() if is_apart else None))
            launcher.warm(warm)
            launcher.run()
        finally:
            launcher.end()
    finally:
        remove(folder)


def _enter_own(network: str) -> bool:
    """Whether everything that is started from now on is in a network of its own.

    SystemExit where that is required and the machine does not allow it.
    """
    if network == HOST_NETWORK:
        return False
    reason = namespace.why_not()
    if reason and network == OWN_NETWORK:
        sys.exit(f"this machine allows no network of their own to the processes of a run: {reason}")
    if not reason:
        namespace.enter()
    return not reason


def main(entries: Mapping[str, str] = ENTRIES) -> None:
    """The command line: the control socket's descriptor, the client's pid, the network (own, host, or any), names of
    entries to import at once."""
    descriptor, client, network, *warm = sys.argv[1:]
    control = socket.socket(fileno=int(descriptor))
    control.set_inheritable(False)
    serve(control, int(client), entries, tuple(warm), network)


if __name__ == "__main__":
    main()
