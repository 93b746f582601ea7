"""What a scenario may say of the snapshots that a resume or a fork begins with."""

from __future__ import annotations

import pytest

from cutproof.faults.plan import AtRest, AtTime, KillTask
from cutproof.harness.counterexamples.words import command_in_words
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import AnyCommand, Cancel, Fork, Resume, Savepoint, StopWithSavepoint
from cutproof.harness.scenario.snapshots import named
from unit.simulated.worlds import job

SOON = AtTime(at_us=1_000)
EARLY = Savepoint(trigger=SOON, name="early")


def problems(*commands: AnyCommand) -> list[str]:
    return list(problems_of(job(10, commands=commands)))


@pytest.mark.parametrize("snapshot", ["newest", "oldest", "early"])
def test_a_resume_names_a_snapshot(snapshot: str) -> None:
    assert problems(EARLY, Cancel(trigger=SOON), Resume(trigger=SOON, snapshot=snapshot)) == []


@pytest.mark.parametrize("snapshot", ["each", "newest", "oldest", "early"])
def test_a_fork_may_take_each(snapshot: str) -> None:
    assert problems(EARLY, Fork(trigger=AtRest(), snapshot=snapshot)) == []


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (Resume(trigger=SOON, snapshot="each"), "snapshot is 'each'; it can be newest, oldest, or the name of a"),
        (Resume(trigger=SOON, snapshot="late"), "snapshot is 'late'; it can be newest, oldest, or the name of a"),
        (Fork(trigger=SOON, snapshot="../x"), "snapshot is '../x'; it can be each, newest, oldest, or the name"),
        (Fork(trigger=SOON, parallelism={"nobody": 2}), "there is no operator 'nobody'"),
        (Fork(trigger=SOON, parallelism={"source": 0}), "source cannot have a parallelism of 0"),
        (Savepoint(trigger=SOON, name="newest"), "'newest' cannot be the name of a savepoint"),
        (Savepoint(trigger=SOON, name="a/b"), "'a/b' cannot be the name of a savepoint"),
        (StopWithSavepoint(trigger=SOON, name="early"), "another savepoint has the name 'early' too"),
        (Cancel(trigger=AtRest()), "a run at rest has ended, and only a fork can begin then"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(command: AnyCommand, problem: str) -> None:
    found = problems(EARLY, command)
    assert any(problem in one for one in found), found


def test_no_fault_waits_for_rest() -> None:
    fault = KillTask(trigger=AtRest(), task="op0-0")
    assert any("no fault can act on it" in one for one in problems_of(job(10, faults=(fault,))))


def test_the_words_stand_for_retained_snapshots() -> None:
    scenario = job(10, commands=(EARLY, Savepoint(trigger=SOON, name="second")))
    answers = {0: 2, 1: None}
    assert named("each", (7, 2, 5), scenario, answers) == (2, 5, 7)
    assert named("newest", (7, 2, 5), scenario, answers) == (7,)
    assert named("oldest", (7, 2, 5), scenario, answers) == (2,)
    assert named("early", (7, 2, 5), scenario, answers) == (2,)
    assert named("early", (7, 5), scenario, answers) == (), "it is not retained any more"
    assert named("second", (7, 2, 5), scenario, answers) == (), "it was not taken"
    assert named("newest", (), scenario, answers) == ()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (Resume(trigger=SOON), "the job is started again"),
        (Resume(trigger=SOON, snapshot="oldest"), "the job is started again from the oldest snapshot"),
        (Resume(trigger=SOON, snapshot="early"), "the job is started again from the savepoint early"),
        (Fork(trigger=SOON), "from each retained snapshot another job is started beside"),
        (
            Fork(trigger=SOON, snapshot="newest", parallelism={"sum": 2}),
            "another job is started beside, rescaled: sum in 2 tasks",
        ),
        (EARLY, "a savepoint early is requested"),
    ],
)
def test_they_are_said_in_words(command: AnyCommand, words: str) -> None:
    assert command_in_words(command) == words
