"""Ports for servers that are killed and restarted on the same port."""

from __future__ import annotations

import os
import random
import socket

HOST = "127.0.0.1"
FIRST, LAST = 10_240, 32_000
"""below the ports that the system assigns to connections: no other program gets such a port by chance while its server
is down, and no connection to it can connect to itself"""
TRIES = 200
_draw = random.Random(os.urandom(16))


def pick() -> int:
    """A port that is free now; raises OSError if `TRIES` ports are all in use."""
    last: OSError | None = None
    for _ in range(TRIES):
        port = _draw.randrange(FIRST, LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                last = error
                continue
            return port
    raise OSError(f"none of {TRIES} ports tried is free: {last}")
