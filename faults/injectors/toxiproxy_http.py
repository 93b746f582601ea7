"""The HTTP of a copy of toxiproxy-python: requests bounded in time, over sockets that the caller makes."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from types import ModuleType
from typing import Any
from urllib.parse import quote

import msgspec

HOST = "127.0.0.1"
PAUSE_S = 0.01
_LOADING = threading.Lock()


class ToxiproxyFailed(Exception):
    """The server has ended, does not answer, is another one, or did not do what was requested; one line."""


class Tampered(ToxiproxyFailed):
    """The server has something that this layer did not set: another program has used its control port."""


def own_copy() -> ModuleType:
    """The package toxiproxy-python, loaded once more under no name: its class attributes then belong to one server."""
    found = importlib.util.find_spec("toxiproxy")
    if found is None or found.origin is None:
        raise ToxiproxyFailed("the package toxiproxy-python is missing: pip install toxiproxy-python")
    name = "_cutproof_copy_of_toxiproxy"
    spec = importlib.util.spec_from_file_location(
        name, found.origin, submodule_search_locations=list(found.submodule_search_locations or ())
    )
    if spec is None or spec.loader is None:
        raise ToxiproxyFailed(f"the package toxiproxy-python cannot be loaded from {found.origin}")
    copy = importlib.util.module_from_spec(spec)
    with _LOADING:
        sys.modules[name] = copy
        try:
            spec.loader.exec_module(copy)
        finally:
            for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                del sys.modules[each]
    return copy


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an answer that a copy of the package and its caller read."""

    status_code: int
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.content)


class _Link(HTTPConnection):
    """A connection over a socket that the caller makes."""

    def __init__(self, port: int, timeout_s: float, new_socket: Callable[[], socket.socket]) -> None:
        super().__init__(HOST, port, timeout=timeout_s)
        self._new_socket = new_socket

    def connect(self) -> None:
        self.sock = self._new_socket()
        self.sock.settimeout(self.timeout)
        self.sock.connect((self.host, self.port))


class Transport:
    """What a copy of the package has in the place of `requests`: bounded in time, without settings of the environment;
    a refusal is an error.

    Each request has a connection of its own: none would outlive the server, and runs kill the server and start it
    again.
    """

    def __init__(self, port: int, timeout_s: float, new_socket: Callable[[], socket.socket]) -> None:
        self._port = port
        self._timeout_s = timeout_s
        self._new_socket = new_socket

    @contextlib.contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """In this context no request may take longer than this."""
        before = self._timeout_s
        self._timeout_s = max(min(before, seconds), PAUSE_S)
        try:
            yield
        finally:
            self._timeout_s = before

    def get(self, url: str, params: Any = None) -> _Answer:
        return self._send("GET", url)

    def delete(self, url: str) -> _Answer:
        return self._send("DELETE", url)

    def post(self, url: str, data: Any = None, json: Any = None) -> _Answer:
        return self._send("POST", url, json)

    def _send(self, method: str, url: str, body: Any = None) -> _Answer:
        who = f"Toxiproxy on port {self._port}"
        path = quote(url.partition(str(self._port))[2], safe="/")
        link = _Link(self._port, self._timeout_s, self._new_socket)
        try:
            link.request(method, path, json.dumps(body) if body is not None else None, {"Connection": "close"})
            got = link.getresponse()
            answer = _Answer(status_code=got.status, content=got.read())
        except TimeoutError as error:
            raise ToxiproxyFailed(f"{who} did not answer within {self._timeout_s:g} s") from error
        except (OSError, HTTPException) as error:
            raise ToxiproxyFailed(f"{who} has ended: nothing answers on its port") from error
        finally:
            link.close()
        if not 200 <= answer.status_code < 300:
            error_text = re.search(r'"error":\s*"(.*?)"[,}]', answer.text)
            why = error_text[1] if error_text else " ".join(answer.text[:200].split())
            raise ToxiproxyFailed(
                f"{who} refused {method} {url.partition(str(self._port))[2]}: {answer.status_code} {why}"
            )
        return answer
