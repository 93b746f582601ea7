"""What a bounded job leaves behind, however it was executed (FIN-6; FLIP-147).

Streaming shows every update of a running count or sum; a batch shows only the last.  The
two must agree on the final result.  Where the sink is fed by an *update stream*, of
which each row of a key replaces the one before, the final result is the last row of each
key; of any other output it is all rows.

The classes of `classes` decide what is comparable.  In M and S the rows are a function
of the input (of its multiset, or of the order within each split, which a batch keeps:
its sorting by key is stable).  The final row of a count or sum over such rows is one
too, whatever their order.  In H the rows depend on how a run merged its inputs.  A batch
merges them in another order, and both are right: not comparable.  Neither is any other
class, above all that of late data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..model.workload import Count, Row, Sum, Tally, Topology, Workload, is_changelog
from ..semantics.classes import classes, last_row_is_fixed

FIXED = ("M", "S")
"""classes whose rows the input alone determines"""


def is_update_stream(workload: Workload) -> bool:
    """Whether each row that reaches the sink replaces the one before it of its key."""
    if not workload.nodes:
        return False
    operator = workload.nodes[-1].operator
    if is_changelog(operator):
        return False  # there a row is taken back by another: all of them are expected
    return isinstance(operator, (Sum, Tally)) or (isinstance(operator, Count) and not operator.tagged)


def is_fixed(workload: Workload, topology: Topology) -> bool:
    """Whether the input alone determines the final result."""
    grades = classes(workload, topology)
    if is_update_stream(workload):
        return all(grades[name] in FIXED for name in workload.nodes[-1].inputs)
    return grades[workload.output] in FIXED


def shows_last(workload: Workload, topology: Topology) -> bool:
    """Whether the order in which sinks wrote their rows decides which is the last of each key, where that matters."""
    return not is_update_stream(workload) or last_row_is_fixed(workload, topology)


def final_result(workload: Workload, rows: Iterable[Row]) -> Counter[Row]:
    """What is left of the rows, given in the order in which they were written."""
    if is_update_stream(workload):
        return Counter({row[0]: row for row in rows}.values())
    return Counter(rows)
