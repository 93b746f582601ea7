"""The oracle: the expected rows and state of many workloads, computed by PySpark in a few queries a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ..model.workload import Count, Input, Node, Workload
from ..semantics.user_functions import user_nodes
from . import session_windows
from .bounds import problem
from .cache import Cache, key_of
from .late_windows import ADVANCES, FOLDED
from .operators import MEANINGS, Meaning
from .plan import APPLIES, Plan
from .session.session import session
from .stages import Batch, advances_table, applies_table
from .tables import Cut, Expected, Held, OracleAnswer, OracleJob, QuickResult, disagreements
from .user_functions import GIVEN, by_function, given_by, new_rows, records_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Fold = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""From the records that sessions took to the sessions' rows and state: see `session_windows`."""


class Oracle:
    """PySpark's answers on jobs, each workload computed once.

    `queries` and `computed` count the queries and jobs that Spark computed.  Tests plant errors in `meanings` and
    `fold`.
    """

    def __init__(
        self, cache: Cache | None = None, meanings: Mapping[str, Meaning] = MEANINGS, fold: Fold = session_windows.fold
    ) -> None:
        self.queries = 0
        self.computed = 0
        self._cache = cache if cache is not None else Cache()
        self._meanings = meanings
        self._fold = fold
        self._kinds = {kind: number for number, kind in enumerate(meanings)}

    def judge_batch(
        self, jobs: Sequence[OracleJob], quick: Mapping[str, QuickResult] | None = None
    ) -> list[OracleAnswer]:
        """An answer to each job, in the order of the jobs; an answer in the cache costs no query.

        `quick` has the quick checker's results by a job's id, which are compared row by row.
        """
        problems = {job.id: problem(job) for job in jobs}
        keys = {job.id: key_of(job, self._meanings) for job in jobs if not problems[job.id]}
        known = {key: self._cache.get(key) for key in keys.values()}
        new = {keys[job.id]: job for job in jobs if job.id in keys and known[keys[job.id]] is None}
        if new:
            for key, expected in zip(new, self.compute(session(), list(new.values())), strict=True):
                known[key] = expected
                if not user_nodes(new[key].workload):  # a user may edit a function and keep its name
                    self._cache.put(key, expected)
        return [
            _answer(job.id, problems[job.id], known.get(keys.get(job.id, "")), (quick or {}).get(job.id))
            for job in jobs
        ]

    def compute(self, spark: SparkSession, jobs: Sequence[OracleJob]) -> list[Expected]:
        """The expected rows and state of each job, without the cache.

        Jobs that follow apply events get queries of their own.  Both kinds of queries run at the same time: what Spark
        does for a query, planning it above all, mostly takes one core.
        """
        kinds = [[number for number, job in enumerate(jobs) if bool(job.applies) is traced] for traced in (False, True)]
        asked = [_Asked(self._meanings, self._kinds, self._fold, [jobs[one] for one in kind]) for kind in kinds if kind]
        under_way = [_in_background(one.expected, spark) for one in asked]
        wait(under_way)  # also if one has failed: the other's views must not meet those of the next batch
        found: dict[int, Expected] = {}
        for numbers, expected in zip(filter(None, kinds), under_way, strict=True):
            found.update(zip(numbers, expected.result(), strict=True))
        self.queries += sum(one.queries for one in asked)
        self.computed += len(jobs)
        return [found[number] for number in range(len(jobs))]


class _Asked:
    """The queries about the jobs of a batch that are all traced, or all not."""

    def __init__(
        self, meanings: Mapping[str, Meaning], kinds: Mapping[str, int], fold: Fold, jobs: Sequence[OracleJob]
    ) -> None:
        self.queries = 0
        self._batch = Batch(jobs, kinds)
        self._plan = Plan(meanings, kinds, self._batch.traced)
        self._fold = fold

    def expected(self, spark: SparkSession) -> list[Expected]:
        """The expected rows and state of each job."""
        return _collected(self._batch, *self._run(spark))

    def _run(self, spark: SparkSession) -> tuple[pa.Table, pa.Table]:
        """The rows that reach the sinks, and the intervals of state."""
        batch, plan = self._batch, self._plan
        if batch.traced:
            _view(spark, APPLIES, applies_table(batch))
            _view(spark, ADVANCES, advances_table(batch))
        _view(spark, plan.records_view, batch.records())
        rows = self._query(spark, plan.source())
        states = [rows.slice(0, 0)]
        for depth in range(1, batch.rounds + 1):
            due, rest = batch.split(rows, depth)
            windowed, due = batch.windowed(due)
            users, due = batch.of_users(due)
            tables = [*self._windowed(spark, windowed), *self._by_users(spark, users)]
            if due.num_rows or not tables:
                tables.append(self._on_rows(spark, plan.round(), due))
            made = pa.concat_tables(tables, promote_options="default")
            is_state = pc.equal(made["what"], 1)
            states.append(made.filter(is_state))
            rows = pa.concat_tables([rest, made.filter(pc.invert(is_state))], promote_options="default")
        if batch.traced:
            taken, rest = batch.at_sinks(rows)
            taken = self._on_rows(spark, plan.arrivals(), taken)
            rows = pa.concat_tables([rest, taken], promote_options="default")
        return rows, pa.concat_tables(states, promote_options="default")

    def _windowed(self, spark: SparkSession, rows: pa.Table) -> list[pa.Table]:
        """The rows and state of windows: windows of a fixed size and sessions have separate queries."""
        plan = self._plan
        in_sessions = pc.equal(rows["kind"], plan.session)
        fixed, gapped = rows.filter(pc.invert(in_sessions)), rows.filter(in_sessions)
        made = [self._on_rows(spark, plan.windowed(), fixed)] if fixed.num_rows else []
        if not gapped.num_rows:
            return made
        _view(spark, plan.rows_view, gapped)
        if plan.traced:
            self._fold_sessions(spark)
        return [*made, self._query(spark, plan.in_sessions())]

    def _fold_sessions(self, spark: SparkSession) -> None:
        """Create the view `FOLDED`; Spark computes it when it is read."""
        from pyspark import cloudpickle

        # Spark's Python workers may be unable to import this package.
        cloudpickle.register_pickle_by_value(session_windows)  # type: ignore[no-untyped-call]
        took = spark.sql(self._plan.took())
        took.mapInArrow(self._fold, session_windows.SPARK_SCHEMA).createOrReplaceTempView(FOLDED)

    def _by_users(self, spark: SparkSession, rows: pa.Table) -> list[pa.Table]:
        """The rows of user functions; their state is not computed."""
        if not rows.num_rows:
            return []
        plan = self._plan
        taken = by_function(self._on_rows(spark, records_of(plan.rows_view, plan.records_view), rows))
        given = [given_by(function, _on_spark(spark, records)) for function, records in taken.items()]
        reduce(lambda all_, more: all_.union(more), given).createOrReplaceTempView(GIVEN)
        return [self._query(spark, plan.steps(new_rows(GIVEN, plan.rows_view), "then"))]

    def _on_rows(self, spark: SparkSession, query: str, rows: pa.Table) -> pa.Table:
        _view(spark, self._plan.rows_view, rows)
        return self._query(spark, query)

    def _query(self, spark: SparkSession, query: str) -> pa.Table:
        self.queries += 1
        return spark.sql(query).toArrow()


def _view(spark: SparkSession, name: str, table: pa.Table) -> None:
    _on_spark(spark, table).createOrReplaceTempView(name)


def _on_spark(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table with as many partitions as a shuffle has: PySpark makes one of each chunk, and results have many."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    rows = max(1, -(-table.num_rows // partitions))
    batches = table.combine_chunks().to_batches(rows)
    frame = spark.createDataFrame(pa.Table.from_batches(batches or [_without_rows(table.schema)], table.schema))
    return frame.coalesce(1) if partitions == 1 else frame  # else Spark would exchange the rows of its one partition


def _without_rows(schema: pa.Schema) -> pa.RecordBatch:
    """One batch for a table that has none: PySpark takes the type of a list from its chunks."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def _in_background(work: Callable[[SparkSession], list[Expected]], spark: SparkSession) -> Future[list[Expected]]:
    """Begin the work on a daemon thread: an interpreter that ends does not wait for Spark."""
    future: Future[list[Expected]] = Future()

    def fill() -> None:
        try:
            future.set_result(work(spark))
        except BaseException as error:  # raised when the result is asked for
            future.set_exception(error)

    threading.Thread(target=fill, daemon=True, name="cutproof-oracle").start()
    return future


def warm_up(spark: SparkSession) -> None:
    """Make Spark compile the oracle's queries, so that the first batch need not wait for this.

    Used as `start_in_background(then=warm_up)`.
    """
    source = Input(name="source", splits=(((0, 1, 1),),))
    nodes = (Node(name="count", operator=Count(), inputs=("source",)),)
    workload = Workload(name="warm-up", inputs=(source,), nodes=nodes)
    Oracle().compute(spark, [OracleJob(id="warm-up", workload=workload, cuts=(Cut(name=0, positions=(1,)),))])


def _answer(name: str, why: str, expected: Expected | None, quick: QuickResult | None) -> OracleAnswer:
    if expected is None:
        return OracleAnswer(id=name, problem=why)
    differing = disagreements(expected, quick) if quick is not None else ()
    return OracleAnswer(id=name, expected=expected, disagreements=differing)


def _collected(batch: Batch, rows: pa.Table, states: pa.Table) -> list[Expected]:
    """The expected rows and state of each job, from Spark's two tables."""
    found: list[tuple[list[tuple[int, tuple[int | None, int | None, int, int]]], list[Held]]] = [
        ([], []) for _ in batch.jobs
    ]
    jobs = [stream.job for stream in batch.streams]
    rows = rows.filter(pc.is_valid(rows["epoch"]))
    at, epochs = rows["at"].to_pylist(), rows["epoch"].to_pylist()
    values = zip(*(rows[name].to_pylist() for name in ("key", "value", "tag", "tag2")), strict=True)
    for stream, epoch, row in zip(at, epochs, values, strict=True):
        found[jobs[stream]][0].append((epoch, row))
    columns = ("at", "epoch", "until", "tag2", "key", "value", "tag")
    for stream, first, until, *entry in zip(*(states[name].to_pylist() for name in columns), strict=True):
        end = batch.streams[stream].end if until is None else until
        held = Held(node=batch.streams[stream].name, entry=tuple(entry), first=first, end=end)
        scales = batch.jobs[jobs[stream]].scales.get(held.node)
        found[jobs[stream]][1].extend([held] if scales is None else _scaled(held, scales))
    return [
        Expected(cuts=tuple(cut.name for cut in job.cuts), rows=tuple(expected), held=tuple(held))
        for job, (expected, held) in zip(batch.jobs, found, strict=True)
    ]


def _scaled(held: Held, scales: Sequence[int]) -> Iterator[Held]:
    """An entry of a sum that was retyped, as each cut has it."""
    side, key, total, tags = held.entry
    for cut in range(held.first, held.end):
        scaled = None if total is None else total * scales[cut]
        yield Held(node=held.node, entry=(side, key, scaled, tags), first=cut, end=cut + 1)
