"""The bytes of snapshots in each format: there and back, and what is torn, altered, missing or too new is found and
named.  Files of version 1 are kept in `snapshots/`, as the engine wrote them before the first line was introduced; from
the whole stores beside them jobs begin in the tests of the snapshots' tool."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.reference_impl.core.backends.stored import read_snapshot
from cutproof.reference_impl.core.decisions.snapshots.increments import Increments
from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.core.vocabulary.formats import (
    CANONICAL,
    Edit,
    Filed,
    KeyedEdit,
    NewFile,
    decode,
    encode,
    encode_manifest,
    file_of,
    text,
    text_of,
)
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.views import Entry

OLD = sorted((Path(__file__).parent / "snapshots").glob("version-1-*.snapshot"))
STATE = TaskState(positions={0: 7}, entries=[(0, None, 3, 4)], transactions=[("t", 5)])
BODY = b'{"positions":{"0":7},"entries":[[0,null,3,4]],"transactions":[["t",5]]}'
HANDLE = Handle("job-1/chk-2/count-0-1")

entries = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)), max_size=12)


def stored(*lists: list[Entry]) -> tuple[dict[Handle, bytes], list[NewFile]]:
    """The files of a chain whose snapshots have these entries, and the manifest of the last one."""
    files: list[NewFile] = []
    before: list[Entry] = []
    for number, now in enumerate(lists):
        edit = Increments().edit(before, now)
        files.append(file_of(Handle(f"job-1/chk-{number}/count-0-1.entries-{number}"), KeyedEdit(entries=edit)))
        before = now
    filed = Filed(format="incremental", files=tuple(one.file for one in files), new=tuple(files[-1:]))
    manifest = encode_manifest(TaskState(positions={0: 7}), filed)
    return {HANDLE: manifest, **{one.file.name: one.data for one in files}}, files


# -- canonical -----------------------------------------------------------------------


def test_the_layout_is_as_documented() -> None:
    """A line in ASCII, then JSON: readable without anything of the writer."""
    front = b"cutproof-snapshot/2 canonical "
    data = encode(STATE)
    assert data == front + b"%08x\n" % zlib.crc32(front + BODY) + BODY
    assert text_of(data) == text(STATE) == BODY.decode()
    assert msgspec.json.decode(BODY)["positions"] == {"0": 7}


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_version_1_is_still_read(path: Path) -> None:
    data = path.read_bytes()
    assert data[:9] == b"%08x " % zlib.crc32(data[9:])
    assert text(decode(data)).encode() == data[9:]


def test_there_are_old_snapshots_of_several_kinds_of_tasks() -> None:
    assert len(OLD) >= 7
    assert {field for path in OLD for field in msgspec.json.decode(path.read_bytes()[9:])} > {"entries", "positions"}


def test_a_newer_version_is_refused_by_its_number() -> None:
    data = encode(STATE).replace(b"snapshot/2", b"snapshot/3")
    with pytest.raises(CorruptSnapshot, match="version 3 of the format"):
        decode(data)


def test_the_kind_is_under_the_checksum() -> None:
    with pytest.raises(CorruptSnapshot, match="checksum"):
        decode(encode(STATE).replace(b"canonical", b"native"))


def test_a_right_checksum_over_something_else_is_found() -> None:
    body = b'{"positions":"everywhere"}'
    with pytest.raises(CorruptSnapshot, match="positions"):
        decode(f"{zlib.crc32(body):08x} ".encode() + body)
    body = b'{"positions":{"0":7},"later":[1]}'
    with pytest.raises(CorruptSnapshot, match="unknown field `later`"):
        decode(f"{zlib.crc32(body):08x} ".encode() + body)
    front = b"cutproof-snapshot/2 picture "
    with pytest.raises(CorruptSnapshot, match="it is no snapshot but picture"):
        decode(front + b"%08x\n" % zlib.crc32(front + body) + body)


# -- manifests and their files -------------------------------------------------------


@settings(max_examples=200)
@given(st.lists(entries, min_size=1, max_size=5))
def test_a_chain_gives_the_entries_of_its_last_snapshot_in_their_order(lists: list[list[Entry]]) -> None:
    content, files = stored(*lists)
    loaded = read_snapshot(HANDLE, content.get)
    assert loaded.state == TaskState(positions={0: 7}, entries=lists[-1])
    assert loaded.files == tuple(one.file for one in files)


@settings(max_examples=200)
@given(entries, entries)
def test_an_edit_holds_no_more_than_what_is_new(before: list[Entry], now: list[Entry]) -> None:
    edit = Increments().edit(before, now)
    assert edit.apply(before) == now
    assert len(edit.added) - len(edit.removed) == len(now) - len(before)
    assert Increments().edit(now, now) == Edit()


def test_an_edit_of_one_changed_entry_is_small() -> None:
    before: list[Entry] = [(0, key, 1, 0) for key in range(1000)]
    now: list[Entry] = [*before[:500], (0, 500, 2, 0), *before[501:], (0, 1000, 1, 0)]
    assert Increments().edit(before, now) == Edit(
        added=[(0, 500, 2, 0), (0, 1000, 1, 0)], removed=[500], placed=[500, 1000]
    )


def test_an_edit_that_was_made_for_another_list_is_found() -> None:
    with pytest.raises(CorruptSnapshot, match="removes what is not there"):
        Edit(removed=[3]).apply([(0, 1, 1, 1)])
    with pytest.raises(CorruptSnapshot, match="behind the end"):
        Edit(added=[(0, 1, 1, 1)], placed=[2]).apply([(0, 1, 1, 1)])


CHAIN: tuple[list[Entry], ...] = ([(0, 1, 1, 0), (0, 2, 1, 0)], [(0, 1, 2, 0), (0, 2, 1, 0)], [(0, 1, 2, 0)])


@pytest.mark.parametrize("number", range(3))
def test_a_missing_file_of_the_chain_is_named(number: int) -> None:
    content, files = stored(*CHAIN)
    name = files[number].file.name
    del content[name]
    with pytest.raises(CorruptSnapshot, match=f"{name}, to which {HANDLE} refers, is not in the store"):
        read_snapshot(HANDLE, content.get)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[: len(data) // 2], "checksum"),
        (lambda data: data.replace(b"[0,1,", b"[0,7,").replace(b'"removed":[1]', b'"removed":[0]'), "checksum"),
        (
            lambda data: file_of(Handle("x"), KeyedEdit(entries=Edit(added=[(0, 9, 9, 9)]))).data,
            "not the file that was stored",
        ),
    ],
    ids=["torn", "altered", "another"],
)
def test_a_file_of_the_chain_that_is_not_the_stored_one_is_named(number: int, change: object, reason: str) -> None:
    content, files = stored(*CHAIN)
    name = files[number].file.name
    content[name] = change(content[name])  # type: ignore[operator]
    with pytest.raises(CorruptSnapshot, match=f"{name}, to which {HANDLE} refers: .*{reason}"):
        read_snapshot(HANDLE, content.get)


def test_a_manifest_is_no_canonical_snapshot() -> None:
    content, _ = stored(*CHAIN)
    with pytest.raises(CorruptSnapshot, match="it is a manifest"):
        decode(content[HANDLE])
    assert read_snapshot(HANDLE, {HANDLE: encode(STATE)}.get).state == STATE
    assert CANONICAL == "canonical"
