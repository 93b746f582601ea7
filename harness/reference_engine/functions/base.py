"""What a user function is to whoever runs and judges it: the engine's class, and two counterparts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ....properties.model.workload import Node, User
from ....properties.semantics.user_functions import CounterpartFailed, Expecting
from ....reference_impl.core.user_functions import Function


def never_asked(records: Any) -> Any:
    """In the place of a function's `spark`, where PySpark is not asked."""
    raise CounterpartFailed("PySpark is not asked of a function that goes by processing time")


def in_sql(text: str, **constants: int) -> Callable[[Any], Any]:
    """A function's `spark` as a query of `{records}`; the constants stand in it by their names, in braces too."""
    return lambda records: records.sparkSession.sql(text, records=records, **constants)


class UserFunction(msgspec.Struct, frozen=True, kw_only=True):
    """An operator of the user's own, and its two counterparts.

    `function` is the class that the reference engine runs.  `expected` is for the quick checker: it takes a key's
    records in order and the watermark's time, and returns all rows that are expected by then.  `spark` is for PySpark:
    it returns the same rows as a DataFrame (see `cutproof.properties.spark.user_functions`).  A function that goes by
    processing time needs no `spark`: PySpark is not asked about it.
    """

    name: str
    function: type[Function]
    expected: Expecting
    spark: Callable[[Any], Any] = never_asked
    ordered: bool = False
    """its rows depend on the order of a key's records"""

    @property
    def operator(self) -> User:
        """As a workload describes it."""
        kind = self.function
        return User(function=self.name, ordered=self.ordered, timed=kind.timed, clocked=kind.clocked)

    def node(self, *inputs: str, name: str | None = None) -> Node:
        """A node of a workload that this function works on; it is called as the function, if not otherwise."""
        return Node(name=name or self.name, operator=self.operator, inputs=inputs)
