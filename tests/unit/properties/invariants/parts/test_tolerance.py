"""Failed checkpoints in a row are counted from the history: when an attempt must end for them, and when it may not."""

from __future__ import annotations

import pytest

from cutproof.properties.invariants.parts.tolerance import misjudged_tolerance
from cutproof.properties.model.history import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    Completed,
    CoordinatorDown,
    JobEnded,
    TaskFailed,
)
from cutproof.properties.quick_checker.case import Case
from unit.properties.histories import counting
from unit.properties.toy import Toy

Event = tuple[str, int]


def judged(events: str, tolerated: int = 1, *, partial: bool = False) -> str:
    """The difference found in a job of which the events are given in words; empty if there is none.

    `trigger`, `abort`, `subsume` and `complete` are followed by the checkpoint's number.  `subsume` is an abort that is
    no failure.  The first attempt runs from the start.
    """
    toy = Toy(counting())
    history = toy.history()
    history.tolerated_failures = tolerated
    history.journal, history.completed = [], []
    attempt, job = 0, 1
    for order, event in enumerate(["start", "run", *events.split(", ")], 1):
        what, _, number = event.partition(" ")
        at = {"order": order, "at_us": order}
        checkpoint = int(number or 0)
        match what:
            case "start":
                attempt += 1
                tasks = ["numbers-0"] if partial and attempt > 1 else []
                history.journal.append(AttemptStarted(**at, attempt=attempt, job=job, tasks=tasks))
            case "run":
                history.journal.append(AttemptRunning(**at, attempt=attempt))
            case "trigger":
                history.journal.append(CheckpointTriggered(**at, checkpoint=checkpoint, job=job, attempt=attempt))
            case "abort" | "subsume":
                failed = what == "abort"
                history.journal.append(CheckpointAborted(**at, checkpoint=checkpoint, reason="any", failed=failed))
            case "complete":
                history.completed.append(Completed(**at, checkpoint=checkpoint, job=job, attempt=attempt, handles={}))
            case "lose":
                history.journal.append(TaskFailed(**at, task="numbers-0", attempt=attempt, reason="killed", fault=0))
            case "takeover":
                history.journal.append(CoordinatorDown(**at, fault=0))
            case "stop":
                history.journal.append(CommandIssued(**at, command=0, kind="stop-with-savepoint"))
            case "cancel":
                history.journal.append(JobEnded(**at, job=job, status="cancelled", reason="any"))
            case "resume":
                job += 1
                history.journal.append(CommandIssued(**at, command=1, kind="resume"))
            case _:
                assert what == "fail"
                history.journal.append(JobEnded(**at, job=job, status="failed", reason="any"))
    found = misjudged_tolerance(Case(toy.workload, toy.topology, history))
    return found.difference if found is not None else ""


ALLOWED = (
    "trigger 1, abort 1, trigger 2, abort 2, start",
    "trigger 1, abort 1, trigger 2, abort 2, fail",
    "trigger 1, abort 1, trigger 2, complete 2, trigger 3, abort 3, trigger 4, complete 4",
    "trigger 1, abort 1, lose, start, run, trigger 2, abort 2, trigger 3",
    "trigger 1, takeover, start",
    "trigger 1, lose, abort 1, start",
    "stop, trigger 1, abort 1, start",
    # a stop that is requested between a resume and the first attempt is of the job that is resumed
    "cancel, resume, stop, start, run, trigger 1, abort 1, start",
    # the record of a checkpoint is stored while the restart waits for it
    "trigger 1, trigger 2, abort 2, trigger 3, abort 3, complete 1, start",
    # subsumed: a newer one is complete
    "trigger 1, trigger 2, trigger 3, complete 3, abort 1, abort 2, trigger 4",
    # subsumed: a task declined it for the barrier of a newer one
    "trigger 1, trigger 2, subsume 1, trigger 3, subsume 2, trigger 4, abort 3, trigger 5, complete 5",
)


@pytest.mark.parametrize("events", ALLOWED)
def test_a_restart_with_a_reason_is_not_accused(events: str) -> None:
    assert judged(events) == ""


@pytest.mark.parametrize(
    "events",
    [
        "trigger 1, abort 1, start",
        "trigger 1, abort 1, fail",
        "trigger 1, abort 1, trigger 2, complete 2, trigger 3, abort 3, start",
        "trigger 1, trigger 2, complete 2, abort 1, trigger 3, abort 3, start",
        "trigger 1, trigger 2, subsume 1, abort 2, start",
        "stop, start",
        "lose, start, run, trigger 1, abort 1, start",
        # the job that was stopped is not the one that is resumed
        "stop, cancel, resume, start, run, trigger 1, abort 1, start",
    ],
)
def test_a_restart_for_too_few_failures_is_found(events: str) -> None:
    assert judged(events) == "tolerance not used up"


@pytest.mark.parametrize(
    ("events", "tolerated"),
    [
        ("trigger 1, abort 1, trigger 2, abort 2, trigger 3", 1),
        ("trigger 1, abort 1, trigger 2", 0),
        ("lose, start, run, trigger 1, abort 1, trigger 2", 0),
    ],
)
def test_a_job_that_goes_on_after_too_many_is_found(events: str, tolerated: int) -> None:
    assert judged(events, tolerated) == "failures not counted"


def test_the_restart_of_a_part_does_not_end_the_row() -> None:
    """Nobody outside knows whether the engine counts those aborted with the part; so neither count accuses it."""
    assert judged("trigger 1, lose, abort 1, start, run, trigger 2, abort 2, start", partial=True) == ""
    assert judged("trigger 1, lose, abort 1, start, run, trigger 2, abort 2, trigger 3", partial=True) == ""


def test_an_attempt_that_never_ran_has_other_reasons() -> None:
    assert judged("lose, start, start") == ""


def test_an_engine_whose_tolerance_is_unknown_is_not_judged() -> None:
    assert judged("start", -1) == ""
