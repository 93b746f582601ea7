"""One session a process, started in the background, warmed up before it is handed out."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cutproof.properties.spark.oracle import warm_up
from cutproof.properties.spark.session import session
from cutproof.properties.spark.session.errors import SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = signal.getsignal(signal.SIGINT)
"""the handler when the tests are collected: no session has begun"""


def test_there_is_one_session(spark: SparkSession) -> None:
    assert session.session() is spark
    assert session.start_in_background().result() is spark
    with pytest.raises(SparkUnavailable, match="already has a Spark session on local"):
        session.session("spark://elsewhere:7077")


def test_ctrl_c_is_left_alone(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    assert signal.getsignal(signal.SIGINT) is BEFORE


def test_warming_up_asks_something(spark: SparkSession) -> None:
    warm_up(spark)
    assert spark.catalog.tableExists("cutproof_rows")


def test_settings_for_large_tables_leave_nothing_of_those_for_small_batches_that_would_slow_them() -> None:
    small, large = session.overridden({}), session.overridden(session.TABLES)
    assert set(small) == set(session.SETTINGS)
    kept = {name for name, value in small.items() if large.get(name) == value}
    assert not kept & {"spark.sql.autoBroadcastJoinThreshold", "spark.sql.shuffle.partitions"}
    assert not {name for name in kept if "arrow" in name or "constraint" in name or "codegen" in name}


KILLED = """
from pyspark import SparkContext
from cutproof.properties.spark.session import session

session.session()
java = SparkContext._gateway.proc
java.kill()
java.wait()
session.stop()
print(session.session().range(3).count())
session.stop()
"""


def test_a_session_whose_java_has_ended_by_itself_is_stopped_and_another_begins() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


DISTURBED = """
import socket
import time
from cutproof.properties.spark.session import session

spark = session.session()
address = spark.sparkContext._accumulatorServer.server_address
for said in (b"GET / HTTP/1.0\\r\\n\\r\\n", bytes(range(256)), b""):
    with socket.create_connection(address) as other:
        other.sendall(said)
silent, partial = (socket.create_connection(address) for _ in range(2))
partial.sendall(b"abc")
print(spark.range(3).count())
session.stop()
"""


def test_foreign_connections_to_the_port_for_accumulators_print_nothing_and_do_not_keep_spark_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", DISTURBED], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_accumulators_still_count(spark: SparkSession) -> None:
    context = spark.sparkContext
    total = context.accumulator(0)
    context.parallelize(range(10), 2).foreach(total.add)
    assert total.value == 45
