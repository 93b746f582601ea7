"""A job that is resumed with operators that it had not: it is refused by their names, and nothing is lost (FIN-2)."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults.plan import AtTime, KillCoordinator
from cutproof.harness.scenario.model import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.search.stops import stops_of
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.judge import judge
from cutproof.properties.invariants.parts.incompatible import finished_before, refused_by_name, undescribed
from cutproof.properties.model.history import AttemptStarted, CommandIssued, CommandReturned, History, JobEnded
from cutproof.properties.model.upgrade import Upgrade
from cutproof.properties.model.verdict import INVARIANTS, Holds, Reason, Unknown, Violated
from cutproof.properties.model.workload import Count, Input, InputRecord, Map, Node, Union, Workload
from cutproof.properties.mutations.tampering import COMPATIBILITY_MUTATIONS, tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.spark.questions import questions_of
from unit.simulated.worlds import journal

STOP = StopWithSavepoint(trigger=AtTime(at_us=25_000))
AGAIN = Resume(trigger=AtTime(at_us=1_000))
FINISHED = "checkpoint 4 counts count as finished, but not all that sends to it: rows of fresh would be lost"
"""of the count behind the short input, which the stop comes after"""


def numbered(many: int, first: int) -> tuple[InputRecord, ...]:
    return tuple((number % 3, number, first + number) for number in range(many))


def with_new(behind: str, **more: str) -> Resume:
    return msgspec.structs.replace(AGAIN, inserted={"fresh": behind, **more})


def job(*commands: AnyCommand, **more: object) -> Scenario:
    """A count of a short input, a union of that with a long one; stopped when the count has finished."""
    workload = Workload(
        name="incompatible",
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


def endings(history: History) -> list[tuple[str, str]]:
    return [(end.status, end.reason) for end in journal(JobEnded, history)]


@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        ("count", FINISHED),
        ("both", "checkpoint 4 holds no state of fresh: its job had no such operator"),
        ("sink", "checkpoint 4 holds no state of fresh: its job had no such operator"),
    ],
)
def test_it_is_refused_by_name_and_goes_on_as_it_was(behind: str, reason: str) -> None:
    scenario = job(STOP, with_new(behind), AGAIN)
    result = result_of(scenario)
    assert endings(result.history) == [("stopped", ""), ("failed", reason), ("finished", "")]
    assert {start.job for start in journal(AttemptStarted, result.history)} == {1, 3}
    assert not result.judgement.violated
    for invariant in ("exactly-once", "restored-state", "progress"):
        assert isinstance(result.judgement.verdicts[invariant], Holds)
    (incompatible,) = [stop for stop in stops_of(scenario, result.history) if stop.kind == "unfit-resume"]
    assert (incompatible.finished, incompatible.begins_with) == (True, "savepoint")


def test_several_are_all_named() -> None:
    result = result_of(job(STOP, with_new("both", newer="sink"), AGAIN))
    assert endings(result.history)[1] == (
        "failed",
        "checkpoint 4 holds no state of fresh, newer: its job had no such operator",
    )
    assert not result.judgement.violated


def test_one_that_may_begin_empty_is_refused_in_front_of_a_finished_one_and_that_is_its_excuse() -> None:
    scenario = job(STOP, msgspec.structs.replace(AGAIN, upgrade=Upgrade(added=("fresh",), begin_empty=("fresh",))))
    count, both = scenario.workload.nodes
    nodes = (
        Node(name="fresh", operator=Map(), inputs=("short",), later=True),
        msgspec.structs.replace(count, inputs=("fresh",)),
        both,
    )
    workload = msgspec.structs.replace(scenario.workload, nodes=nodes)
    scenario = msgspec.structs.replace(scenario, workload=workload, topology=lay_out(workload))
    result = result_of(scenario)
    assert endings(result.history) == [("stopped", ""), ("failed", FINISHED)]
    assert not result.judgement.violated
    assert refused_by_name(
        Case(scenario.workload, scenario.topology, result.history), journal(JobEnded, result.history)[1]
    )


def test_a_coordinator_that_dies_meanwhile_leaves_the_refusal_to_the_next() -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    (_, refused, _) = journal(JobEnded, result_of(scenario).history)
    kill = KillCoordinator(trigger=AtTime(at_us=refused.at_us - 100), down_us=3_000)
    killed = msgspec.structs.replace(scenario, faults=(kill,))
    result = result_of(killed)
    assert result.history.unapplied == []
    assert endings(result.history) == [("stopped", ""), ("failed", FINISHED), ("finished", "")]
    assert not result.judgement.violated
    (incompatible,) = [stop for stop in stops_of(killed, result.history) if stop.kind == "unfit-resume"]
    assert (incompatible.finished, [hit.fault for hit in incompatible.hits]) == (True, ["kill-coordinator"])


def test_a_job_that_fails_for_another_reason_was_not_refused() -> None:
    scenario = job(STOP, with_new("count"), engine=Engine(checkpoint_interval_us=7_000, snapshot_store="memory"))
    refused = journal(JobEnded, result_of(scenario).history)[1]
    kill = KillCoordinator(trigger=AtTime(at_us=refused.at_us - 100), down_us=3_000)
    killed = msgspec.structs.replace(scenario, faults=(kill,))
    history = result_of(killed).history
    assert "in the memory of the coordinator that died" in endings(history)[1][1]
    (incompatible,) = [stop for stop in stops_of(killed, history) if stop.kind == "unfit-resume"]
    assert not incompatible.finished


def test_an_engine_that_answers_the_command_with_an_error_has_refused_it_too() -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    ended = journal(JobEnded, history)[1]
    history.journal.remove(ended)
    answer = journal(CommandReturned, history)[1]
    answer.checkpoint, answer.error = None, ended.reason
    assert not judge(scenario.workload, scenario.topology, history).violated
    assert [stop.finished for stop in stops_of(scenario, history) if stop.kind == "unfit-resume"] == [True]


def test_without_a_snapshot_there_is_none_to_be_incompatible_with_and_nothing_is_resumed() -> None:
    at_once = Cancel(trigger=AtTime(at_us=100))
    history = result_of(job(at_once, with_new("count"), AGAIN)).history
    assert endings(history) == [("cancelled", "by its user")]
    assert history.unapplied == ["resume", "resume"]


# -- the judge -------------------------------------------------------------------------


def begun(behind: str) -> Case:
    """An engine that refuses nothing runs the job."""
    scenario = job(STOP, with_new(behind), AGAIN)
    result = result_of(scenario, "P10")
    assert result.history.defect_reached
    assert not any(stop.finished for stop in stops_of(scenario, result.history) if stop.kind == "unfit-resume")
    return Case(scenario.workload, scenario.topology, result.history)


def test_a_job_that_begins_with_one_before_a_finished_one_is_seen_and_nothing_else_reported_of_it() -> None:
    case = begun("count")
    verdicts = judge(case.workload, case.submitted, case.history).verdicts
    found = verdicts.pop("restored-state")
    assert isinstance(found, Violated)
    assert (found.difference, found.checkpoint) == ("begun though it does not fit", 4)
    assert "job 2 began with fresh before count" in found.message
    assert {type(verdict) for verdict in verdicts.values()} == {Unknown}
    assert questions_of(case, "incompatible") == ()


def test_of_a_job_with_operators_that_nobody_described_nothing_is_known() -> None:
    case = begun("sink")
    verdicts = judge(case.workload, case.submitted, case.history).verdicts
    assert verdicts == dict.fromkeys(
        INVARIANTS,
        Unknown(reason=Reason.NOT_OBSERVABLE, detail="job 2 began with fresh, which the workload does not describe"),
    )


def words_only(ended: JobEnded, reason: str) -> None:
    """As an engine reports it that names no causes."""
    ended.reason, ended.cause = reason, None


@pytest.mark.parametrize(
    "reason", ["", "it does not fit", "checkpoint 4 does not fit fresh", "fresh-0, before count-0"]
)
def test_who_is_refused_is_notified_of_which_operators(reason: str) -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    words_only(journal(JobEnded, history)[1], reason)
    found = judge(scenario.workload, scenario.topology, history).verdicts["progress"]
    assert isinstance(found, Violated)
    assert found.difference == "job failed"


@pytest.mark.parametrize(
    ("reason", "is_enough"),
    [
        ("checkpoint 4 counts count as finished, but not all that sends to it: rows of newer", True),
        ("checkpoint 4 holds no state of fresh, newer", False),
        ("count has finished, and fresh does not fit", False),
    ],
)
def test_of_several_the_one_before_a_finished_one_is_to_be_named(reason: str, is_enough: bool) -> None:
    scenario = job(STOP, with_new("both", newer="count"), AGAIN)
    history = result_of(scenario).history
    words_only(journal(JobEnded, history)[1], reason)
    assert ("progress" not in judge(scenario.workload, scenario.topology, history).violated) is is_enough


def test_before_none_that_had_finished_one_name_of_several_is_enough() -> None:
    scenario = job(STOP, with_new("both", newer="sink"), AGAIN)
    history = result_of(scenario).history
    words_only(journal(JobEnded, history)[1], "there was no newer")
    assert "progress" not in judge(scenario.workload, scenario.topology, history).violated


def test_what_had_finished_is_that_of_the_layout_of_old() -> None:
    """Three counts have finished in a job that went on wider than the one that was submitted."""
    stop = StopWithSavepoint(trigger=AtTime(at_us=2_000))
    wider = msgspec.structs.replace(AGAIN, parallelism=dict.fromkeys(job().topology.parallelism, 3))
    scenario = job(stop, wider, msgspec.structs.replace(STOP, trigger=AtTime(at_us=35_000)), with_new("count"), AGAIN)
    result = result_of(scenario)
    statuses = [status for status, _ in endings(result.history)]
    assert statuses == ["stopped", "stopped", "failed", "finished"]
    case = Case(scenario.workload, scenario.topology, result.history)
    assert case.jobs.layouts[2].parallelism["count"] == 3 > case.submitted.parallelism["count"]
    assert "count" in finished_before(case, 3)
    savepoint = case.lineages.completed[journal(JobEnded, result.history)[1].checkpoint or 0]
    savepoint.finished.remove("count-2")
    assert "count" not in finished_before(case, 3)


def test_a_job_that_is_well_at_once_has_neither_begun_nor_been_refused() -> None:
    scenario = job(STOP, with_new("count"))
    history = result_of(scenario).history
    ended = journal(JobEnded, history)[1]
    ended.status, ended.reason, ended.cause = "finished", "", None
    found = judge(scenario.workload, scenario.topology, history).verdicts["progress"]
    assert isinstance(found, Violated)
    assert found.difference == "neither begun nor refused"


def test_whose_command_was_never_answered_was_to_begin_with_the_newest_or_the_named() -> None:
    scenario = job(STOP, with_new("count"))
    history = result_of(scenario).history
    history.journal.remove(journal(CommandReturned, history)[1])
    case = Case(scenario.workload, scenario.topology, history)
    assert "count" in finished_before(case, 2)
    assert refused_by_name(case, journal(JobEnded, history)[1])
    journal(CommandIssued, history)[1].checkpoint = 1
    assert "count" not in finished_before(Case(scenario.workload, scenario.topology, history), 2)


def test_without_a_snapshot_nothing_is_to_be_refused_and_whatever_begins_is_another_job() -> None:
    case = begun("sink")
    answer = journal(CommandReturned, case.history)[1]
    answer.checkpoint = None
    assert undescribed(case) is not None
    failed = JobEnded(order=99, at_us=99, job=2, status="failed", reason="fresh does not fit")
    assert not refused_by_name(case, failed)


def test_a_job_that_was_not_asked_to_bring_anything_has_no_such_excuse() -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    journal(CommandIssued, history)[1].inserted = {}
    assert "progress" in judge(scenario.workload, scenario.topology, history).violated


@pytest.mark.parametrize("mutation", COMPATIBILITY_MUTATIONS)
def test_mutations_of_it_are_seen(mutation: str) -> None:
    scenario = job(STOP, with_new("count"), AGAIN)
    history = result_of(scenario).history
    (tampered,) = [
        one for one in tamperings(Case(scenario.workload, scenario.topology, history)) if one.name == mutation
    ]
    judged = judge(scenario.workload, scenario.topology, tampered.apply(history))
    assert set(tampered.invariants) & set(judged.violated)
