"""Sorted runs: immutable entries in key order, and their bytes.

The bytes of a file, numbers with the highest byte first:

- `CPSORT1\\n`, then the number of entries (4 bytes);
- for each entry, in the order of the keys' bytes: the length of the key (2 bytes), the key (`keys`), the length of the
  value (4 bytes), the value (JSON in UTF-8); a tombstone has the length 2^32 - 1 and no value;
- the CRC-32 of all bytes before it (4 bytes).

The same entries give the same bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from ..vocabulary.errors import CorruptSnapshot
from ..vocabulary.views import SortedFile

Pairs = dict[bytes, bytes | None]
"""Values by key, both as bytes; None is a tombstone."""

_MAGIC = b"CPSORT1\n"
_TOMBSTONE = (1 << 32) - 1
_COUNT, _KEY, _VALUE = struct.Struct(">I"), struct.Struct(">H"), struct.Struct(">I")


class Run:
    """A sorted file, and what it holds.  Its bytes are made when somebody asks for them."""

    __slots__ = ("_file", "name", "pairs")

    def __init__(self, name: str, pairs: Pairs) -> None:
        self.name = name
        self.pairs = pairs
        self._file: SortedFile | None = None

    @classmethod
    def of(cls, file: SortedFile) -> Run:
        """The run of a file; raises CorruptSnapshot when it is torn or altered."""
        run = cls(file.name, decoded(file))
        run._file = file
        return run

    @property
    def file(self) -> SortedFile:
        if self._file is None:
            self._file = SortedFile(self.name, encoded(self.pairs))
        return self._file


def merged(runs: Iterable[Pairs]) -> Pairs:
    """One run of several, the newest last; tombstones are kept."""
    pairs: Pairs = {}
    for run in runs:
        pairs.update(run)
    return pairs


def encoded(pairs: Pairs) -> bytes:
    parts = [_MAGIC, _COUNT.pack(len(pairs))]
    for key in sorted(pairs):
        value = pairs[key]
        parts += (_KEY.pack(len(key)), key, _VALUE.pack(_TOMBSTONE if value is None else len(value)), value or b"")
    body = b"".join(parts)
    return body + _COUNT.pack(zlib.crc32(body))


def decoded(file: SortedFile) -> Pairs:
    """What a file holds; raises CorruptSnapshot when it is torn or altered."""
    body, checksum = file.data[:-4], file.data[-4:]
    if not body.startswith(_MAGIC) or checksum != _COUNT.pack(zlib.crc32(body)):
        raise CorruptSnapshot(f"{file.name}: its checksum does not fit its content")
    pairs: Pairs = {}
    at = len(_MAGIC) + _COUNT.size
    for _ in range(_COUNT.unpack_from(body, len(_MAGIC))[0]):
        at, key = _taken(body, at, _KEY)
        (length,) = _VALUE.unpack_from(body, at)
        if length == _TOMBSTONE:
            at, pairs[key] = at + _VALUE.size, None
        else:
            at, pairs[key] = _taken(body, at, _VALUE)
    return pairs


def _taken(body: bytes, at: int, length: struct.Struct) -> tuple[int, bytes]:
    begin = at + length.size
    end: int = begin + length.unpack_from(body, at)[0]
    return end, body[begin:end]
