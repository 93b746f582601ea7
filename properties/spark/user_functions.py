"""The rows that a user's function has to yield, computed on DataFrames by the user's counterpart (OPS-4).

The user's `spark` takes one DataFrame for many keys, jobs and cuts at once:

| column | |
|---|---|
| `scope` | one cut of one job; records of different scopes are independent of each other |
| `n` | the place of the record among those of its key in the scope, from 1 |
| `key`, `value`, `tag`, `tag2` | the record |
| `time` | its event time; 0 where there is none |
| `watermark` | the watermark at the cut, the same in all records of a scope |

It returns a DataFrame of `scope`, `key`, `value`, `tag` and `tag2`: for each scope all rows
that are expected by its cut.  A cut's own rows are those that the previous cut does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ..model.workload import BEGINNING
from ..semantics.user_functions import CounterpartFailed, counterpart
from .windows import marks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCOPES = 1 << 20
"""more than a job has cuts: a scope is the node's number times this, plus the cut's number"""
GIVEN = "cutproof_user_rows"
COLUMNS = ("scope", "key", "value", "tag", "tag2")


def records_of(rows: str, records: str) -> str:
    """The records of each scope, with the name of its function: those of the cut's epoch and all earlier ones."""
    at_cuts = f"select *, explode(sequence(epoch, cuts - 1)) as cut from {rows} where epoch is not null"
    times = f"select window, mark.* from (select window, explode(marks) as mark from ({marks(records)}))"
    return (
        f"select cast(node as bigint) * {SCOPES} + rows.cut as scope,\n"
        "  function, row_number() over (partition by node, rows.cut, key order by epoch, place, seq) as n,\n"
        "  key, value, tag, tag2, coalesce(ts, 0L) as time,\n"
        f"  coalesce(marks.time, {BEGINNING}L) as watermark\n"
        f"from ({at_cuts}) as rows left join ({times}) as marks on node = marks.window and rows.cut = marks.cut"
    )


def new_rows(given: str, rows: str) -> str:
    """The rows of each cut that the previous cut did not have, or not as often, in the plan's columns."""
    values = "key, value, tag, tag2"
    counts = (
        f"select cast(scope div {SCOPES} as int) as node, cast(scope % {SCOPES} as int) as cut,\n"
        f"  {values}, count(*) as n from {given} group by scope, {values}"
    )
    fresh = f"select *, n - coalesce(lag(n) over (partition by node, {values} order by cut), 0) as more from ({counts})"
    steps = f"select node as at, any_value(then) as then from {rows} group by node"
    return (
        f"select then, 0 as what, at, {values}, cut as epoch, cast(null as int) as until,\n"
        "  0L as place, 0L as seq, 0L as ts\n"
        f"from (select *, explode(sequence(1L, more)) as repeat from ({fresh}) where more > 0)\n"
        f"join ({steps}) on node = at"
    )


def given_by(function: str, taken: DataFrame) -> DataFrame:
    """The rows that the user's `spark` returns for records; raises CounterpartFailed if they are no table of rows."""
    spark = counterpart(function).spark
    try:
        made = spark(taken)
    except CounterpartFailed:
        raise
    except Exception as error:  # whatever a user's code raises
        reason = f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"
        raise CounterpartFailed(f"`spark` of {function} raised {reason}") from error
    lacking = [name for name in COLUMNS if name not in getattr(made, "columns", ())]
    if lacking:
        raise CounterpartFailed(f"`spark` of {function} gives no column {', '.join(lacking)}")
    given: DataFrame = made.select(*(made[name].cast("bigint").alias(name) for name in COLUMNS))
    return given


def by_function(table: pa.Table) -> dict[str, pa.Table]:
    """The records that user functions take, by function."""
    names = pc.unique(table["function"]).to_pylist() if table.num_rows else []
    return {name: table.filter(pc.equal(table["function"], name)).drop_columns(["function"]) for name in names}
