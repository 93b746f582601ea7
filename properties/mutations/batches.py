"""Mutations of rows that batches buffer (see `tampering`)."""

from __future__ import annotations

import msgspec

from ..invariants.drain import keeps_back
from ..model.history import History
from ..quick_checker.case import Case
from ..reconstruct.buffered_rows import ROWS, batches, still_to_come
from .cuts_and_records import Mutation, middle, show_one


def hold_back(case: Case) -> Mutation | None:
    """A batch still buffers a row in the last snapshot of a finished or drained job."""
    tasks = {f"{name}-0" for name in batches(case.workload)}
    last = {ended.checkpoint for ended in case.commands.ends if ended.status in ("finished", "drained")}
    held = {handle for one in case.history.completed if one.checkpoint in last for handle in one.handles.values()}
    at = middle([at for at, one in enumerate(case.history.stored) if one.handle in held and one.task in tasks])
    if at is None:
        return None

    def alter(history: History) -> None:
        stored = history.stored[at]
        state = msgspec.json.decode(stored.state)
        state.setdefault("listed", []).append([ROWS, "[0,0,0,0,0,null]"])
        stored.state = msgspec.json.encode(state).decode()

    return ("drain",), alter


def show_waiting_row(case: Case) -> Mutation | None:
    """The sink shows a row that a batch still buffered when a job stopped."""
    if not case.rows_are_known:
        return None
    expected = case.expected.rows_up_to(case.closing.epoch)
    stops = [ended.checkpoint for ended in case.commands.ends if keeps_back(case, ended)]
    rows = [
        row
        for checkpoint in stops
        if checkpoint is not None and checkpoint in case.lineages.completed
        for row in still_to_come(case.workload, case.states(checkpoint))
        if case.committed[row] >= expected[row]
    ]
    return show_one(rows)
