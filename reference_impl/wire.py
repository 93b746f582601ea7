"""Bytes to messages and back: a byte for the version, four for the length, MessagePack.

Sans-IO: nothing here reads or writes.  Only the types of the codec's union can
come out, whatever is fed in; nothing of a message is ever executed.
"""

from __future__ import annotations

import struct
from typing import Any, Generic, TypeVar

import msgspec

from .core.vocabulary.errors import EngineError

VERSION = 1
LIMIT = 64 << 20
"""the longest body of a peer's message, in bytes; a longer one is refused by its header, before it is buffered"""

HEADER = struct.Struct(">BI")

Message = TypeVar("Message")

BAD = (ValueError, OverflowError, RecursionError, TypeError)
"""What msgspec raises about bytes, and values, that it cannot take; its own errors are ValueErrors."""


class WireError(EngineError):
    """Bytes that are no message, or a message that has no bytes."""


class Codec(Generic[Message]):
    """The frames of one conversation."""

    def __init__(self, kind: Any, limit: int = LIMIT) -> None:
        """`kind` is a msgspec struct, or a union of tagged ones; `limit` is the longest body, in bytes."""
        self.limit = limit
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(kind)

    def encode(self, message: Message) -> bytes:
        """The message's frame; raises WireError when it is too long, or holds what no frame can."""
        try:
            body = self._encoder.encode(message)
        except BAD as error:
            raise WireError(f"a {type(message).__name__} cannot be put on the wire: {_line(error)}") from None
        if len(body) > self.limit:
            raise WireError(f"a {type(message).__name__} of {len(body)} bytes is too long: it can have {self.limit}")
        return HEADER.pack(VERSION, len(body)) + body

    def decode(self, body: bytes) -> Message:
        """The message in a frame's body; raises WireError."""
        try:
            return self._decoder.decode(body)
        except BAD as error:
            raise WireError(f"a frame of {len(body)} bytes is not understood: {_line(error)}") from None


class Reader(Generic[Message]):
    """Takes a stream as it comes, in pieces of any size, and gives back whole messages."""

    def __init__(self, codec: Codec[Message]) -> None:
        self._codec = codec
        self._buffer = bytearray()
        self._broken: str | None = None
        """what was wrong with the first bad frame, if there was one"""

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Message]:
        """The messages that `data` completes; raises WireError, now and from then on, about the first bad frame."""
        if self._broken is not None:
            raise WireError(self._broken)
        self._buffer += data
        messages: list[Message] = []
        try:
            used = self._take(messages)
        except WireError as error:
            self._broken = str(error)
            self._buffer = bytearray()
            raise
        del self._buffer[:used]
        return messages

    def end(self) -> None:
        """The stream is over; raises WireError when that was within a frame."""
        if self._broken is not None or self._buffer:
            raise WireError(self._broken or f"the stream ended within a frame, {len(self._buffer)} bytes into it")

    def _take(self, messages: list[Message]) -> int:
        """Decode every whole frame that the buffer holds; how many bytes they took."""
        start, size = 0, len(self._buffer)
        with memoryview(self._buffer) as view:
            while start < size:
                length = _length(view, start, size, self._codec.limit)
                if length is None or start + HEADER.size + length > size:
                    break
                end = start + HEADER.size + length
                body = bytes(view[start + HEADER.size : end])  # a message may refer to parts of it
                messages.append(self._codec.decode(body))
                start = end
        return start


def _length(view: memoryview, start: int, size: int, limit: int) -> int | None:
    """The length in a header, None if the header is not complete yet; raises WireError."""
    if view[start] != VERSION:
        raise WireError(f"a frame begins with {view[start]}: this side speaks version {VERSION} of the wire")
    if size - start < HEADER.size:
        return None
    length: int = HEADER.unpack_from(view, start)[1]
    if length > limit:
        raise WireError(f"a frame of {length} bytes is announced: at most {limit} are taken")
    return length


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
