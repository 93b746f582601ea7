"""What the harness requests of its launcher, what the launcher sends back, and how that becomes bytes.

A frame is four bytes of length, most significant first, and one msgpack value.  Each request carries a serial and is
answered once, with the same serial, in any order.  The ends of processes are reported without a request.
"""

from __future__ import annotations

import signal

import msgspec

HEADER_BYTES = 4
LONGEST_FRAME_BYTES = 64 * 1024 * 1024


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    serial: int


class Fork(Request, frozen=True, kw_only=True):
    name: str
    entry: str
    config: bytes
    listen: tuple[str, ...] = ()


class Execute(Request, frozen=True, kw_only=True):
    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    """all of it; nothing is inherited"""
    uid: int | None = None
    stdout: str | None = None
    """a path within the folder, for both streams; None: the log that carries the name"""
    gently: bool = False
    """in the end it is asked to stop before it is killed"""


class Listen(Request, frozen=True, kw_only=True):
    name: str


class Unlisten(Request, frozen=True, kw_only=True):
    names: tuple[str, ...]


class Signal(Request, frozen=True, kw_only=True):
    pid: int
    number: int


class RegisterCleanup(Request, frozen=True, kw_only=True):
    """An entry to run when every other process has ended; it is not run if it is cancelled."""

    name: str
    entry: str
    config: bytes


class CancelCleanup(Request, frozen=True, kw_only=True):
    name: str


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message of a launcher."""

    folder: str
    door: str | None = None
    """where sockets of its own network are handed out; None when it is in the machine's network"""


class Started(Request, frozen=True, kw_only=True):
    pid: int


class Listening(Request, frozen=True, kw_only=True):
    port: int


class Done(Request, frozen=True, kw_only=True):
    pass


class Failed(Request, frozen=True, kw_only=True):
    reason: str
    has_ended: bool = False
    """the process that was meant has ended"""


class Exited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The end of a process, which has been reaped; either `code` or `signal` is set."""

    pid: int
    name: str
    code: int | None = None
    signal: int | None = None

    @property
    def how(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        known = {each.value: each.name for each in signal.Signals}
        return known.get(self.signal, f"signal {self.signal}")


Ask = Fork | Execute | Listen | Unlisten | Signal | RegisterCleanup | CancelCleanup
Answer = Started | Listening | Done | Failed
LauncherMessage = Ready | Started | Listening | Done | Failed | Exited

asked: msgspec.msgpack.Decoder[Ask] = msgspec.msgpack.Decoder(Ask)
message_decoder: msgspec.msgpack.Decoder[LauncherMessage] = msgspec.msgpack.Decoder(LauncherMessage)
_encode = msgspec.msgpack.Encoder().encode


class Refused(Exception):
    """A request that cannot be done; becomes a `Failed`."""

    def __init__(self, reason: str, *, has_ended: bool = False) -> None:
        super().__init__(reason)
        self.has_ended = has_ended


class BadFrame(Exception):
    """Bytes that are not a frame of this protocol."""


def frame(value: Ask | LauncherMessage) -> bytes:
    """Raises BadFrame for a frame that is longer than the other side accepts."""
    body = _encode(value)
    if len(body) > LONGEST_FRAME_BYTES:
        raise BadFrame(f"{len(body)} bytes are more than a frame may hold")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


class Frames:
    """Bytes as they come in, whole frames as they go out."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> bytes | None:
        """The next frame's body, or None while it has not all arrived; raises BadFrame for one that is too long."""
        length = int.from_bytes(self._bytes[:HEADER_BYTES], "big")
        if len(self._bytes) >= HEADER_BYTES and length > LONGEST_FRAME_BYTES:
            raise BadFrame(f"a frame of {length} bytes is announced")
        end = HEADER_BYTES + length
        if len(self._bytes) < max(end, HEADER_BYTES):
            return None
        body = bytes(self._bytes[HEADER_BYTES:end])
        del self._bytes[:end]
        return body
