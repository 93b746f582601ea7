"""Determinants on disk: found by the next attempt, and fenced off from the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.reference_impl.core.decisions.local_recovery import End
from cutproof.reference_impl.core.extensions.local_recovery import LogPlace
from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.processes.disk import determinants as determinants
from cutproof.reference_impl.processes.disk.determinants import DiskDeterminants

HERE = LogPlace(determinants=2, taken=(1, 1), sent=(4,), ended=((0, End.DATA),))
BEGIN = LogPlace(determinants=0, taken=(), sent=())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "job-1" / "log" / "join-0-1" / "order"


def attempt(folder: Path, number: int) -> DiskDeterminants:
    """The first came up with all others, later ones alone."""
    return DiskDeterminants(folder, folder.parents[4], AttemptId(number), returns=number > 1)


def writing(folder: Path, *taken: tuple[int, int], number: int = 1) -> DiskDeterminants:
    order = attempt(folder, number)
    for determinant in taken:
        order.take_down(determinant)
    order.write()
    return order


def taken(order: DiskDeterminants) -> tuple[tuple[int, int], ...]:
    """All that there is of the order."""
    return order.determinants


def test_the_next_attempt_finds_what_was_written(folder: Path) -> None:
    first = writing(folder, (0, 0), (1, 0))
    first.mark(CheckpointId(3), HERE)
    first.began_with(1, 7)
    first.take_down((1, 1))
    first.write()
    second = attempt(folder, 2)
    assert taken(second) == ((0, 0), (1, 0), (1, 1))
    assert second.durable == second.end == 3
    assert second.place(CheckpointId(3)) == HERE
    assert second.restored == {1: 7}


def test_what_was_not_written_is_lost(folder: Path) -> None:
    first = writing(folder, (0, 0))
    first.take_down((1, 0))
    assert taken(attempt(folder, 2)) == ((0, 0),)


def test_a_place_is_there_at_once_with_what_was_taken_before_it(folder: Path) -> None:
    first = attempt(folder, 1)
    first.take_down((0, 0))
    first.take_down((1, 0))
    first.mark(CheckpointId(3), HERE)
    assert first.durable == 0, "what depends on it waits for its own flush"
    second = attempt(folder, 2)
    assert second.before(HERE) == 2
    assert taken(second) == ((0, 0), (1, 0))


def test_only_until_another_has_its_place_may_anything_follow(folder: Path) -> None:
    first = writing(folder, (0, 0))
    assert first.settle(1)
    assert first.durable == 1
    second = attempt(folder, 2)
    first.take_down((1, 0))
    first.write()
    assert not first.settle(2)
    assert first.durable == 1
    assert taken(second) == ((0, 0),)
    second.take_down((0, 1))
    second.write()
    assert second.settle(2)


def test_what_a_zombie_still_writes_nobody_reads(folder: Path) -> None:
    first = writing(folder, (0, 0))
    second = writing(folder, (0, 1), number=2)
    first.take_down((1, 0))
    first.write()
    assert second.settle(2)
    assert taken(attempt(folder, 3)) == ((0, 0), (0, 1))


def test_the_third_finds_the_first_where_the_second_died_as_it_came_up(folder: Path) -> None:
    first = writing(folder, (0, 0))
    (folder / "00000002").touch()  # its fence, and no more
    assert first.is_fenced
    assert taken(attempt(folder, 3)) == ((0, 0),)


def test_half_a_write_counts_for_nothing(folder: Path) -> None:
    writing(folder, (0, 0))
    order = writing(folder, (1, 0), number=2)
    assert order.end == 2
    path = next(folder.glob("00000002.*"))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    assert taken(attempt(folder, 3)) == ((0, 0),)


def test_what_is_altered_is_reported(folder: Path) -> None:
    writing(folder, (0, 0))
    path = next(folder.glob("00000001.*"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptSnapshot, match="determinant log"):
        attempt(folder, 2)


def test_a_long_file_is_rewritten_without_what_is_needed_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinants, "REWRITTEN_BEHIND", 100)
    order = attempt(folder, 1)
    for number in range(60):
        order.take_down((0, number))
    order.mark(CheckpointId(4), LogPlace(determinants=50, taken=(50,), sent=(0,)))
    order.write()
    order.trim(CheckpointId(4))
    assert [path.name for path in folder.glob("00000001.*")] == ["00000001.0002"]
    order.take_down((0, 60))
    order.write()
    later = attempt(folder, 2)
    assert taken(later)[later.before(later.place(CheckpointId(4))) :] == tuple((0, number) for number in range(50, 61))
    assert later.end == 61


def test_whoever_writes_when_the_folder_was_deleted_writes_into_nothing(folder: Path) -> None:
    order = writing(folder, (0, 0))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    order.take_down((0, 1))
    order.write()
    order.mark(CheckpointId(3), HERE)
    assert not order.settle(2)
    order.trim(CheckpointId(3))
    assert not folder.exists()


def test_whoever_comes_up_when_the_folder_was_deleted_has_come_too_late(folder: Path) -> None:
    order = attempt(folder, 2)
    assert order.is_fenced
    assert not folder.exists()


def test_an_attempt_comes_up_once(folder: Path) -> None:
    writing(folder, (0, 0))
    second = writing(folder, (0, 1), number=2)
    again = attempt(folder, 2)
    assert again.is_fenced
    again.take_down((7, 7))
    again.write()
    assert not again.settle(1)
    assert second.settle(2)
    assert taken(attempt(folder, 3)) == ((0, 0), (0, 1))


def test_a_file_that_is_rewritten_as_it_is_looked_for_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinants, "REWRITTEN_BEHIND", 0)
    zombie = writing(folder, (0, 0))
    zombie.mark(CheckpointId(3), BEGIN)
    sync = determinants.sync

    def late(path: Path) -> None:
        if path.name == "00000001.0001":
            monkeypatch.setattr(determinants, "sync", sync)
            monkeypatch.setattr(DiskDeterminants, "is_fenced", False)  # the zombie had looked for fences just before
            zombie.trim(CheckpointId(3))
            assert not path.exists()
        sync(path)

    monkeypatch.setattr(determinants, "sync", late)
    assert taken(attempt(folder, 2)) == ((0, 0),)


def test_it_is_not_looked_for_without_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing(folder, (0, 0))

    def never(path: Path) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(determinants, "sync", never)
    with pytest.raises(CorruptSnapshot, match="again and again"):
        attempt(folder, 2)
