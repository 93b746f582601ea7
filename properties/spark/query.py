"""What a user's SQL text yields: one query on the view `input`, whose columns are those of the records.

The text is parsed before anything of it is resolved, and only what is known to be harmless
goes on: a query whose relations are the view and its own WITH clauses, and functions that
compute values from values.  So no file and no table is read, nothing is created or changed,
and no method of Java is called.  A result that is not a function of the records, such as one
with a random number or with the first of some rows in no order, is refused too.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from ..model.workload import InputRecord, Row
from .checking.inputs import first_line
from .session.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "input"
RECORD = ("key", "value", "tag")
ROW = ("key", "value", "tag", "tag2")
MOST_ROWS = 100_000
"""of a result"""
MOST_S = 60.0
"""how long the jobs of a query may take; what Spark computes while it plans the query is no job, and cannot be ended"""
AGAIN_S = 0.2
"""how soon a query that has taken too long is cancelled again: a cancellation does not hit a job that begins later"""
JOB = "cutproof-query"
"""the group of a query's jobs, by which they are cancelled"""

NODES = {
    *("Project", "Filter", "Aggregate", "UnresolvedHaving", "Distinct", "Sort", "GlobalLimit", "LocalLimit", "Offset"),
    *("Join", "LateralJoin", "Union", "Except", "Intersect", "Generate", "Pivot", "Unpivot", "WithWindowDefinition"),
    *("UnresolvedRelation", "SubqueryAlias", "UnresolvedSubqueryColumnAliases", "UnresolvedWith"),
    *("OneRowRelation", "LocalRelation", "UnresolvedInlineTable"),
}
"""The parts that a parsed query may have, as Spark's classes are called.  None of them reads or changes anything."""
GROUPS = {
    *("agg_funcs", "array_funcs", "bitwise_funcs", "collection_funcs", "conditional_funcs", "conversion_funcs"),
    *("datetime_funcs", "generator_funcs", "hash_funcs", "json_funcs", "lambda_funcs", "map_funcs", "math_funcs"),
    *("predicate_funcs", "string_funcs", "struct_funcs", "window_funcs"),
}
"""Spark's groups of functions that compute values from values.  `misc_funcs` are left out: they call methods of Java,
and tell of the machine, of the user and of the file that is read."""
OF_THE_MOMENT = re.compile(r"Current(?!Row).*|Now|LocalTime.*|CallMethod.*|TryReflect|InputFile.*|SparkPartitionID")
"""Expressions whose value is no function of the records, though Spark calls some of them deterministic."""
BY_RECORD = frozenset({"Project", "Filter", "Generate", "Union", "Sort", "LogicalRDD", "LocalRelation"})
"""The parts of an optimized query in which each record yields its rows by itself."""
WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.NullType)


class QueryRefused(Exception):
    """The text is no query that may be asked, or it cannot be answered; the message is one line."""


class Query:
    """A text that has been checked, and its answers.  It is asked by one thread at a time."""

    def __init__(self, text: str, record: Mapping[str, str], row: Mapping[str, str]) -> None:
        """`record` and `row` are the names of the columns in the view and in the result, where they are others than
        `key`, `value` …; a column of a record that is named "" is not in the view.

        Starts Spark, if it is not running yet.  Raises QueryRefused; SparkUnavailable if Spark does not start.
        """
        self._text = text
        self._record = [(name, record.get(name, name)) for name in RECORD if record.get(name, name)]
        self._row = {name: row.get(name, name) for name in ROW}
        self._spark: SparkSession = session().newSession()
        with _answering():
            _demand_query(self._spark, text)
            self.by_record = _is_by_record(_plan_of(self._asked(())).optimizedPlan())
            """each record yields its rows by itself, so that no row changes when more records come"""

    def demand_no_order(self, records: Sequence[InputRecord]) -> None:
        """Raise QueryRefused if the rows of these records depend on the order of the records in the view."""
        if not self.by_record and Counter(self.rows(records)) != Counter(self.rows(records[::-1])):
            raise QueryRefused("its rows depend on the order in which Spark reads the view")

    def rows(self, records: Sequence[InputRecord]) -> list[Row]:
        """The rows of these records; raises QueryRefused if Spark cannot compute them."""
        self._spark.sparkContext.setJobGroup(JOB, "a query of a user", interruptOnCancel=True)
        over, late = threading.Event(), threading.Event()
        threading.Thread(target=self._cancel_later, args=(over, late), name=JOB, daemon=True).start()
        try:
            with _answering():
                rows = self._asked(records).limit(MOST_ROWS + 1).collect()
        except QueryRefused:
            if late.is_set():
                raise QueryRefused(f"it takes more than {MOST_S:g} s") from None
            raise
        finally:
            over.set()
        if len(rows) > MOST_ROWS:
            raise QueryRefused(f"it yields more than {MOST_ROWS:,} rows")
        return [tuple(_value(row, name, self._row[name]) for name in ROW) for row in rows]  # type: ignore[misc]

    def _cancel_later(self, over: threading.Event, late: threading.Event) -> None:
        """Cancel the jobs of a query that is not over in time."""
        if over.wait(MOST_S):
            return
        late.set()
        while not over.is_set():
            self._spark.sparkContext.cancelJobGroup(JOB)
            over.wait(AGAIN_S)

    def _asked(self, records: Sequence[InputRecord]) -> DataFrame:
        """The query on these records; Spark computes nothing yet."""
        places = [RECORD.index(name) for name, _ in self._record]
        schema = T.StructType([T.StructField(column, T.LongType()) for _, column in self._record])
        shown = [tuple(record[place] for place in places) for record in records]
        self._spark.createDataFrame(shown, schema).createOrReplaceTempView(VIEW)
        frame = self._spark.sql(self._text)
        _demand_value(_plan_of(frame).analyzed())
        self._demand_columns(frame.schema)
        return frame

    def _demand_columns(self, schema: T.StructType) -> None:
        """Raise QueryRefused if the result has not the columns of a row, or if they are no whole numbers."""
        wanted = {name: column for name, column in self._row.items() if column}
        for name, column in wanted.items():
            if schema.names.count(column) > 1:
                raise QueryRefused(f"it yields the column {column!r} twice")
            if column not in schema.names and name != "tag2":
                names = f'if its rows have none, say read.columns.{name} = "", or else the name that it has there'
                raise QueryRefused(
                    f"it yields no column {column!r}: its columns are {', '.join(schema.names)} ({names})"
                )
        for field in schema.fields:
            if field.name not in wanted.values():
                raise QueryRefused(f"its column {field.name!r} is none of a row: {', '.join(wanted.values())}")
            if not isinstance(field.dataType, WHOLE):
                kind = field.dataType.simpleString()
                raise QueryRefused(f"its column {field.name!r} is {kind}, and has to be a whole number")


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Whatever Spark or Java raises becomes QueryRefused, in one line."""
    try:
        yield
    except PySparkException as error:
        raise QueryRefused(f"Spark says: {first_line(error)}") from error
    except Py4JJavaError as error:
        raise QueryRefused(f"Spark failed: {str(error.java_exception).partition(chr(10))[0]}") from error


def _value(row: T.Row, name: str, column: str) -> int | None:
    value: int | None = row[column] if column and column in row else 0
    return (value or 0) if name in ("tag", "tag2") else value


def _demand_query(spark: SparkSession, text: str) -> None:
    """Raise QueryRefused unless the text is one query on the view, with functions that compute values from values."""
    if "${" in text:
        raise QueryRefused("it has a variable, ${…}; nothing is filled in")
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    nodes = list(_nodes(plan))
    for node in nodes:
        kind = _kind(node)
        if kind not in NODES:
            raise QueryRefused(f"it has to be one query on the view {VIEW!r}; {kind} is not allowed in it")
    own = {node.alias().lower() for node in nodes if _kind(node) == "SubqueryAlias"}
    called: set[str] = set()
    for node in nodes:
        if _kind(node) == "UnresolvedRelation":
            parts = [str(part) for part in _sequence(node.multipartIdentifier())]
            if len(parts) > 1 or parts[0].lower() not in {VIEW, *own}:
                raise QueryRefused(f"it reads {'.'.join(parts)}; it can read the view {VIEW!r} alone")
        for expression in _expressions(node):
            if "UnresolvedIdentifier" in _kind(expression):
                raise QueryRefused("IDENTIFIER is not allowed in it: write the name itself")
            if _kind(expression) == "UnresolvedFunction":
                called.add(".".join(str(part) for part in _sequence(expression.nameParts())).lower())
    _demand_functions(spark, called)


def _demand_functions(spark: SparkSession, names: set[str]) -> None:
    """Raise QueryRefused for a function of Spark that does more than compute a value; Spark refuses what is none."""
    jvm: Any = spark._jvm
    for known in jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos() if names else ():
        name = str(known.getName())
        if name in names and known.getGroup() not in GROUPS:
            raise QueryRefused(f"the function {name} is not allowed in it: it does not compute a value from values")
    for name in sorted(names):
        if "." in name:
            raise QueryRefused(f"the function {name} is not allowed in it: write the name of one of Spark's alone")


def _demand_value(plan: Any) -> None:
    """Raise QueryRefused if some part of a resolved query has another value each time."""
    for node in _nodes(plan):
        for expression in _expressions(node):
            if OF_THE_MOMENT.fullmatch(_kind(expression)) or not expression.deterministic():
                raise QueryRefused(f"{expression.sql()} has another value each time")


def _is_by_record(plan: Any) -> bool:
    return all(_kind(node) in BY_RECORD and not _sequence(node.subqueries()) for node in _nodes(plan))


def _plan_of(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()


def _nodes(plan: Any) -> Iterator[Any]:
    """A plan and all that is in it: those of its subqueries and of its WITH clauses too."""
    yield plan
    for inner in (*_sequence(plan.children()), *_sequence(plan.innerChildren())):
        yield from _nodes(inner)


def _expressions(node: Any) -> Iterator[Any]:
    left = _sequence(node.expressions())
    while left:
        expression = left.pop()
        yield expression
        left += _sequence(expression.children())


def _sequence(found: Any) -> list[Any]:
    """The elements of a Seq of Scala."""
    return [found.apply(place) for place in range(found.length())]


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName()).rstrip("$")
