"""Another user of the machine, who attacks what listens for a run: a process with another number, and no credentials.

Where the tests run as root it becomes somebody who owns nothing; PostgreSQL of a run runs as `nobody` then, and an
attacker must not be that.  Else it is the same user, and does what needs none of that user's rights.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import msgspec
import psycopg

UID = 61_234
FALSE_NUMBER = 2**61
WAIT_S = 1
LEAK = "leak"
USERS = ("cutproof", "postgres")
CROWD = 300
"""who come to a port, a quarter of them at a time"""


def frame(*parts: object) -> bytes:
    """A frame of the wire, made without the engine's help."""
    body = msgspec.msgpack.encode(parts)
    return struct.pack(">BI", 1, len(body)) + body


HELLO = frame("Hello", FALSE_NUMBER, "source-0", 99, {"source-0": 99, "op1-0": 99, "sink-0": 99})
FRAMES = (
    HELLO,
    frame("FromTask", FALSE_NUMBER, "source-0", ["Running", 99]) + HELLO,
    frame("Open", FALSE_NUMBER, "source-0>op1-0", 99) + frame("Data", FALSE_NUMBER, ["Record", 1, 2, 3, 4, 5]),
    struct.pack(">BI", 1, 0xFFFFFFFF),
    struct.pack(">BI", 1, 64) + b"half a frame",
    b"",
)
"""What is said at a port; the connections stay open."""


def takes_the_database(where: dict[str, object], target: Path) -> str:
    """Log in without a password as who may start programs, and start one."""
    for user in USERS:
        try:
            with psycopg.connect(dbname="postgres", user=user, connect_timeout=2, autocommit=True, **where) as session:  # type: ignore[arg-type]
                session.execute(f"COPY (SELECT 1) TO PROGRAM 'touch {target}'".encode())
                return "in"
        except psycopg.Error:
            continue
    return "out"


def makes_a_proxy(port: int) -> str:
    """Have a Toxiproxy listen to the whole world."""
    link = HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    proxy = {"name": LEAK, "listen": "0.0.0.0:0", "upstream": "127.0.0.1:1", "enabled": True}
    try:
        link.request("POST", "/proxies", json.dumps(proxy))
        return f"made {json.loads(link.getresponse().read())['listen']}" if link.sock else "out"
    except (OSError, HTTPException, ValueError, KeyError):
        return "out"
    finally:
        link.close()


def false_frames_at(port: int, kept: list[socket.socket]) -> str:
    """Say frames with an impossible stamp, lengths that nothing has, half of something, nothing."""
    answered = 0
    for garbage in FRAMES:
        with contextlib.suppress(OSError):
            sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
            kept.append(sock)
            sock.sendall(garbage)
            answered += 1
    return f"said {answered}"


def crowds_at(port: int) -> str:
    """Come and go all the time, more at once than anybody waits for: with frames, with another's challenge, with
    nothing; some are reset."""
    came, open_now, challenge = 0, deque[socket.socket](), b""
    for number in range(CROWD):
        with contextlib.suppress(OSError):
            sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
            came += 1
            open_now.append(sock)
            if number == 0:
                challenge = sock.recv(16)
            sock.sendall((*FRAMES, challenge, challenge[:9])[number % (len(FRAMES) + 2)])
            if number % 5 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        while len(open_now) > CROWD // 4:
            open_now.popleft().close()
    for sock in open_now:
        sock.close()
    return f"came {came}"


def attack(read: int, write: int, attacks: str, target: Path) -> None:
    """Attack each port, and each socket of a PostgreSQL, that is named on a line; answer with a line each."""
    kept: list[socket.socket] = []

    def one(line: str) -> None:
        found: dict[str, str] = {}
        if line.startswith("/"):
            path = Path(line)
            where: dict[str, object] = {"host": str(path.parent), "port": int(path.name.rpartition(".")[2])}
            found["database"] = takes_the_database(where, target)
        else:
            port = int(line)
            wanted: dict[str, Callable[[], str]] = {
                "frames": lambda: false_frames_at(port, kept),
                "crowd": lambda: crowds_at(port),
                "proxy": lambda: makes_a_proxy(port),
                "database": lambda: takes_the_database({"host": "127.0.0.1", "port": port}, target),
            }
            found = {name: act() for name, act in wanted.items() if name in attacks.split()}
        os.write(write, (json.dumps({"at": line, **found}) + "\n").encode())

    with os.fdopen(read) as lines, ThreadPoolExecutor(8) as pool:
        for line in lines:
            pool.submit(one, line.strip())


class Attacker:
    """The process, and what it has done so far."""

    def __init__(self, attacks: str, target: Path) -> None:
        """`attacks`: which of database, proxy, frames and crowd, blanks between them."""
        self._warm()
        here, theirs = os.pipe(), os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(here[1])
            os.close(theirs[0])
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(UID)
                    os.setuid(UID)
                attack(here[0], theirs[1], attacks, target)
            finally:
                os._exit(0)
        os.close(here[0])
        os.close(theirs[1])
        self._orders, self._results = here[1], theirs[0]
        os.set_blocking(self._results, False)
        self._unread = b""
        self._seen: set[str] = set()
        self.done: list[dict[str, str]] = []

    def _warm(self) -> None:
        """Import here what the child, who may not read this user's files, comes to need."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # nobody listens there
            port = int(taken.getsockname()[1])
            takes_the_database({"host": "127.0.0.1", "port": port}, Path("/nowhere"))
            makes_a_proxy(port)
            false_frames_at(port, [])
            crowds_at(port)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(time.time).result()

    def at(self, places: set[str]) -> None:
        """Attack what is new of these; take in what was done."""
        for place in sorted(places - self._seen):
            self._seen.add(place)
            os.write(self._orders, f"{place}\n".encode())
        self._take()

    def _take(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._results, 1 << 16):
                self._unread += data
        *lines, self._unread = self._unread.split(b"\n")
        self.done += [json.loads(line) for line in lines]

    def got(self, attack: str) -> list[str]:
        return [one[attack] for one in self.done if attack in one]

    def close(self) -> None:
        os.close(self._orders)
        os.set_blocking(self._results, True)
        self._take()
        os.close(self._results)
        os.waitpid(self._pid, 0)
