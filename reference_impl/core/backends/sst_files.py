"""Files of RocksDB, read without RocksDB: what a snapshot's SST files hold (ABS-10).

A file is a table of blocks (RocksDB's `BlockBasedTable`, format version 2, without compression):

- at the end a footer of 53 bytes: the kind of the blocks' checksums (1 byte), where the block of metadata and the index
  are, zeros up to byte 41, the format version (4 bytes), and a magic number (8 bytes), the lowest byte first;
- a place is an offset and a size, both varints; behind each block is 1 byte that says how it is compressed, and a
  checksum of 4 bytes, which is not read here: the manifest of the snapshot has a CRC-32 of the whole file;
- the values of the index are the places of the data blocks;
- a block has entries: how many bytes its key shares with the key before, how many it adds, the size of the value (three
  varints), the added bytes, the value; behind the entries are the restart points, and how many there are (4 bytes).

A key has 8 bytes behind the user's key: the number of its change, shifted by 8 bits, and its type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..vocabulary.errors import CorruptSnapshot
from .sorted_runs import Pairs

FORMAT_VERSION = 2
_MAGIC = 0x88E241B785F4CFF7
_FOOTER, _TAIL = 53, struct.Struct("<IQ")
_NUMBER = struct.Struct("<I")
_CHANGE = struct.Struct("<Q")
_DELETED, _PUT = 0, 1
_UNCOMPRESSED = 0

Place = tuple[int, int]
"""offset and size of a block"""


def pairs_of(data: bytes) -> Pairs:
    """What a file of RocksDB holds, tombstones included; raises CorruptSnapshot if it is none of this format."""
    try:
        return _pairs(data)
    except (IndexError, struct.error):
        raise CorruptSnapshot("it is no whole file of RocksDB") from None


def _pairs(data: bytes) -> Pairs:
    pairs: Pairs = {}
    for _, place in _entries(_block(data, _index(data))):
        for key, value in _entries(_block(data, _place(place, 0)[0])):
            (change,) = _CHANGE.unpack(key[-_CHANGE.size :])
            kind = change & 0xFF
            if kind not in (_DELETED, _PUT):
                raise CorruptSnapshot(f"it has a change of type {kind}, which is not known here")
            # the newest change of a key comes first
            pairs.setdefault(key[: -_CHANGE.size], value if kind == _PUT else None)
    return pairs


def _index(data: bytes) -> Place:
    """Where the index is."""
    version, magic = _TAIL.unpack(data[-_TAIL.size :])
    if magic != _MAGIC or version != FORMAT_VERSION:
        raise CorruptSnapshot(f"it is no file of RocksDB of format version {FORMAT_VERSION}")
    _, at = _place(data, len(data) - _FOOTER + 1)
    return _place(data, at)[0]


def _place(data: bytes, at: int) -> tuple[Place, int]:
    """A place, and where it ends."""
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _block(data: bytes, place: Place) -> bytes:
    offset, size = place
    if data[offset + size] != _UNCOMPRESSED:
        raise CorruptSnapshot("its blocks are compressed, and cannot be read here")
    return data[offset : offset + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values, in the order of the file."""
    (restarts,) = _NUMBER.unpack(block[-_NUMBER.size :])
    end = len(block) - _NUMBER.size * (restarts + 1)
    at, key = 0, b""
    while at < end:
        shared, at = _varint(block, at)
        added, at = _varint(block, at)
        size, at = _varint(block, at)
        key = key[:shared] + block[at : at + added]
        at += added
        yield key, block[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the lowest first, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
