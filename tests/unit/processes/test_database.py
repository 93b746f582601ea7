"""PostgreSQL as the external store: sessions that die, zombies, a server that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cutproof.harness.reference_engine.orchestrator import ports
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    Append,
    BeginTransaction,
    Commit,
    Fence,
    Flush,
    NoAnswer,
    Outcome,
    PreCommit,
    Upsert,
    Write,
)
from cutproof.reference_impl.processes.stores import database_sessions
from cutproof.reference_impl.processes.stores.database import Database, Reader, create
from cutproof.reference_impl.processes.stores.database_sessions import Gid, writers_label
from cutproof.reference_impl.processes.stores.readers import Unreachable
from unit.processes.stores import ROWS, WITHIN_S, Asker, Processes, RunningServer, denied, done

LONG_TIMEOUT_S = 20
"""how long would be waited where nothing is to be waited for: much longer than a busy machine takes to refuse"""

ZOMBIE = """
import sys
from cutproof.reference_impl.core.vocabulary.transactions import BeginTransaction, Write
from cutproof.reference_impl.processes.stores.database import Database
store = Database(sys.argv[1], sys.argv[2])
for request in (BeginTransaction(writer="sink-0", attempt=1, name="z"),
                Write(writer="sink-0", attempt=1, name="z", rows=((7, 7, 7, 7),))):
    store.handle(request)
print("written", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def kept_server() -> Iterator[RunningServer]:
    running = RunningServer()
    yield running
    running.close()


@pytest.fixture
def server(kept_server: RunningServer) -> RunningServer:
    """Up, also where the test before failed while it was down."""
    if kept_server.process is None:
        kept_server.start()
    return kept_server


@pytest.fixture
def world(server: RunningServer, tmp_path: Path) -> Iterator[Processes]:
    processes = Processes("database", tmp_path, server.dsn)
    yield processes
    processes.close()


@pytest.fixture
def sink(world: Processes) -> Asker:
    return world.process()


@pytest.fixture
def zombie(world: Processes) -> Iterator[subprocess.Popen[str]]:
    """A process of attempt 1 that has written into an open transaction."""
    command = [sys.executable, "-c", ZOMBIE, world.dsn, world.run]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        yield process
        process.kill()


def sessions(world: Processes, attempt: int) -> int:
    with psycopg.connect(world.dsn) as look:
        label = f"{writers_label(world.run, 'sink-0')}{attempt}"
        row = look.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (label,)).fetchone()
    return -1 if row is None else int(row[0])


def until_answered(ask: Asker, *request: object, **more: object) -> Outcome:
    """Ask again while there is no answer."""
    deadline = time.monotonic() + WITHIN_S
    while isinstance(outcome := ask(*request, **more), NoAnswer) and time.monotonic() < deadline:  # type: ignore[arg-type]
        time.sleep(0.01)
    return outcome


def test_a_fence_ends_the_session_of_a_zombie_that_stands_still(
    world: Processes, zombie: subprocess.Popen[str]
) -> None:
    zombie.send_signal(signal.SIGSTOP)
    assert sessions(world, 1) == 2
    assert world.process().fenced(2) == ()
    assert (sessions(world, 1), world.unfinished()) == (0, [])


def test_the_open_transaction_of_a_dead_process_is_rolled_back(world: Processes, zombie: subprocess.Popen[str]) -> None:
    assert world.unfinished() == [("z", "open", None)]
    zombie.kill()
    deadline = time.monotonic() + WITHIN_S
    while world.unfinished() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert (world.unfinished(), world.rows()) == ([], [])


def test_a_zombie_that_connects_between_the_fence_and_its_answer_sees_the_fence(
    world: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[Outcome] = []
    real = database_sessions.end_sessions

    def connect_then_end(*arguments: object) -> None:
        late.append(world.process()(BeginTransaction, "z"))
        real(*arguments)  # type: ignore[arg-type]
        late.append(world.process()(BeginTransaction, "z"))

    monkeypatch.setattr("cutproof.reference_impl.processes.stores.database_writer.end_sessions", connect_then_end)
    world.process().fenced(2)
    assert [denied(outcome) for outcome in late] == ["sink-0 has been fenced by a newer attempt"] * 2


def test_a_zombies_commit_before_the_fence_is_found_done_by_the_successor(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    done(sink(Commit, "a"))
    successor = world.process()
    assert successor.fenced(2) == ()
    done(successor(Commit, "a", attempt=2))
    assert Counter(world.rows()) == Counter(ROWS)


def test_prepared_transactions_survive_the_server_and_commit_once(
    server: RunningServer, world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.sealed("sealed", checkpoint=4)
    sink.written("open", (9, 9, 9, 9))
    done(sink(Append, row=(5, 5, 5, 5)))
    server.stop(signal.SIGKILL)
    monkeypatch.setattr(database_sessions, "TIMEOUT_S", LONG_TIMEOUT_S)
    began = time.monotonic()
    lost = [sink(Commit, "sealed"), sink(Fence), sink(Append, row=(6, 6, 6, 6)), sink(Flush)]
    assert [type(outcome) for outcome in lost] == [NoAnswer] * 4
    assert time.monotonic() - began < LONG_TIMEOUT_S, "a server that is gone is not waited for"
    monkeypatch.undo()
    with pytest.raises(Unreachable):
        world.reader.seen()
    server.start()
    assert world.unfinished() == [("sealed", "prepared", 4)]
    assert "knows no" in denied(until_answered(sink, PreCommit, "open", checkpoint=5))
    done(until_answered(sink, Commit, "sealed"))
    done(until_answered(sink, Commit, "sealed"))
    done(until_answered(sink, Flush))
    assert Counter(world.rows()) == Counter([*ROWS, (5, 5, 5, 5), (6, 6, 6, 6)])


def test_a_plain_row_whose_answer_is_lost_shows_once(
    world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes in again, since nobody knows that it is in; the same row of another request is another row."""
    done(sink(Append, row=ROWS[0]))
    true = database_sessions.Session.execute
    lost: list[object] = []

    def unanswered(session: database_sessions.Session, query: Any, *rest: Any, **more: Any) -> Any:
        answer = true(session, query, *rest, **more)
        if "INTO output" in str(query) and not lost:
            lost.append(query)
            session.close()
            raise psycopg.OperationalError("the connection broke, for a test")
        return answer

    monkeypatch.setattr(database_sessions.Session, "execute", unanswered)
    done(sink(Append, row=ROWS[0]))
    done(sink(Append, row=ROWS[1]))
    assert len(lost) == 1
    assert world.rows() == [ROWS[0], ROWS[0], ROWS[1]]


def test_a_session_that_was_lost_while_idle_is_replaced_unseen(
    server: RunningServer, world: Processes, sink: Asker
) -> None:
    sink.sealed("a")
    server.stop(signal.SIGKILL)
    server.start()
    sink.sealed("b", (3, 3, 3, 3))
    done(sink(Commit, "a"))
    done(sink(Commit, "b"))
    assert Counter(world.rows()) == Counter([*ROWS, (3, 3, 3, 3)])


def test_a_server_that_reports_nothing_is_no_answer_in_bounded_time(
    server: RunningServer, world: Processes, sink: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_sessions, "TIMEOUT_S", 0.2)
    sink.sealed("a")
    with psycopg.connect(world.dsn) as look:
        label = f"{writers_label(world.run, 'sink-0')}1"
        found = look.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", (label,)).fetchall()
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    outcome = sink(Commit, "a")
    waited = time.monotonic() - began
    for (pid,) in found:
        os.kill(pid, signal.SIGCONT)
    assert isinstance(outcome, NoAnswer)
    assert "PostgreSQL has not answered for 0.2 s" in outcome.reason
    assert waited < LONG_TIMEOUT_S
    done(until_answered(sink, Commit, "a"))
    assert Counter(world.rows()) == Counter(ROWS)


def test_a_value_that_does_not_fit_is_denied_and_ends_its_transaction(world: Processes, sink: Asker) -> None:
    done(sink(BeginTransaction, "a"))
    assert "out of range" in denied(sink(Write, "a", rows=((2**63, 1, 1, 1),)))
    denied(sink(PreCommit, "a", checkpoint=1))
    assert "out of range" in denied(sink(Append, row=(2**63, 1, 1, 1)))
    done(sink(Append, row=(1, 1, 1, 1)))
    assert (world.rows(), world.unfinished()) == ([(1, 1, 1, 1)], [])


def test_a_name_that_no_gid_can_hold_is_denied(world: Processes, sink: Asker) -> None:
    sink.written("x" * 190)
    assert "too long" in denied(sink(PreCommit, "x" * 190, checkpoint=1))
    assert world.unfinished() == []


def test_parallel_runs_do_not_meet(server: RunningServer, world: Processes, sink: Asker, tmp_path: Path) -> None:
    other = Processes("database", tmp_path, server.dsn)
    theirs = other.process()
    sink.sealed("a", (1, 1, 1, 1))
    theirs.sealed("a", (2, 2, 2, 2))
    assert other.process().fenced(2) == (("a", 1),)
    other.reader.purge()
    assert "fenced" not in denied(theirs(Commit, "a"))
    done(sink(Commit, "a"))
    assert world.reader.committed() == [("a", (1, 1, 1, 1))]
    other.close()


def test_purge_leaves_nothing(server: RunningServer, tmp_path: Path) -> None:
    ended = Processes("database", tmp_path, server.dsn)
    asker = ended.process()
    asker.sealed("sealed")
    asker.written("open")
    done(asker(Upsert, identity=(1,), row=(1, 1, 1, 1)))
    ended.reader.purge()
    ended.reader.purge()
    with psycopg.connect(server.dsn) as look:
        query = (
            "SELECT (SELECT count(*) FROM pg_prepared_xacts WHERE starts_with(gid, %(run)s)),"
            " (SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, %(run)s || '|')),"
            " (SELECT count(*) FROM pg_namespace WHERE nspname = %(run)s)"
        )
        assert look.execute(query, {"run": ended.run}).fetchone() == (0, 0, 0)
    denied(asker(PreCommit, "open", checkpoint=1))
    denied(asker(BeginTransaction, "new"))
    ended.close()


def test_rows_come_in_the_order_of_commits_not_of_names(world: Processes, sink: Asker) -> None:
    for name in ("b", "a", "c"):
        sink.sealed(name, (ord(name), 1, 1, 1))
    for name in ("c", "a", "b"):
        done(sink(Commit, name))
    done(sink(Append, row=(0, 1, 1, 1)))
    assert world.reader.seen() == ["c", "a", "b"]
    assert [name for name, _ in world.reader.committed()] == ["c", "a", "b", None]


def test_where_there_is_no_server_nothing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_sessions, "TIMEOUT_S", LONG_TIMEOUT_S)
    dsn = f"host=127.0.0.1 port={ports.pick()} user=nobody dbname=postgres"
    began = time.monotonic()
    outcome = Asker(Database(dsn, "nowhere"))(AbortTransaction, "a")
    assert isinstance(outcome, NoAnswer)
    assert "refused" in outcome.reason
    with pytest.raises(Unreachable, match="refused"):
        create(dsn, "nowhere")
    with pytest.raises(Unreachable, match="refused"):
        Reader(dsn, "nowhere").purge()
    assert time.monotonic() - began < LONG_TIMEOUT_S


def test_several_sinks_go_through_one_object(world: Processes, sink: Asker) -> None:
    for writer in ("sink-0", "sink-1"):
        done(sink(BeginTransaction, f"{writer}/a", writer=writer))
    for writer in ("sink-0", "sink-1"):
        done(sink(Write, f"{writer}/a", writer=writer, rows=((1, 1, 1, 1),)))
        done(sink(PreCommit, f"{writer}/a", writer=writer, checkpoint=1))
    assert sink.fenced(2, writer="sink-0") == (("sink-0/a", 1),)
    done(sink(Commit, "sink-1/a", writer="sink-1"))
    assert world.reader.seen() == ["sink-1/a"]


def test_a_gid_reads_back_whatever_the_name_holds() -> None:
    gid = Gid(run="r", writer="sink-0", checkpoint=3, name="job-1/x|y/é")
    assert Gid.of(gid.text()) == gid


@pytest.mark.parametrize("writer", ["sink-0", "s" * 80, "sïnk"])
def test_a_writers_label_fits_with_its_attempt(writer: str) -> None:
    label = f"{writers_label('r' * 24, writer)}{10**9}"
    assert len(label.encode()) <= database_sessions.LONGEST_APPLICATION_NAME
    assert label.isascii()


def test_a_run_has_a_plain_name() -> None:
    with pytest.raises(ValueError, match="a run's name"):
        create("host=127.0.0.1", "Drop Table")
