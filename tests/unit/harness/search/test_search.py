"""The search: the same scenarios whatever the budget; both judges; what goes wrong is told and loses nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import cache
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.counterexamples.replay import replay
from cutproof.harness.counterexamples.store import RunFolder, read_outcomes, read_view
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.campaign import Campaign, exit_code_of, verify_campaign
from cutproof.harness.search.oracle import Examined
from cutproof.harness.search.outcome import ScenarioOutcome
from cutproof.harness.search.pool import Encoded, Here, Processes
from cutproof.harness.search.profiles import PROFILES, Profile
from cutproof.harness.search.search import Budget, Found, Search
from cutproof.harness.search.worker import Plan
from cutproof.harness.subject.port import Subject, SubjectFailed
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Violated
from cutproof.properties.spark.unasked import ENDED, SPARK_FAILED
from cutproof.reports.model import ScenarioCounts, Summary
from cutproof.reports.text import render_text
from unit.harness.subjects import Agreeing, Broken, Lossy

PLAN = Plan(seed=3, drawing=Drawing(max_records=30))


def search(
    budget: Budget, *, subject: Subject | None = None, oracle: Agreeing | None = None, folder: RunFolder | None = None
) -> tuple[Found, list[ScenarioOutcome]]:
    outcomes: list[ScenarioOutcome] = []
    pool = Here(PLAN, subject or SimulatedSubject())
    found = Search(pool, oracle or Agreeing(), budget, folder=folder, on_outcome=outcomes.append).run()
    return found, outcomes


def test_a_scenario_does_not_depend_on_the_budget() -> None:
    _, few = search(Budget(scenarios=5))
    _, many = search(Budget(scenarios=30))
    assert [one.index for one in many] == list(range(30))
    assert [one.scenario for one in few] == [one.scenario for one in many[:5]]
    assert [one.verdicts for one in few] == [one.verdicts for one in many[:5]]


def test_every_scenario_is_put_to_the_oracle_once() -> None:
    oracle = Agreeing()
    found, _ = search(Budget(scenarios=45), oracle=oracle)
    assert sum(oracle.batches) == 45
    assert (found.oracle.workloads, found.oracle.disagreements) == (45, 0)
    assert not found.failures


def test_what_gathers_while_the_oracle_starts_is_one_question() -> None:
    all_have_run = threading.Event()

    class Slow(Agreeing):
        def wait(self) -> None:
            assert all_have_run.wait(60)

    class Watcher(Silent):
        def step(self, what: str, total: int | None = None) -> None:
            if what == "waiting for PySpark":
                all_have_run.set()

    oracle = Slow()
    found = Search(Here(PLAN, SimulatedSubject()), oracle, Budget(scenarios=45), progress=Watcher()).run()
    assert not found.failures
    assert oracle.batches == [45]
    assert 0 < found.start_s < found.search_s


def test_worker_processes_find_what_this_one_finds() -> None:
    pool = Processes(PLAN, 2)
    outcomes: list[ScenarioOutcome] = []
    try:
        found = Search(pool, Agreeing(), Budget(scenarios=50), on_outcome=outcomes.append).run()
    finally:
        pool.close()
    _, here = search(Budget(scenarios=50))
    there = sorted(outcomes, key=lambda one: one.index)
    assert found.tally.run == 50
    assert [(one.scenario, one.verdicts, one.measured) for one in there] == [
        (one.scenario, one.verdicts, one.measured) for one in here
    ]


def test_it_is_counted_on_how_many_scenarios_the_oracle_has_spoken() -> None:
    found, outcomes = search(Budget(scenarios=45))
    oracle = found.tally.with_words(found.oracle)
    assert oracle.asked == sum(not one.not_asked.rows for one in outcomes)
    assert oracle.asked + sum(oracle.not_asked.values()) == 45
    assert oracle.state.asked == sum(not one.not_asked.state for one in outcomes)
    assert oracle.state.asked + sum(oracle.state.not_asked.values()) == 45
    counts = found.tally.summary().invariants
    assert 0 < counts["exactly-once"].by_both <= counts["exactly-once"].holds
    assert counts["order"].holds > counts["order"].by_both == 0


def test_a_scenario_on_which_the_judges_disagree_is_borne_out_by_one() -> None:
    agreed, _ = search(Budget(scenarios=10))
    found, _ = search(Budget(scenarios=10), oracle=Agreeing(disagree=tuple(range(10))))
    assert found.tally.with_words(found.oracle).asked == agreed.tally.with_words(agreed.oracle).asked > 0
    assert not any(counts.by_both for counts in found.tally.summary().invariants.values())


def test_a_disagreement_is_a_failure_of_the_harness() -> None:
    found, _ = search(Budget(scenarios=10), oracle=Agreeing(disagree=(4,)))
    assert found.oracle.disagreements == 1
    assert found.unconfirmed == {4: ""}
    assert found.failures == ["the two judges disagree about scenario 4: one row more"]


def test_a_subject_that_cannot_be_driven_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        found, outcomes = search(Budget(scenarios=20), subject=Broken(), folder=folder)
    assert found.tally.undriven + found.tally.run == 20
    assert found.tally.undriven > 0
    assert len(outcomes) == found.tally.run > 0
    assert not found.failures
    assert found.not_run[0].reason.startswith("RuntimeError: no connection at all (run, line")
    assert [one.number for one in found.not_run] == sorted(one.number for one in found.not_run)
    kept = sorted((tmp_path / "run" / "counterexamples").iterdir())
    assert len(kept) == found.tally.undriven
    assert read_scenario(kept[0]).workload.records() % 2 == 1


def test_scenarios_that_could_not_be_run_are_reported_with_their_replay_commands_wherever_a_run_is_reported(
    tmp_path: Path,
) -> None:
    with RunFolder(tmp_path / "run") as folder:
        verified = verify_campaign(campaign(20), subject=Broken(), oracle=Agreeing(), folder=folder)
    summary, first = verified.summary, verified.summary.not_run[0]
    assert verified.exit_code is ExitCode.HARNESS_FAILED
    assert summary.scenarios.run + len(summary.not_run) == 20
    (failure,) = summary.failures
    many = f"{len(summary.not_run)} scenarios could not be run, the first of them scenario {first.number}: "
    assert failure.startswith(f"{many}RuntimeError: no connection at all (run, line")
    assert first.replay.startswith(f"cutproof replay {tmp_path / 'run' / first.scenario}")
    assert read_scenario(tmp_path / "run" / first.scenario).workload.records() % 2 == 1
    assert f"\n  {first.replay}\n" in render_text(summary)
    assert f"unknown; {len(summary.not_run)} could not be run." in " ".join(render_text(summary).split())
    page = (tmp_path / "run" / "report.html").read_text()
    assert all(f"{one.replay}</code>" in page for one in summary.not_run)
    assert first.replay in (tmp_path / "run" / "junit.xml").read_text()


def test_what_could_not_be_run_does_not_hide_a_violation() -> None:
    class Both(Lossy):
        def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
            if scenario.workload.records() % 7 == 0:
                raise SubjectFailed("no place left")
            return super().run(scenario, timeline=timeline)

    verified = verify_campaign(campaign(40), subject=Both(), oracle=Agreeing())
    assert verified.summary.not_run
    assert verified.exit_code is ExitCode.VIOLATED


@pytest.mark.parametrize("answer", [None, {"journal": []}, SystemExit(3)])
def test_what_is_no_history_is_reported_as_such(answer: object) -> None:
    class Careless(SimulatedSubject):
        def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
            if isinstance(answer, SystemExit):
                raise answer
            return answer  # type: ignore[return-value]

    found, _ = search(Budget(scenarios=3), subject=Careless())
    assert found.tally.undriven == 3
    assert {"it has to return a cutproof.History", "SystemExit: 3"} & {
        part for one in found.not_run for part in (one.reason.rpartition("; ")[2], one.reason.partition(" (")[0])
    }


def test_it_stops_at_the_first_violation() -> None:
    found, _ = search(Budget(scenarios=400, stop_at_first=True), subject=Lossy())
    assert found.failing
    assert found.tally.run < 400
    assert found.first_failure_s > 0


class Later(Lossy):
    """Loses nothing in the first nine scenarios."""

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        early = int(scenario.seed.split()[1]) < 9
        return (
            SimulatedSubject().run(scenario, timeline=timeline) if early else super().run(scenario, timeline=timeline)
        )


class OutOfOrder(Here):
    """Of six chunks the first is done last: not before the search has seen the others, and asked for more."""

    def __init__(self, plan: Plan, subject: Subject, scenarios: int) -> None:
        super().__init__(plan, subject)
        self._scenarios = scenarios
        self._number = 0
        self._late: list[tuple[Future[Encoded], Encoded]] = []
        self._asked = False

    @property
    def workers(self) -> int:  # type: ignore[override]
        if not self._asked:
            for late, chunk in self._late:
                late.set_result(chunk)
            self._late.clear()
        self._asked = False
        return 3

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        self._asked = True
        done = super().chunk(first, end)
        if self._number % 6 == 0 and end < self._scenarios:
            late: Future[Encoded] = Future()
            self._late.append((late, done.result()))
            done = late
        self._number += 1
        return done


@cache
def violated_of_sixty() -> list[int]:
    outcomes: list[ScenarioOutcome] = []
    Search(Here(PLAN, Later()), Agreeing(), Budget(scenarios=60), on_outcome=outcomes.append).run()
    return [one.index for one in outcomes if one.violations]


@pytest.mark.parametrize("chunk", [1, 7, 20])
def test_what_counts_of_a_search_that_stops_is_what_was_drawn_up_to_the_first_violated(chunk: int) -> None:
    last, *later = violated_of_sixty()
    assert last >= 9
    assert later
    for pool in (Here(PLAN, Later()), OutOfOrder(PLAN, Later(), 60)):
        reported: list[int] = []
        budget = Budget(scenarios=60, stop_at_first=True)
        found = Search(pool, Agreeing(), budget, on_outcome=lambda one: reported.append(one.index), chunk=chunk).run()  # noqa: B023
        assert reported == list(range(last + 1))
        assert found.tally.run == last + 1
        assert [one.index for one in found.failing] == [last]
        assert (found.stopped, found.oracle.workloads) == (True, last + 1)


def test_a_run_that_stops_at_the_first_reports_it_and_falls_short_of_nothing(tmp_path: Path) -> None:
    stopping = msgspec.structs.replace(campaign(120), budget=Budget(scenarios=120, stop_at_first=True))
    with RunFolder(tmp_path / "run") as folder:
        done = verify_campaign(stopping, subject=Lossy(), oracle=Agreeing(), folder=folder)
    _, outcomes = search(Budget(scenarios=20), subject=Lossy())
    last = next(one.index for one in outcomes if one.violations)
    assert done.exit_code is ExitCode.VIOLATED
    assert (done.summary.scenarios.run, done.summary.scenarios.violated) == (last + 1, 1)
    assert [one.index for one in read_outcomes(tmp_path / "run")] == list(range(last + 1))
    assert done.summary.not_judged_by_shares.startswith("The run stopped at its first violated scenario: ")
    assert not done.summary.shortfalls


def test_a_run_that_finds_nothing_to_stop_at_is_judged_like_any_other() -> None:
    whole = msgspec.structs.replace(campaign(200), budget=Budget(scenarios=200, stop_at_first=True))
    done = verify_campaign(whole, subject=SimulatedSubject(), oracle=Agreeing())
    assert (done.summary.scenarios.run, done.summary.not_judged_by_shares) == (200, "")


def test_it_stops_when_the_time_is_up() -> None:
    found, _ = search(Budget(scenarios=100_000, seconds=0.05))
    assert 0 < found.tally.run < 1_000


def test_an_interruption_keeps_what_was_done(tmp_path: Path) -> None:
    done: list[ScenarioOutcome] = []

    def interrupt(outcome: ScenarioOutcome) -> None:
        done.append(outcome)
        if outcome.index == 24:
            raise KeyboardInterrupt

    with RunFolder(tmp_path / "run") as folder:
        found = Search(
            Here(PLAN, SimulatedSubject()), Agreeing(), Budget(scenarios=90), folder=folder, on_outcome=interrupt
        ).run()
    assert found.interrupted
    assert found.tally.run == 25
    oracle = found.tally.with_words(found.oracle)
    assert (oracle.asked, oracle.not_asked[ENDED]) == (0, 25)
    assert [one.index for one in read_outcomes(tmp_path / "run")][:25] == list(range(25))


class Refusing(Agreeing):
    def examine(self, questions: Sequence[bytes]) -> Examined:
        raise HarnessFailed("Spark did not start: no Java")


def campaign(scenarios: int, profile: Profile | None = None) -> Campaign:
    return Campaign(plan=PLAN, budget=Budget(scenarios=scenarios), profile=profile or PROFILES["smoke"], version="1.2")


def test_a_violation_becomes_a_shrunk_counterexample_that_replays(tmp_path: Path) -> None:
    wanted = msgspec.structs.replace(campaign(30), plan=msgspec.structs.replace(PLAN, seed=4))
    with RunFolder(tmp_path / "run") as folder:
        verified = verify_campaign(wanted, subject=Lossy(), oracle=Agreeing(), folder=folder)
    assert verified.exit_code is ExitCode.VIOLATED
    first = verified.summary.counterexamples[0]
    assert (first.judges, first.not_asked) == (2, "")
    assert first.invariant in ("exactly-once", "no-data-loss"), "as the job promised"
    assert first.size.tasks + first.size.records + first.size.faults <= 12
    assert first.replay.startswith("cutproof replay ")
    scenario = read_scenario(tmp_path / "run" / first.scenario)
    again = replay(Lossy(), scenario)
    assert isinstance(again.judgement.verdicts[first.invariant], Violated)
    assert again.story.sentence == first.story
    assert again.trace_sha256 == replay(Lossy(), scenario).trace_sha256
    assert not run(SimulatedSubject(), scenario).judgement.violated
    view = read_view(tmp_path / "run")
    assert view.summary.counterexamples == verified.summary.counterexamples
    assert all(one.judges.keys() == one.violated.keys() for one in view.violated)
    assert {number for one in view.violated for number in one.judges.values()} == {1, 2}
    assert [row.status for row in view.counterexamples[0].rows].count("lost") == 1
    assert view.counterexamples[0].neighbour.startswith("It holds ")
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"summary.json", "report.html", "junit.xml"}


def test_what_only_one_judge_sees_is_no_violation() -> None:
    verified = verify_campaign(campaign(20), subject=Lossy(), oracle=Refusing())
    assert verified.exit_code is ExitCode.HARNESS_FAILED
    assert verified.summary.failures[0] == "Spark did not start: no Java"
    assert (verified.summary.oracle.asked, verified.summary.oracle.not_asked) == (0, {SPARK_FAILED: 20})
    reported = verified.summary.counterexamples[0]
    assert (reported.judges, reported.not_asked) == (1, SPARK_FAILED)
    assert {number for one in verified.view.violated for number in one.judges.values()} == {1}
    assert verified.summary.scenarios.violated > 0


class DisagreeingAboutWhatIsShrunk(Agreeing):
    """It agrees about the scenarios of the search, which come in a batch, and not about a scenario that comes alone."""

    def examine(self, questions: Sequence[bytes]) -> Examined:
        examined = super().examine(questions)
        alone = ((0, "one row more"),) if len(questions) == 1 else ()
        return msgspec.structs.replace(examined, disagreements=alone)


def test_a_shrunk_case_that_the_judges_disagree_about_is_the_harness_that_failed() -> None:
    verified = verify_campaign(campaign(20), subject=Lossy(), oracle=DisagreeingAboutWhatIsShrunk())
    assert verified.exit_code is ExitCode.HARNESS_FAILED
    reported = verified.summary.counterexamples[0]
    assert (
        f"the two judges disagree about {reported.invariant}'s shrunk case: one row more" in verified.summary.failures
    )
    assert verified.summary.oracle.disagreements == len(verified.summary.counterexamples)


def test_a_correct_engine_holds(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        verified = verify_campaign(campaign(25), subject=SimulatedSubject(), oracle=Agreeing(), folder=folder)
    summary = verified.summary
    assert verified.exit_code is ExitCode.HELD
    assert (summary.scenarios.run, summary.scenarios.violated) == (25, 0)
    assert (summary.version, summary.seed, summary.profile, summary.subject) == ("1.2", 3, "smoke", "simulated")
    assert summary.oracle.workloads == 25
    assert summary.invariants["exactly-once"].holds > 0
    assert sum(counts.fired for counts in summary.faults.values()) > 10


@pytest.mark.parametrize(
    ("summary", "confirmed", "code"),
    [
        (Summary(failures=["x"], interrupted=True), True, ExitCode.VIOLATED),
        (Summary(failures=["x"]), True, ExitCode.VIOLATED),
        (Summary(failures=["x"], interrupted=True), False, ExitCode.INTERRUPTED),
        (Summary(failures=["x"], shortfalls=["y"]), False, ExitCode.HARNESS_FAILED),
        (Summary(shortfalls=["y"]), False, ExitCode.FELL_SHORT),
        (Summary(), False, ExitCode.HELD),
        (Summary(scenarios=ScenarioCounts(run=2, unknown=2)), False, ExitCode.FELL_SHORT),
        (Summary(scenarios=ScenarioCounts(run=2, held=1, unknown=1)), False, ExitCode.HELD),
    ],
)
def test_exit_codes(summary: Summary, confirmed: bool, code: ExitCode) -> None:
    assert exit_code_of(summary, confirmed=confirmed) is code


def test_a_run_of_full_size_that_falls_short_reports_it() -> None:
    demanding = Profile(
        name="demanding", scenarios=10, max_records=30, max_faults=2, shares={"exactly-once": 101}, every_fault=True
    )
    verified = verify_campaign(campaign(10, demanding), subject=SimulatedSubject(), oracle=Agreeing())
    assert verified.exit_code is ExitCode.FELL_SHORT
    assert any("101 % are wanted" in line for line in verified.summary.shortfalls)
    assert any("never fired" in line for line in verified.summary.shortfalls)
    assert not verified.summary.not_judged_by_shares


def test_a_smaller_run_is_not_judged_by_shares_and_reports_it(tmp_path: Path) -> None:
    demanding = Profile(
        name="demanding", scenarios=10, max_records=30, max_faults=2, shares={"exactly-once": 101}, every_fault=True
    )
    with RunFolder(tmp_path / "run") as folder:
        done = verify_campaign(campaign(9, demanding), subject=SimulatedSubject(), oracle=Agreeing(), folder=folder)
    assert done.exit_code is ExitCode.HELD
    assert not done.summary.shortfalls
    shortfall = "The run had 9 of the 10 scenarios of the profile demanding: whether it exercised enough is not judged."
    assert done.summary.not_judged_by_shares == shortfall
    assert shortfall in " ".join(render_text(done.summary).split())
    assert shortfall in (tmp_path / "run" / "report.html").read_text()
    assert json.loads((tmp_path / "run" / "summary.json").read_bytes())["not_judged_by_shares"] == shortfall
    assert "shortfall" not in render_text(done.summary)


def test_a_run_whose_size_is_a_time_is_judged_once_it_is_as_large_as_its_profile() -> None:
    demanding = Profile(name="demanding", scenarios=3, max_records=30, max_faults=2, shares={"exactly-once": 101})
    timed = Campaign(plan=PLAN, budget=Budget(scenarios=1_000_000, seconds=0.01), profile=demanding)
    done = verify_campaign(timed, subject=SimulatedSubject(), oracle=Agreeing())
    assert done.summary.scenarios.run >= 3
    assert done.exit_code is ExitCode.FELL_SHORT


class Noting(Agreeing):
    """It notes how many scenarios had run by each question."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[ScenarioOutcome] = []
        self.run_by_then: list[int] = []

    def examine(self, questions: Sequence[bytes]) -> Examined:
        self.run_by_then.append(len(self.outcomes))
        return super().examine(questions)

    def asked_in(self, monkeypatch: pytest.MonkeyPatch, budget: Budget, batch: int) -> Found:
        """A search in which five scenarios are worthwhile, and so many are a full batch."""
        monkeypatch.setattr("cutproof.harness.search.search.WORTHWHILE", 5)
        monkeypatch.setattr("cutproof.harness.search.search.BATCH", batch)
        pool = Here(PLAN, SimulatedSubject())
        return Search(pool, self, budget, chunk=5, on_outcome=self.outcomes.append).run()


@pytest.mark.parametrize("seconds", [None, 3_600.0])
def test_pyspark_gets_a_full_batch_as_long_as_many_scenarios_are_left(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    oracle = Noting()
    found = oracle.asked_in(monkeypatch, Budget(scenarios=60, seconds=seconds), 20)
    assert found.tally.run == sum(oracle.batches) == 60
    assert oracle.batches[0] == 20


def test_pyspark_gets_less_than_a_full_batch_if_there_is_no_time_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Noting()
    found = oracle.asked_in(monkeypatch, Budget(scenarios=10_000_000, seconds=2.0), 1_000_000)
    assert oracle.run_by_then[0] < found.tally.run, "it does not wait until all have run"


def test_no_more_is_run_while_too_many_scenarios_wait_for_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "cutproof.harness.search.search"
    monkeypatch.setattr(f"{module}.WORTHWHILE", 5)
    monkeypatch.setattr(f"{module}.WAITING_AT_MOST", 10)
    outcomes: list[ScenarioOutcome] = []
    run_by_then: list[int] = []
    waited_for = threading.Event()

    class Slow(Agreeing):
        """It answers once the search does nothing but wait for it."""

        def examine(self, questions: Sequence[bytes]) -> Examined:
            assert waited_for.wait(60)
            return super().examine(questions)

    def noted(futures: object, **more: object) -> object:
        if isinstance(futures, list) and not futures[0].done():
            run_by_then.append(len(outcomes))
            waited_for.set()
        return wait(futures, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(f"{module}.wait", noted)
    pool = Here(PLAN, SimulatedSubject())
    found = Search(pool, Slow(), Budget(scenarios=60), on_outcome=outcomes.append, chunk=5).run()
    assert found.tally.run == 60
    assert found.failures == []
    # 5 are asked about, more than 10 wait, and two chunks more had been begun.
    assert run_by_then[0] <= 5 + 10 + 2 * 5 + 5
