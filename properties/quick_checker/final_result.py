"""The final result of a bounded job, in streaming or in batch execution (FIN-6; FLIP-147).

Streaming emits every update of a running count or sum; a batch execution emits only the
last one.  The two must agree on the final result.  If the sink takes an *update stream*,
in which each row of a key replaces the previous one, the final result is the last row of
each key.  For any other output the final result is all rows.

The class of the rows (see `classes`) decides whether the two can be compared.  In M and
S the rows are a function of the input: of its multiset, or of the order within each
split.  A batch execution keeps this order, since its sorting by key is stable.  The
final row of a count or sum over such rows is a function of the input too, whatever their
order.  In H the rows depend on how a run merged its inputs.  A batch execution merges
them in another order, and both orders are right, so the results cannot be compared.  The
same holds for class W.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.workload import Count, Row, Sum, Tally, Topology, Workload, is_changelog
from ..semantics.classes import classes, last_row_is_fixed

FIXED = ("M", "S")
"""classes whose rows the input alone determines"""


def is_update_stream(workload: Workload) -> bool:
    """Whether each row that reaches the sink replaces the previous row of its key."""
    if not workload.nodes:
        return False
    operator = workload.nodes[-1].operator
    if is_changelog(operator):
        return False  # rows of a changelog retract each other: all of them are expected
    return isinstance(operator, (Sum, Tally)) or (isinstance(operator, Count) and not operator.tagged)


def is_fixed(workload: Workload, topology: Topology) -> bool:
    """Whether the input alone determines the final result."""
    grades = classes(workload, topology)
    if is_update_stream(workload):
        return all(grades[name] in FIXED for name in workload.nodes[-1].inputs)
    return grades[workload.output] in FIXED


def shows_last(workload: Workload, topology: Topology) -> bool:
    """Whether the row that the sinks wrote last of each key is its final one; true where there is no update stream."""
    return not is_update_stream(workload) or last_row_is_fixed(workload, topology)


def final_result(workload: Workload, rows: Iterable[Row]) -> Counter[Row]:
    """The final result of the rows, which are given in the order in which they were written."""
    if is_update_stream(workload):
        return Counter({row[0]: row for row in rows}.values())
    return Counter(rows)
