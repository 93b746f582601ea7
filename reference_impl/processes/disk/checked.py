"""Frames on disk with a checksum: what one flush writes into a log, a determinant log, or a journal."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ...core.vocabulary.errors import CorruptSnapshot
from ...wire import Codec, Reader, WireError

T = TypeVar("T")

LONGEST = 1 << 30
"""bytes of a frame: a journal has the whole state of a task's snapshot as one element"""
OVERHEAD = 8
"""bytes that a frame has more than its elements, at most"""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """Several things that are written at once, as MessagePack, and their CRC-32."""

    checksum: int
    elements: msgspec.Raw


CODEC: Codec[Frame] = Codec(Frame, LONGEST)
_encoder = msgspec.msgpack.Encoder()


def is_whole(frame: Frame) -> bool:
    return zlib.crc32(frame.elements) == frame.checksum


def framed(elements: Sequence[object], longest: int = LONGEST) -> bytes:
    """One frame, or several where one of `longest` bytes cannot hold all elements.

    Raises WireError for an element that no frame can hold.
    """
    body = _encoder.encode(elements)
    if len(body) > longest - OVERHEAD:
        if len(elements) == 1:
            raise WireError(f"{len(body)} bytes are to be written at once; a frame on disk has {longest} at most")
        middle = len(elements) // 2
        return framed(elements[:middle], longest) + framed(elements[middle:], longest)
    return CODEC.encode(Frame(zlib.crc32(body), msgspec.Raw(body)))


def unframed(data: bytes, decoder: msgspec.msgpack.Decoder[list[T]], what: str) -> list[T]:
    """All elements that whole frames hold; a torn frame at the end counts as not written.

    Raises CorruptSnapshot where the data is altered; `what` names the data in that message.
    """
    found: list[T] = []
    try:
        for frame in Reader(CODEC).feed(data):
            if not is_whole(frame):
                raise CorruptSnapshot(f"{what} is altered: the checksum of a frame is wrong")
            found += decoder.decode(frame.elements)
    except (WireError, msgspec.DecodeError) as error:
        raise CorruptSnapshot(f"{what} is altered: {error}") from None
    return found
