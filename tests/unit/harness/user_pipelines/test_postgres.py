"""A PostgreSQL of the user's: it is never waited for long, and its messages hold no password."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.user_pipelines.aims import Lookout
from cutproof.harness.user_pipelines.description import Aim, Feed, Read
from cutproof.harness.user_pipelines.feeding.table import ToTable
from cutproof.harness.user_pipelines.output import postgres
from cutproof.harness.user_pipelines.output.formats import NotReadable, Output
from cutproof.harness.user_pipelines.output.postgres import Postgres
from unit.processes.stores import PASSWORD, RunningServer

INSERT = "INSERT INTO input VALUES (:key, :value, :tag)"
ROWS = "SELECT key, value, tag FROM input"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    made = RunningServer()
    yield made
    made.close()


@pytest.fixture
def url(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SUMS_URL", f"postgresql://cutproof:{PASSWORD}@127.0.0.1:{server.port}/postgres")
    return "$SUMS_URL"


@pytest.fixture
def writer(server: RunningServer) -> Iterator[psycopg.Connection]:
    """The pipeline's own session, beside its table."""
    with psycopg.connect(server.dsn, autocommit=True) as session:
        session.execute("DROP TABLE IF EXISTS input")
        session.execute("CREATE TABLE input (key INT, value INT, tag INT)")
        yield session


def reader(dsn: str) -> Output:
    return Output(Read(format="postgres", dsn=dsn, query=ROWS), {})


def test_a_locked_table_is_fed_and_read_later(url: str, writer: psycopg.Connection) -> None:
    feed, read, aim = ToTable(Feed(), [(1, 2, 3)], url, INSERT), reader(url), Aim(query=ROWS, database=url)
    with writer.transaction():
        writer.execute("LOCK TABLE input")
        began = time.monotonic()
        with pytest.raises(NotReadable, match=r"read\.query: PostgreSQL says: .*lock timeout"):
            read.rows()
        feed.give()
        assert feed.given == 0
        assert "lock timeout" in str(feed.problem)
        assert not Lookout(aim, {}).sees(str)
        assert time.monotonic() - began < 10
    feed.give()
    assert (feed.given, feed.problem, read.rows()) == (1, None, [(1, 2, 3, 0)])
    assert Lookout(aim, {}).sees(str)


def test_rows_and_marker_are_of_one_snapshot(url: str, writer: psycopg.Connection) -> None:
    writer.execute("INSERT INTO input VALUES (1, 2, 3)")
    read = Read(format="postgres", dsn=url, query=ROWS)
    snapshot = "SELECT (current_setting('transaction_isolation') = 'repeatable read')::int"
    with_marker, without = Output(read, {}, commits=snapshot), Output(read, {}, commits="SELECT n FROM nowhere")
    assert (with_marker.rows(), with_marker.marker) == ([(1, 2, 3, 0)], 1)
    assert (without.rows(), without.marker, without.absent) == ([(1, 2, 3, 0)], 0, None)


def test_a_server_that_listens_and_says_nothing_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"postgresql://somebody@127.0.0.1:{silent.getsockname()[1]}/nothing"
        with pytest.raises(NotReadable, match="timeout"):
            reader(where).rows()
        feed = ToTable(Feed(), [(1, 2, 3)], where, INSERT)
        feed.give()
        assert "timeout" in str(feed.problem)


def test_a_server_that_is_paused_amid_a_statement_is_given_up(
    url: str, writer: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SILENCE_S", 0.5)
    with Postgres(url).connect() as session:
        process = session.info.backend_pid
        session.commit()
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(psycopg.OperationalError, match=r"said nothing for 0\.5 s"):
                session.execute("SELECT 1")
        finally:
            os.kill(process, signal.SIGCONT)


def test_limits_of_the_user_count_more(url: str, server: RunningServer) -> None:
    def limits(where: str) -> tuple[str, ...]:
        with Postgres(where).connect() as session:
            return tuple(
                str(session.execute(f"SHOW {name}".encode()).fetchall()[0][0])
                for name in ("statement_timeout", "lock_timeout", "search_path")
            )

    assert limits(url)[:2] == ("2s", "500ms")
    own = "?options=-c%20statement_timeout%3D9000%20-c%20search_path%3Dmine"
    assert limits(url + own) == ("9s", "500ms", "mine")
    assert Postgres(f"{url}?connect_timeout=7").connect().info.get_parameters()["connect_timeout"] == "7"


@pytest.mark.parametrize(
    "text",
    [
        "user:hunter2@localhost/db",
        "postgresql://user:hunter2@localhost/db?nonsense",
        "postgresql://user:hun/ter2@localhost/db",
        "postgresql://user:1/hunter2@localhost/db",
        "postgresql://user:hunt@er2@localhost/db",
    ],
)
def test_a_malformed_url_is_said_by_its_variable_alone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMS_URL", text)
    with pytest.raises(
        SubjectFailed, match=r"^read\.dsn: the URL of the PostgreSQL in \$SUMS_URL is malformed"
    ) as raised:
        reader("$SUMS_URL").rows()
    assert not any(part in str(raised.value) for part in ("hun", "ter2", "er2", "localhost"))
    if text.startswith("postgresql:"):
        with pytest.raises(SubjectFailed, match=r"^feed\.database: .* in \$SUMS_URL is malformed"):
            ToTable(Feed(), [(1, 2, 3)], "$SUMS_URL", INSERT).give()
        with pytest.raises(SubjectFailed, match=r"^aims: the query 'SELECT 1': .* in \$SUMS_URL is malformed"):
            Lookout(Aim(query="SELECT 1", database="$SUMS_URL"), {}).sees(str)


def test_the_password_is_cut_out_of_what_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMS_URL", "postgresql://user:hunter%402@localhost/db")
    said = Postgres("$SUMS_URL").said
    error = psycopg.OperationalError(f"no\n hunter@2, hunter%402 at {os.environ['SUMS_URL']}")
    assert said(error) == "PostgreSQL says: no ***, *** at ***"


def test_a_variable_that_is_not_set_is_named_wherever_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NOT_SET_URL", raising=False)
    said = r"the environment of cutproof has no variable \$NOT_SET_URL$"
    with pytest.raises(SubjectFailed, match=rf"^read\.dsn: {said}"):
        reader("$NOT_SET_URL").rows()
    with pytest.raises(SubjectFailed, match=rf"^feed\.database: {said}"):
        ToTable(Feed(), [(1, 2, 3)], "$NOT_SET_URL", INSERT).open()
    with pytest.raises(SubjectFailed, match=rf"^feed\.database: {said}"):
        ToTable(Feed(), [(1, 2, 3)], "$NOT_SET_URL", INSERT).give()
    with pytest.raises(SubjectFailed, match=rf"^aims: the query 'SELECT 1': {said}"):
        Lookout(Aim(query="SELECT 1", database="$NOT_SET_URL"), {}).sees(str)
    assert list(tmp_path.iterdir()) == []


def test_a_dollar_in_the_value_of_a_variable_is_a_part_of_the_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMS_URL", os.environ["SUMS_URL"].replace(PASSWORD, "a$b"))
    with pytest.raises(NotReadable, match=r"password authentication failed") as raised:
        reader(url).rows()
    assert "a$b" not in str(raised.value)
