"""The processes of a run: starting, receiving frames, stopping, killing, replacing."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable, Sequence

import msgspec

from ....reference_impl.processes.launching.cluster import Launcher
from ....reference_impl.processes.launching.orders import Exited
from ....reference_impl.processes.network.connections import Connection, Outbox
from ....reference_impl.processes.network.frames import Frame, Ready
from ....reference_impl.processes.supervision import CODEC
from ...subject.port import SubjectFailed
from . import signals
from .layout import COORDINATOR, Placement, RunConfig
from .printed import last_words


class Member:
    """One incarnation of a process."""

    def __init__(self, name: str, incarnation: int, pid: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.pid = pid
        self.is_ready = False
        self.has_ended = False
        self.stops = 0
        """how many faults keep the process stopped"""
        self.attempts: dict[str, int] = {}
        """by task: the live attempt in the process"""
        self.blame: int | None = None
        """the fault that made the process kill itself"""
        self.nonsense: str | None = None
        """if the process is killed for an unreadable frame: why the frame cannot be read"""
        self._connection: Connection | None = None
        self._early: list[Frame] = []
        self._handle = signals.handle_of(pid)

    def strike(self) -> None:
        """Send SIGKILL, without waiting for the end."""
        signals.kill_by_handle(self._handle)

    def send(self, frame: Frame) -> None:
        """Send a frame now, or once the process is ready; a process that has ended gets none."""
        if self._connection is not None:
            self._connection.send(frame)
        elif not self.has_ended and not self.is_ready:
            self._early.append(frame)

    def arrive(self, connection: Connection) -> None:
        self.is_ready = True
        self._connection = connection
        early, self._early = self._early, []
        for frame in early:
            connection.send(frame)

    def catch_up(self) -> None:
        """Receive the frames that the process has sent until now."""
        connection = self._connection
        while connection is not None and connection.is_open and select.select([connection.sock], [], [], 0)[0]:
            connection.read()

    def drain(self) -> None:
        """Receive the frames that the process had sent before it died."""
        connection = self._connection
        while connection is not None and connection.is_open:
            connection.read()
        self._connection = None
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended that the harness had not killed."""

    code: int | None
    signal: int | None
    how: str


class Processes:
    """All processes of one run.

    `received(member, frame)` is called for each frame, `ended(member, exit)` for each process that ended without
    being killed by the harness.
    """

    def __init__(
        self,
        launcher: Launcher,
        placement: Placement,
        config: RunConfig,
        outbox: Outbox,
        received: Callable[[Member, Frame], None],
        ended: Callable[[Member, Exit], None],
    ) -> None:
        self._launcher = launcher
        self._placement = placement
        self._config = config
        self._outbox = outbox
        self._received = received
        self._ended = ended
        self._by_pid: dict[int, Member] = {}
        self._current: dict[str, Member] = {}
        self._connections: list[Connection] = []
        self._closing = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(str(config.supervision))
        except OSError as error:
            self._listener.close()
            raise SubjectFailed(f"no socket can be made at {config.supervision}: {error}") from error
        self._listener.listen(128)
        accepting_local(self._listener, outbox, self._accept)

    # -- starting -------------------------------------------------------------------

    def spawn(self, name: str, perturbations: tuple[tuple[str, int, int], ...] = ()) -> Member:
        """Start the next incarnation of a process; an older one that still lives goes on as a zombie."""
        before = self._current.get(name)
        incarnation = before.incarnation + 1 if before is not None else 0
        config = self._config.configure(self._placement, name, incarnation, perturbations)
        entry = "coordinator" if name == COORDINATOR else "node"
        full = self.full_name(name)
        member = Member(name, incarnation, self._launcher.fork(full, entry, config, (full,)))
        self._by_pid[member.pid] = member
        self._current[name] = member
        return member

    def full_name(self, name: str) -> str:
        return full_name(self._config.run, name)

    def _accept(self, sock: socket.socket) -> None:
        """A process has connected; its first frame names it.  A process that sends an unreadable frame is killed,
        because its later frames cannot be read either."""
        member: Member | None = None
        pid = _peer(sock)

        def take(frame: Frame) -> None:
            nonlocal member
            if member is not None:
                self._received(member, frame)
            elif isinstance(frame, Ready):
                member = self._of(frame)
                if member is not None:
                    member.arrive(connection)
                    self._received(member, frame)

        def end(reason: str) -> None:
            speaker = member or self._by_pid.get(pid)
            if connection.nonsense is not None and speaker is not None:
                self._end_for(speaker, reason)

        connection = Connection(sock, CODEC, self._outbox, take, end)
        self._connections.append(connection)

    def _end_for(self, member: Member, nonsense: str) -> None:
        """Kill a process for an unreadable frame; its end is reported like any other."""
        if self._closing or member.has_ended:
            return
        member.nonsense = nonsense
        signals.kill(self._launcher, member.pid)

    def _of(self, ready: Ready) -> Member | None:
        for member in self._by_pid.values():
            if (member.name, member.incarnation) == (ready.process, ready.incarnation):
                return member
        return None

    # -- look-ups ----------------------------------------------------------------

    def current(self, name: str) -> Member | None:
        """The newest incarnation of a process, if alive."""
        member = self._current.get(name)
        return member if member is not None and not member.has_ended else None

    def is_current(self, member: Member) -> bool:
        return self._current.get(member.name) is member

    def living(self) -> list[Member]:
        """Every process, zombies included."""
        return [member for member in self._by_pid.values() if not member.has_ended]

    def of(self, names: tuple[str, ...]) -> list[Member]:
        """Every living process of these names, zombies included."""
        return [member for member in self.living() if member.name in names]

    def missing(self) -> list[str]:
        """The processes that are not ready."""
        return [name for name, member in self._current.items() if not member.is_ready]

    # -- signals ---------------------------------------------------------------------

    def kill(self, members: Sequence[Member]) -> list[Member]:
        """Send SIGKILL to all at once and receive the frames that they had sent; returns those that were alive."""
        victims = [member for member in members if not member.has_ended]
        for member in victims:
            member.strike()
        killed = []
        for member in victims:
            if not signals.kill(self._launcher, member.pid) and not self._died_of_it(member):
                continue  # the process has ended by itself, which is reported as usual
            member.has_ended = True
            member.drain()
            killed.append(member)
        return killed

    def _died_of_it(self, member: Member) -> bool:
        end = self._launcher.end_of(member.pid)
        return end is not None and end.signal == signals.KILLED_BY

    def stop(self, member: Member) -> bool:
        """Send SIGSTOP; whether the process was alive."""
        if member.has_ended:
            return False
        if not member.stops and not signals.stop(self._launcher, member.pid):
            return False
        member.stops += 1
        return True

    def go_on(self, member: Member) -> None:
        """Send SIGCONT, once no other fault keeps the process stopped."""
        member.stops = max(0, member.stops - 1)
        if not member.has_ended and not member.stops:
            signals.resume(self._launcher, member.pid)

    def poll(self) -> bool:
        """Handle the processes that have ended; whether any process of the launcher has ended, a server included."""
        ends = self._launcher.poll()
        for end in ends:
            self._take_end(end)
        return bool(ends)

    def _take_end(self, end: Exited) -> None:
        member = self._by_pid.get(end.pid)
        if member is None or member.has_ended:
            return
        member.drain()
        member.has_ended = True
        if not self._closing:
            how = end.how
            if member.nonsense is not None:
                how += f" after it had sent an unreadable message ({member.nonsense})"
            self._ended(member, Exit(code=end.code, signal=end.signal, how=how))

    # -- the end ---------------------------------------------------------------------

    def stand_still(self) -> None:
        """Stop every process, and receive the frames sent until then."""
        for member in self.living():
            self.stop(member)
        for member in self.living():
            member.catch_up()

    def move_again(self) -> None:
        for member in self.living():
            self.go_on(member)

    def close(self) -> None:
        """Kill the remaining processes.  All are stopped first, so that none sees another die."""
        self._closing = True
        for member in self.living():
            self.stop(member)
        self.kill(self.living())
        for connection in self._connections:
            connection.close()
        self._outbox.loop.unwatch(self._listener)
        self._listener.close()

    def last_words(self, name: str) -> str:
        """The last line that the processes of a name have printed."""
        return last_words(self._launcher.log(self.full_name(name)))


def full_name(run: str, process: str) -> str:
    """The name of a process, and of its listening socket, at a launcher that serves several runs."""
    return f"{run}.{process}"


def _peer(sock: socket.socket) -> int:
    """The id of the process that has connected; 0 where the operating system does not provide it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    credentials = struct.Struct("iii")
    pid: int = credentials.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size))[0]
    return pid


def accepting_local(listener: socket.socket, outbox: Outbox, taken: Callable[[socket.socket], None]) -> None:
    """Accept every connection to a local socket."""
    listener.setblocking(False)

    def ready(_: int) -> None:
        try:
            accepted, _address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        taken(accepted)

    outbox.loop.watch(listener, ready)
