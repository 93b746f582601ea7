"""Real connections disturbed by a real Toxiproxy server, through toxiproxy-python.

That package is the client.  This layer adds what the package lacks: the package keeps a server's address in class
attributes, waits without a bound, obeys proxy settings of the environment even for the loopback, and answers a refusal
with `False` or nothing.  So each server gets a copy of the package of its own, whose requests are bounded in time and
whose refusals are errors.  What is sent is checked before, and what was set is read back.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec

from .toxics import BY_TYPE, WIRE, Toxic
from .toxiproxy_http import HOST, PAUSE_S, Transport, own_copy
from .toxiproxy_http import Tampered as Tampered
from .toxiproxy_http import ToxiproxyFailed as ToxiproxyFailed

STREAMS = {"receiver": "upstream", "sender": "downstream"}
"""In which direction bytes are disturbed: towards the receiver (to which the proxy connects) or the sender (which
connected to the proxy); and the server's word for it."""
_NAME = re.compile(r"[A-Za-z0-9_.:>+@=-]+")
_MARK = "cutproof-mark-"


class Active(msgspec.Struct, frozen=True, kw_only=True):
    """A toxic that is set on a proxy."""

    name: str
    towards: str
    toxic: Toxic


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a proxy."""

    listen: str
    upstream: str
    is_enabled: bool
    toxics: dict[str, Active] | None
    """by name; None where this layer would not have set one of them"""


class Toxiproxy:
    """One server, by its control port.

    `timeout_s` bounds each request; an operation has at most three of them, and the first that stays unanswered ends
    it.  A server that was started with `mark_file`'s text as its configuration is distinguished by it from another
    server on the same port: a server that finds its port taken does not exit, and the other one would answer.  Not for
    several threads at once.
    """

    def __init__(
        self,
        port: int,
        *,
        timeout_s: float = 2.0,
        mark: str = "",
        new_socket: Callable[[], socket.socket] = socket.socket,
    ) -> None:
        """`new_socket` makes a socket that reaches the server, which may be in a network of its own."""
        if not 0 < port < 65536:
            raise ValueError(f"{port} is not a port")
        self.port = port
        self._mark = _MARK + _checked(mark) if mark else ""
        self._transport = Transport(port, timeout_s, new_socket)
        self._package = own_copy()
        self._package.api.requests = self._transport
        self._package.api.APIConsumer.host = HOST
        self._package.api.APIConsumer.port = port
        self._server = self._package.Toxiproxy()
        self._made: dict[str, Proxy] = {}
        self._making: dict[str, _State] = {}
        """proxies that were requested, and of which no answer has shown yet that they exist"""

    def wait_until_up(self, within_s: float, has_ended: Callable[[], bool] = lambda: False) -> None:
        """Return once the server answers; ToxiproxyFailed if it does not, has ended, or if another server answers."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                with self._transport.at_most(deadline - time.monotonic()):
                    self.version()
                break
            except ToxiproxyFailed as error:
                if time.monotonic() + PAUSE_S >= deadline or has_ended():
                    raise ToxiproxyFailed(f"no Toxiproxy came up within {within_s:g} s") from error
            time.sleep(PAUSE_S)
        if self._mark and self._mark not in self._theirs():
            raise ToxiproxyFailed(f"port {self.port} belongs to another Toxiproxy server; choose another port")

    def version(self) -> str:
        """The version that the server reports: "2.12.0", or "git" for one that was built without a version."""
        with self._calling("say its version"):
            text = self._package.api.APIConsumer.get("/version").text
        found = re.search(r"(?:version\W*)?([\w.+-]+)\W*$", text)
        if found is None or len(text) > 200:
            raise ToxiproxyFailed(f"the program that listens on port {self.port} is not a Toxiproxy server")
        return found[1]

    def proxy(self, name: str, upstream_port: int, listen_port: int = 0) -> Proxy:
        """Make a proxy from a port of the loopback to another; 0 listens on any that is free."""
        if not 0 < upstream_port < 65536 or not 0 <= listen_port < 65536:
            raise ValueError(f"{listen_port} to {upstream_port}: a port is a number from 1 to 65535")
        upstream = f"{HOST}:{upstream_port}"
        _checked(name)
        listen = f"{HOST}:{listen_port}"
        self._making[name] = _State(listen=listen, upstream=upstream, is_enabled=True, toxics={})
        with self._calling(f"make the proxy {name}"):
            made = self._server.create(upstream, name, listen=listen, enabled=True)
        there = self._theirs().get(name)
        if there is None or there.upstream != upstream or there.enabled is not True or there.listen != made.listen:
            raise ToxiproxyFailed(f"Toxiproxy did not make the proxy {name} as requested")
        port = _port(there.listen)
        if not port or (listen_port and port != listen_port):
            raise ToxiproxyFailed(f"Toxiproxy made the proxy {name} listen at {there.listen}, not on {listen_port}")
        del self._making[name]
        self._made[name] = Proxy(self, made, port, upstream_port)
        return self._made[name]

    def proxies(self) -> tuple[str, ...]:
        """The names of the proxies there are."""
        return tuple(sorted(name for name in self._theirs() if not name.startswith(_MARK)))

    def not_ours(self, within_s: float) -> str:
        """A part of the server's state that another program has made, in words: a proxy, a toxic, a setting; empty if
        there is none.

        Toxiproxy does not authenticate its clients.  ToxiproxyFailed if it does not answer in time.
        """
        with self._transport.at_most(within_s), self._calling("list its proxies"):
            there: dict[str, dict[str, Any]] = self._package.api.APIConsumer.get("/proxies").json()
            for name, shown in sorted(there.items()):
                # The mark's proxy never listens, and the server invents its address.
                listen = f"{HOST}:0" if name == self._mark else shown["listen"]
                found = _State(
                    listen=listen, upstream=shown["upstream"], is_enabled=shown["enabled"], toxics=_toxics_of(shown)
                )
                if found not in self._states_of(name):
                    return f"the proxy {name!r} from {shown['listen']} to {shown['upstream']}{_in_words(shown)}"
        missing = sorted(name for name, made in self._made.items() if name not in there and not made.may_be_deleted)
        return f"the proxy {missing[0]!r} is missing" if missing else ""

    def _states_of(self, name: str) -> list[_State]:
        """The states in which a proxy may be: the requested one, and those that were requested without an answer."""
        if name == self._mark:
            return [_State(listen=f"{HOST}:0", upstream=f"{HOST}:1", is_enabled=False, toxics={})]
        made = self._made.get(name)
        if made is None:
            return [self._making[name]] if name in self._making else []
        listen, upstream = f"{HOST}:{made.port}", f"{HOST}:{made.upstream_port}"
        shown = ((made.is_enabled, made.placed), *made.unsure)
        return [
            _State(listen=listen, upstream=upstream, is_enabled=is_enabled, toxics=toxics)
            for is_enabled, toxics in shown
        ]

    def reset(self) -> None:
        """Enable every proxy and remove every toxic."""
        with self._calling("reset"):
            self._server.reset()
            if self._mark and (mark := self._server.get_proxy(self._mark)) is not None:
                mark.disable()
            there = self._server.proxies()
            unhealed = [name for name in self.proxies() if not there[name].enabled or there[name].toxics()]
        if unhealed:
            raise ToxiproxyFailed(f"Toxiproxy did not reset; these proxies are still disturbed: {', '.join(unhealed)}")
        for made in self._made.values():
            made.is_enabled, made.placed = True, {}
            made.unsure.clear()

    def _theirs(self) -> dict[str, Any]:
        with self._calling("list its proxies"):
            found: dict[str, Any] = self._server.proxies()
        return found

    @contextlib.contextmanager
    def _calling(self, what: str) -> Iterator[None]:
        """The package's own errors as one line; it decodes answers without checking them."""
        try:
            yield
        except self._package.api.ProxyExists as error:
            raise ToxiproxyFailed(f"Toxiproxy on port {self.port} cannot {what}: it exists already") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToxiproxyFailed(
                f"Toxiproxy on port {self.port} gave no valid answer when it was asked to {what}: {error!r}"
            ) from error


class Proxy:
    """One proxied port; made by `Toxiproxy.proxy`."""

    def __init__(self, server: Toxiproxy, theirs: Any, port: int, upstream_port: int) -> None:
        self.name: str = theirs.name
        self.port = port
        self.upstream_port = upstream_port
        self.is_enabled = True
        """as requested"""
        self.placed: dict[str, Active] = {}
        """the requested toxics by name"""
        self.unsure: list[tuple[bool, dict[str, Active]]] = []
        """`is_enabled` and `placed` as they were requested without an answer"""
        self.may_be_deleted = False
        self._server = server
        self._theirs = theirs

    def add(self, toxic: Toxic, towards: str = "receiver", name: str = "") -> str:
        """Add a toxic to the bytes that flow towards the receiver (the upstream) or the sender.

        Returns its name, by default one like "latency-receiver".
        """
        if towards not in STREAMS:
            raise ValueError(f"a toxic works towards {' or '.join(STREAMS)}, not {towards!r}")
        wire_type, fields, always = WIRE[type(toxic)]
        name = _checked(name or f"{toxic.__struct_config__.tag}-{towards}")
        attributes = {theirs: getattr(toxic, ours) for ours, theirs in fields.items()} | always
        placed = Active(name=name, towards=towards, toxic=toxic)
        self.unsure.append((self.is_enabled, {**self.placed, name: placed}))
        with self._server._calling(f"add {name} to {self.name}"):
            self._theirs.add_toxic(
                name=name, type=wire_type, stream=STREAMS[towards], toxicity=1.0, attributes=attributes
            )
        if placed not in self.active():
            raise ToxiproxyFailed(f"Toxiproxy did not add {name} to {self.name} as requested")
        self.placed[name] = placed
        self.unsure.clear()
        return name

    def remove(self, name: str) -> None:
        """Remove a toxic by its name.

        If the bytes that it holds wait for a reader that does not read, the server can hang in this request, and with
        it its whole control port.  Then ToxiproxyFailed is raised, and the server has to be killed and replaced.  That
        was never seen with a stall and a timeout, nor with `disable` and `delete`.
        """
        _checked(name)
        self.unsure.append((self.is_enabled, {other: toxic for other, toxic in self.placed.items() if other != name}))
        with self._server._calling(f"remove {name} from {self.name}"):
            self._theirs.destroy_toxic(name)
        if any(active.name == name for active in self.active()):
            raise ToxiproxyFailed(f"Toxiproxy did not remove {name} from {self.name}")
        self.placed.pop(name, None)
        self.unsure.clear()

    def toxics(self) -> tuple[Toxic, ...]:
        """The toxics that are set: those towards the receiver, then those towards the sender, each in the order in
        which they were added."""
        return tuple(active.toxic for active in self.active())

    def active(self) -> tuple[Active, ...]:
        """The toxics that are set, with their names and directions, as the server lists them."""
        with self._server._calling(f"list the toxics of {self.name}"):
            found = list(self._theirs.toxics().values())
        return tuple(_read(self.name, theirs) for theirs in found)

    def disable(self) -> None:
        """Close every connection and refuse new ones, until it is enabled again."""
        self.unsure.append((False, self.placed))
        with self._server._calling(f"disable {self.name}"):
            self._theirs.disable()
        self._demand(enabled=False)

    def enable(self) -> None:
        """Listen again, on the same port; toxics are as they were."""
        self.unsure.append((True, self.placed))
        with self._server._calling(f"enable {self.name}"):
            self._theirs.enable()
        self._demand(enabled=True)

    def delete(self) -> None:
        """Close every connection, and remove the proxy."""
        self.may_be_deleted = True
        with self._server._calling(f"delete {self.name}"):
            self._theirs.destroy()
        if self.name in self._server.proxies():
            raise ToxiproxyFailed(f"Toxiproxy did not delete {self.name}")
        self._server._made.pop(self.name, None)

    def _demand(self, *, enabled: bool) -> None:
        there = self._server._theirs().get(self.name)
        if there is None or there.enabled is not enabled or _port(there.listen) != self.port:
            shown = "enable" if enabled else "disable"
            raise ToxiproxyFailed(f"Toxiproxy did not {shown} {self.name} on port {self.port}")
        self.is_enabled = enabled
        self.unsure.clear()


def mark_file(mark: str) -> str:
    """The text of a configuration file by which a server is recognised: one disabled proxy, named after the mark."""
    marked = {"name": _MARK + _checked(mark), "listen": f"{HOST}:0", "upstream": f"{HOST}:1", "enabled": False}
    return json.dumps([marked])


def _checked(name: str) -> str:
    """A name that can be a part of an address as it is: a slash would change the address."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"{name!r} is no name for Toxiproxy: letters, digits and _.:>+@=- only")
    return name


def _port(listen: str) -> int:
    port = listen.rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def _toxics_of(shown: Mapping[str, Any]) -> dict[str, Active] | None:
    """The toxics of a proxy as the server lists it, by name; None where this layer would not have set one of them."""
    try:
        found = [_read(shown["name"], SimpleNamespace(**toxic)) for toxic in shown["toxics"]]
    except ToxiproxyFailed:
        return None
    return {active.name: active for active in found}


def _in_words(shown: Mapping[str, Any]) -> str:
    """The rest of a proxy's state, in words."""
    toxics = [str(toxic["name"]) for toxic in shown["toxics"]]
    state = [] if shown["enabled"] else ["disabled"]
    return "".join(f", {each}" for each in (*state, *(f"with the toxic {name!r}" for name in toxics)))


def _read(proxy: str, theirs: Any) -> Active:
    """A toxic as the server lists it; Tampered for one that this layer would not have set."""
    attributes: Mapping[str, int] = theirs.attributes
    towards = {stream: towards for towards, stream in STREAMS.items()}.get(theirs.stream)
    kind = BY_TYPE.get(theirs.type)
    if kind is not None and towards is not None and theirs.toxicity == 1:
        _, fields, always = WIRE[kind]
        if sorted(attributes) == sorted([*fields.values(), *always]) and always.items() <= attributes.items():
            with contextlib.suppress(ValueError):
                toxic = kind(**{ours: attributes[wire] for ours, wire in fields.items()})
                return Active(name=theirs.name, towards=towards, toxic=toxic)
    raise Tampered(f"a toxic of another program at the proxy {proxy!r}: {vars(theirs)}")
