"""Every kind of feed: records come in their order, some at a time, and again if they could not be given."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.user_pipelines.description import Feed
from cutproof.harness.user_pipelines.entries import Problem
from cutproof.harness.user_pipelines.feeding import feeder, topic
from cutproof.harness.user_pipelines.feeding.feeder import Feeder
from cutproof.harness.user_pipelines.feeding.files import Files
from cutproof.harness.user_pipelines.feeding.kinds import feeder_of
from cutproof.harness.user_pipelines.feeding.lines import Lines
from cutproof.harness.user_pipelines.feeding.table import ToTable
from cutproof.harness.user_pipelines.feeding.topic import ToTopic
from cutproof.harness.user_pipelines.needs import extras
from cutproof.harness.user_pipelines.places import free_ports
from cutproof.harness.user_pipelines.reading import read_pipeline
from unit.harness.user_pipelines.toys import toy

RECORDS = [(1, 10, 1), (2, 20, 2), (None, None, 3)]
AS_JSON = [{"key": key, "value": value, "tag": tag} for key, value, tag in RECORDS]


# -- files --------------------------------------------------------------------------------


def test_records_come_file_by_file(tmp_path: Path) -> None:
    (folder := tmp_path / "input").mkdir()
    feed = Files(Feed(records_per_file=2, columns={"value": "amount", "tag": ""}), RECORDS, folder)
    feed.give()
    assert (feed.given, feed.is_over) == (2, False)
    assert [path.name for path in folder.iterdir()] == ["part-00000.jsonl"]
    feed.give_all()
    feed.give()
    assert (feed.given, feed.is_over) == (3, True)
    found = [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    assert found == [{"key": key, "amount": value} for key, value, _ in RECORDS]


def test_records_as_csv(tmp_path: Path) -> None:
    (folder := tmp_path / "input").mkdir()
    Files(Feed(format="csv"), RECORDS, folder).give_all()
    assert (folder / "part-00000.csv").read_text() == "key,value,tag\n1,10,1\n2,20,2\n,,3\n"


def test_files_have_the_order_of_their_times_also_if_they_are_given_at_once(tmp_path: Path) -> None:
    (folder := tmp_path / "input").mkdir()
    Files(Feed(records_per_file=1), [(key, 1, key) for key in range(30)], folder).give_all()
    times_ms = [path.stat().st_mtime_ns // 1_000_000 for path in sorted(folder.iterdir())]
    assert times_ms == sorted(set(times_ms))


def test_a_last_record_is_given_twice_by_itself_behind_those_of_the_workload(tmp_path: Path) -> None:
    (folder := tmp_path / "input").mkdir()
    feed = Files(Feed(last_record={"tag": 900}), RECORDS, folder)
    feed.give_all()
    found = [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.iterdir())]
    assert found == [AS_JSON, *[[{"key": 0, "value": 0, "tag": 900}]] * 2]


# -- a table ------------------------------------------------------------------------------


INSERT = "INSERT INTO input VALUES (:key, :value, :tag)"


def stored(database: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT * FROM input ORDER BY rowid").fetchall()
    finally:
        connection.close()


def made(database: Path, statement: str) -> None:
    connection = sqlite3.connect(database)
    connection.execute(statement)
    connection.close()


def test_records_wait_for_their_table_and_while_it_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    feed = ToTable(Feed(records_per_file=2), RECORDS, str(path), INSERT)
    feed.give()
    assert (feed.given, feed.problem) == (0, Problem("feed.insert", "SQLite says: unable to open database file"))
    assert not path.exists(), "the pipeline makes its database"
    pipeline = sqlite3.connect(path, isolation_level=None)
    pipeline.execute("PRAGMA user_version = 1")
    feed.give()
    assert (feed.given, feed.problem) == (0, Problem("feed.insert", "SQLite says: no such table: input"))
    pipeline.execute("CREATE TABLE input (key INT, value INT, tag INT)")
    feed.give()
    assert (feed.given, feed.problem) == (2, None)
    pipeline.execute("BEGIN EXCLUSIVE")
    feed.give()
    assert (feed.given, feed.problem) == (2, Problem("feed.insert", "SQLite says: database is locked"))
    pipeline.execute("ROLLBACK")
    feed.give_all()
    pipeline.close()
    assert stored(path) == RECORDS


def test_an_insert_of_a_part_that_fails_leaves_nothing_of_it(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.db").execute(
        "CREATE TABLE input (key INT, value INT NOT NULL, tag INT)"
    ).connection.close()
    feed = ToTable(Feed(), RECORDS, str(tmp_path / "a.db"), INSERT)
    with pytest.raises(SubjectFailed, match=r"feed\.insert: SQLite says: NOT NULL"):
        feed.give()
    assert stored(tmp_path / "a.db") == []


@pytest.mark.parametrize("insert", ["INSRT INTO input VALUES (:key)", "INSERT INTO input VALUES (:kee)"])
def test_an_insert_that_can_never_work_is_said_at_once(insert: str, tmp_path: Path) -> None:
    made(tmp_path / "a.db", "CREATE TABLE input (key INT)")
    with pytest.raises(SubjectFailed, match=r"feed\.insert: SQLite says"):
        ToTable(Feed(), RECORDS, str(tmp_path / "a.db"), insert).give()


def test_a_postgres_that_is_not_there_is_asked_again_and_at_last_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeder, "ALL_WITHIN_S", 0.05)
    feed = ToTable(Feed(), RECORDS, "postgresql://nobody@127.0.0.1:1/nothing", INSERT)
    with pytest.raises(SubjectFailed, match=r"feed\.insert: PostgreSQL says: .*onnection"):
        feed.give_all()
    assert feed.given == 0


# -- a socket -----------------------------------------------------------------------------


def lines(ends: bool) -> tuple[Lines, int]:
    port = free_ports(["port1"])["port1"]
    feed = Lines(Feed(records_per_file=2), RECORDS, port, ends=ends)
    feed.open()
    return feed, int(port)


def read_lines(connection: socket.socket, count: int) -> list[Any]:
    file = connection.makefile("rb")
    return [json.loads(file.readline()) for _ in range(count)]


def test_each_connection_gets_all_records_from_the_first() -> None:
    feed, port = lines(ends=False)
    try:
        feed.give()
        with socket.create_connection(("127.0.0.1", port), 5) as first:
            assert read_lines(first, 2) == AS_JSON[:2]
            feed.give_all()
            assert read_lines(first, 1) == AS_JSON[2:]
            with socket.create_connection(("127.0.0.1", port), 5) as second:
                assert read_lines(second, 3) == AS_JSON
                second.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    second.recv(1)  # it stays open: the pipeline does not end
    finally:
        feed.close()


def test_behind_the_last_record_the_connection_of_a_pipeline_that_ends_is_closed() -> None:
    feed, port = lines(ends=True)
    try:
        feed.give_all()
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            assert len(connection.makefile("rb").read().splitlines()) == len(RECORDS)
    finally:
        feed.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 1)


def test_a_port_that_is_taken_is_said() -> None:
    feed, port = lines(ends=False)
    other = Lines(Feed(), RECORDS, str(port), ends=False)
    try:
        with pytest.raises(SubjectFailed, match=rf"feed\.port: {port} cannot be listened on"):
            other.open()
    finally:
        other.close()
        feed.close()


# -- Kafka --------------------------------------------------------------------------------


class Client:
    """What the feed uses of confluent_kafka: a producer whose broker can be away, or refuse."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.queue: list[tuple[str, str, str | None, Callable[..., None]]] = []
        self.written: list[tuple[str, Any, str | None]] = []
        self.is_there = True
        self.refusal: Any = None

    def Producer(self, settings: dict[str, Any]) -> Client:
        self.settings = settings
        return self

    def produce(self, topic: str, value: str, *, key: str | None, on_delivery: Callable[..., None]) -> None:
        self.queue.append((topic, value, key, on_delivery))

    def flush(self, _timeout: float) -> int:
        if self.is_there:
            for topic_, value, key, on_delivery in self.queue:
                self.written.append((topic_, json.loads(value), key))
                on_delivery(self.refusal, None)
            self.queue.clear()
        return len(self.queue)

    def purge(self) -> None:
        self.queue.clear()


class Said:
    def __init__(self, text: str) -> None:
        self.text = text

    def str(self) -> str:
        return self.text


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(topic, "module", lambda name: found)
    return found


def test_records_reach_a_topic_once_and_in_order_though_its_broker_is_away_for_a_while(client: Client) -> None:
    feed = ToTopic(Feed(records_per_file=2), RECORDS, "127.0.0.1:1", "input")
    feed.open()
    assert (client.settings["acks"], client.settings["enable.idempotence"]) == ("all", True)
    client.is_there = False
    feed.give()
    feed.give()
    assert (feed.given, feed.problem) == (0, Problem(None, "the broker has not acknowledged the records"))
    client.settings["error_cb"](Said("all brokers are down"))
    feed.give()
    assert (feed.given, feed.problem) == (0, Problem(None, "all brokers are down"))
    client.is_there = True
    feed.give()
    assert (feed.given, feed.problem) == (2, None)
    feed.give_all()
    assert feed.is_over
    assert client.written == [("input", row, key) for row, key in zip(AS_JSON, ("1", "2", None), strict=True)]


def test_a_last_record_reaches_a_topic_too(client: Client) -> None:
    feed = ToTopic(Feed(last_record={"key": 7, "tag": 900}), RECORDS, "127.0.0.1:1", "input")
    feed.open()
    feed.give_all()
    last = ("input", {"key": 7, "value": 0, "tag": 900}, "7")
    assert client.written[len(RECORDS) :] == [last, last]


def test_a_record_that_a_topic_refuses_is_said(client: Client) -> None:
    client.refusal = Said("not authorized")
    feed = ToTopic(Feed(), RECORDS, "127.0.0.1:1", "input")
    feed.open()
    with pytest.raises(SubjectFailed, match=r"feed\.topic: input takes no record: not authorized"):
        feed.give()
    feed.close()


def test_what_is_not_installed_is_said_in_one_line_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    feed = ToTopic(Feed(), RECORDS, "127.0.0.1:1", "input")
    with pytest.raises(UsageError, match=r"confluent_kafka is not installed.*pip install 'cutproof\[kafka\]'"):
        feed.open()
    feed.close()


# -- which one ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feed", "kind"),
    [
        ("", Files),
        ('to = "kafka"\nservers = "127.0.0.1:{port1}"\n', ToTopic),
        ('to = "socket"\nport = "{port2}"\n', Lines),
        ('to = "table"\ndatabase = "{state}/a.db"\ninsert = "INSERT INTO input VALUES (:key)"\n', ToTable),
    ],
    ids=["files", "kafka", "socket", "table"],
)
def test_a_file_names_its_feed(feed: str, kind: type[Feeder], tmp_path: Path) -> None:
    file = read_pipeline(toy(tmp_path, ("[feed]\n", f"[feed]\n{feed}"))).file
    assert type(feeder_of(file, RECORDS, tmp_path, {"port1": "1", "port2": "2"})) is kind
