"""SQLite as the external store: processes killed or stopped in the middle, and fences that wait for the lock."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    Append,
    BeginTransaction,
    Commit,
    Done,
    Fence,
    Finalise,
    Flush,
    NoAnswer,
    Outcome,
    PreCommit,
    Publish,
    Upsert,
    Write,
)
from cutproof.reference_impl.processes.stores import sqlite_store
from cutproof.reference_impl.processes.stores.readers import Unreachable
from cutproof.reference_impl.processes.stores.sinks import visible_transactions
from cutproof.reference_impl.processes.stores.sqlite_reader import file_of
from unit.processes.disks import die, end, forked
from unit.processes.stores import ROWS, WITHIN_S, Asker, Processes, denied, done

KILLS = 20
"""How often a writer is killed at a moment of the machine's choice."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes("sqlite", tmp_path / "store")
    yield processes
    processes.close()


@pytest.fixture
def sink(world: Processes) -> Asker:
    return world.process()


def unanswered(outcome: Outcome) -> str:
    assert isinstance(outcome, NoAnswer), outcome
    return outcome.reason


def amid(monkeypatch: pytest.MonkeyPatch, kind: type, act: Callable[[], object]) -> None:
    """Do something when the first request of a kind has done its work, and not ended its transaction of SQLite."""
    real = sqlite_store.ACTIONS[kind]

    def acting(*arguments: Any) -> Outcome:
        outcome = real(*arguments)
        monkeypatch.setitem(sqlite_store.ACTIONS, kind, real)
        act()
        return outcome

    monkeypatch.setitem(sqlite_store.ACTIONS, kind, acting)


def test_an_error_that_comes_again_is_no_silence(sink: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gets no answer asks again, for ever."""

    def misuse() -> None:
        raise sqlite3.IntegrityError("UNIQUE constraint failed")

    sink.sealed("a")
    amid(monkeypatch, Commit, misuse)

    assert "UNIQUE constraint failed" in denied(sink(Commit, "a"))
    done(sink(Commit, "a"))


# -- seen by another program --------------------------------------------------------------------------


def test_another_program_sees_what_is_visible_and_each_name_as_it_is(world: Processes, sink: Asker) -> None:
    names = ("job-1/sink-0/1-1", "a+b%2F@3.open", "é ~'\"; --")
    for name in names:
        sink.sealed(name)
        done(sink(Commit, name))
    sink.sealed("sealed")
    sink.sealed("job-1/operator-0/1-1", writer="operator-0")
    done(sink(Commit, "job-1/operator-0/1-1", writer="operator-0"))
    done(sink(Append, row=(5, 5, 5, 5)))
    other = sqlite3.connect(f"{file_of(world.folder).as_uri()}?mode=ro", uri=True)
    seen = other.execute("SELECT * FROM visible").fetchall()
    other.close()
    assert seen == [(None, 5, 5, 5, 5), *((name, *row) for name in names for row in ROWS)]


def test_transactions_show_in_the_order_in_which_they_became_visible(world: Processes, sink: Asker) -> None:
    for number, name in enumerate(("a", "b", "c", "d"), 1):
        sink.sealed(name, (number, 0, 0, 0), checkpoint=number)
    done(sink(Finalise, "a"))
    done(sink(Commit, "c"))
    done(sink(Publish, checkpoint=1, names=("a",)))
    done(sink(Commit, "b"))
    assert world.reader.seen() == ["c", "a", "b"]
    assert [row[0] for row in world.rows()] == [3, 1, 2]


def test_plain_rows_of_several_writers_come_in_the_order_written(world: Processes, sink: Asker) -> None:
    other = world.process()
    rows = [(number, 0, 0, 0) for number in range(6)]
    for row in rows:
        asker, writer = ((sink, "sink-0"), (other, "sink-1"))[row[0] % 2]
        done(asker(Append, row=row, writer=writer))
        done(asker(Flush, writer=writer))
    assert world.rows() == rows


def test_a_value_beyond_64_bits_is_denied_and_changes_nothing(world: Processes, sink: Asker) -> None:
    ends = (2**63 - 1, -(2**63), 0, 0)
    done(sink(Append, row=ends))
    denied(sink(Append, row=(2**63, 0, 0, 0)))
    done(sink(BeginTransaction, "a"))
    denied(sink(Write, "a", rows=(ends, (0, -(2**63) - 1, 0, 0))))
    done(sink(Commit, "a"))
    assert world.rows() == [ends]


# -- fences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "more", "unfinished", "seen"),
    [
        (Write, {"rows": ROWS}, (("a", None),), []),
        (PreCommit, {"checkpoint": 3}, (("a", 3),), []),
        (Commit, {}, (), ["a"]),
        (AbortTransaction, {}, (), []),
    ],
)
def test_a_fence_amid_a_request_waits_and_then_sees_what_it_did(
    world: Processes,
    sink: Asker,
    monkeypatch: pytest.MonkeyPatch,
    kind: type,
    more: dict[str, Any],
    unfinished: tuple[tuple[str, int | None], ...],
    seen: list[str],
) -> None:
    sink.written("a")
    successor = world.process()
    arrived: list[object] = []
    fence = threading.Thread(target=lambda: arrived.append(successor.fenced(2)), daemon=True)
    early: list[object] = []

    def start() -> None:
        fence.start()
        fence.join(0.02)
        early.extend(arrived)

    amid(monkeypatch, kind, start)
    done(sink(kind, "a", **more))
    fence.join(WITHIN_S)
    assert (early, arrived, world.reader.seen()) == ([], [unfinished], seen)
    assert "fenced" in denied(sink(Append, row=(5, 5, 5, 5)))


def test_by_its_id_a_commit_takes_what_an_older_attempt_had_open(world: Processes, sink: Asker) -> None:
    sink.written("job-1/sink-0/id-0#1-1")
    successor = world.process()
    assert successor.fenced(2) == (("job-1/sink-0/id-0#1-1", None),)
    denied(successor(Commit, "job-1/sink-0/id-0#1-0", attempt=2))
    denied(successor(Commit, "job-1/sink-0/id-0#1-1", attempt=2))
    done(successor(Commit, "job-1/sink-0/id-0#1-0", attempt=2, by_id=True))
    assert world.reader.committed() == [("job-1/sink-0/id-0#1-1", row) for row in ROWS]


def test_what_a_dead_process_had_open_is_listed_and_only_aborted(world: Processes, sink: Asker) -> None:
    assert end(forked(lambda: world.process().written("a"))) == 0
    assert world.unfinished() == [("a", "open", None)]
    denied(sink(PreCommit, "a", checkpoint=1))
    denied(sink(Write, "a", rows=ROWS))
    assert sink.fenced(2) == (("a", None),)
    denied(sink(Commit, "a", attempt=2))
    done(sink(AbortTransaction, "a", attempt=2))
    assert (world.rows(), world.unfinished()) == ([], [])


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


# -- killed -------------------------------------------------------------------------------------------

BEFORE = ([], [("open", "open", None), ("sealed", "prepared", 7), ("final", "prepared", 8)])
REQUESTS: dict[type, dict[str, Any]] = {
    Fence: {"attempt": 2},
    BeginTransaction: {"name": "new"},
    Write: {"name": "open", "rows": ROWS},
    PreCommit: {"name": "open", "checkpoint": 9},
    Commit: {"name": "sealed"},
    Finalise: {"name": "sealed"},
    Publish: {"names": ("final",), "checkpoint": 8},
    AbortTransaction: {"name": "sealed"},
    Append: {"row": (5, 5, 5, 5)},
    Upsert: {"identity": (5,), "row": (5, 5, 5, 5)},
}


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_a_request_whose_process_is_killed_amid_it_was_never_made(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    sink.written("open")
    sink.sealed("sealed", checkpoint=7)
    sink.sealed("final", checkpoint=8)
    done(sink(Finalise, "final"))
    sink.store.close()

    def killed() -> None:
        amid(monkeypatch, kind, die)
        again = world.process()
        if kind in (Write, PreCommit):
            again.written("open")
        again(kind, **REQUESTS[kind])

    assert end(forked(killed)) == -signal.SIGKILL
    assert (world.rows(), world.table()) == ([], {})
    assert sorted(world.unfinished()) == sorted(BEFORE[1])
    assert [name for name, _ in world.process().fenced(1)].count("sealed") == 1
    done(sink(Commit, "sealed"))
    assert len(world.rows()) == len(ROWS)


def test_what_was_answered_survives_a_kill_at_any_moment(world: Processes) -> None:
    """The writer tells through a pipe what was answered; the reader looks on while it works."""
    for attempt in range(1, KILLS + 1):
        told, tell = os.pipe()

        def work(attempt: int = attempt, tell: int = tell) -> None:
            asker = world.process()
            asker.fenced(attempt)
            for number in range(100_000):
                name = f"{attempt}-{number}"
                asker.sealed(name, checkpoint=number + 1, attempt=attempt)
                os.write(tell, f"sealed {name}\n".encode())
                if number % 2:
                    done(asker(Commit, name, attempt=attempt))
                    os.write(tell, f"committed {name}\n".encode())

        child = forked(work)
        os.close(tell)
        with os.fdopen(told) as lines:
            answered = [lines.readline()]
            seen = set(world.reader.seen())
            time.sleep(0.003 * (attempt % 5))
            os.kill(child, signal.SIGKILL)
            answered += [line for line in lines if line.endswith("\n")]
        assert end(child) == -signal.SIGKILL
        rows = world.reader.committed()
        visible = set(world.reader.seen())
        assert seen <= visible
        assert len(rows) == len(visible) * len(ROWS)
        sealed = {name for name, status, _ in world.unfinished() if status == "prepared"}
        words = [line.split() for line in answered]
        assert {name for what, name in words if what == "committed"} <= visible
        assert {name for what, name in words if what == "sealed"} <= visible | sealed


def test_a_row_whose_bytes_are_torn_off_is_not_there_and_the_others_are(world: Processes, sink: Asker) -> None:
    """Half of the last write of a process that was killed: what SQLite wrote into the WAL has a checksum."""
    for number in range(3):
        done(sink(Append, row=(number, 0, 0, 0)))
    copy = world.folder.parent / "copy"
    copy.mkdir()
    for path in (file_of(world.folder), Path(f"{file_of(world.folder)}-wal")):
        (copy / path.name).write_bytes(path.read_bytes())
    os.truncate(wal := copy / f"{file_of(copy).name}-wal", wal.stat().st_size - 500)
    torn = sqlite_store.SqliteReader(copy)
    assert torn.committed() == [(None, (number, 0, 0, 0)) for number in range(2)]
    torn.close()


# -- stopped, full, gone ------------------------------------------------------------------------------


@pytest.fixture
def stopped(world: Processes, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A process that stands still amid a request, with the lock."""

    def stop() -> None:
        amid(monkeypatch, Append, lambda: os.kill(os.getpid(), signal.SIGSTOP))
        world.process()(Append, row=(99, 0, 0, 0), writer="sink-9")

    child = forked(stop)
    os.waitpid(child, os.WUNTRACED)
    yield child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)


def test_a_process_that_is_stopped_with_the_lock_fails_nobody_and_loses_nothing(
    world: Processes, sink: Asker, stopped: int
) -> None:
    other = world.process()
    began = time.monotonic()
    assert "locked" in unanswered(sink(BeginTransaction, "a"))
    assert time.monotonic() - began < 2 * sqlite_store.WAIT_S
    waits: list[float] = []
    for number in range(100):
        began = time.monotonic()
        unanswered(sink(Write, "a", rows=((number, 0, 0, 0),)))
        waits.append(time.monotonic() - began)
    assert sorted(waits)[50] < sqlite_store.WAIT_S / 10  # only the first request waits
    unanswered(other(Append, row=(5, 5, 5, 5), writer="sink-1"))
    unanswered(other(Flush, writer="sink-1"))
    unanswered(sink(PreCommit, "a", checkpoint=1))
    assert (world.rows(), world.unfinished(), world.expire("a")) == ([], [], False)
    os.kill(stopped, signal.SIGCONT)
    deadline = time.monotonic() + WITHIN_S
    while isinstance(sink(PreCommit, "a", checkpoint=1), NoAnswer) and time.monotonic() < deadline:
        time.sleep(0.001)
    done(other(Flush, writer="sink-1"))
    done(sink(PreCommit, "a", checkpoint=1))
    done(sink(Commit, "a"))
    plain = [row for name, row in world.reader.committed() if name is None]
    assert plain == [(99, 0, 0, 0), (5, 5, 5, 5)]
    assert [row[0] for name, row in world.reader.committed() if name] == list(range(100))


def test_what_waits_for_the_lock_is_denied_behind_a_fence(world: Processes, sink: Asker, stopped: int) -> None:
    unanswered(sink(Append, row=(5, 5, 5, 5)))
    kill(stopped)
    assert world.process().fenced(2) == ()
    assert "fenced" in denied(sink(Flush))
    assert world.rows() == []


def test_a_queue_has_an_end(sink: Asker, stopped: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "LONGEST_QUEUE", 2)
    for _ in range(2):
        unanswered(sink(Append, row=(5, 5, 5, 5)))
    assert "wait" in denied(sink(Append, row=(5, 5, 5, 5)))


def test_a_kept_request_that_is_denied_denies_what_follows(world: Processes, sink: Asker, stopped: int) -> None:
    unanswered(sink(Write, "never begun", rows=ROWS))
    kill(stopped)
    assert "knows no" in denied(sink(Append, row=(5, 5, 5, 5)))


def test_a_disk_that_is_full_is_no_answer_and_loses_nothing(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(sink(BeginTransaction, "a"))
    store = sink.store._store
    (pages,) = store.execute("PRAGMA page_count").fetchone()
    store.execute(f"PRAGMA max_page_count = {pages}")
    rows = tuple((number, 0, 0, 0) for number in range(1000))
    unanswered(sink(Write, "a", rows=rows))
    assert "full" in unanswered(sink(PreCommit, "a", checkpoint=1))
    assert world.unfinished() == [("a", "open", None)]
    store.execute("PRAGMA max_page_count = 100000")
    done(sink(PreCommit, "a", checkpoint=1))
    done(sink(Commit, "a"))
    assert world.rows() == list(rows)


def test_what_is_no_database_is_no_answer_and_cannot_be_read(world: Processes, sink: Asker) -> None:
    done(sink(BeginTransaction, "a"))
    sink.store.close()
    file_of(world.folder).write_bytes(b"no database" * 1_000)
    assert "not a database" in unanswered(world.process()(Flush))
    with pytest.raises(Unreachable):
        world.reader.seen()


def test_purge_leaves_nothing_and_zombies_are_told_that_it_is_gone(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    sink.written("b")
    world.reader.purge()
    assert not world.folder.exists()
    for asker, kind, more in (
        (sink, PreCommit, {"checkpoint": 1}),
        (sink, Commit, {}),
        (world.process(), BeginTransaction, {"attempt": 2}),
    ):
        assert "has been removed" in denied(asker(kind, "b", **more))
    assert not world.folder.exists()
    with pytest.raises(Unreachable):
        world.reader.seen()
    assert visible_transactions(world.reader) is None
    assert not world.expire("a")
    world.folder.mkdir()  # for the fixture, which purges it again


def test_closed_it_holds_no_file(world: Processes, sink: Asker) -> None:
    def held() -> list[str]:
        links = [os.path.join("/dev/fd", number) for number in os.listdir("/dev/fd")]
        return [link for link in links if os.path.lexists(link) and str(world.folder) in os.path.realpath(link)]

    sink.written("left")
    world.rows()
    assert isinstance(sink(Flush), Done)
    assert held() != []
    sink.store.close()
    world.reader.close()
    assert held() == []
