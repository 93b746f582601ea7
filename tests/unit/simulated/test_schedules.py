"""Deviations from the default schedule, each by its name; unbounded jobs that come to rest; endings."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.faults.plan import AtTime, KillCoordinator, KillTask
from cutproof.harness.scenario.model import Cancel, Perturbation, Resume, Savepoint, StopWithSavepoint
from cutproof.properties.model.history import CommandReturned, History, JobEnded
from unit.simulated.worlds import ended, fired, job, journal, rows, run, shown

LATE_US = 900


@pytest.mark.parametrize(
    ("what", "task", "shows"),
    [
        ("message op0-0>op1-0", "op1-0", "record-applied"),
        ("control trigger source-0", "source-0", "trigger-received"),
        ("write op1-0", "op1-0", "snapshot-persisted"),
        ("step op1-0", "op1-0", "record-applied"),
        ("transaction sink-0", "sink-0", "record-applied"),
    ],
)
def test_each_kind_of_happening_can_be_late(what: str, task: str, shows: str) -> None:
    def times(history: History) -> list[int]:
        return [event.at_us for event in shown(history, task, shows)]

    plain = run(job(), timeline=True)
    late = run(job(deviations=(Perturbation(what=what, occurrence=1, by_us=LATE_US),)), timeline=True)
    assert late.unapplied == []
    assert 0 < times(late)[0] - times(plain)[0] <= LATE_US
    assert Counter(late.committed) == Counter(plain.committed)


def test_the_record_of_a_checkpoint_can_be_late() -> None:
    def first(**more: object) -> int:
        return run(job(**more)).completed[0].at_us

    late = (Perturbation(what="write coordinator", occurrence=1, by_us=LATE_US),)
    assert first(deviations=late) == first() + LATE_US


def test_a_read_can_be_late() -> None:
    kill = (KillTask(trigger=AtTime(at_us=6_000), task="op1-0"),)

    def running(**more: object) -> int:
        history = run(job(faults=kill, **more))
        return [entry.at_us for entry in history.journal if entry.__struct_config__.tag == "attempt-running"][1]

    late = (Perturbation(what="read op1-0", occurrence=1, by_us=LATE_US),)
    assert 0 < running(deviations=late) - running() <= LATE_US, "others may take longest"


def test_a_perturbation_that_never_came_is_reported() -> None:
    history = run(job(deviations=(Perturbation(what="write op1-0", occurrence=999, by_us=5),)))
    assert history.unapplied == ["write op1-0, occurrence 999"]


# -- how jobs end ------------------------------------------------------------------------------------------------


def test_an_unbounded_job_comes_to_rest_once_everything_is_covered() -> None:
    scenario = job(bounded=False)
    history = run(scenario)
    assert history.quiet
    assert journal(JobEnded, history) == []
    assert Counter(history.committed) == rows(scenario)
    assert history.residue.live_sinks == 1
    assert len(history.residue.open_transactions) == 1


@pytest.mark.parametrize("drain", [False, True])
def test_a_stopped_job_resumes_without_a_gap_or_a_repeat(drain: bool) -> None:
    stop = StopWithSavepoint(trigger=AtTime(at_us=4_000), drain=drain)
    scenario = job(commands=(stop, Resume(trigger=AtTime(at_us=700))))
    history = run(scenario)
    assert [entry.status for entry in journal(JobEnded, history)] == ["drained" if drain else "stopped", "finished"]
    assert Counter(history.committed) == rows(scenario)
    assert {one.job for one in history.runs} == {1, 2}
    restored = [one.loaded.checkpoint for one in history.runs if one.job == 2 and one.loaded]
    assert set(restored) == {journal(JobEnded, history)[0].checkpoint}


def test_a_stopped_job_leaves_the_rest_unread() -> None:
    scenario = job(commands=(StopWithSavepoint(trigger=AtTime(at_us=4_000)),))
    history = run(scenario)
    assert ended(history) == ("stopped", "")
    assert Counter(history.committed) < rows(scenario)
    assert history.residue.open_transactions == history.residue.prepared_transactions == []


def test_a_savepoint_is_answered_and_kept() -> None:
    history = run(job(commands=(Savepoint(trigger=AtTime(at_us=2_000)),)))
    (returned,) = journal(CommandReturned, history)
    assert returned.error == ""
    assert returned.checkpoint in history.residue.retained


def test_a_cancelled_job_leaves_no_transaction_open() -> None:
    history = run(job(commands=(Cancel(trigger=AtTime(at_us=4_000)),)))
    assert ended(history) == ("cancelled", "by its user")
    assert history.residue.open_transactions == []
    assert history.residue.live_sinks == 0


def test_nobody_commands_a_dead_coordinator() -> None:
    dead = KillCoordinator(trigger=AtTime(at_us=3_000), down_us=2_000)
    history = run(job(faults=(dead,), commands=(Savepoint(trigger=AtTime(at_us=4_000)),)))
    (returned,) = journal(CommandReturned, history)
    assert returned.error == "no coordinator answers"
    assert fired(history) == ["kill-coordinator"]


def test_commands_that_were_never_given_are_reported() -> None:
    """The job finishes before the stop is due, and a finished job is not resumed."""
    late = AtTime(at_us=900_000)
    history = run(job(commands=(StopWithSavepoint(trigger=late), Resume(trigger=AtTime(at_us=1)))))
    assert history.unapplied == ["command 0: stop-with-savepoint", "resume"]
    assert ended(history) == ("finished", "")


def test_a_cancelled_job_resumes_from_its_newest_checkpoint() -> None:
    scenario = job(commands=(Cancel(trigger=AtTime(at_us=6_000)), Resume(trigger=AtTime(at_us=500))))
    history = run(scenario)
    assert [entry.status for entry in journal(JobEnded, history)] == ["cancelled", "finished"]
    assert Counter(history.committed) == rows(scenario)
    newest = max(one.checkpoint for one in history.completed if one.job == 1)
    assert {one.loaded.checkpoint for one in history.runs if one.job == 2 and one.loaded} == {newest}
