"""The expected rows of a pipeline whose file has an SQL text: PySpark runs the text on a run's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...properties.model.history import Computed, RowsBelow
from ...properties.model.workload import InputRecord, Row
from ..runtime.exit_codes import HarnessFailed, UsageError
from .description import Pipeline, Promises
from .entries import EntryFailed

if TYPE_CHECKING:
    from ...properties.spark.query import Query

Positions = Sequence[Mapping[int, int]]
WHERE = "computes.sql"


def query_of(pipeline: Pipeline) -> Query:
    """The checked query of a pipeline.  Starts PySpark, if it is not running yet.

    Raises UsageError if the text is not allowed or PySpark refuses it, HarnessFailed if PySpark does not start.
    """
    from ...properties.spark.query import Query, QueryRefused
    from ...properties.spark.session.errors import SparkUnavailable

    file = pipeline.file
    try:
        return Query(file.computes.sql, file.feed.columns, file.read.columns)
    except QueryRefused as error:
        raise UsageError(f"{pipeline.path}: {WHERE}: {error}") from error
    except SparkUnavailable as error:
        raise HarnessFailed(str(error)) from None


class Answers:
    """What a query yields of the records of one run, in the order in which they are given."""

    def __init__(self, query: Query, records: Sequence[InputRecord], promises: Promises) -> None:
        """Raises SubjectFailed if PySpark cannot compute the rows, or if they are not those of one right output."""
        from ...properties.spark.query import QueryRefused

        self._query = query
        self._records = records
        self._known: dict[int, list[Row]] = {}
        try:
            query.demand_no_order(records)
        except QueryRefused as error:
            raise EntryFailed(WHERE, error) from error
        if promises.sink == "idempotent" and promises.identity == "key":
            most = max(Counter(row[0] for row in self._until(len(records))).values(), default=0)
            if most > 1:
                raise EntryFailed("promises.identity", f"the query yields {most} rows of one key; it has to be 'row'")

    def computed(self, covers: Positions = (), commits: Positions = ()) -> Computed:
        """The rows below each of these positions, and those of all records; raises SubjectFailed as above.

        Where more records may replace rows, the rows below a commit are compared with nothing but the last output.
        """
        judged = commits if self._query.by_record else commits[-1:]
        numbers = dict.fromkeys((len(self._records), *(one.get(0, 0) for one in (*covers, *judged))))
        until = [RowsBelow(positions={0: number}, rows=self._until(number)) for number in numbers]
        return Computed(by_record=self._query.by_record, until=until)

    def _until(self, number: int) -> list[Row]:
        """The rows of the first records."""
        from ...properties.spark.query import QueryRefused

        if number not in self._known:
            try:
                self._known[number] = self._query.rows(self._records[:number])
            except QueryRefused as error:
                raise EntryFailed(WHERE, error) from error
        return self._known[number]
