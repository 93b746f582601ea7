"""A worker passes records from the topic `input` of Kafka to the topic `output`; each takes a moment of work.

Arguments: the broker's address, and how the worker keeps its place in the input.

- `transactions`: the offsets of a batch are a part of the transaction that has its rows.
- `offsets-outside`: the rows of a batch are a transaction.  The consumer commits by itself, now and
  then, the offsets of all records that it has handed out, as is its default.
- `no-transaction`: the rows are sent, and the offsets of a batch are committed once all its rows
  have arrived.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

WORK_S = 0.02
BATCH = 5
WAIT_S = 0.1
SOON = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200, "socket.timeout.ms": 2000}
"""a connection that is lost, or that gives no answer, is noticed within the time of a run"""


def main(servers: str, how: str) -> None:
    common = {"bootstrap.servers": servers, **SOON}
    consumer = Consumer(
        {
            **common,
            "group.id": "worker",
            "group.instance.id": "worker",  # another process of this name takes its place at once
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": how == "offsets-outside",
            "auto.commit.interval.ms": 20,  # five seconds without this: a run is shorter
            "on_commit": on_commit,
            "fetch.error.backoff.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
            "allow.auto.create.topics": True,
        }
    )
    producer = Producer(
        {**common, "linger.ms": 0, **({} if how == "no-transaction" else {"transactional.id": "worker"})}
    )
    if how != "no-transaction":
        patiently(producer.init_transactions)  # ends what an earlier process has left open
    consumer.subscribe(["input"], on_assign=on_assign)
    while True:
        batch = [message for message in consumer.consume(BATCH, WAIT_S) if message.error() is None]
        if not batch:
            continue
        if how == "no-transaction":
            send(producer, batch)
            producer.flush()
            print(f"flushed {len(batch)} rows", flush=True)
            patiently(consumer.commit, offsets=behind(batch), asynchronous=False)
            print(f"committed up to offset {batch[-1].offset() + 1}", flush=True)
        else:
            in_a_transaction(producer, consumer, batch, with_offsets=how == "transactions")


def in_a_transaction(producer: Producer, consumer: Consumer, batch: list[Message], *, with_offsets: bool) -> None:
    """Pass a batch on in a transaction; if it has to be aborted, the batch is read again."""
    producer.begin_transaction()
    print(f"in a transaction from offset {batch[0].offset()}", flush=True)
    try:
        send(producer, batch)
        producer.flush()
        print(f"flushed {len(batch)} rows", flush=True)
        if with_offsets:
            patiently(producer.send_offsets_to_transaction, behind(batch), consumer.consumer_group_metadata())
        patiently(producer.commit_transaction)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        patiently(producer.abort_transaction)
        print(f"aborted: {error.args[0].str()}", flush=True)
        consumer.seek(TopicPartition("input", batch[0].partition(), batch[0].offset()))
        return
    print(
        f"committed {len(batch)} rows" + (f" and offset {batch[-1].offset() + 1}" if with_offsets else ""), flush=True
    )


def send(producer: Producer, batch: list[Message]) -> None:
    for message in batch:
        producer.produce("output", message.value())
        producer.poll(0)
        time.sleep(WORK_S)


def behind(batch: list[Message]) -> list[TopicPartition]:
    """The offsets behind a batch, of one partition."""
    return [TopicPartition("input", batch[-1].partition(), batch[-1].offset() + 1)]


def patiently(do: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Do something again while the broker cannot be reached."""
    while True:
        try:
            return do(*arguments, **named)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            time.sleep(WAIT_S)


def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    for found in patiently(consumer.committed, partitions):
        if found.offset > 0:
            print(f"continued from offset {found.offset}", flush=True)


def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
    if error is None:
        print(f"the consumer has committed offset {partitions[0].offset}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
