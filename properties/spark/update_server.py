"""PySpark's server for accumulators, which it starts in this process, as one that foreign connections cannot disturb.

PySpark's own prints a traceback for every connection that begins with anything but Spark's token, and waits for one
that says nothing, or only a part of the token, until the session never ends.
"""

from __future__ import annotations

import hmac
import socket
import struct
from typing import Any

from pyspark import accumulators

PATIENCE_S = 2
"""Java sends the token as soon as it is connected."""


class UpdateServer(accumulators.AccumulatorTCPServer):
    """Handles the connections that begin with Spark's token, and closes all others without a word."""

    def verify_request(self, request: Any, client_address: Any) -> bool:
        token = self.auth_token.encode()
        try:
            _patience(request, PATIENCE_S)
            begun = request.recv(len(token), socket.MSG_PEEK | socket.MSG_WAITALL)
            _patience(request, 0)
        except OSError:
            return False  # nothing came in time, or the connection is broken: nobody is behind it
        return hmac.compare_digest(begun, token)


def _patience(connection: socket.socket, seconds: int) -> None:
    """By the kernel's clock: a timeout of Python's would make `recv` return the first part alone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def install() -> None:
    """Have PySpark start this one, in all sessions to come."""
    accumulators.AccumulatorTCPServer = UpdateServer  # type: ignore[misc]
