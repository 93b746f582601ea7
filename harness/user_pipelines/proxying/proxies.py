"""The proxies of one run of a pipeline: one Toxiproxy server, and the faults of its proxies.

A fault counts as applied once something shows that connections felt it: bytes came while it was in
force, or the proxy closed a connection.  Each fault heals by itself.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ....faults.injectors.toxiproxy import ToxiproxyFailed
from ....faults.plan import ChannelFault, CutChannel, ResetChannel
from ...runtime.exit_codes import HarnessFailed
from ...toxiproxy.server import ProxyServer
from ..aims import tail
from ..description import Proxy
from ..places import PORTS, filled, free_ports
from ..processes.keeper import Keeper, end_in_words, environment_of
from ..processes.log import last_lines
from ..watches import Recovery
from .connections import inodes_of, sockets
from .disturbance import Disturbance, proxy_of, towards_upstream, toxic_of
from .flow import Flow

CHECK_EVERY_S = 0.5
FAILURES_AT_MOST = 4
CLOSES_WITHIN_S = 0.5
"""how long after its end a fault that breaks connections is watched for a connection that has closed"""


class OfKeeper:
    """A keeper as the host of a server (`toxiproxy.server.Host`)."""

    def __init__(self, keeper: Keeper, taken: Collection[str] = ()) -> None:
        """`taken` are ports that the run gives to its processes, though nobody may listen on them yet."""
        self._keeper = keeper
        self._taken = taken
        self._log = keeper.folder / "log-toxiproxy"
        self._killed: set[int] = set()

    def folder(self) -> Path:
        return self._keeper.folder

    def start(self, command: Sequence[str]) -> int:
        return self._keeper.start(command, environment_of({}), self._keeper.folder, self._log, outlasts=True)

    def kill(self, pid: int) -> None:
        self._killed.add(pid)
        self._keeper.end(pid)

    def has_ended(self, pid: int) -> bool:
        return self._keeper.exit_code(pid) is not None

    def end_in_words(self, pid: int) -> str:
        code = self._keeper.exit_code(pid)
        if code is None or pid in self._killed:
            return ""
        return f"it {end_in_words(code)}: {last_lines(tail(self._log, 0))}"

    def new_socket(self) -> socket.socket:
        return socket.socket()

    def free_port(self) -> int:
        while (port := free_ports(["control"])["control"]) in self._taken:
            pass
        return int(port)

    def may_forward_to(self, port: int) -> bool:
        """The file's user has named the port."""
        return True


class Proxies:
    """The proxies of a run, and what is done to them.  Without any, no server is started."""

    def __init__(self, proxies: Mapping[str, Proxy], keeper: Keeper, places: Mapping[str, str]) -> None:
        self._host = OfKeeper(keeper, [places[name] for name in PORTS if name in places])
        self._ports = {name: _ports(one, places) for name, one in proxies.items()}
        """the ports of each: where it listens, and where it forwards to"""
        self._server: ProxyServer | None = None
        self._begun: list[Disturbance] = []
        self._in_force: list[Disturbance] = []
        self._closing: list[Disturbance] = []
        """those that are over, and of which a connection may still be seen to close"""
        self._checked_at = 0.0
        self._disturbed_at = -1.0
        """when connections were last disturbed"""
        self._failures = 0
        self.were_used = dict.fromkeys(self._ports, False)
        """of each, whether a client was ever seen to be connected"""

    def open(self) -> None:
        """Start the server and its proxies; raises HarnessFailed or ServiceMissing if it cannot be used."""
        if self._ports:
            self._server = ProxyServer(self._host)
            self._server.before_recovery = self._all_break
            for name, (listen, upstream) in self._ports.items():
                self._server.make(name, upstream, listen)

    @property
    def pid(self) -> int:
        """Of the server; 0 if there is none."""
        return 0 if self._server is None else self._server.pid

    @property
    def is_breaking(self) -> bool:
        """Whether a fault that breaks connections is in force, or may still be seen to."""
        return any(one.breaks for one in (*self._in_force, *self._closing))

    @property
    def is_disturbing(self) -> bool:
        """Whether a fault is in force."""
        return bool(self._in_force)

    def have_disturbed_since(self, moment: float) -> bool:
        """Whether a fault was in force then, or since (`time.monotonic`): it may be why a process has ended."""
        return self._disturbed_at >= moment

    @property
    def unfelt(self) -> list[Disturbance]:
        """The faults that have begun, and that nothing has felt."""
        return [one for one in self._begun if not one.is_felt]

    def may_begin(self, fault: ChannelFault) -> bool:
        """Whether a fault does not have to wait, as `begin` says, as far as no server has to be asked."""
        if any(proxy_of(one.fault) == proxy_of(fault) for one in self._in_force):
            return False
        return not isinstance(fault, CutChannel | ResetChannel) or bool(self._flow_of(fault).connections)

    def begin(self, number: int, fault: ChannelFault, aim: str, work: str, recovery: Recovery | None) -> bool:
        """Begin a fault of the scenario.

        False if it has to wait: there is no connection that could break, the server did not obey, or another fault of
        the proxy is in force.  (A server hangs if a latency is removed from what a stall holds back.)
        """
        server = self._started()
        if not self.may_begin(fault):
            return False
        flow = self._flow_of(fault)
        self._disturbed_at = time.monotonic()
        try:
            _set(server, number, fault)
        except ToxiproxyFailed as error:
            self._failures += 1
            if self._failures > FAILURES_AT_MOST:
                raise HarnessFailed(f"Toxiproxy does not obey: {error}") from error
            server.remove(_name(number))
            server.recover(error)
            return False
        self._look(flow)
        flow.count_from_here()
        now = time.monotonic()
        begun = Disturbance(number, fault, flow, aim=aim, work=work, recovery=recovery, now=now)
        self._in_force.append(begun)
        self._begun.append(begun)
        return True

    def watch(self, now: float) -> list[Disturbance]:
        """End the faults whose time has come; returns those that were felt since the last call.

        Raises HarnessFailed if the server has ended by itself, or if another program has used it.
        """
        if self._server is None:
            return []
        if now - self._checked_at >= CHECK_EVERY_S:
            self._check(self._server, now)
        felt: list[Disturbance] = []
        for one in list(self._in_force):
            self._disturbed_at = now
            self._feel(one, felt)
            if now >= one.ends or one.is_over:
                self._in_force.remove(one)
                _undo(self._server, one)
                one.ends = time.monotonic()
                self._closing += [one] if one.breaks else []
        for one in list(self._closing):
            self._feel(one, felt, by_bytes=False)
            if one.is_felt or now >= one.ends + CLOSES_WITHIN_S:
                self._closing.remove(one)
        return felt

    def forget_recoveries(self) -> None:
        """A process is killed or started: what the pipeline does from now on shows nothing of the stalls so far.

        A break comes before that: it may be why the process was started again.
        """
        for one in self._begun:
            if not one.breaks:
                one.recovery = None

    def close(self) -> None:
        """End every fault; raises HarnessFailed if another program has used the server: then the run is not judged."""
        if self._server is not None:
            for one in self._in_force:
                _undo(self._server, one)
            self._in_force.clear()
            self._look_for_use()
            self._server.check(is_last=True)

    def _started(self) -> ProxyServer:
        if self._server is None:
            raise HarnessFailed("a fault of a proxy came before the proxies")
        return self._server

    def _check(self, server: ProxyServer, now: float) -> None:
        self._checked_at = now
        if end := self._host.end_in_words(server.pid):
            raise HarnessFailed(f"Toxiproxy ended by itself; run again: {end}")
        server.check()
        self._look_for_use()

    def _look_for_use(self) -> None:
        there = sockets()
        for name, (listen, _) in self._ports.items():
            self.were_used[name] = self.were_used[name] or any(listen in (one.local, one.remote) for one in there)

    def _feel(self, one: Disturbance, felt: list[Disturbance], *, by_bytes: bool = True) -> None:
        if one.is_felt:
            return
        one.look(sockets(), inodes_of(self._started().pid), time.monotonic())
        one.is_felt = bool(one.felt()) and (by_bytes or one.flow.closed > 0)
        felt += [one] if one.is_felt else []

    def _flow_of(self, fault: ChannelFault) -> Flow:
        """What passes through the proxy of a fault from now on."""
        listen, upstream = self._ports[proxy_of(fault)]
        flow = Flow(listen, upstream, towards_upstream=towards_upstream(fault))
        self._look(flow)
        return flow

    def _look(self, flow: Flow) -> None:
        flow.look(sockets(), inodes_of(self._started().pid))

    def _all_break(self) -> None:
        """The server is about to be replaced, which breaks every connection."""
        self._disturbed_at = time.monotonic()


def _set(server: ProxyServer, number: int, fault: ChannelFault) -> None:
    name, toxic = proxy_of(fault), toxic_of(fault)
    if toxic is not None:
        server.add(_name(number), name, toxic, "receiver" if towards_upstream(fault) else "sender")
    if isinstance(fault, CutChannel | ResetChannel):
        server.close_connections(name)
    if isinstance(fault, ResetChannel):  # connections that are opened from now on are reset
        server.open_again(name)


def _undo(server: ProxyServer, one: Disturbance) -> None:
    if isinstance(one.fault, CutChannel):
        server.open_again(proxy_of(one.fault))
    else:
        server.remove(_name(one.number))


def _name(number: int) -> str:
    """The name of the toxic of a fault."""
    return f"fault-{number}"


def _ports(proxy: Proxy, places: Mapping[str, str]) -> tuple[int, int]:
    return int(filled(proxy.listen, places)), int(filled(proxy.upstream, places))
