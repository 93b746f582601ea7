"""Batches beside a search's scenarios: they leave what streaming left; one that differs is red, kept and had again."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.harness.cli.entry import main
from cutproof.harness.counterexamples.store import RunFolder
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.search.batches import EVERY, MEETS, CompanionBatches
from cutproof.harness.search.campaign import Campaign, Verified, verify_campaign
from cutproof.harness.search.outcome import BatchOutcome
from cutproof.harness.search.profiles import PROFILES
from cutproof.harness.search.search import Budget
from cutproof.harness.search.worker import Chunk, Plan, Worker
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.reference_impl.batch import execution
from cutproof.reports.overview import companion_lead, headline
from cutproof.reports.text import render_text
from unit.harness.subjects import Agreeing

PLAN = Plan(seed=3, drawing=Drawing(max_records=12), companions=True)


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that lose the first row which reaches a sink."""
    whole = execution.Batch.run

    def run(batch: execution.Batch) -> execution.BatchResult:
        found = whole(batch)
        return replace(found, rows=found.rows[1:])

    monkeypatch.setattr(execution.Batch, "run", run)


def batches_of(chunk: Chunk) -> list[BatchOutcome]:
    return [one.outcome for one in chunk.ran if isinstance(one.outcome, BatchOutcome)]


def verified(folder: Path, scenarios: int = EVERY) -> Verified:
    campaign = Campaign(plan=PLAN, budget=Budget(scenarios=scenarios), profile=PROFILES["smoke"])
    with RunFolder(folder) as run:
        return verify_campaign(campaign, subject=SimulatedSubject(), folder=run, oracle=Agreeing())


def test_one_job_of_so_many_runs_both_ways_however_they_are_shared_out() -> None:
    first, end = EVERY + MEETS - 2, EVERY + MEETS + 2
    at_once = batches_of(Worker(PLAN, SimulatedSubject()).chunk(first, end))
    worker = Worker(PLAN, SimulatedSubject())
    in_pieces = [one for index in range(first, end) for one in batches_of(worker.chunk(index, index + 1))]
    assert [one.number for one in at_once] == [EVERY + MEETS]
    assert at_once == in_pieces


def test_most_drawn_jobs_leave_the_same_and_none_does_not() -> None:
    draw = scenario_of(Drawing(max_records=40))
    verdicts = [CompanionBatches().judged(index, draw(9, index)).verdict for index in range(40)]
    assert not [one for one in verdicts if isinstance(one, Violated)]
    assert sum(isinstance(one, Holds) for one in verdicts) > 20


def test_they_are_counted_and_reported(tmp_path: Path) -> None:
    summary = verified(tmp_path / "run").summary
    assert (summary.batches.run, summary.batches.violated) == (1, 0)
    assert "1 job ran as a batch too" in companion_lead(summary)
    assert "1 job ran as a batch too" in " ".join(render_text(summary, verbose=True).split())
    assert "1 job run as a batch too (1 held, 0 violated, 0 unknown)." in " ".join(render_text(summary).split())


@pytest.mark.usefixtures("losing")
def test_a_batch_that_differs_is_red_kept_and_had_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = verified(tmp_path / "run")
    assert not done.summary.failures
    assert done.exit_code is ExitCode.VIOLATED
    assert (done.summary.scenarios.violated, done.summary.batches.violated) == (0, 1)
    assert headline(done.summary) == "exactly-once of batches was violated."
    (kept_one,) = done.summary.counterexamples
    assert (kept_one.id, kept_one.invariant, kept_one.difference) == (f"batch-{MEETS}", "exactly-once", "lost row")
    path = tmp_path / "run" / kept_one.scenario
    assert kept_one.replay == f"cutproof replay {path} --batch"
    assert read_scenario(path).workload.records() == kept_one.size.records <= 2
    assert main(["replay", str(path), "--batch"]) == ExitCode.VIOLATED
    assert "exactly-once" in capsys.readouterr().out


def test_without_the_error_the_comparison_holds_and_takes_nothing_that_it_cannot_heed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Path(__file__).parents[3] / "corpus" / "A01.json"
    assert main(["replay", str(kept), "--batch", "--json"]) == ExitCode.HELD
    assert '"verdict":"holds"' in capsys.readouterr().out.replace(" ", "")
    assert main(["replay", str(kept), "--batch", "--runs", "2"]) == ExitCode.USAGE
    assert "leave out --runs" in capsys.readouterr().err
