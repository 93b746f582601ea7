"""The simulated store of logs: what is durable, what is lost, what is discarded."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.vocabulary.messages import Watermark
from cutproof.reference_impl.core.vocabulary.state import Ref
from cutproof.reference_impl.simulated.logs import LogShelf

BOTH = pytest.mark.parametrize("whole_files", [False, True])


def numbers(shelf: LogShelf, log: str = "log", end: int = 10) -> list[int]:
    return [number for number, _ in shelf.read(Ref(log, 0, end))]


def flushed(shelf: LogShelf, *parts: range) -> LogShelf:
    for part in parts:
        for number in part:
            shelf.append("log", number, Watermark(number))
        shelf.finish("log", shelf.begin("log"))
    return shelf


@BOTH
def test_only_what_was_appended_before_a_flush_began_is_durable_when_it_is_done(whole_files: bool) -> None:
    shelf = LogShelf(whole_files=whole_files)
    shelf.append("log", 0, Watermark(0))
    mark = shelf.begin("log")
    shelf.append("log", 1, Watermark(1))
    assert numbers(shelf) == []
    shelf.finish("log", mark)
    assert shelf.read(Ref("log", 0, 9)) == [(0, Watermark(0))]


@BOTH
def test_a_writer_that_has_ended_takes_along_what_was_not_flushed(whole_files: bool) -> None:
    shelf = flushed(LogShelf(whole_files=whole_files), range(2))
    shelf.append("log", 2, Watermark(2))
    mark = shelf.begin("log")
    shelf.append("log", 3, Watermark(3))
    shelf.append("other", 0, Watermark(0))
    shelf.lose("log")
    shelf.lose("other")
    shelf.finish("log", mark)
    assert numbers(shelf) == [0, 1]
    assert shelf.names() == ["log"]


def test_a_log_is_trimmed_by_element_and_files_as_a_whole() -> None:
    parts = (range(3), range(3, 6))
    log, files = (flushed(LogShelf(whole_files=whole), *parts) for whole in (False, True))
    assert (log.trim("log", 5), numbers(log)) == (5, [5])
    assert (files.trim("log", 2), numbers(files)) == (0, [0, 1, 2, 3, 4, 5])
    assert (files.trim("log", 5), numbers(files)) == (3, [3, 4, 5])
    assert log.trim("log", 5) == 0  # nothing of it was left


@BOTH
def test_whoever_writes_a_deleted_log_writes_into_nothing(whole_files: bool) -> None:
    shelf = flushed(LogShelf(whole_files=whole_files), range(2))
    shelf.delete("log")
    flushed(shelf, range(2, 4))
    assert shelf.names() == []
    assert numbers(shelf) == []
