"""A job that is resumed with operators that it had not: it is refused by their names, and nothing is lost (FIN-2)."""

from __future__ import annotations

import msgspec
import pytest
from worlds import journal

from cutproof.faults.plan import AtTime, KillCoordinator
from cutproof.harness.run import Result, run
from cutproof.harness.scenario import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.stops import stops_of
from cutproof.harness.subject_names import subject_called
from cutproof.harness.topologies import lay_out
from cutproof.properties.case import Case
from cutproof.properties.history import AttemptStarted, CommandIssued, History, JobEnded
from cutproof.properties.judge import judge
from cutproof.properties.spark.questions import questions_of
from cutproof.properties.tampering import FITTING_LIES, tamperings
from cutproof.properties.verdict import INVARIANTS, Holds, Unknown, Violated
from cutproof.properties.workload import Count, Input, InputRecord, Node, Union, Workload

STOP = StopWithSavepoint(trigger=AtTime(at_us=25_000))
AGAIN = Resume(trigger=AtTime(at_us=1_000))
FINISHED = "checkpoint 4 counts count as finished, and fresh before it has not: nothing that it sends would be taken"
"""of the count behind the short input, which the stop comes after"""


def numbered(many: int, first: int) -> tuple[InputRecord, ...]:
    return tuple((number % 3, number, first + number) for number in range(many))


def with_new(behind: str, **more: str) -> Resume:
    return msgspec.structs.replace(AGAIN, inserted={"fresh": behind, **more})


def job(*commands: AnyCommand, **more: object) -> Scenario:
    """A count of a short input, a union of that with a long one; stopped when the count has finished."""
    workload = Workload(
        name="unfit",
        inputs=(
            Input(name="short", splits=(numbered(10, 1),)),
            Input(name="long", splits=(numbered(200, 1_000),)),
        ),
        nodes=(
            Node(name="count", operator=Count(), inputs=("short",)),
            Node(name="both", operator=Union(), inputs=("count", "long")),
        ),
    )
    engine = Engine(checkpoint_interval_us=7_000)
    return msgspec.structs.replace(
        Scenario(workload=workload, topology=lay_out(workload), engine=engine, commands=commands), **more
    )


def result_of(scenario: Scenario, defect: str | None = None) -> Result:
    return run(subject_called("simulated", defect), scenario)


def told(history: History) -> list[tuple[str, str]]:
    return [(end.status, end.reason) for end in journal(JobEnded, history)]


@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        ("count", FINISHED),
        ("both", "checkpoint 4 is of a job without fresh: it holds no state to begin with"),
        ("sink", "checkpoint 4 is of a job without fresh: it holds no state to begin with"),
    ],
)
def test_it_is_refused_by_name_and_goes_on_as_it_was(behind: str, reason: str) -> None:
    scenario = job(STOP, with_new(behind), AGAIN)
    result = result_of(scenario)
    assert told(result.history) == [("stopped", ""), ("failed", reason), ("finished", "")]
    assert {start.job for start in journal(AttemptStarted, result.history)} == {1, 3}
    assert not result.judgement.violated
    for invariant in ("exactly-once", "restored-state", "progress"):
        assert isinstance(result.judgement.verdicts[invariant], Holds)
    (unfit,) = [stop for stop in stops_of(scenario, result.history) if stop.kind == "unfit-resume"]
    assert (unfit.finished, unfit.begins_with) == (True, "savepoint")


def test_several_are_all_named() -> None:
    result = result_of(job(STOP, with_new("both", newer="sink"), AGAIN))
    assert told(result.history)[1] == (
        "failed",
        "checkpoint 4 is of a job without fresh, newer: it holds no state to begin with",
    )
    assert not result.judgement.violated


def test_a_coordinator_that_dies_meanwhile_leaves_the_refusal_to_the_next() -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    (_, refused, _) = journal(JobEnded, result_of(scenario).history)
    kill = KillCoordinator(trigger=AtTime(at_us=refused.at_us - 100), down_us=3_000)
    result = result_of(msgspec.structs.replace(scenario, faults=(kill,)))
    assert told(result.history) == [("stopped", ""), ("failed", FINISHED), ("finished", "")]
    assert not result.judgement.violated


def test_without_a_snapshot_there_is_none_to_fit_and_nothing_is_resumed() -> None:
    at_once = Cancel(trigger=AtTime(at_us=100))
    history = result_of(job(at_once, with_new("count"), AGAIN)).history
    assert told(history) == [("cancelled", "by its user")]
    assert history.unapplied == ["resume", "resume"]


# -- the judge -------------------------------------------------------------------------


def begun(behind: str) -> Case:
    """An engine that refuses nothing runs the job."""
    scenario = job(STOP, with_new(behind), AGAIN)
    result = result_of(scenario, "P10")
    assert result.history.defect_reached
    return Case(scenario.workload, scenario.topology, result.history)


def test_a_job_that_begins_with_one_before_a_finished_one_is_seen_and_nothing_else_said_of_it() -> None:
    case = begun("count")
    verdicts = judge(case.workload, case.submitted, case.history).verdicts
    found = verdicts.pop("restored-state")
    assert isinstance(found, Violated)
    assert (found.difference, found.checkpoint) == ("begun though it does not fit", 4)
    assert "job 2 began with fresh before count" in found.message
    assert {type(verdict) for verdict in verdicts.values()} == {Unknown}
    assert questions_of(case, "unfit") == ()


def test_of_a_job_with_operators_that_nobody_described_nothing_is_known() -> None:
    case = begun("sink")
    verdicts = judge(case.workload, case.submitted, case.history).verdicts
    assert verdicts == dict.fromkeys(
        INVARIANTS,
        Unknown(reason="not observable", detail="job 2 began with fresh, which the workload does not describe"),
    )


@pytest.mark.parametrize(
    "reason", ["", "it does not fit", "checkpoint 4 does not fit fresh", "fresh-0, before count-0"]
)
def test_who_is_refused_is_told_of_which_operators(reason: str) -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    journal(JobEnded, history)[1].reason = reason
    found = judge(scenario.workload, scenario.topology, history).verdicts["progress"]
    assert isinstance(found, Violated)
    assert found.difference == "job failed"


def test_a_job_that_was_not_asked_to_bring_anything_has_no_such_excuse() -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    journal(CommandIssued, history)[1].inserted = {}
    assert "progress" in judge(scenario.workload, scenario.topology, history).violated


@pytest.mark.parametrize("lie", FITTING_LIES)
def test_lies_about_it_are_seen(lie: str) -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    (tampered,) = [one for one in tamperings(Case(scenario.workload, scenario.topology, history)) if one.name == lie]
    judged = judge(scenario.workload, scenario.topology, tampered.apply(history))
    assert set(tampered.invariants) & set(judged.violated)
