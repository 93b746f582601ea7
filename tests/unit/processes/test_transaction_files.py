"""Files as the external store: renames that race, logs that end where a fence says, what Spark reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    Append,
    Begin,
    Commit,
    Finalise,
    Flush,
    NoAnswer,
    PreCommit,
    Upsert,
    Write,
)
from cutproof.reference_impl.processes.transaction_folders import decoded, encoded
from unit.processes.stores import ROWS, Asker, Processes, denied, done


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes("files", tmp_path / "store")
    yield processes
    processes.close()


@pytest.fixture
def sink(world: Processes) -> Asker:
    return world.process()


def when_first_renamed(monkeypatch: pytest.MonkeyPatch, suffix: str, act: Callable[[], object]) -> None:
    """Do something just before the first rename of a path that ends so."""
    real = Path.rename
    is_done: list[bool] = []

    def rename(path: Path, target: Path) -> Path:
        if path.name.endswith(suffix) and not is_done:
            is_done.append(True)
            act()
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)


def test_committed_files_are_json_lines_with_a_name_that_any_reader_takes(world: Processes, sink: Asker) -> None:
    sink.sealed("job-1/sink-0/1-1")
    done(sink(Commit, "job-1/sink-0/1-1"))
    (path,) = (world.folder / "committed").iterdir()
    assert path.name == "txn-job-1+2Fsink-0+2F1-1.jsonl"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"key": 1, "value": 10, "tag": 100, "tag2": 0},
        {"key": None, "value": 20, "tag": 200, "tag2": 0},
    ]


def test_a_fence_amid_a_pre_commit_leaves_an_open_transaction(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.written("a")
    successor = world.process()
    arrived: list[object] = []
    when_first_renamed(monkeypatch, ".open", lambda: arrived.append(successor.fenced(2)))
    assert "fenced" in denied(sink(PreCommit, "a", checkpoint=1))
    assert arrived == [(("a", None),)]
    denied(successor(Commit, "a", attempt=2))
    done(successor(AbortTransaction, "a", attempt=2))
    assert (world.rows(), world.unfinished()) == ([], [])


def test_a_fence_amid_a_commit_takes_the_transaction_over(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.sealed("a", checkpoint=3)
    successor = world.process()
    arrived: list[object] = []
    when_first_renamed(monkeypatch, ".sealed", lambda: arrived.append(successor.fenced(2)))
    assert "fenced" in denied(sink(Commit, "a"))
    assert (arrived, world.rows()) == ([(("a", 3),)], [])
    done(successor(Commit, "a", attempt=2))
    assert world.reader.seen() == ["a"]


def test_a_fence_amid_a_committers_commit_takes_it_over_and_the_commit_finds_it_there(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A committer is not shut out by its writer's next attempt: what it commits is complete, whoever holds it."""
    sink.sealed("job-1/sink-0/1-1", checkpoint=3)
    arrived: list[object] = []
    when_first_renamed(monkeypatch, ".sealed", lambda: arrived.append(world.process().fenced(2)))
    done(world.process()(Commit, "job-1/sink-0/1-1", writer="committer-0"))
    assert arrived == [(("job-1/sink-0/1-1", 3),)]
    assert (world.reader.seen(), world.unfinished()) == (["job-1/sink-0/1-1"], [])


def test_by_its_id_a_commit_takes_what_an_older_attempt_had_open(world: Processes, sink: Asker) -> None:
    sink.written("job-1/sink-0/id-0#1-1")
    successor = world.process()
    assert successor.fenced(2) == (("job-1/sink-0/id-0#1-1", None),)
    denied(successor(Commit, "job-1/sink-0/id-0#1-0", attempt=2))
    done(successor(Commit, "job-1/sink-0/id-0#1-0", attempt=2, by_id=True))
    assert world.reader.seen() == ["job-1/sink-0/id-0#1-1"]


def test_a_version_that_was_not_finished_is_none(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    done(sink(Finalise, "a"))
    (world.folder / "versions" / "half.draft").write_text('{"checkpoint": 1, "na')
    assert (world.rows(), world.unfinished()) == ([], [("a", "prepared", 1)])


def test_a_pre_commit_under_way_in_a_folder_that_was_just_retired_is_found(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zombie's call had found its folder before it was retired: it works there."""
    sink.written("a")
    retired = world.folder / "retired" / "sink-0"

    def seal_in_the_retired_folder() -> None:
        (path,) = retired.glob("*/*.open")
        os.rename(path, path.with_name(f"{path.stem}@5.sealed"))

    when_first_renamed(monkeypatch, ".open", seal_in_the_retired_folder)
    assert world.process().fenced(2) == (("a", 5),)


def test_a_fence_that_died_half_way_is_finished_by_the_next(world: Processes, sink: Asker) -> None:
    sink.sealed("a", checkpoint=1)
    done(sink(Append, row=(5, 5, 5, 5)))
    (folder,) = (world.folder / "live" / "sink-0").iterdir()
    (world.folder / "fences" / "sink-0" / "2").mkdir(parents=True)
    retired = world.folder / "retired" / "sink-0"
    retired.mkdir()
    folder.rename(retired / folder.name)
    assert "fenced" in denied(sink(Append, row=(6, 6, 6, 6)))
    assert world.process().fenced(3) == (("a", 1),)
    assert world.rows() == [(5, 5, 5, 5)]


@pytest.mark.parametrize("kind", ["appended.log", "upserted.log"])
def test_what_a_zombie_still_writes_into_its_log_does_not_count(world: Processes, sink: Asker, kind: str) -> None:
    done(sink(Append, row=(5, 5, 5, 5)))
    done(sink(Upsert, identity=(5,), row=(5, 5, 5, 5)))
    (log,) = world.folder.glob(f"live/sink-0/*/{kind}")
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    world.process().fenced(2)
    os.write(handle, log_line(identity=[5]))
    os.close(handle)
    world.process().fenced(3)
    assert (world.rows(), world.table()) == ([(5, 5, 5, 5)], {(5,): (5, 5, 5, 5)})


def log_line(**more: object) -> bytes:
    return json.dumps({"key": 9, "value": 9, "tag": 9, "tag2": 9, "at": 2**62, **more}).encode() + b"\n"


def test_a_line_that_was_torn_off_is_not_a_row(world: Processes, sink: Asker) -> None:
    done(sink(Append, row=(5, 5, 5, 5)))
    (log,) = world.folder.glob("live/sink-0/*/appended.log")
    with log.open("ab") as torn:
        torn.write(log_line()[:-5])
    assert world.rows() == [(5, 5, 5, 5)]


def test_two_processes_of_one_attempt_finish_each_others_transactions(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    sink.sealed("b", checkpoint=2)
    other = world.process()
    assert other.fenced(1) == (("a", 1), ("b", 2))
    done(other(Commit, "a"))
    done(sink(Commit, "a"))
    done(other(AbortTransaction, "b"))
    denied(sink(Commit, "b"))
    assert world.reader.seen() == ["a"]


def test_a_disk_that_reports_an_error_is_no_answer_and_the_transaction_is_lost(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(sink(Begin, "a"))

    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        outcome = sink(Write, "a", rows=ROWS)
    assert isinstance(outcome, NoAnswer)
    assert "No space left" in outcome.reason
    denied(sink(PreCommit, "a", checkpoint=1))
    assert world.unfinished() == []


def test_plain_rows_of_several_writers_come_in_the_order_written(world: Processes, sink: Asker) -> None:
    other = world.process()
    rows = [(number, 0, 0, 0) for number in range(6)]
    for row in rows:
        asker, writer = ((sink, "sink-0"), (other, "sink-1"))[row[0] % 2]
        done(asker(Append, row=row, writer=writer))
        done(asker(Flush, writer=writer))
    assert world.rows() == rows


def test_purge_leaves_nothing_and_zombies_find_no_folder(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    sink.written("b")
    world.reader.purge()
    assert not world.folder.exists()
    denied(sink(PreCommit, "b", checkpoint=1))
    assert "has been removed" in denied(sink(Commit, "a"))
    assert "has been removed" in denied(world.process()(Begin, "c", attempt=2))
    assert not world.folder.exists()


def test_a_handle_is_closed_when_its_transaction_ends(world: Processes, sink: Asker) -> None:
    def held() -> list[str]:
        links = [os.path.join("/dev/fd", number) for number in os.listdir("/dev/fd")]
        return [link for link in links if os.path.lexists(link) and str(world.folder) in os.path.realpath(link)]

    for number, end in enumerate((Commit, AbortTransaction)):
        sink.sealed(f"sealed-{number}")
        sink.written(f"open-{number}")
        done(sink(end, f"open-{number}"))
    sink.written("left")
    done(sink(Append, row=(1, 1, 1, 1)))
    world.process().fenced(2)
    denied(sink(Commit, "left"))
    assert held() == []


@pytest.mark.parametrize("name", ["job-1/sink-0/1-1", "a+b%2F@3.open", "é ~", "a.sealed"])
def test_a_name_reads_back_from_its_path(name: str) -> None:
    assert decoded(encoded(name)) == name
    assert not set("/%@ ") & set(encoded(name))
