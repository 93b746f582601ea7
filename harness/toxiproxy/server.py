"""A Toxiproxy server, and the proxies of a run, which return on the same ports after a kill."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ...faults.injectors.toxics import Toxic
from ...faults.injectors.toxiproxy import Proxy, Tampered, Toxiproxy, ToxiproxyFailed, mark_file
from ..runtime.exit_codes import HarnessFailed
from . import program

UP_WITHIN_S = 5.0
TRIES = 4
CHECK_WITHIN_S = 0.5
LAST_CHECK_WITHIN_S = 2.0
"""the timeout of each try of the last check, after which a run is judged"""
MOST_UNANSWERED = 10
"""how many checks in a row the server may leave unanswered"""


class Host(Protocol):
    """Where a server runs: what starts and kills it, and the network in which it listens."""

    def folder(self) -> Path:
        """A private folder that is deleted with the run."""
        ...

    def start(self, command: Sequence[str]) -> int:
        """Start the server; its pid."""
        ...

    def kill(self, pid: int) -> None:
        """Send it SIGKILL."""
        ...

    def has_ended(self, pid: int) -> bool:
        """Whether the server has ended by itself."""
        ...

    def end_in_words(self, pid: int) -> str:
        """How the server ended by itself; empty if it did not, as far as is known."""
        ...

    def new_socket(self) -> socket.socket:
        """A socket in the server's network."""
        ...

    def free_port(self) -> int:
        """A port on which nobody listens now."""
        ...

    def may_forward_to(self, port: int) -> bool:
        """Whether a proxy may lead to this port."""
        ...


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A toxic on a proxy."""

    proxy: str
    toxic: Toxic
    towards: str


class ProxyServer:
    """A Toxiproxy server on a host.  Raises HarnessFailed if it cannot be started, ToxiproxyFailed while it is down."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._binary = program.binary()
        self._server: Toxiproxy | None = None
        self._proxies: dict[str, Proxy] = {}
        self._toxics: dict[str, Placed] = {}
        self.pid = 0
        """0: the server is down"""
        self.is_starting = False
        self._unanswered = 0
        self.before_recovery: Callable[[], None] = lambda: None
        """called when every connection is about to break"""
        self.start()

    # -- the server ------------------------------------------------------------------

    def start(self) -> None:
        """Start a server with every proxy and toxic of the previous server."""
        for attempt in range(TRIES):
            self._start_one()
            try:
                self._up.wait_until_up(UP_WITHIN_S, self._has_ended)
                self._place_again()
                return
            except Tampered as error:
                raise self._accusation(str(error)) from error
            except ToxiproxyFailed as error:
                pid = self.pid
                self.kill()
                if attempt == TRIES - 1:
                    what = self._what_is_wrong(pid, error)
                    raise HarnessFailed(f"Toxiproxy ({self._binary}) cannot be used: {what}") from error

    def _has_ended(self) -> bool:
        return self._host.has_ended(self.pid)

    def _what_is_wrong(self, pid: int, error: ToxiproxyFailed) -> str:
        """Why a server did not start: how it ended by itself, or else the error."""
        return self._host.end_in_words(pid) or str(error)

    def _start_one(self) -> None:
        mark = secrets.token_hex(8)
        file = self._host.folder() / "toxiproxy.json"
        with open(
            os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii"
        ) as password_stream:
            password_stream.write(mark_file(mark))
        port = self._host.free_port()
        self.pid = self._host.start(program.command(self._binary, port, mark=file))
        self._server = Toxiproxy(port, mark=mark, new_socket=self._host.new_socket)

    def _place_again(self) -> None:
        for name, before in list(self._proxies.items()):
            self._proxies[name] = self._up.proxy(name, before.upstream_port, before.port)
        for name, placed in list(self._toxics.items()):
            self._proxies[placed.proxy].add(placed.toxic, placed.towards, name)

    def kill(self) -> None:
        """Send SIGKILL, which breaks all connections through the server.  `start` restores its proxies and toxics."""
        pid, self.pid, self._server, self._unanswered = self.pid, 0, None, 0
        if pid:
            self._host.kill(pid)

    def recover(self, error: ToxiproxyFailed) -> None:
        """Replace a server that does not obey a request.  Raises HarnessFailed if another program has changed it."""
        if isinstance(error, Tampered):
            raise self._accusation(str(error)) from error
        self.check()
        self.before_recovery()
        self.kill()
        self.start()

    @property
    def is_up(self) -> bool:
        return self._server is not None

    @property
    def _up(self) -> Toxiproxy:
        if self._server is None:
            raise ToxiproxyFailed("the Toxiproxy server is down")
        return self._server

    def check(self, *, is_last: bool = False) -> None:
        """Kill the server and raise HarnessFailed if it has a proxy or toxic of another program.  Its control port has
        no authentication, so that program may have disturbed the run.

        Also raises HarnessFailed if the server leaves `MOST_UNANSWERED` checks in a row unanswered, or all tries of the
        last check, after which a run is judged.
        """
        if self._server is None:
            return
        within_s, tries = (LAST_CHECK_WITHIN_S, TRIES) if is_last else (CHECK_WITHIN_S, 1)
        for _ in range(tries):
            try:
                found = self._server.not_ours(within_s)
            except Tampered as error:
                raise self._accusation(str(error)) from error
            except ToxiproxyFailed as error:
                failure = error
                continue
            self._unanswered = 0
            if found:
                raise self._accusation(found)
            return
        self._unanswered += 1
        if is_last or self._unanswered >= MOST_UNANSWERED:
            raise HarnessFailed(
                "the run's Toxiproxy did not list its proxies, so another program may have used it, and the run is not"
                f" judged: {failure}; run again"
            ) from failure

    def _accusation(self, found: str) -> HarnessFailed:
        """Kill a server that another program has changed; returns the error to raise."""
        self.kill()
        return HarnessFailed(
            f"another program on this machine has used the control port of the run's Toxiproxy ({found}):"
            " the server was killed, and the run is not judged; run again"
        )

    # -- proxies ---------------------------------------------------------------------

    def make(self, name: str, upstream_port: int, port: int = 0) -> int:
        """Make a proxy to a port of the run, and replace the server if it fails.  Returns the port of the proxy, which
        never changes; 0 stands for any that is free."""
        if not self._host.may_forward_to(upstream_port):
            raise HarnessFailed(f"a proxy to port {upstream_port} is refused: no process of the run listens there")
        for attempt in range(TRIES):
            try:
                proxy = self._up.proxy(name, upstream_port, port or self._host.free_port())
            except ToxiproxyFailed as error:
                if not isinstance(error, Tampered) and (attempt == TRIES - 1 or self._has_ended()):
                    raise HarnessFailed(f"Toxiproxy ({self._binary}) cannot be used: {error}") from error
                self.recover(error)  # the server hangs or has half made the proxy; rarely, the port was just taken
                continue
            self._proxies[name] = proxy
            return proxy.port
        raise HarnessFailed("Toxiproxy made no proxy")

    def clear(self) -> None:
        """Delete every proxy and toxic, and replace the server if it fails."""
        proxies, self._proxies, self._toxics = self._proxies, {}, {}
        self.before_recovery = lambda: None
        if not self.is_up:
            self.start()
            return
        try:
            for proxy in proxies.values():
                proxy.delete()
        except ToxiproxyFailed as error:
            self.recover(error)

    def add(self, name: str, proxy: str, toxic: Toxic, towards: str = "receiver") -> None:
        self._up  # noqa: B018 - raises when the server is down
        self._proxies[proxy].add(toxic, towards, name)
        self._toxics[name] = Placed(proxy=proxy, toxic=toxic, towards=towards)

    def remove(self, name: str) -> None:
        """Remove a toxic, and replace the server if it fails.  A server that is down restarts without the toxic."""
        placed = self._toxics.pop(name, None)
        if placed is None or not self.is_up:
            return
        try:
            self._proxies[placed.proxy].remove(name)
        except ToxiproxyFailed as error:
            self.recover(error)

    def close_connections(self, proxy: str) -> None:
        """Close the connections of a proxy, and refuse new ones until `open_again`."""
        self._up  # noqa: B018 - raises when the server is down
        self._proxies[proxy].disable()

    def open_again(self, proxy: str) -> None:
        """Let a proxy listen again, and replace the server if it fails."""
        if not self.is_up:
            return
        try:
            self._proxies[proxy].enable()
        except ToxiproxyFailed as error:
            self.recover(error)
