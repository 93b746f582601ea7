"""Records as JSON in a topic of Kafka, in their order, with all replicas' acknowledgement.

The client sends again what is not acknowledged, and the broker takes each record once (an
idempotent producer): so a broker that is killed meanwhile changes nothing of the input.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ....properties.model.workload import InputRecord
from ..description import Feed
from ..entries import EntryFailed, Problem
from ..needs.extras import module
from .feeder import Feeder

ACKNOWLEDGED_WITHIN_S = 0.02
"""how long `give` waits; what is not acknowledged by then is asked for again"""
SETTINGS = {
    "acks": "all",
    "enable.idempotence": True,
    "message.timeout.ms": 0,  # sent again without end: the run has a time of its own
    "linger.ms": 0,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,
}


class ToTopic(Feeder):
    """The records of one run in a topic.  A record's key is its own key, so that the records of a key share a
    partition."""

    def __init__(self, feed: Feed, records: Sequence[InputRecord], servers: str, topic: str) -> None:
        super().__init__(feed, records)
        self._topic = topic
        self._keys = [None if key is None else str(key) for key, _, _ in self._records]
        self._sent = 0
        self._refused: str | None = None
        self._servers = servers
        self._producer: Any = None

    def open(self) -> None:
        settings = {**SETTINGS, "bootstrap.servers": self._servers, "error_cb": self._on_error}
        self._producer = module("confluent_kafka").Producer(settings)

    def _put(self, rows: Sequence[dict[str, Any]]) -> bool:
        if self._sent == self.given:
            for row in rows:
                value = json.dumps(row)
                self._producer.produce(self._topic, value, key=self._keys[self._sent], on_delivery=self._on_delivery)
                self._sent += 1
        if self._producer.flush(ACKNOWLEDGED_WITHIN_S):
            self.problem = self.problem or Problem(None, "the broker has not acknowledged the records")
            return False
        if self._refused is not None:
            raise EntryFailed("feed.topic", f"{self._topic} takes no record: {self._refused}")
        self.problem = None
        return True

    def _on_delivery(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._refused = str(error.str())

    def _on_error(self, error: Any) -> None:
        self.problem = Problem(None, str(error.str()))

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(ACKNOWLEDGED_WITHIN_S)
