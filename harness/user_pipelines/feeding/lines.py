"""Records as JSON lines from a socket.  Each connection gets all records from the first, as they come: like a log that
is read again from its beginning."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Sequence
from typing import Any

from ....properties.model.workload import InputRecord
from ..description import Feed
from ..entries import EntryFailed
from .feeder import Feeder


class Lines(Feeder):
    """The records of one run at a port.  Behind the last record a connection stays open, or is closed if the pipeline
    `ends`."""

    def __init__(self, feed: Feed, records: Sequence[InputRecord], port: str, *, ends: bool) -> None:
        super().__init__(feed, records)
        self._ends = ends
        self._lines: list[bytes] = []
        self._more = threading.Condition()
        self._closed = False
        self._port = port
        self._server: _Server | None = None

    def open(self) -> None:
        feeder = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):  # the pipeline has gone
                    feeder._send_all(self.request)

        try:
            self._server = _Server(("127.0.0.1", int(self._port)), Connection)
        except (OSError, ValueError, OverflowError) as error:
            raise EntryFailed("feed.port", f"{self._port} cannot be listened on: {error}") from error
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True, name="feed").start()

    def _put(self, rows: Sequence[dict[str, Any]]) -> bool:
        with self._more:
            self._lines += [json.dumps(row).encode() + b"\n" for row in rows]
            self._more.notify_all()
        return True

    def _send_all(self, connection: Any) -> None:
        sent = 0
        while True:
            with self._more:
                while len(self._lines) == sent and not self._is_at_end(sent):
                    self._more.wait()
                if self._is_at_end(sent):
                    return
                lines = self._lines[sent:]
            connection.sendall(b"".join(lines))
            sent += len(lines)

    def _is_at_end(self, sent: int) -> bool:
        return self._closed or (self._ends and sent == len(self._rows))

    def close(self) -> None:
        with self._more:
            self._closed = True
            self._more.notify_all()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
