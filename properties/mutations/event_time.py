"""Mutations of event time (see `tampering`); only a history with windows has a place for them."""

from __future__ import annotations

import msgspec

from ..model.history import History, StoredState, TaskRun
from ..model.workload import END_OF_TIME, is_clocked, window_of
from ..quick_checker.case import Case
from .cuts_and_records import Mutation, middle


def add_pending_timer(case: Case) -> Mutation | None:
    """A timer is still pending in the last snapshot of a finished or drained job."""
    window = window_of(case.workload)
    last = {ended.checkpoint for ended in case.commands.ends if ended.status in ("finished", "drained")}
    if window is None or not last:
        return None
    held = [handle for one in case.history.completed if one.checkpoint in last for handle in one.handles.values()]
    task = f"{window.name}-0"
    at = middle([at for at, one in enumerate(case.history.stored) if one.handle in held and one.task == task])
    if at is None:
        return None

    def alter(history: History) -> None:
        stored = history.stored[at]
        state = msgspec.json.decode(stored.state)
        state["timers"] = [[0, 0, 0]]
        stored.state = msgspec.json.encode(state).decode()

    return ("drain",), alter


def killed_amid(case: Case) -> int | None:
    """The index of a source's run that ended before it had read all records, and that was not asked to drain."""
    sources = {source.name for source in case.workload.inputs}
    lengths = {split: len(records) for split, _, records in case.workload.splits()}
    return middle(
        [
            at
            for at, run in enumerate(case.history.runs)
            if run.operator in sources
            and not run.end_of_data
            and not asked_to_drain(case, run)
            and is_amid(run, lengths)
        ]
    )


def end_early(case: Case) -> Mutation | None:
    """A source that died before it had read all records had sent the end of data."""
    at = killed_amid(case)
    if at is None or window_of(case.workload) is None:
        return None

    def alter(history: History) -> None:
        history.runs[at].end_of_data = True

    return ("drain",), alter


def is_amid(run: TaskRun, lengths: dict[int, int]) -> bool:
    return bool(run.reads) and run.reads[-1][1] + 1 < lengths[run.reads[-1][0]]


def asked_to_drain(case: Case, run: TaskRun) -> bool:
    return any(one.issued.drain and one.job == run.job for one in case.commands.asked)


def shift_time(case: Case) -> Mutation | None:
    """A source's snapshot has a later event time than the source had read."""
    places = []
    held = {
        handle for number in case.lineage.checkpoints for handle in case.lineages.completed[number].handles.values()
    }
    for number, one in enumerate(case.history.stored):
        state = msgspec.json.decode(one.state, type=StoredState) if one.state and one.handle in held else None
        if state is not None and state.maxima:
            places.append(number)
    at = middle(places)
    if at is None:
        return None

    def alter(history: History) -> None:
        stored = history.stored[at]
        state = msgspec.json.decode(stored.state)
        split = next(iter(state["maxima"]))
        state["maxima"][split] += 1
        stored.state = msgspec.json.encode(state).decode()

    return ("consistent-cut",), alter


def advance_early(case: Case) -> Mutation | None:
    """A window's watermark was `END_OF_TIME` after its first record."""
    window = window_of(case.workload)
    if window is None or is_clocked(window.operator) or "W" not in case.classes.values():
        return None
    places = [
        at
        for at, run in enumerate(case.history.runs)
        if run.operator == window.name
        and len(run.applies) > 1
        and (segment := case.lineage.segment(run.task, run.attempt)) is not None
        and segment.applies > 1
    ]
    at = middle(places)
    if at is None:
        return None

    def alter(history: History) -> None:
        run = history.runs[at]
        run.watermarks.insert(0, (1, END_OF_TIME))
        for mark in run.marks:
            mark.watermarks += 1

    return ("exactly-once",), alter
