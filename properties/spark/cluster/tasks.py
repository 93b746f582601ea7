"""Tasks on the executors of a Spark cluster: one row of a DataFrame is one task, and its answer is a row too.

Spark runs the tasks of a lost executor again, and takes one answer from each task.  A
cluster whose last executor is gone would let jobs wait for ever: a thread watches for
that, and ends the session.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError

from ..session.errors import SparkUnavailable
from ..session.session import declare_lost, lost
from . import on_executor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_EXECUTOR_S = 120.0
"""how long a cluster may take to give the application its first executor"""
NO_EXECUTOR_S = 60.0
"""how long a job may be without any executor after that"""
LOOK_S = 1.0
SCHEDULER_POOL = "scenarios"
"""the scheduler's pool of these tasks: the queries of the oracle are in another, and get half of the cores"""
CLUSTER = {"spark.scheduler.mode": "FAIR"}
"""Settings of a session that runs tasks beside the oracle's queries."""
SETTINGS = {
    # A row is a task of its own.
    "spark.sql.leafNodeDefaultParallelism": str(1 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
}

_numbers = itertools.count(1)


class Answer:
    """What a task returned, or in one line why it returned nothing."""

    __slots__ = ("problem", "value")

    def __init__(self, value: bytes | None, problem: str) -> None:
        self.value = value
        self.problem = problem


class Tasks:
    """Runs one function, which executors import from an archive, for the rows of tables.

    The function takes `given` and the columns of a row by name, and returns bytes.
    """

    def __init__(self, spark: SparkSession, archive: Path, work: Callable[..., bytes], given: bytes) -> None:
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(on_executor)  # type: ignore[no-untyped-call]
        self._context = spark.sparkContext
        self._queries = spark
        self._spark = spark.newSession()
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, value)
        self._context.addArchive(str(archive))
        self._function = on_executor.tasks(archive.name, (work.__module__, work.__qualname__), given)
        self._group = f"cutproof-tasks-{next(_numbers)}"
        self._closed = threading.Event()
        if not str(self._context.master).startswith("local"):
            threading.Thread(target=self._watch, daemon=True, name="cutproof-cluster").start()

    @property
    def cores(self) -> int:
        """How many tasks the executors that are there run at the same time."""
        return int(self._context.defaultParallelism)

    def spread_queries(self, at_most: int) -> None:
        """Give the queries of the process's session as many partitions as there are cores, up to `at_most`."""
        partitions = max(2, min(at_most, self.cores))
        self._queries.conf.set("spark.sql.shuffle.partitions", str(partitions))

    def run(self, rows: pa.Table) -> list[Answer]:
        """One job: an answer to each row, in their order.  Raises SparkUnavailable, in one line, if the job fails."""
        try:
            self._context.setLocalProperty("spark.scheduler.pool", SCHEDULER_POOL)
            self._context.setJobGroup(self._group, "scenarios of cutproof", interruptOnCancel=True)
            asked = self._spark.createDataFrame(rows)
            answers = asked.mapInPandas(self._function, on_executor.ANSWERS).toArrow()
        except Exception as error:  # of Java, of Spark, or of the connection to Java
            if self._executors() is None:
                self._declare_ended()
            raise SparkUnavailable(lost() or f"Spark failed: {reason_of(error)}") from error
        columns = zip(answers["answer"].to_pylist(), answers["problem"].to_pylist(), strict=True)
        return [Answer(value, problem or "") for value, problem in columns]

    def cancel(self) -> None:
        """End the jobs that are under way."""
        with contextlib.suppress(Py4JError, OSError):  # Java has ended
            self._context.cancelJobGroup(self._group)

    def close(self) -> None:
        """Watch no longer."""
        self._closed.set()

    def _watch(self) -> None:
        """End the session once no executor has been there for too long, or once Spark has given up the cluster."""
        seen, had_any = time.monotonic(), False
        while not self._closed.wait(LOOK_S):
            there, idle = self._executors(), self._is_idle()
            if there is None:
                self._declare_ended()
                return
            had_any = had_any or there > 0
            if there > 0 or idle:  # a cluster may take back executors that have nothing to do
                seen = time.monotonic()
            bound = NO_EXECUTOR_S if had_any else FIRST_EXECUTOR_S
            if time.monotonic() - seen > bound:
                had = "left" if had_any else "given"
                declare_lost(f"the Spark cluster {self._context.master} has {had} no executor for {bound:g} s")
                return

    def _executors(self) -> int | None:
        """How many executors there are; None once Spark has given up the cluster."""
        try:
            java: Any = self._context._jsc.sc()
            return None if java.isStopped() else java.getExecutorMemoryStatus().size() - 1
        except (Py4JError, OSError, AttributeError):
            return None

    def _is_idle(self) -> bool:
        try:
            return not self._context.statusTracker().getActiveJobsIds()
        except (Py4JError, OSError, AttributeError):
            return True

    def _declare_ended(self) -> None:
        declare_lost(f"the Spark cluster {self._context.master} ended the application")


def reason_of(error: Exception) -> str:
    """The most telling line of an error: the last exception of a Python traceback in it, or else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [
        line for line in lines if line.split(":")[0].endswith(("Error", "Exception")) and " " not in line.split(":")[0]
    ]
    python = [line for line in raised if not line.startswith(("org.", "java.", "scala.", "py4j."))]
    return (python or lines or [type(error).__name__])[-1 if python else 0]
