"""One session a process, started in the background, warmed up before it is handed out."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from cutproof.properties.spark import session
from cutproof.properties.spark.errors import SparkUnavailable
from cutproof.properties.spark.oracle import warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_there_is_one_session(spark: SparkSession) -> None:
    assert session.session() is spark
    assert session.start_in_background().result() is spark
    with pytest.raises(SparkUnavailable, match="already has a Spark session on local"):
        session.session("spark://elsewhere:7077")


def test_ctrl_c_is_left_alone(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_warming_up_asks_something(spark: SparkSession) -> None:
    warm_up(spark)
    assert spark.catalog.tableExists("cutproof_rows")
