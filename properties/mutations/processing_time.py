"""Mutations of processing time (see `tampering`).

Only a history with an operator in processing time has a place for them.
"""

from __future__ import annotations

import msgspec

from ..model.history import History
from ..model.workload import END_OF_TIME, Burst, is_clocked, window_of
from ..quick_checker.case import Case
from .cuts_and_records import Mutation, middle


def end_clock_early(case: Case) -> Mutation | None:
    """A task received `END_OF_TIME` after its first record."""
    node = window_of(case.workload)
    if node is None or not is_clocked(node.operator):
        return None
    segments = [one for one in case.lineage.of_operator(node.name) if one.applies > 1 and len(one.run.ticks) > 1]
    at = middle([case.history.runs.index(one.run) for one in segments])
    if at is None:
        return None

    def alter(history: History) -> None:
        run = history.runs[at]
        run.ticks.insert(1, (1, END_OF_TIME))
        for mark in run.marks:
            mark.ticks += mark.applies > 0

    return ("exactly-once",), alter


def keep_timer(case: Case) -> Mutation | None:
    """A snapshot holds a timer in processing time that no record had set."""
    node = window_of(case.workload)
    if node is None or not isinstance(node.operator, Burst):
        return None
    handles = {case.lineages.completed[one].handles.get(f"{node.name}-0") for one in case.lineage.checkpoints}
    at = middle([at for at, one in enumerate(case.history.stored) if one.handle in handles])
    if at is None:
        return None

    def alter(history: History) -> None:
        stored = history.stored[at]
        state = msgspec.json.decode(stored.state)
        state["alarms"] = [*state.get("alarms", ()), [1, 1, 1]]
        stored.state = msgspec.json.encode(state).decode()

    return ("consistent-cut",), alter
