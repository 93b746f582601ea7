"""A real Toxiproxy server, an echo behind it, and talking to it over TCP."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from pathlib import Path

from cutproof.faults.injectors.toxiproxy import Proxy, Toxiproxy, mark_file
from cutproof.harness.reference_engine.orchestrator import ports
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.toxiproxy import program as service

TIMEOUT_S = 5.0
NAME = "source-0>count-1"


class Server:
    """A toxiproxy-server of a test's own."""

    def __init__(self, folder: Path, mark: str, port: int = 0) -> None:
        marked = folder / f"{mark}.json"
        marked.write_text(mark_file(mark))
        self.port = port or ports.pick()
        self.process = subprocess.Popen(
            service.command(service.ensure(Silent()), self.port, mark=marked), stdout=subprocess.DEVNULL
        )
        self.control = Toxiproxy(self.port, mark=mark)

    def up(self) -> Toxiproxy:
        self.control.wait_until_up(20)
        return self.control

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Echo:
    """Answers each chunk with itself, and remembers the sizes of those that came."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.sizes: list[int] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closing the listener ends this
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # the proxy resets some
            while data := connection.recv(65536):
                self.sizes.append(len(data))
                connection.sendall(data)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def connect(proxy: Proxy) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def transmit(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return receive(connection, len(data))


def receive(connection: socket.socket, size: int) -> bytes:
    arrived = b""
    while len(arrived) < size and (chunk := connection.recv(size - len(arrived))):
        arrived += chunk
    return arrived


def silent(connection: socket.socket, seconds: float = 0.15) -> bool:
    """Whether nothing comes for so long; waiting is the only way to see that."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b"never"
    except TimeoutError:
        return True
    finally:
        connection.settimeout(TIMEOUT_S)
