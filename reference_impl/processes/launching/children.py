"""The processes that a launcher has started: signalled as long as they are its children, reaped, and in the end all
killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from ..stores.segments import Lifetime, remove_those_of
from . import offspring
from .orders import Answer, Done, Exited, Failed, LauncherMessage, Refused, Signal

GENTLE_S = 3.0
"""for how long processes that are asked to stop may go on"""
SWEEP_S = 2.0
"""how long it may take to kill and reap the rest"""
POLL_S = 0.02
"""An orphan that becomes a child of this process announces itself by no signal."""
PERMITTED = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT)
REMEMBERED = 1_000
"""how many ended processes are remembered, so that their ends can still be reported"""


class Child:
    """A process that was started and has not been reaped; its pid is therefore its own."""

    def __init__(self, pid: int, name: str, gently: bool) -> None:
        self.pid = pid
        self.name = name
        self.gently = gently
        self.began_s = time.time()
        self.stopped = False
        self.stop_wanted_by: list[int] = []
        """serials of requests to answer when it has stopped"""
        self.end_wanted_by: list[int] = []
        """serials of requests to answer when it has been reaped"""


class Children:
    """All children of this process.  `say` receives every end, and the answers that had to wait for one."""

    def __init__(self, report: Callable[[LauncherMessage], None]) -> None:
        self._report = report
        self._children: dict[int, Child] = {}
        self._ended: dict[int, str] = {}
        self._databases: dict[int, Lifetime] = {}
        self.woken, self._wake = socket.socketpair()
        """`woken` is readable when a child may have changed; then `reap` is to be called"""
        for each in (self.woken, self._wake):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, stack: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def started(self, pid: int, name: str, *, gently: bool) -> int:
        self._children[pid] = Child(pid, name, gently)
        self._ended.pop(pid, None)  # the number had been another's
        return pid

    def signal(self, ask: Signal) -> Answer | None:
        """None where the answer has to wait for the child; raises Refused for one that has ended or is no child."""
        if ask.number not in PERMITTED:
            raise Refused(f"signal {ask.number} is none of {', '.join(each.name for each in PERMITTED)}")
        self.reap()
        child = self._children.get(ask.pid)
        if child is None:
            whose = f" ({self._ended[ask.pid]})" if ask.pid in self._ended else ""
            raise Refused(f"process {ask.pid}{whose} is not running", has_ended=True)
        os.kill(ask.pid, ask.number)
        if ask.number == signal.SIGKILL:
            child.end_wanted_by.append(ask.serial)
            return None
        if ask.number == signal.SIGSTOP and not child.stopped:
            child.stop_wanted_by.append(ask.serial)
            return None
        if ask.number == signal.SIGCONT:
            child.stopped = False
        return Done(serial=ask.serial)

    def reap(self) -> None:
        """Take in every change of state that the kernel has to report."""
        with contextlib.suppress(BlockingIOError):
            while self.woken.recv(1 << 12):
                pass
        with contextlib.suppress(ChildProcessError):  # there is none
            while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
                self._has_changed(*found)

    def _has_changed(self, pid: int, status: int) -> None:
        child = self._children.get(pid)
        if child is None:
            return  # an orphan that was adopted
        if not os.WIFSTOPPED(status):
            self._has_ended(child, os.waitstatus_to_exitcode(status))
            return
        child.stopped = True
        serials, child.stop_wanted_by = child.stop_wanted_by, []
        for serial in serials:
            self._report(Done(serial=serial))

    def _has_ended(self, child: Child, code: int) -> None:
        del self._children[child.pid]
        if child.gently:
            self._databases[child.pid] = Lifetime(began_s=child.began_s, ended_s=time.time())
        exited = Exited(
            pid=child.pid, name=child.name, code=code if code >= 0 else None, signal=-code if code < 0 else None
        )
        if len(self._ended) >= REMEMBERED:
            del self._ended[next(iter(self._ended))]
        self._ended[child.pid] = whose = f"{child.name}, {exited.how}"
        self._report(exited)  # before the answers: a client that killed a process has its end when the call returns
        for serial in child.end_wanted_by:
            self._report(Done(serial=serial))
        for serial in child.stop_wanted_by:
            self._report(
                Failed(serial=serial, reason=f"process {child.pid} ({whose}) did not stop, it ended", has_ended=True)
            )

    def end(self) -> None:
        """Leave no process, within GENTLE_S + SWEEP_S: no child, and, where the kernel helps, nothing that a child has
        started.

        Shared memory that a killed database has left is removed too.
        """
        for child in self._children.values():
            # A database that is killed leaves shared memory behind; one that is stopped would not take the request to
            # end.
            for number in (signal.SIGQUIT, signal.SIGCONT) if child.gently else (signal.SIGKILL,):
                _send(child.pid, number)
        self._wait_while(lambda: bool(self._children), GENTLE_S)
        self._wait_while(self._kill_all, SWEEP_S)
        remove_those_of(self._databases)

    def let_end(self, within_s: float) -> None:
        """Wait until every child has ended by itself, then kill those that have not."""
        self._wait_while(lambda: bool(self._children), within_s)
        self._wait_while(self._kill_all, SWEEP_S)

    def _wait_while(self, unfinished: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        self.reap()
        while unfinished() and (remaining := deadline - time.monotonic()) > 0:
            select.select([self.woken], [], [], min(remaining, POLL_S))
            self.reap()

    def _kill_all(self) -> bool:
        """Kill every child that this process has now; True while there is any.  Their orphans are found by the next
        call."""
        found = sorted({*self._children, *offspring.children_of(os.getpid())})
        for pid in found:
            _send(pid, signal.SIGKILL)
        return bool(found)


def _send(pid: int, number: int) -> None:
    """Signal a child that has not been reaped, so its pid cannot be another process's.  A child that has become another
    user's cannot be signalled; it dies with the launcher."""
    with contextlib.suppress(PermissionError):
        os.kill(pid, number)
