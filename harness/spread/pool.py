"""The work of a search as tasks of Spark jobs.

Ranges of scenarios are rows of a DataFrame, and each row is a task.  A job has a bounded
number of tasks, and its answers come back when all of them are done: so the driver holds
few answers at a time.  Several jobs are under way at once, and the tasks of the next
one begin on cores that the last tasks of the one before leave idle.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from ...properties.spark.session.errors import SparkUnavailable
from ..runtime.background import in_background
from ..runtime.exit_codes import HarnessFailed, UsageError
from ..scenario.model import Scenario
from ..search.pool import Encoded
from ..search.worker import Chunk, Plan
from ..shrink.on_subject import Seen
from ..shrink.shrink import Shrunk
from ..subject.port import Subject, asks_pyspark
from . import on_executor
from .archive import write_archive
from .on_executor import Shrinking, ShrinkingDone

JOBS = 3
"""jobs under way at once"""
TASKS_AT_MOST = 256
"""tasks of one job, which bounds the answers that the driver holds, however large the cluster is"""
PARTITIONS_AT_MOST = 32
"""partitions of the oracle's queries: more would have too few rows"""
GATHER_S = 0.05
"""how long a job waits for more work to come, if it could have more tasks"""
CORES_AT_FIRST = 8
"""a guess, until the cluster has answered"""
CLOSE_S = 5.0

ROWS = pa.schema([("first", pa.int64()), ("end", pa.int64()), ("shrink", pa.binary())])

_encoder = msgspec.msgpack.Encoder()
_done = msgspec.msgpack.Decoder(ShrinkingDone)
_LOCAL = re.compile(r"local\[(\d+)\]")


def demand_spreadable(subject: Subject, name: str | None) -> None:
    """Raise UsageError for a subject that cannot run on executors; `name` is None if it is given as an object."""
    if name is None:
        raise UsageError(
            f"the subject {subject.name} is an object of this process; name its class to run it on a cluster"
        )
    if subject.capabilities.real_time:
        raise UsageError(f"{name} runs in real time, on processes of this machine; leave out --master")
    if asks_pyspark(subject):
        raise UsageError(f"{name} asks the Spark session of this process; leave out --master")


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a job to come, and what takes its answer."""

    row: dict[str, Any]
    future: Future[Any]
    taken: Callable[[bytes | None, str], Any]
    """from the answer, or the reason why there is none, to the future's result"""


class SparkPool:
    """The executors of a Spark cluster."""

    starts = True

    def __init__(self, plan: Plan, master: str) -> None:
        """Begin to start the session on the cluster, if there is none on it yet."""
        from ...properties.spark.cluster.tasks import CLUSTER
        from ...properties.spark.session.session import start_in_background

        named = _LOCAL.fullmatch(master)
        self.workers = int(named[1]) if named else CORES_AT_FIRST
        self._plan = plan
        self._waiting: list[_Asked] = []
        self._came = threading.Condition()
        self._closed = False
        self._failed = ""
        self._session = start_in_background(master, CLUSTER)
        self._tasks: Any = None
        self._tasks_made = threading.Lock()
        self._serving = [in_background(self._serve) for _ in range(JOBS)]

    @property
    def lost(self) -> str:
        """Why the session did not start, or why its cluster is gone; empty while neither is known."""
        from ...properties.spark.session.session import lost

        error = self._session.exception() if self._session.done() else None
        return lost() or (str(error) if error is not None else "")

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        row = {"first": first, "end": end, "shrink": None}
        return self._ask(row, lambda value, problem: Chunk(ended=problem) if value is None else value)

    def shrink(self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Future[Shrunk]:
        asked = Shrinking(scenario=scenario, invariant=invariant, difference=difference, seen=seen)
        return self._ask({"first": 0, "end": 0, "shrink": _encoder.encode(asked)}, _shrunk)

    def stop(self) -> None:
        with self._came:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._came.notify_all()
        for one in waiting:
            one.future.cancel()
        if self._tasks is not None:
            in_background(self._tasks.cancel)

    def close(self) -> None:
        """End what is still under way, whose results nobody waits for; the session stays."""
        self.stop()
        for serving in self._serving:
            _wait_quietly(serving, CLOSE_S if self._tasks is not None else 0.0)
        if self._tasks is not None:
            self._tasks.close()

    def _ask(self, row: dict[str, Any], taken: Callable[[bytes | None, str], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._came:
            if self._closed:
                future.cancel()
            else:
                self._waiting.append(_Asked(row=row, future=future, taken=taken))
                self._came.notify()
        return future

    def _serve(self) -> None:
        """Run one job after another."""
        self._prepare()
        while job := self._next_job():
            try:
                answers = [(one.value, one.problem) for one in self._run([one.row for one in job])]
            except SparkUnavailable as error:
                answers = [(None, str(error))] * len(job)
            except Exception as error:  # what waits for an answer must get one
                answers = [(None, f"the tasks failed: {type(error).__name__}: {error}")] * len(job)
            for one, (value, problem) in zip(job, answers, strict=True):
                if one.future.set_running_or_notify_cancel():
                    _fill(one, value, problem)

    def _next_job(self) -> list[_Asked]:
        """The work of the next job; empty once the pool is closed."""
        with self._came:
            self._came.wait_for(lambda: self._closed or self._waiting)
            self._came.wait_for(lambda: self._closed or len(self._waiting) >= self._tasks_of_a_job, GATHER_S)
            most = self._tasks_of_a_job
            job, self._waiting = self._waiting[:most], self._waiting[most:]
        return [one for one in job if not one.future.cancelled()] or (self._next_job() if job else [])

    @property
    def _tasks_of_a_job(self) -> int:
        """All jobs under way together have twice as many tasks as there are cores."""
        return max(1, min(TASKS_AT_MOST, -(-2 * self.workers // JOBS)))

    def _prepare(self) -> None:
        """Wait for the session, and send the package to its executors; jobs report why that is not possible."""
        with contextlib.suppress(Exception):
            self._ready()

    def _ready(self) -> Any:
        spark = self._session.result()
        with self._tasks_made:
            if self._tasks is None:
                self._tasks = self._made(spark)
                self.workers = max(1, self._tasks.cores)
                self._tasks.spread_queries(PARTITIONS_AT_MOST)
        return self._tasks

    def _run(self, rows: list[dict[str, Any]]) -> list[Any]:
        tasks = self._ready()
        answers: list[Any] = tasks.run(pa.Table.from_pylist(rows, ROWS))
        self.workers = max(1, tasks.cores)
        return answers

    def _made(self, spark: Any) -> Any:
        from ...properties.spark.cluster.tasks import Tasks

        folder = Path(spark.sparkContext.getConf().get("spark.local.dir"))
        archive = write_archive(folder, [name for name in (self._plan.subject, *self._plan.functions) if ":" in name])
        return Tasks(spark, archive, on_executor.work, _encoder.encode(self._plan))


def _shrunk(value: bytes | None, problem: str) -> Shrunk:
    done = _done.decode(value) if value is not None else ShrinkingDone(error=problem)
    if done.shrunk is None:
        raise HarnessFailed(done.error)
    return done.shrunk


def _fill(one: _Asked, value: bytes | None, problem: str) -> None:
    try:
        result = one.taken(value, problem)
    except Exception as error:  # raised when the result is asked for
        one.future.set_exception(error)
    else:
        one.future.set_result(result)


def _wait_quietly(serving: Future[None], seconds: float) -> None:
    """Wait for a thread that serves, for a bounded time; nobody needs its result."""
    try:
        serving.result(seconds)
    except Exception:  # its own error, or that the time is over: nobody waits for what it did
        return
