"""A subject in real time: what is done when a run costs seconds, comes out now so and now so, or cannot be had."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.counterexamples.store import RunFolder
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import CutproofError, ExitCode, HarnessFailed
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.campaign import Campaign, Verified, verify_campaign
from cutproof.harness.search.outcome import ScenarioOutcome
from cutproof.harness.search.pool import Encoded, Here, Processes, chunk_of
from cutproof.harness.search.profiles import PROFILES, REAL_TIME_PROFILES
from cutproof.harness.search.search import Budget, Search
from cutproof.harness.search.verification import Request, campaign_of, is_in_real_time
from cutproof.harness.search.worker import Chunk, Plan
from cutproof.harness.shrink.on_subject import fails_like, shrink_in_real_time, shrink_on
from cutproof.harness.shrink.repetition import repeat, violates
from cutproof.harness.shrink.shrink import shrink, size_of
from cutproof.harness.subject.names import name_of, stand_in_for
from cutproof.harness.subject.port import Subject, SubjectFailed, close, closing
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Violated
from cutproof.reports.text import render_text
from unit.harness.scenarios import chain
from unit.harness.subjects import Agreeing, Failing, InRealTime, Lossy

PLAN = Plan(seed=3, drawing=Drawing(max_records=30))
CAMPAIGN = Campaign(plan=PLAN, budget=Budget(scenarios=16), profile=REAL_TIME_PROFILES["smoke"])


def verified(subject: Subject, folder: RunFolder | None = None) -> Verified:
    return verify_campaign(CAMPAIGN, subject=subject, oracle=Agreeing(), folder=folder)


def lost_row(subject: Subject) -> tuple[Scenario, str]:
    """A scenario that violates exactly-once on the subject, and how."""
    seen: list[tuple[Scenario, str]] = []

    def note(outcome: ScenarioOutcome) -> None:
        seen.extend((outcome.scenario, ran.difference) for name, ran in outcome.violations if name == "exactly-once")

    Search(Here(PLAN, subject), Agreeing(), Budget(scenarios=8), on_outcome=note).run()
    return seen[0]


# -- the environment fails -------------------------------------------------------------------------


def test_a_failed_environment_ends_the_campaign_with_its_one_line() -> None:
    subject = Failing(5, HarnessFailed("Toxiproxy is not installed; run `cutproof doctor --install toxiproxy`"))
    ran = verified(subject)
    assert ran.exit_code is ExitCode.HARNESS_FAILED
    assert ran.summary.failures == ["Toxiproxy is not installed; run `cutproof doctor --install toxiproxy`"]
    assert (ran.summary.scenarios.run, ran.summary.scenarios.violated, subject.refused) == (5, 0, 1)


def test_a_subject_that_cannot_be_driven_is_reported_and_does_not_end_it(tmp_path: Path) -> None:
    subject = Failing(2, SubjectFailed("the engine\ndoes not start"))
    with RunFolder(tmp_path / "run") as folder:
        ran = verified(subject, folder)
    assert ran.exit_code is ExitCode.HARNESS_FAILED
    assert ran.summary.failures == [
        "14 scenarios could not be run, the first of them scenario 2: the engine does not start"
    ]
    assert subject.refused == 14
    assert read_scenario(tmp_path / "run" / "counterexamples" / "undriven-2.json").workload.records() > 0


def test_workers_that_report_the_same_are_printed_once() -> None:
    class Two(Here):
        """Two workers, one behind the other."""

        workers = 2

    pool = Two(PLAN, Failing(0, HarnessFailed("no port is free")))
    found = Search(pool, Agreeing(), Budget(scenarios=50), chunk=1).run()
    assert found.failures == ["no port is free"]
    assert not found.tally.run


def test_workers_that_report_different_failures_are_printed_each_also_if_one_sentence_ends_as_the_other() -> None:
    class Two(Here):
        workers = 2

        def chunk(self, first: int, end: int) -> Future[Encoded]:
            future: Future[Encoded] = Future()
            future.set_result(Chunk(ended="of PostgreSQL: no port is free" if first % 2 == 0 else "no port is free"))
            return future

    found = Search(Two(PLAN, Failing(0, HarnessFailed(""))), Agreeing(), Budget(scenarios=50), chunk=1).run()
    assert found.failures == ["of PostgreSQL: no port is free", "no port is free"]


def test_while_a_case_is_shrunk_a_failed_environment_is_no_answer() -> None:
    failing = Failing(0, HarnessFailed("no port is free"))
    with pytest.raises(CutproofError, match="no port is free"):
        fails_like(failing, chain(), "exactly-once", "lost row")
    assert not fails_like(Failing(0, SubjectFailed("no")), chain(), "exactly-once", "lost row")


# -- it now shows, and now does not ----------------------------------------------------------------


def test_a_counterexample_in_real_time_has_a_rate() -> None:
    ran = verified(InRealTime())
    assert ran.exit_code is ExitCode.VIOLATED
    first = next(finding for finding in ran.findings if finding.counterexample.invariant == "exactly-once")
    assert any("violated in 5 of 10 runs of this scenario" in words for words in first.view.paragraphs)
    assert first.confirmed


def test_what_was_seen_once_is_reported_as_it_was_recorded() -> None:
    ran = verified(InRealTime(every=1, at_most=1))
    assert ran.exit_code is ExitCode.VIOLATED
    (finding,) = ran.findings
    words = finding.counterexample.kept
    assert words.startswith("Violated when it was found; 0 of 10 repetitions of this scenario were violated. The run")
    assert finding.view.paragraphs[-1] == words
    assert f"\n  {words[:40]}" in render_text(ran.summary)
    assert (finding.counterexample.repetitions, finding.counterexample.violated_again) == (10, 0)
    assert [row.status for row in finding.view.rows].count("lost") == 1
    assert not ran.summary.failures


class Racing(InRealTime):
    """Loses the row in each run; of a scenario that was made small, in the first run alone."""

    def __init__(self) -> None:
        super().__init__(every=1)
        self._seen: set[bytes] = set()

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        text = msgspec.json.encode(scenario)
        self._every = 1_000_000_000 if text in self._seen and scenario.workload.records() < 10 else 1
        self._seen.add(text)
        return super().run(scenario, timeline=timeline)


def test_of_scenarios_that_were_shrunk_one_is_kept_that_is_violated_again() -> None:
    ran = verified(Racing())
    kept = next(one.counterexample for one in ran.findings if one.counterexample.invariant == "exactly-once")
    assert (kept.repetitions, kept.violated_again) == (10, 10)
    assert kept.size.records >= 10
    assert kept.kept.startswith("A smaller scenario was violated once, and in 0 of 10 repetitions; so this larger one")
    assert kept.kept.endswith("Rate: violated in 10 of 10 runs of this scenario.")


def test_all_runs_of_a_failure_stay_within_their_limit() -> None:
    """If one run takes longer than the limit, none begins, and the outcome says so."""
    plan = msgspec.structs.replace(PLAN, shrink_s=0.0)
    subject = InRealTime(every=1)
    runs: list[int] = []
    ran = verify_campaign(
        msgspec.structs.replace(CAMPAIGN, plan=plan),
        subject=subject,
        oracle=Agreeing(),
        on_outcome=lambda _: runs.append(subject.runs),
    )
    assert ran.exit_code is ExitCode.VIOLATED
    assert subject.runs == runs[-1] == 16
    words = ran.findings[0].counterexample.kept
    assert words.startswith("Violated when it was found; there was no time to run this scenario again.")
    assert words.endswith("s, and all may take 0 s (--shrink-time).")


def test_repeating_reports_the_first_run_that_shows_it() -> None:
    subject = InRealTime()
    scenario, difference = lost_row(subject)
    subject.runs = 1  # the next run holds
    counts: list[int] = []
    ran = repeat(subject, scenario, 5, violates("exactly-once", difference), on_run=counts.append)
    assert (ran.rate.reproduced, ran.rate.runs, str(ran.rate)) == (2, 5, "2 of 5")
    assert isinstance(ran.result.judgement.verdicts["exactly-once"], Violated)
    assert counts == [1, 2, 3, 4, 5]
    assert repeat(subject, scenario, 5, violates("order"), max_seconds=0).rate.runs == 1


# -- shrinking -------------------------------------------------------------------------------------


def test_shrinking_is_bounded_in_seconds_and_reports_it() -> None:
    def slowly(scenario: Scenario) -> bool:
        deadline = time.monotonic() + 0.02
        while time.monotonic() < deadline:
            pass
        return False

    assert shrink(chain(), slowly, max_seconds=0.1, run_s=0.06, left_s=0.03).runs == 0, "no run would be left"
    cut_short = shrink(chain(), slowly, max_seconds=0.1)
    assert cut_short.early
    assert 1 <= cut_short.runs <= 10
    assert shrink(chain(), lambda _: False, max_runs=3).early
    assert not shrink(chain(), lambda _: False).early


def test_the_twin_in_virtual_time_is_shrunk_on_first() -> None:
    scenario, difference = lost_row(Lossy())
    twin, subject = Lossy(), InRealTime(every=1)
    found = shrink_in_real_time(subject, twin, scenario, "exactly-once", difference)
    assert sum(size_of(found.scenario)) <= 12
    assert twin.runs > 15
    assert subject.runs == 1


@pytest.mark.parametrize("twin", [SimulatedSubject(), None], ids=["it holds there", "there is none"])
def test_without_a_twin_that_fails_alike_it_is_shrunk_in_real_time(twin: Subject | None) -> None:
    scenario, difference = lost_row(Lossy())
    subject = InRealTime(every=1)
    found = shrink_in_real_time(subject, twin, scenario, "exactly-once", difference)
    assert subject.runs == found.runs + 1
    assert 10 < found.runs <= 60
    assert sum(size_of(found.scenario)) < sum(size_of(scenario))


def test_what_the_subject_does_not_confirm_is_shrunk_in_real_time_after_all() -> None:
    scenario, difference = lost_row(Lossy())
    subject = InRealTime(at_most=0)
    found = shrink_in_real_time(subject, Lossy(), scenario, "exactly-once", difference)
    assert found.scenario == scenario
    assert subject.runs == 5 + 1 + found.runs


def test_shrinking_ends_when_it_is_not_wanted_any_more() -> None:
    def stop() -> None:
        raise InterruptedError

    scenario, difference = lost_row(Lossy())
    with pytest.raises(InterruptedError):
        shrink_on(Lossy(), scenario, "exactly-once", difference, go_on=stop)


def test_only_the_reference_engine_as_processes_has_a_twin() -> None:
    class ProcessesSubject(SimulatedSubject):
        __module__ = "cutproof.harness.reference_engine.subjects.processes"

    assert name_of(ProcessesSubject()) == "processes"
    twin = stand_in_for(ProcessesSubject(), "A01")
    assert isinstance(twin, SimulatedSubject)
    assert twin.defect == "A01"
    assert stand_in_for(InRealTime(), None) is None


# -- size, chunks, and the end ---------------------------------------------------------------------


def test_workers_take_one_scenario_at_a_time() -> None:
    sizes: list[int] = []

    class Counting(Here):
        def chunk(self, first: int, end: int) -> Future[Encoded]:
            sizes.append(end - first)
            return super().chunk(first, end)

    Search(Counting(PLAN, InRealTime(at_most=0)), Agreeing(), Budget(scenarios=7), chunk=1).run()
    assert sizes == [1] * 7


def test_a_budget_of_seconds_is_kept_however_long_a_scenario_takes() -> None:
    class Slow(InRealTime):
        def run(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
            deadline = time.monotonic() + 0.1
            while time.monotonic() < deadline:
                pass
            return super().run(*args, **kwargs)  # type: ignore[arg-type]

    slow = Slow(at_most=0)
    budget = Budget(scenarios=1_000, seconds=0.3)
    ran = verify_campaign(
        Campaign(plan=PLAN, budget=budget, profile=REAL_TIME_PROFILES["smoke"]), subject=slow, oracle=Agreeing()
    )
    assert ran.summary.scenarios.run <= 6


def test_profiles_are_smaller_in_real_time() -> None:
    assert [profile.scenarios for profile in REAL_TIME_PROFILES.values()] == [8, 60, 600]
    assert set(REAL_TIME_PROFILES) == set(PROFILES)
    campaign = campaign_of(Request(seed=1, subject="simulated", real_time=True, workers=3))
    assert (campaign.budget.scenarios, campaign.plan.drawing.max_records, campaign.workers) == (60, 60, 3)
    assert is_in_real_time(InRealTime())
    assert not is_in_real_time("simulated")


def test_a_subject_that_holds_something_is_closed_and_others_need_no_such_thing() -> None:
    subject = InRealTime()
    with closing(subject) as held:
        assert held is subject
        assert not subject.closed
    assert subject.closed == 1
    with pytest.raises(ZeroDivisionError), closing(subject):
        raise ZeroDivisionError
    assert subject.closed == 2
    close(SimulatedSubject())


def test_a_subject_that_was_handed_in_is_its_owners_to_close() -> None:
    subject = InRealTime(at_most=0)
    verified(subject)
    assert not subject.closed


ENGINE = """
import os, pathlib
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject

class Engine(SimulatedSubject):
    def close(self):
        pathlib.Path(f"closed-{os.getpid()}").touch()
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "closing_engine.py").write_text(ENGINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def ended_in_order(pool: Processes) -> None:
    assert chunk_of(pool.chunk(0, 2).result()).ran
    pool.close()


def ended_by_an_interruption(pool: Processes) -> None:
    busy = pool.chunk(0, 100_000)
    assert chunk_of(pool.chunk(0, 1).result()).ran
    pool.stop()
    pool.close()
    assert busy.exception() is not None


@pytest.mark.parametrize("end", [ended_in_order, ended_by_an_interruption])
def test_each_worker_closes_its_subject_when_it_ends(engine: Path, end: Callable[[Processes], None]) -> None:
    end(Processes(Plan(subject="closing_engine:Engine", seed=1, drawing=Drawing(max_records=20)), 2))
    assert list(engine.glob("closed-*"))


def test_a_worker_whose_environment_fails_at_once_reports_it(engine: Path) -> None:
    fails = "raise HarnessFailed('no home folder')"
    text = f"from cutproof.harness.runtime.exit_codes import HarnessFailed\n\ndef make():\n    {fails}\n"
    (engine / "failing_engine.py").write_text(text)
    pool = Processes(Plan(subject="failing_engine:make", seed=1), 1)
    try:
        assert chunk_of(pool.chunk(0, 1).result()).ended == "no home folder"
        with pytest.raises(HarnessFailed, match="no home folder"):
            pool.shrink(chain(), "exactly-once", "lost row").result()
    finally:
        pool.close()


def test_a_campaign_closes_what_it_made(engine: Path) -> None:
    plan = Plan(subject="closing_engine:Engine", seed=1, drawing=Drawing(max_records=20))
    campaign = Campaign(plan=plan, budget=Budget(scenarios=4), profile=PROFILES["smoke"], workers=1)
    assert verify_campaign(campaign, oracle=Agreeing()).exit_code is ExitCode.HELD
    assert len(list(engine.glob("closed-*"))) == 2


def test_a_run_of_it_is_judged_like_any_other() -> None:
    assert run(InRealTime(at_most=0), chain()).judgement.outcome == "held"
