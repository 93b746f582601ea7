"""A replacement for the server for accumulators that PySpark starts in this process: foreign connections cannot
disturb it.

PySpark's own server prints a traceback for every connection that does not begin with Spark's token.  If a connection
sends nothing, or only a part of the token, the server waits for ever, and the session never ends.
"""

from __future__ import annotations

import hmac
import socket
import struct
from typing import Any

from pyspark import accumulators

TOKEN_TIMEOUT_S = 2
"""Java sends the token as soon as it is connected."""


class UpdateServer(accumulators.AccumulatorTCPServer):
    """Handles the connections that begin with Spark's token, and closes all others silently."""

    def verify_request(self, request: Any, client_address: Any) -> bool:
        token = self.auth_token.encode()
        try:
            _set_timeout(request, TOKEN_TIMEOUT_S)
            begun = request.recv(len(token), socket.MSG_PEEK | socket.MSG_WAITALL)
            _set_timeout(request, 0)
        except OSError:
            return False  # nothing came in time, or the connection is broken
        return hmac.compare_digest(begun, token)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is printed: a connection ends when Java does, and PySpark takes that for an error."""


def _set_timeout(connection: socket.socket, seconds: int) -> None:
    """Set the timeout of `recv` in the kernel; 0 is none.  With one of Python's, `recv` would return a first part."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def install() -> None:
    """Make PySpark start this server in all later sessions."""
    accumulators.AccumulatorTCPServer = UpdateServer  # type: ignore[misc]
