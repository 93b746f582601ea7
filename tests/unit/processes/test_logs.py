"""Logs of persistent channels on disk: one writer, readers and a deleter in other processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.core.vocabulary.messages import Element, EndOfData, Record, Watermark
from cutproof.reference_impl.core.vocabulary.state import Ref
from cutproof.reference_impl.processes.disk import logs
from cutproof.reference_impl.processes.disk.logs import DiskLogs

LOG = "job-1/log/count-0-2/1"
BOTH = pytest.mark.parametrize("whole_files", [False, True])


def numbers(store: DiskLogs) -> list[int]:
    return [number for number, _ in store.read(Ref(LOG, 0, 100))]


def flushed(store: DiskLogs, *parts: range) -> DiskLogs:
    for part in parts:
        for number in part:
            store.append(LOG, number, Watermark(number))
        store.finish(LOG, store.begin(LOG))
    return store


@BOTH
def test_another_process_reads_what_was_flushed(tmp_path: Path, whole_files: bool) -> None:
    store = DiskLogs(tmp_path, whole_files=whole_files)
    elements: list[Element] = [Record(1, None, 2, 3, 4, 5), Watermark(6), EndOfData()]
    for number, element in enumerate(elements):
        store.append(LOG, number, element)
    store.finish(LOG, store.begin(LOG))
    other = DiskLogs(tmp_path, whole_files=whole_files)
    assert other.read(Ref(LOG, 1, 3)) == [(1, Watermark(6)), (2, EndOfData())]
    assert other.read(Ref(LOG, 0, 1)) == [(0, elements[0])]
    assert other.names() == [LOG]


@BOTH
def test_its_writer_counts_on_what_is_synced_alone(tmp_path: Path, whole_files: bool) -> None:
    store = flushed(DiskLogs(tmp_path, whole_files=whole_files), range(2))
    store.append(LOG, 2, Watermark(2))
    mark = store.begin(LOG)
    assert numbers(store) == [0, 1]
    store.finish(LOG, mark)
    assert numbers(store) == [0, 1, 2]


@BOTH
def test_half_of_what_was_being_flushed_is_nothing_to_a_reader(tmp_path: Path, whole_files: bool) -> None:
    store = flushed(DiskLogs(tmp_path, whole_files=whole_files), range(2))
    store.append(LOG, 2, Watermark(2))
    store.tear(LOG, store.begin(LOG))
    store.lose(LOG)
    other = DiskLogs(tmp_path, whole_files=whole_files)
    assert numbers(other) == [0, 1]
    assert sum(file.stat().st_size for file in (other.root / LOG).iterdir()) > _size(tmp_path / "whole")


def _size(root: Path) -> int:
    """Of the two elements that were flushed."""
    store = flushed(DiskLogs(root, whole_files=False), range(2))
    return sum(file.stat().st_size for file in (store.root / LOG).iterdir())


@BOTH
def test_files_are_deleted_as_a_whole_once_nothing_in_them_is_needed(
    tmp_path: Path, whole_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LONG", 1)
    store = flushed(DiskLogs(tmp_path, whole_files=whole_files), range(3), range(3, 6))
    assert (store.trim(LOG, 2), numbers(store)) == (0, [0, 1, 2, 3, 4, 5])
    assert (store.trim(LOG, 5), numbers(store)) == (3, [3, 4, 5])
    flushed(store, range(6, 8))
    assert (store.trim(LOG, 7), numbers(store)) == (6, [6, 7])


def test_a_log_goes_on_in_one_file_until_that_is_long(tmp_path: Path) -> None:
    store = flushed(DiskLogs(tmp_path, whole_files=False), range(2), range(2, 4))
    assert len(list((tmp_path / "logs" / LOG).iterdir())) == 1
    assert store.trim(LOG, 4) == 0


@BOTH
def test_whoever_writes_a_deleted_log_writes_into_nothing(tmp_path: Path, whole_files: bool) -> None:
    store = flushed(DiskLogs(tmp_path, whole_files=whole_files), range(2))
    DiskLogs(tmp_path, whole_files=whole_files).delete(LOG)
    flushed(store, range(2, 4), range(4, 5))
    assert store.trim(LOG, 9) in (0, 2, 5)
    assert store.names() == []
    assert DiskLogs(tmp_path, whole_files=whole_files).read(Ref(LOG, 0, 9)) == []


def test_a_torn_end_is_left_out_and_an_altered_frame_is_reported(tmp_path: Path) -> None:
    flushed(DiskLogs(tmp_path, whole_files=False), range(2), range(2, 4)).lose(LOG)
    (path,) = (tmp_path / "logs" / LOG).iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert numbers(DiskLogs(tmp_path, whole_files=False)) == [0, 1]
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CorruptSnapshot, match="altered"):
        numbers(DiskLogs(tmp_path, whole_files=False))


@BOTH
def test_what_was_not_written_is_lost_with_its_writer(tmp_path: Path, whole_files: bool) -> None:
    store = flushed(DiskLogs(tmp_path, whole_files=whole_files), range(2))
    store.append(LOG, 2, Watermark(2))
    store.lose(LOG)
    assert numbers(store) == [0, 1]


# -- one attempt of a task after the other -----------------------------------------------------------


def taken_over(tmp_path: Path, whole_files: bool, arrived: list[int]) -> tuple[DiskLogs, dict[int, Element]]:
    store = DiskLogs(tmp_path, whole_files=whole_files)
    return store, store.take_over(LOG, arrived.append, lambda: False)


@BOTH
def test_another_attempt_finds_what_was_written_and_goes_on(tmp_path: Path, whole_files: bool) -> None:
    flushed(DiskLogs(tmp_path, whole_files=whole_files), range(2), range(2, 4))
    arrived: list[int] = []
    store, found = taken_over(tmp_path, whole_files, arrived)
    assert found == {number: Watermark(number) for number in range(4)}
    flushed(store, range(4, 6))
    assert arrived == [6]
    assert numbers(store) == list(range(6))
    assert numbers(DiskLogs(tmp_path, whole_files=whole_files)) == list(range(6))


@BOTH
def test_it_writes_into_no_file_of_another(tmp_path: Path, whole_files: bool) -> None:
    """Both write what has the same number, the zombie and the one in its place: it is the same."""
    zombie = flushed(DiskLogs(tmp_path, whole_files=whole_files), range(2))
    store, _ = taken_over(tmp_path, whole_files, [])
    flushed(zombie, range(2, 4))
    flushed(store, range(2, 3))
    flushed(zombie, range(4, 5))
    flushed(store, range(3, 6))
    assert numbers(store) == list(range(6))


def test_a_torn_end_of_the_one_before_is_left_out(tmp_path: Path) -> None:
    before = flushed(DiskLogs(tmp_path, whole_files=False), range(2))
    before.append(LOG, 2, Watermark(2))
    before.tear(LOG, before.begin(LOG))
    store, found = taken_over(tmp_path, False, [])
    assert sorted(found) == [0, 1]
    flushed(store, range(2, 4))
    assert numbers(DiskLogs(tmp_path, whole_files=False)) == [0, 1, 2, 3]


def test_it_trims_what_the_one_before_wrote(tmp_path: Path) -> None:
    flushed(DiskLogs(tmp_path, whole_files=True), range(3), range(3, 6))
    store, _ = taken_over(tmp_path, True, [])
    assert store.trim(LOG, 4) == 3
    assert numbers(store) == [3, 4, 5]


def test_who_is_fenced_does_not_make_a_deleted_log_again(tmp_path: Path) -> None:
    store = DiskLogs(tmp_path, whole_files=False)
    store.take_over(LOG, lambda end: None, lambda: True)
    flushed(store, range(2))
    assert store.names() == []
