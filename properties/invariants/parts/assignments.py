"""The splits that an enumerator assigns to readers: each has one owner at a time, in every attempt and in every cut.

An assignment is a message.  A reader reads a split only after the enumerator assigned
the split to it.  In a consistent cut a split is either with the enumerator or with its
reader, never with both and never with neither.  The network's record of the assignments
that reached a reader (`TaskRun.assigned`) and the checkpoint's record of the enumerator
(`Completed.enumerators`) are compared with the reads and with the readers' snapshots.
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
    """A split that was assigned to two readers of one attempt, or that a task reads without assignment."""
    owners: dict[tuple[int, int], TaskRun] = {}
    for run in _runs(case):
        assigned: dict[int, int] = {}
        for before, split, _ in run.assigned:
            assigned.setdefault(split, before)
            owner = owners.setdefault((run.attempt, split), run)
            if owner is not run:
                message = f"split {split} was assigned to {owner.task} and to {run.task} in attempt {run.attempt}"
                return _violated(case, "two owners", message, (owner.task, run.task), run)
        for number, (split, offset) in enumerate(run.reads):
            if split not in assigned or number < assigned[split]:
                message = (
                    f"{run.task} of attempt {run.attempt} read record {offset} of split {split} without assignment"
                )
                return _violated(case, "read without assignment", message, (run.task,), run)
    return None


def in_one_place(case: Case, checkpoint: int) -> Violated | None:
    """A split that a completed checkpoint has twice, or not at all although it was assigned."""
    completed = case.lineages.completed[checkpoint]
    for name in _inputs(case):
        enumerated = completed.enumerators.get(name)
        if enumerated is None:
            continue
        held: dict[int, str] = {}
        for task, state in case.states_of(name, checkpoint).items():
            for split in state.positions:
                if split in held or split in enumerated.unassigned:
                    other = held.get(split, "the enumerator")
                    message = f"checkpoint {checkpoint} has split {split} twice: with {task} and with {other}"
                    return _violated(case, "split held twice", message, (task,), None, checkpoint)
                held[split] = task
        for split, task in enumerated.assigned.items():
            if held.get(split) != task:
                message = f"checkpoint {checkpoint}: the enumerator had assigned split {split} to {task},"
                message += f" and {held.get(split, 'no task')} has it"
                return _violated(case, "split held by nobody", message, (task,), None, checkpoint)
    return None


def assigned_elsewhere(case: Case) -> Violated | None:
    """A split that an attempt assigned from another position than that of the restored snapshot."""
    for run in _runs(case):
        restored = case.lineages.restored(run.task, run.attempt)
        positions = case.positions(restored if restored in case.lineages.completed else None)
        for _, split, position in run.assigned:
            if position != positions[split]:
                what = f"checkpoint {restored} has" if restored is not None else "a new job begins with"
                message = f"{run.task} of attempt {run.attempt} was assigned split {split} from record {position},"
                return _violated(
                    case, "read on from elsewhere", f"{message} but {what} {positions[split]}", (run.task,), run
                )
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
