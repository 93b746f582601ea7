"""A topic of Kafka is read up to its last stable offset, by one consumer that stays open."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from cutproof.harness.user_pipelines.description import Read
from cutproof.harness.user_pipelines.entries import Problem
from cutproof.harness.user_pipelines.output import topic
from cutproof.harness.user_pipelines.output.formats import NotReadable, Output
from cutproof.harness.user_pipelines.output.topic import TopicReader

MARK = None
"""the record that ends a transaction: it has an offset, and no consumer gets it"""


class Message(NamedTuple):
    number: int
    place: int
    content: bytes = b""
    failure: Any = None

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.place

    def value(self) -> bytes:
        return self.content

    def error(self) -> Any:
        return self.failure


class Failure(NamedTuple):
    number: int

    def code(self) -> int:
        return self.number

    def str(self) -> str:
        return "the broker is away"


class Partition(NamedTuple):
    topic: str
    partition: int
    offset: int = 0


class Client:
    """What the reader uses of confluent_kafka.  A partition is a list of values and marks, and has a stable end."""

    class KafkaException(Exception):
        pass

    class KafkaError:
        _PARTITION_EOF = -191

    TopicPartition = Partition

    def __init__(self, **partitions: list[bytes | None]) -> None:
        self.logs = {int(name[1:]): log for name, log in partitions.items()}
        self.stable = {number: len(log) for number, log in self.logs.items()}
        self.is_there = True
        self.places: dict[int, int] = {}
        self.told: dict[int, int] = {}
        self.consumed: list[int] = []
        self.consumers = 0

    def Consumer(self, settings: dict[str, Any]) -> Client:
        assert settings["isolation.level"] == "read_committed"
        self.consumers += 1
        return self

    def list_topics(self, name: str, timeout: float) -> Any:
        class Found(NamedTuple):
            error: Any
            partitions: dict[int, None]

        class Listed(NamedTuple):
            topics: dict[str, Found]

        self._answer()
        return Listed({name: Found(None if self.logs else Failure(3), dict.fromkeys(self.logs))})

    def assign(self, partitions: list[Partition]) -> None:
        self.places = {one.partition: one.offset for one in partitions}

    def get_watermark_offsets(self, one: Partition, timeout: float) -> tuple[int, int]:
        self._answer()
        return 0, self.stable[one.partition]

    def consume(self, count: int, timeout: float) -> list[Message]:
        found = []
        for number, place in self.places.items():
            end = self.stable[number]
            values = [(at, self.logs[number][at]) for at in range(place, end)]
            found += [Message(number, at, value) for at, value in values if value is not MARK]
            if self.told.get(number) != end:
                found.append(Message(number, end, failure=Failure(-191)))
                self.told[number] = end
            self.places[number] = end
        self.consumed.append(len(found))
        return found

    def close(self) -> None:
        self.consumers -= 1

    def _answer(self) -> None:
        if not self.is_there:
            raise self.KafkaException(Failure(-195))


def reader(monkeypatch: pytest.MonkeyPatch, client: Client) -> TopicReader:
    monkeypatch.setattr(topic, "module", lambda name: client)
    return TopicReader("127.0.0.1:1", "output")


def test_rows_behind_the_last_stable_offset_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(p0=[b"a", MARK, b"b", MARK, b"c"], p1=[b"x"])
    client.stable[0] = 2
    found = reader(monkeypatch, client)
    assert list(found.values()) == [b"a", b"x"]
    client.stable[0] = 4
    assert list(found.values()) == [b"a", b"b", b"x"]
    client.stable[0] = 5
    assert list(found.values()) == [b"a", b"b", b"c", b"x"]


def test_where_nothing_is_new_nothing_is_consumed(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(p0=[b"a", MARK])
    found = reader(monkeypatch, client)
    list(found.values())
    before = len(client.consumed)
    assert list(found.values()) == [b"a"]
    assert (len(client.consumed), client.consumers) == (before, 1)
    found.close()
    assert client.consumers == 0


def test_a_topic_that_is_not_there_yet_and_a_broker_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    monkeypatch.setattr(topic, "module", lambda name: client)
    output = Output(Read(format="kafka", servers="127.0.0.1:{port1}", topic="output"), {"port1": "1"})
    assert (output.rows(), output.absent) == ([], Problem("read.topic", "there is no topic output"))
    client.logs, client.stable = {0: [b'{"key": 1, "value": 2, "tag": 3}']}, {0: 1}
    assert (output.rows(), output.absent) == ([(1, 2, 3, 0)], None)
    client.is_there = False
    with pytest.raises(NotReadable, match=r"read\.servers: Kafka says: the broker is away"):
        output.rows()
    output.close()
    assert client.consumers == 0


def test_a_topic_whose_rows_never_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(p0=[b"a"])
    monkeypatch.setattr(topic, "READ_WITHIN_S", 0.05)
    monkeypatch.setattr(client, "consume", lambda count, timeout: [Message(0, -1, failure=Failure(-195))])
    with pytest.raises(OSError, match="could not be read within"):
        list(reader(monkeypatch, client).values())
