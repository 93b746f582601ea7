"""A user function: the class that the engine runs, and one counterpart for each judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ....properties.model.workload import Node, User
from ....properties.semantics.user_functions import CounterpartFailed, Expecting
from ....reference_impl.core.operators.user_functions import Function


def never_asked(records: Any) -> Any:
    """The `spark` of a function about which PySpark is never asked."""
    raise CounterpartFailed("PySpark is not asked of a function that goes by processing time")


def in_sql(text: str, **constants: int) -> Callable[[Any], Any]:
    """A function's `spark`, made of a query on `{records}`; the query has constants by name, in braces too."""
    return lambda records: records.sparkSession.sql(text, records=records, **constants)


class UserFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A user's operator, and its two counterparts.

    `function` is the class that the reference engine runs.  `expected` is for the quick checker: it takes a key's
    records in order and the watermark's time, and returns all rows that are expected by then.  `spark` is for PySpark:
    it returns the same rows as a DataFrame (see `cutproof.properties.spark.user_functions`).  A function that uses
    processing time needs no `spark`, because PySpark is not asked about it.
    """

    name: str
    function: type[Function]
    expected: Expecting
    spark: Callable[[Any], Any] = never_asked
    ordered: bool = False
    """whether its rows depend on the order of a key's records"""

    @property
    def operator(self) -> User:
        """The operator in the form that a workload has."""
        kind = self.function
        return User(function=self.name, ordered=self.ordered, timed=kind.timed, clocked=kind.clocked)

    def node(self, *inputs: str, name: str | None = None) -> Node:
        """A node of a workload that runs this function, named after the function by default."""
        return Node(name=name or self.name, operator=self.operator, inputs=inputs)
