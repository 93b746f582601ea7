"""The services that a harness process starts on first use and keeps for its runs: launcher, Toxiproxy, PostgreSQL."""

from __future__ import annotations

import secrets

from ....reference_impl.processes.launching.cluster import LauncherFailed
from ....reference_impl.processes.launching.launcher import DOOR
from ...runtime.exit_codes import HarnessFailed
from ...toxiproxy.server import ProxyServer
from ..services import network, places
from .databases import DatabaseServer
from .proxying import launched
from .remembered import Note, Remembering

MODULE = f"{__package__}.launching"


class Services:
    """Starts each service on first use; `close` ends them all.  Raises HarnessFailed, in one line."""

    def __init__(self) -> None:
        self._launcher: Remembering | None = None
        self._proxies: ProxyServer | None = None
        self._database: DatabaseServer | None = None
        self._token = secrets.token_hex(4)
        self._runs = 0

    def next_run(self) -> str:
        """A name that no other run has, not even a run of another harness in the same database."""
        self._runs += 1
        return f"c{self._token}_{self._runs}"

    @property
    def is_started(self) -> bool:
        """Whether any service is started."""
        return self._launcher is not None

    @property
    def launcher(self) -> Remembering:
        if self._launcher is None:
            places.check_socket(DOOR)
            try:
                warm = ("node", "coordinator")
                self._launcher = Remembering(module=MODULE, warm=warm, network=network.wanted())
            except LauncherFailed as error:
                raise HarnessFailed(f"no process can be started: {error}") from error
        return self._launcher

    @property
    def proxies(self) -> ProxyServer:
        if self._proxies is None:
            self._proxies = launched(self.launcher)
        return self._proxies

    @property
    def database(self) -> DatabaseServer:
        if self._database is None:
            self._database = DatabaseServer(self.launcher)
        return self._database

    def watch(self) -> None:
        """Raise HarnessFailed if a server has ended by itself: an error of the environment."""
        for name, server in (("Toxiproxy", self._proxies), ("PostgreSQL", self._database)):
            if server is not None and not server.is_starting and (end := self.launcher.end_of(server.pid)):
                raise HarnessFailed(f"{name} ended by itself, with {end.how}; run again")

    def check_proxies(self, *, is_last: bool = False) -> None:
        """Raise HarnessFailed if another program has used Toxiproxy's control port.  After the last check a run is
        judged."""
        if self._proxies is not None:
            self._proxies.check(is_last=is_last)

    def close(self) -> list[Note]:
        """End the launcher and all its processes, and delete its folder.  Returns the notes of tables that are left in
        a user's PostgreSQL, because it did not answer."""
        launcher, self._launcher, self._proxies, self._database = self._launcher, None, None, None
        if launcher is not None:
            try:
                launcher.close()
            except LauncherFailed as error:
                raise HarnessFailed(f"processes or files of the run may be left: {error}") from error
        return launcher.pending_cleanups() if launcher is not None else []
