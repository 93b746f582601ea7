"""The Toxiproxy server of a harness process, among the processes that its launcher starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from ....reference_impl.processes.launching.cluster import Launcher
from ...toxiproxy.server import ProxyServer
from . import ports, signals
from .printed import last_words

NAME = "toxiproxy"


def launched(launcher: Launcher) -> ProxyServer:
    """A server that the launcher starts; raises HarnessFailed if it cannot be started."""
    return ProxyServer(OfLauncher(launcher))


class OfLauncher:
    """The processes of a launcher, and their network (`toxiproxy.server.Host`)."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def folder(self) -> Path:
        return self._launcher.folder()

    def start(self, command: Sequence[str]) -> int:
        return self._launcher.execute(NAME, command)

    def kill(self, pid: int) -> None:
        signals.kill(self._launcher, pid)

    def has_ended(self, pid: int) -> bool:
        """The launcher is not polled: the orchestrator needs the ends that it reports."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return _is_zombie(pid)

    def end_in_words(self, pid: int) -> str:
        end = self._launcher.end_of(pid)
        if end is None or end.how == signals.KILLED_HOW:
            return ""
        return f"it ended with {end.how}: {last_words(self._launcher.log(NAME))}"

    def new_socket(self) -> socket.socket:
        return self._launcher.new_socket()

    def free_port(self) -> int:
        return ports.pick()

    def may_forward_to(self, port: int) -> bool:
        """Only to the run's own processes."""
        return port in self._launcher.ports()


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended, and its parent has not asked for its status yet; False where there is no /proc."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state == b"Z"
