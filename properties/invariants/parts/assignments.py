"""Splits that an enumerator gives to readers: each has one owner at a time, in every attempt and in every cut.

An assignment is a message: a read of a split follows from the assignment of it to
that reader, and in a consistent cut it lies with the enumerator or with the reader
that has it, never with both and never with neither.  The network's word of what
reached a reader (`TaskRun.assigned`) and the checkpoint's record of the enumerator
(`Completed.enumerators`) are held against the reads and the readers' snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model.history import TaskRun
from ...model.verdict import Violated
from ...model.words import journal_until
from ...quick_checker.case import Case


def _inputs(case: Case) -> list[str]:
    return [source.name for source in case.workload.inputs if source.is_enumerated]


def _runs(case: Case) -> Iterator[TaskRun]:
    """Attempts of readers, in the order in which they began."""
    names = _inputs(case)
    yield from (run for run in case.history.runs if run.operator in names)


def two_owners(case: Case) -> Violated | None:
    """A split that two readers of one attempt were given, or that somebody reads who was not given it."""
    owners: dict[tuple[int, int], TaskRun] = {}
    for run in _runs(case):
        given: dict[int, int] = {}
        for before, split, _ in run.assigned:
            given.setdefault(split, before)
            owner = owners.setdefault((run.attempt, split), run)
            if owner is not run:
                told = f"split {split} was given to {owner.task} and to {run.task} in attempt {run.attempt}"
                return _violated(case, "two owners", told, (owner.task, run.task), run)
        for number, (split, offset) in enumerate(run.reads):
            if split not in given or number < given[split]:
                told = f"{run.task} of attempt {run.attempt} read record {offset} of split {split}, which nobody"
                return _violated(case, "read without assignment", f"{told} had given to it", (run.task,), run)
    return None


def in_one_place(case: Case, checkpoint: int) -> Violated | None:
    """A split that a completed checkpoint has twice or, though it was given to somebody, not at all."""
    completed = case.lineages.completed[checkpoint]
    for name in _inputs(case):
        told = completed.enumerators.get(name)
        if told is None:
            continue
        held: dict[int, str] = {}
        for task, state in case.states(checkpoint).items():
            if task.rpartition("-")[0] != name:
                continue
            for split in state.positions:
                if split in held or split in told.unassigned:
                    other = held.get(split, "the enumerator")
                    message = f"checkpoint {checkpoint} has split {split} twice: with {task} and with {other}"
                    return _violated(case, "split held twice", message, (task,), None, checkpoint)
                held[split] = task
        for split, task in told.assigned.items():
            if held.get(split) != task:
                message = f"checkpoint {checkpoint}: the enumerator had given split {split} to {task},"
                message += f" and {held.get(split, 'nobody')} has it"
                return _violated(case, "split held by nobody", message, (task,), None, checkpoint)
    return None


def given_elsewhere(case: Case) -> Violated | None:
    """A split that an attempt gave from another position than the snapshot has that it restored."""
    for run in _runs(case):
        restored = case.lineages.restored(run.task, run.attempt)
        positions = case.positions(restored if restored in case.lineages.completed else None)
        for _, split, position in run.assigned:
            if position != positions[split]:
                what = f"checkpoint {restored} has" if restored is not None else "a new job begins with"
                told = f"{run.task} of attempt {run.attempt} was given split {split} from record {position},"
                return _violated(case, "read on from elsewhere", f"{told} {what} {positions[split]}", (run.task,), run)
    return None


def _violated(
    case: Case,
    difference: str,
    message: str,
    tasks: tuple[str, ...],
    run: TaskRun | None,
    checkpoint: int | None = None,
) -> Violated:
    until = run.ended if run is not None else None
    return Violated(
        difference=difference,
        message=message,
        checkpoint=checkpoint,
        tasks=tasks,
        events=journal_until(case.history, until),
    )
