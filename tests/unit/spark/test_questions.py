"""What PySpark is asked about a case, and that it and the quick checker agree on correct runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtTime, KillCoordinator
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import run as run_scenario
from cutproof.properties.model.history import CommandIssued, Commit, History, JobEnded
from cutproof.properties.model.workload import SINK, Input, Node, Tumbling, Workload
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.lineage import INFINITE
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import Question, decode, encode, questions_of, unasked_by
from cutproof.properties.spark.unasked import HIDDEN

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))

from unit.properties.histories import run
from unit.properties.shapes import drawn

REGRESSIONS = Path(__file__).parents[2] / "regressions"


def cases(guarantee: str = "exactly-once") -> list[Case]:
    found = []
    for seed in range(60 if guarantee != "at-most-once" else 120):  # few of these go wrong after a read
        workload, topology = drawn(seed)
        found.append(Case(workload, topology, run((workload, topology), seed=seed, guarantee=guarantee)))
    return found


def asked(guarantee: str) -> list[Question]:
    every = [questions_of(case, str(number)) for number, case in enumerate(cases(guarantee))]
    return [question for questions in every for question in decode(encode(questions))]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once", "at-most-once"])
def test_both_reckonings_agree(guarantee: str) -> None:
    questions = asked(guarantee)
    answers = Oracle().judge_batch([one.job for one in questions], {one.job.id: one.quick for one in questions})
    assert [(answer.id, answer.problem, answer.disagreements) for answer in answers] == [
        (one.job.id, "", ()) for one in questions
    ]
    assert (
        sum(bool(one.job.applies and answer.expected.rows) for one, answer in zip(questions, answers, strict=True)) > 3
    )


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_an_application_that_one_judge_misses_is_a_disagreement(guarantee: str) -> None:
    questions = [one for one in asked(guarantee) if any(one.job.applies.values())]
    for one in questions:
        for node, applies in one.job.applies.items():
            one.job.applies[node] = applies[:-1]
    answers = Oracle().judge_batch([one.job for one in questions], {one.job.id: one.quick for one in questions})
    assert sum(bool(answer.disagreements) for answer in answers) > len(questions) // 2


def test_what_a_key_had_applied_is_reported_attempt_by_attempt_though_it_moved() -> None:
    """Three subtasks became one: what the second and the third did came before all that the one did since."""
    result = run_scenario(SimulatedSubject(), read_scenario(REGRESSIONS / "keys-that-moved-in-a-weaker-mode.json"))
    (job,) = [one.job for one in questions_of(result.case, "it") if one.job.applies]
    lineages = {one.lineage for applied in job.applies.values() for one in applied}
    attempts = [
        [one.attempt for one in applied if one.lineage == lineage]
        for applied in job.applies.values()
        for lineage in sorted(lineages)
    ]
    assert any(len(set(found)) > 1 for found in attempts)
    assert [found for found in attempts if found != sorted(found)] == []


def drained(*, resumed: bool) -> Case:
    """A window that a drain let go: resumed, or failed when all was done but for the end, its snapshots lost."""
    source = Input(
        name="source",
        splits=(tuple((number % 2, number, 100 + number) for number in range(40)),),
        times=(tuple(range(0, 400, 10)),),
    )
    names = ("source", "window", SINK)
    workload = Workload(
        name="windowed",
        inputs=(source,),
        nodes=(Node(name="window", operator=Tumbling(size=50), inputs=("source",)),),
    )
    drain = StopWithSavepoint(trigger=AtPoint(point="record-read", occurrence=20), drain=True)
    lost = KillCoordinator(trigger=AtPoint(point="commit-requested", occurrence=2, side="before"), down_us=100)
    scenario = Scenario(
        workload=workload,
        topology=lay_out(workload, dict.fromkeys(names, 1)),
        engine=Engine(snapshot_store="files" if resumed else "memory", checkpoint_interval_us=2_000),
        faults=() if resumed else (lost,),
        commands=(drain, Resume(trigger=AtTime(at_us=1_000))) if resumed else (drain,),
    )
    return run_scenario(SimulatedSubject(), scenario).case


@pytest.mark.usefixtures("spark")
def test_of_windows_is_asked_what_was_expected_up_to_a_drain() -> None:
    """What is behind it is late; whether anybody went on there, or the job failed at its end, is of no account."""
    asked: list[Question] = []
    for resumed in (True, False):
        case = drained(resumed=resumed)
        assert case.went_on_drained is resumed
        assert case.closing.kind == ("end" if resumed else "newest")
        (savepoint,) = case.drained
        (question,) = questions_of(case, f"resumed: {resumed}")
        assert question.job.cuts[-1].name == max(question.quick.states) == savepoint
        rows = question.quick.rows[savepoint]
        assert len(rows) > 2
        short = replace(question.quick, rows={**question.quick.rows, savepoint: rows[1:]})
        other = Question(job=replace(question.job, id=f"{question.job.id}, a row short"), quick=short)
        asked += [question, other]
    answers = Oracle().judge_batch([one.job for one in asked], {one.job.id: one.quick for one in asked})
    assert [(answer.problem, len(answer.disagreements)) for answer in answers] == [("", 0), ("", 1)] * 2


def test_an_advance_stands_among_what_its_subtask_took_in_its_attempt() -> None:
    """Its place counts the applications of the node in the order of the question."""
    result = run_scenario(SimulatedSubject(), read_scenario(REGRESSIONS / "panes-of-two-attempts.json"))
    (job,) = [one.job for one in questions_of(result.case, "it") if one.job.applies]
    ((node, advances),) = job.advances.items()
    taken: dict[tuple[int, int, int], list[int]] = {}
    for place, one in enumerate(job.applies[node]):
        taken.setdefault((one.lineage, one.attempt, one.lane), []).append(place)
    stand = [(one.place, taken[whose]) for one in advances if (whose := (one.lineage, one.attempt, one.lane)) in taken]
    assert len(stand) > 20
    assert [one for one in stand if not one[1][0] <= one[0] <= one[1][-1] + 1] == []


@pytest.mark.usefixtures("spark")
def test_the_rows_of_a_run_seen_from_outside_are_asked_commit_by_commit() -> None:
    """Both judges compute them from the input and the commits alone; a row that one of them misses is noticed."""
    asked: list[Question] = []
    for seed in range(20):
        workload, topology = drawn(seed)
        lengths = {split: len(records) for split, _, records in workload.splits()}
        halves = Commit(commit=1, order=2, positions={split: length // 2 for split, length in lengths.items()})
        end = JobEnded(order=9, at_us=0, job=1, status="finished")
        history = History(subject="", guarantee="exactly-once", sink="transactional", witnesses=["reader", "journal"])
        case = Case(workload, topology, replace(history, commits=[halves], journal=[end]))
        questions = questions_of(case, str(seed))
        assert bool(questions) is case.from_outside.follows_input is not bool(unasked_by(case, questions).rows)
        for question in questions:
            assert [*question.quick.rows] == [0, INFINITE], "the commit and the end"
            rows = question.quick.rows[INFINITE]
            short = replace(question.quick, rows={**question.quick.rows, INFINITE: rows[1:]})
            asked += [question] + [
                replace(question, job=replace(question.job, id=f"{seed}, short"), quick=short)
            ] * bool(rows)
    answers = Oracle().judge_batch([one.job for one in asked], {one.job.id: one.quick for one in asked})
    assert [(one.id, one.problem, bool(one.disagreements)) for one in answers] == [
        (one.job.id, "", one.job.id.endswith("short")) for one in asked
    ]
    assert len(asked) > 20


@pytest.mark.usefixtures("spark")
def test_of_a_job_that_was_stopped_both_judges_know_which_windows_were_open() -> None:
    """Of a run seen from outside, by the position that the end of the job tells, drained and not."""
    workload = drained(resumed=False).workload
    topology = lay_out(workload, dict.fromkeys(("source", "window", SINK), 1))
    history = History(subject="", guarantee="exactly-once", sink="transactional", witnesses=["reader", "journal"])
    asked: list[Question] = []
    for status in ("stopped", "drained"):
        drain = CommandIssued(order=2, at_us=0, command=0, kind="stop-with-savepoint", drain=status == "drained")
        end = JobEnded(order=9, at_us=0, job=1, status=status, covers={0: 17})
        case = Case(workload, topology, replace(history, journal=[drain, end]))
        (question,) = questions_of(case, status)
        assert [*question.quick.rows] == ([0] if status == "drained" else [0, INFINITE])
        rows = question.quick.rows[0]
        assert len(rows) == (8 if status == "drained" else 6), "two keys; 17 records are in four windows"
        assert sorted(rows) == sorted(case.from_outside.covered.elements())
        short = replace(question.quick, rows={**question.quick.rows, 0: rows[1:]})
        asked += [question, replace(question, job=replace(question.job, id=f"{status}, short"), quick=short)]
    answers = Oracle().judge_batch([one.job for one in asked], {one.job.id: one.quick for one in asked})
    assert [(answer.problem, len(answer.disagreements)) for answer in answers] == [("", 0), ("", 1)] * 2


@pytest.mark.usefixtures("spark")
def test_pairs_of_one_record_that_a_cut_without_alignment_may_part_are_not_asked_about() -> None:
    """The two sinks took them in different epochs, and the history does not show which sink took which pair."""
    case = run_scenario(SimulatedSubject(), read_scenario(REGRESSIONS / "pairs-apart-at-a-cut.json")).case
    taken: dict[int, set[int]] = {}
    for segment in case.lineage.of_operator(SINK):
        for (_, origin), epoch in zip(segment.run.applies, segment.apply_epochs(), strict=False):
            taken.setdefault(origin, set()).add(epoch)
    assert any(len(epochs) > 1 for epochs in taken.values())

    asked = questions_of(case, "pairs")

    assert [one for one in asked if any(one.quick.rows.values())] == []
    assert any(any(one.quick.states.values()) for one in asked), "the state of the join is known"
    assert unasked_by(case, asked).rows == HIDDEN
    answers = Oracle().judge_batch([one.job for one in asked], {one.job.id: one.quick for one in asked})
    assert [(answer.problem, answer.disagreements) for answer in answers] == [("", ())] * len(asked)
