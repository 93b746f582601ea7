"""Mutations of cuts, states and records in channels (see `tampering`), and what all mutations share.

Each function takes a case.  It returns the invariants that the mutation should violate
and the change to a copy of the history, or None if the history has no place for it.  The
function's docstring says what the mutated history shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from ..model.history import History, Stored, TaskRun
from ..model.workload import Row
from ..quick_checker.case import Case

T = TypeVar("T")
Alteration = Callable[[History], None]
Mutation = tuple[tuple[str, ...], Alteration]
"""The invariants that the mutation should violate, and the change to (a copy of) the history."""


def middle(candidates: Sequence[T]) -> T | None:
    return candidates[len(candidates) // 2] if candidates else None


def out_of_range(value: int | None) -> int:
    """A value that no scenario has: far outside the range of drawn values."""
    return (value or 0) + (1 << 50)


def knows_rows_read(case: Case) -> bool:
    """Whether it is known which uncommitted row a reader saw.

    It is unknown if rows follow the applied records, and a row may be any of several.
    """
    follows = case.expected.follows_applies
    return not follows or case.is_determined(every_attempt=case.by_applies)


def show_one(rows: Sequence[Row]) -> Mutation | None:
    """A reader sees one of these rows, none of which may show."""
    chosen = middle(rows)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        history.committed.append(chosen)

    return ("drain", "exactly-once"), alter


# cuts and states


def _snapshots(case: Case, wanted: Callable[[Stored], bool]) -> list[tuple[int, Stored]]:
    """(index, entry) of the store's entries that belong to completed checkpoints on the lineage."""
    kept = {
        handle for number in case.lineage.checkpoints for handle in case.lineages.completed[number].handles.values()
    }
    return [(at, one) for at, one in enumerate(case.history.stored) if one.handle in kept and wanted(one)]


def _touching(case: Case, stored: Stored) -> tuple[str, ...]:
    """The invariants that a changed snapshot in the store violates: restored-state only if it was restored."""
    restored = any(
        run.task == stored.task and run.loaded is not None and run.loaded.checkpoint == stored.checkpoint
        for run in case.history.runs
    )
    return ("consistent-cut", "restored-state") if restored else ("consistent-cut",)


def _edited(text: str, edit: Callable[[dict[str, Any]], None]) -> str:
    """A snapshot's text after an edit, which keeps the engine's own fields."""
    state: dict[str, Any] = msgspec.json.decode(text)
    edit(state)
    return msgspec.json.encode(state).decode()


def _move_position(state: dict[str, Any]) -> None:
    split = max(state["positions"], key=lambda name: state["positions"][name])
    state["positions"][split] -= 1


def _edit_entry(state: dict[str, Any]) -> None:
    side, key, value, tag = state["entries"][0]
    state["entries"][0] = [side, key, out_of_range(value), tag]


def _has_position(text: str) -> bool:
    return any(msgspec.json.decode(text).get("positions", {}).values()) if text else False


def _has_entry(text: str) -> bool:
    return bool(msgspec.json.decode(text).get("entries")) if text else False


def _has_rule(text: str) -> bool:
    return bool(msgspec.json.decode(text).get("broadcast")) if text else False


def _drop_rule(state: dict[str, Any]) -> None:
    del state["broadcast"][0]


def in_store(case: Case, has: Callable[[str], bool], edit: Callable[[dict[str, Any]], None]) -> Mutation | None:
    chosen = middle(_snapshots(case, lambda one: has(one.state)))
    if chosen is None:
        return None

    def alter(history: History) -> None:
        stored = history.stored[chosen[0]]
        stored.state = _edited(stored.state, edit)

    return _touching(case, chosen[1]), alter


def move_cut(case: Case) -> Mutation | None:
    return in_store(case, _has_position, _move_position)


def edit_stored(case: Case) -> Mutation | None:
    """Stored keyed state has another value; only if the replay determines that value."""
    if case.follows_order and not case.is_determined(at_sink=False):
        return None
    return in_store(case, _has_entry, _edit_entry)


def drop_stored_rule(case: Case) -> Mutation | None:
    """One subtask's copy of broadcast state lacks a rule.

    It need not violate restored-state: without alignment copies may differ, and a new subtask may have loaded another.
    """
    mutation = in_store(case, _has_rule, _drop_rule)
    return (("consistent-cut",), mutation[1]) if mutation is not None else None


def shift_epoch(case: Case) -> Mutation | None:
    """A receiver's mark lies before the last record that it covers."""
    places = []
    for at, run in enumerate(case.history.runs):
        segment = case.lineage.segment(run.task, run.attempt)
        for number, mark in enumerate(run.marks if segment is not None else ()):
            earlier = run.marks[number - 1].applies if number else 0
            if segment is not None and mark in segment.marks and mark.applies > earlier:
                places.append((at, number))
    chosen = middle(places)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        run = history.runs[chosen[0]]
        mark = run.marks[chosen[1]]
        mark.applies -= 1
        mark.received[run.applies[mark.applies][0]] -= 1

    return ("consistent-cut",), alter


# the state that attempts loaded


def _loaded(case: Case, has: Callable[[str], bool]) -> list[int]:
    return [at for at, run in enumerate(case.history.runs) if run.loaded is not None and has(run.loaded.state)]


def edit_loaded(case: Case) -> Mutation | None:
    entries = _loaded(case, _has_entry)
    at = middle(entries or _loaded(case, _has_position))
    if at is None:
        return None
    edit = _edit_entry if entries else _move_position

    def alter(history: History) -> None:
        loaded = history.runs[at].loaded
        if loaded is not None:
            loaded.state = _edited(loaded.state, edit)

    return ("restored-state",), alter


def drop_loaded_rule(case: Case) -> Mutation | None:
    at = middle(_loaded(case, _has_rule))
    if at is None:
        return None

    def alter(history: History) -> None:
        loaded = history.runs[at].loaded
        if loaded is not None:
            loaded.state = _edited(loaded.state, _drop_rule)

    return ("restored-state",), alter


def input_first(case: Case) -> Mutation | None:
    at = middle(_loaded(case, bool))
    if at is None:
        return None

    def alter(history: History) -> None:
        loaded = history.runs[at].loaded
        if loaded is not None:
            loaded.applies_before = 1

    return ("restored-state",), alter


# records in channels


def swap_applies(case: Case) -> Mutation | None:
    """Two neighbouring records of one channel are applied in the other order."""
    pairs = []
    for at, run in enumerate(case.history.runs):
        segment = case.lineage.segment(run.task, run.attempt)
        last: dict[int, int] = {}
        for number, (channel, origin) in enumerate(run.applies[: segment.applies] if segment is not None else ()):
            if channel in last and run.applies[last[channel]][1] != origin:
                pairs.append((at, last[channel], number))
            last[channel] = number
    chosen = middle(pairs)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        at, one, other = chosen
        applies = history.runs[at].applies
        applies[one], applies[other] = applies[other], applies[one]

    return ("order",), alter


def _apply_within(case: Case) -> tuple[int, int] | None:
    """(index of a run, index of an apply) of a record that the run has to have applied.

    It is the operator's only apply of this record: if repeats are allowed, another apply would make up for a lost one.
    """
    places = [(at, number) for at, run in enumerate(case.history.runs) for number in range(_answerable(case, run))]
    records = [(case.history.runs[at].operator, case.history.runs[at].applies[number][1]) for at, number in places]
    times = Counter(records)
    return middle([place for place, record in zip(places, records, strict=True) if times[record] == 1])


def _answerable(case: Case, run: TaskRun) -> int:
    """How many of a run's applies are judged: those within the closing cut, or in at-most-once mode all."""
    if case.history.guarantee == "at-most-once":
        return len(run.applies)
    segment = case.lineage.segment(run.task, run.attempt)
    return segment.applies_up_to(case.closing.epoch) if segment is not None else 0


def _count(history: History, run: TaskRun, number: int, by: int) -> None:
    """Adjust all counts of a run's applies by `by`, before an apply is inserted or removed at `number`."""
    channel = run.applies[number][0]
    for mark in run.marks:
        if mark.applies > number:
            mark.applies += by
            mark.received[channel] += by
    for transaction in history.transactions:
        if (transaction.task, transaction.attempt) == (run.task, run.attempt):
            transaction.applied = [taken + by if taken > number else taken for taken in transaction.applied]
    for written in history.written:
        if (written.task, written.attempt) == (run.task, run.attempt) and written.applied > number:
            written.applied += by


def skip_apply(case: Case) -> Mutation | None:
    chosen = _apply_within(case)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        run = history.runs[chosen[0]]
        _count(history, run, chosen[1], -1)
        del run.applies[chosen[1]]

    return ("no-data-loss", "at-least-once"), alter


def repeat_apply(case: Case) -> Mutation | None:
    chosen = _apply_within(case)
    if chosen is None:
        return None

    def alter(history: History) -> None:
        run = history.runs[chosen[0]]
        _count(history, run, chosen[1], 1)
        run.applies.insert(chosen[1], run.applies[chosen[1]])

    return ("order", "consistent-cut", "at-most-once"), alter
