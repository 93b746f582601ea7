"""Files of RocksDB, as far as nothing but their bytes is needed."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from cutproof.reference_impl.core.backends.sst_files import pairs_of
from cutproof.reference_impl.core.backends.stored import read_snapshot
from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.core.vocabulary.formats import INCREMENTAL, SST, Filed, StateFile, encode_manifest
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.core.vocabulary.state import TaskState

FILE = (Path(__file__).parent / "000008.sst").read_bytes()
"""What RocksDB made of the keys k00 to k99 with the values v0 to v99, and of the deletion of k07."""
NAME = Handle("job-1/chk-1/count-0-1.count-0-1-0")
HANDLE = Handle("job-1/chk-1/count-0-1")


def manifest(data: bytes) -> bytes:
    file = StateFile(NAME, SST, len(data), zlib.crc32(data))
    return encode_manifest(TaskState(), Filed(format=INCREMENTAL, files=(file,), layout="single"))


def test_a_file_of_rocksdb_is_read_without_rocksdb() -> None:
    expected: dict[bytes, bytes | None] = {b"k%02d" % number: b"v%d" % number for number in range(100)}
    expected[b"k07"] = None
    assert pairs_of(FILE) == expected


@pytest.mark.parametrize("size", [0, 5, 60, len(FILE) // 2, len(FILE) - 1])
def test_a_part_of_one_is_refused(size: int) -> None:
    with pytest.raises(CorruptSnapshot):
        pairs_of(FILE[:size])


@pytest.mark.parametrize(
    ("at", "byte", "why"),
    [(len(FILE) - 12, 5, "format version 2"), (len(FILE) - 1, 0, "format version 2"), (0, 200, "no whole file")],
)
def test_another_version_and_other_bytes_are_refused(at: int, byte: int, why: str) -> None:
    with pytest.raises(CorruptSnapshot, match=why):
        pairs_of(FILE[:at] + bytes([byte]) + FILE[at + 1 :])


@pytest.mark.parametrize("stored", [FILE[: len(FILE) // 2], FILE[:100] + b"?" + FILE[101:], b""])
def test_a_torn_or_altered_one_is_named_by_its_checksum(stored: bytes) -> None:
    contents = {HANDLE: manifest(FILE), NAME: stored}
    with pytest.raises(
        CorruptSnapshot, match=f"{NAME}, to which {HANDLE} refers: its checksum does not fit its content"
    ):
        read_snapshot(HANDLE, contents.get)


def test_one_that_is_missing_is_named() -> None:
    with pytest.raises(CorruptSnapshot, match=f"{NAME}, to which {HANDLE} refers, is not in the store"):
        read_snapshot(HANDLE, {HANDLE: manifest(FILE)}.get)
