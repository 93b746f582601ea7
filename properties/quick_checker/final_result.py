"""What a bounded job leaves behind, however it was executed (FIN-6; FLIP-147).

Streaming shows every update of a running count or sum, a batch only the last;
what the two must agree on is what is left in the end.  Where the sink is fed by
an *update stream*, of which each row of a key replaces the one before, that is
the last row of each key; of any other output it is all rows.

By the classes of `classes`: in M and S the rows are a function of the input
(of its multiset, or of the order within each split, which a batch keeps: its
sorting by key is stable).  So is the final row of a count or sum that is fed by
such rows in whatever order.  In H they depend on how a run happened to merge
its inputs, a batch merges them otherwise, and both are right: not comparable.
So is any class that is not known here, the one of late data above all.
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
        return False  # there a row is taken back by another: all of them are owed
    return isinstance(operator, (Sum, Tally)) or (isinstance(operator, Count) and not operator.tagged)


def is_fixed(workload: Workload, topology: Topology) -> bool:
    """Whether the input alone determines the final result."""
    grades = classes(workload, topology)
    if is_update_stream(workload):
        return all(grades[name] in FIXED for name in workload.nodes[-1].inputs)
    return grades[workload.output] in FIXED


def shows_last(workload: Workload, topology: Topology) -> bool:
    """Whether the order in which sinks wrote their rows tells the last of each key, where that matters."""
    return not is_update_stream(workload) or last_row_is_fixed(workload, topology)


def final_result(workload: Workload, rows: Iterable[Row]) -> Counter[Row]:
    """What is left of the rows, given in the order in which they were written."""
    if is_update_stream(workload):
        return Counter({row[0]: row for row in rows}.values())
    return Counter(rows)
