"""The rows of a topic of Kafka, as a consumer with `read_committed` sees them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from ..needs.extras import module

ANSWERS_WITHIN_S = 0.5
READ_WITHIN_S = 5.0
"""how long a reader may take to read all that it has not read yet"""
SETTINGS = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 20,
    "fetch.error.backoff.ms": 20,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,
}


class TopicReader:
    """A consumer that stays open for one run, so that each look reads only what is new.

    Rows count up to the last stable offset: what lies behind the begin of an open transaction is not seen.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self._client = module("confluent_kafka")
        self._consumer = self._client.Consumer(
            {**SETTINGS, "bootstrap.servers": servers, "group.id": f"cutproof-{secrets.token_hex(6)}"}
        )
        self._topic = topic
        self._reached: dict[int, int] = {}
        """of each partition: the offset up to which it has been read"""
        self._values: dict[int, list[bytes | None]] = {}

    def values(self) -> Iterator[bytes | None]:
        """The values of all records up to the last stable offset, partition by partition; raises LookupError if there
        is no such topic, and OSError if the broker does not answer."""
        try:
            self._read()
        except self._client.KafkaException as error:
            raise OSError(0, f"Kafka says: {error.args[0].str()}") from error
        for number in sorted(self._values):
            yield from self._values[number]

    def close(self) -> None:
        self._consumer.close()

    def _read(self) -> None:
        self._assign()
        ends = {number: self._stable_end(number) for number in self._reached}
        deadline = time.monotonic() + READ_WITHIN_S
        while any(self._reached[number] < end for number, end in ends.items()):
            for message in self._consumer.consume(500, 0.05):
                self._take(message)
            if time.monotonic() > deadline:
                raise OSError(0, f"the topic {self._topic} could not be read within {READ_WITHIN_S:g} s")

    def _assign(self) -> None:
        """Begin to read all partitions, once there are some."""
        if self._reached:
            return
        found = self._consumer.list_topics(self._topic, timeout=ANSWERS_WITHIN_S).topics[self._topic]
        if found.error is not None or not found.partitions:
            raise LookupError(f"there is no topic {self._topic}")
        self._reached = dict.fromkeys(sorted(found.partitions), 0)
        self._values = {number: [] for number in self._reached}
        self._consumer.assign([self._client.TopicPartition(self._topic, number, 0) for number in self._reached])

    def _stable_end(self, number: int) -> int:
        partition = self._client.TopicPartition(self._topic, number)
        return int(self._consumer.get_watermark_offsets(partition, timeout=ANSWERS_WITHIN_S)[1])

    def _take(self, message: Any) -> None:
        error, number = message.error(), message.partition()
        if error is None:
            self._values[number].append(message.value())
            self._reached[number] = message.offset() + 1
        elif error.code() == self._client.KafkaError._PARTITION_EOF:  # also behind the marks of transactions
            self._reached[number] = max(self._reached[number], message.offset())
