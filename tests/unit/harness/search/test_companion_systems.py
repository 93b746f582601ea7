"""Systems of processes beside a search's scenarios: drawn by seed and number, counted, and told when they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.harness.cli.entry import main
from cutproof.harness.counterexamples.store import RunFolder, read_view
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.generate.systems import system_of
from cutproof.harness.reference_engine.graphs.run import run_and_judge
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.scenario.system_files import read_system
from cutproof.harness.search.campaign import Campaign, Verified, verify_campaign
from cutproof.harness.search.outcome import SystemOutcome
from cutproof.harness.search.pool import Here, chunk_of
from cutproof.harness.search.profiles import PROFILES
from cutproof.harness.search.search import Budget, Found, Search
from cutproof.harness.search.systems import EVERY, CompanionSystems
from cutproof.harness.search.verification import Request, loaded_workload, plan_of
from cutproof.harness.search.worker import Chunk, Plan, Worker
from cutproof.harness.shrink.systems import shrunk
from cutproof.properties.model.verdict import Violated
from cutproof.reference_impl.core.protocol import chandy_lamport
from cutproof.reports.overview import companion_lead, headline
from cutproof.reports.render import render_html
from cutproof.reports.text import render_text
from unit.harness.subjects import Agreeing

PLAN = Plan(seed=3, drawing=Drawing(max_records=12), companions=True)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorders that take down nothing of what is under way."""
    monkeypatch.setattr(chandy_lamport.Recorder, "on_message", lambda *_: None)


def found_with(scenarios: int, plan: Plan = PLAN, **more: Any) -> Found:
    budget = Budget(scenarios=scenarios, stop_at_first=more.pop("stop_at_first", False))
    return Search(Here(plan, SimulatedSubject()), Agreeing(), budget, **more).run()


def verified(folder: Path, scenarios: int = 2 * EVERY) -> Verified:
    campaign = Campaign(plan=PLAN, budget=Budget(scenarios=scenarios), profile=PROFILES["smoke"])
    with RunFolder(folder) as run:
        return verify_campaign(campaign, subject=SimulatedSubject(), folder=run, oracle=Agreeing())


def systems_of(chunk: Chunk) -> list[SystemOutcome]:
    return [one.outcome for one in chunk.ran if isinstance(one.outcome, SystemOutcome)]


# -- what is run ----------------------------------------------------------------------------------


def test_one_accompanies_every_so_many_scenarios_however_they_are_shared_out() -> None:
    at_once = systems_of(Worker(PLAN, SimulatedSubject()).chunk(0, 2 * EVERY + 1))
    worker = Worker(PLAN, SimulatedSubject())
    in_pieces = [one for first in range(0, 2 * EVERY, 7) for one in systems_of(worker.chunk(first, first + 7))]
    assert [one.number for one in at_once] == [0, 1, 2]
    assert [one.number for one in in_pieces] == [0, 1, 2]
    assert at_once == in_pieces


def test_a_system_is_had_again_by_seed_and_number() -> None:
    kept = run_and_judge(system_of()(3, 1))
    assert CompanionSystems(3).judged(1).verdict == kept.verdict
    assert {CompanionSystems(seed).judged(1).verdict for seed in range(8)} != {kept.verdict}


def test_they_are_counted_apart_from_the_scenarios() -> None:
    found = found_with(3 * EVERY)
    counts = found.tally.summary().systems
    assert (found.tally.run, counts.run) == (3 * EVERY, 3)
    assert counts.held + counts.unknown == 3
    assert counts.snapshots >= 3


def test_none_is_run_where_other_things_are_asked_for() -> None:
    assert plan_of(Request(seed=1)).companions
    assert not plan_of(Request(seed=1, subject="processes", real_time=True)).companions
    assert not plan_of(Request(seed=1, defect="A01")).companions
    assert not plan_of(Request(seed=1, workload=loaded_workload("orders"))).companions
    assert not found_with(2, Plan(seed=3, drawing=PLAN.drawing)).tally.ran["system"]


def test_progress_names_them_next_to_the_bar() -> None:
    notes: list[str] = []

    class Watcher(Silent):
        def advance(self, done: int, note: str = "") -> None:
            notes.append(note)

    found_with(EVERY + 1, progress=Watcher())
    assert "2 systems" in notes


# -- what is wrong --------------------------------------------------------------------------------


@pytest.mark.usefixtures("deaf")
def test_a_violated_one_is_red_kept_and_had_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = verified(tmp_path / "run")
    assert done.exit_code is ExitCode.VIOLATED
    assert (done.summary.scenarios.violated, done.summary.systems.violated) == (0, 1)
    (found_one,) = done.summary.counterexamples
    assert (found_one.invariant, found_one.difference, found_one.scenarios) == (
        "consistent-cut",
        "missing in a channel",
        1,
    )
    path = tmp_path / "run" / found_one.scenario
    assert found_one.replay == f"cutproof replay {path}"
    kept = read_system(path).system
    assert (len(kept.processes), len(kept.acts), len(kept.beginnings)) == (found_one.size.tasks, 1, 1)
    assert main(["replay", str(path)]) == ExitCode.VIOLATED
    assert "missing in a channel" in capsys.readouterr().out


@pytest.mark.usefixtures("deaf")
def test_a_violated_one_comes_whole_from_a_worker_process() -> None:
    chunk = Worker(PLAN, SimulatedSubject()).chunk(0, 1)
    (there,) = systems_of(chunk_of(msgspec.msgpack.encode(chunk)))
    assert [there] == systems_of(chunk)
    assert there.system == system_of()(3, 0)


@pytest.mark.usefixtures("deaf")
def test_the_reports_say_so_first(tmp_path: Path) -> None:
    verified(tmp_path / "run")
    view = read_view(tmp_path / "run")
    assert headline(view.summary) == "consistent-cut of general snapshots was violated."
    text, page = render_text(view.summary), render_html(view)
    assert "general snapshots was violated" in text
    assert "counterexamples/system-0.json" in text
    assert "missing in a channel" in page
    assert "cutproof-graph/1" in page


@pytest.mark.usefixtures("deaf")
def test_the_first_wrong_one_ends_a_search_that_stops_at_the_first() -> None:
    found = found_with(20 * EVERY, stop_at_first=True)
    assert [one.kind for one in found.failing] == ["system"]
    assert found.tally.run < 5 * EVERY


@pytest.mark.usefixtures("deaf")
def test_it_is_shrunk_to_what_it_takes() -> None:
    system = next(one.system for one in map(CompanionSystems(3).judged, range(9)) if one.system is not None)
    small = shrunk(system, "missing in a channel")
    assert len(small.acts) == len(small.beginnings) == 1
    assert len(small.processes) <= 2
    verdict = run_and_judge(small).verdict
    assert isinstance(verdict, Violated)
    assert verdict.difference == "missing in a channel"


def test_what_holds_when_it_is_run_again_is_the_harnesss_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutated = Violated(difference="event missing", message="somebody says so")

    def mistaken(self: CompanionSystems, number: int) -> SystemOutcome:
        verdicts = {SystemOutcome.invariant: mutated}
        return SystemOutcome(index=number * EVERY, number=number, verdicts=verdicts, system=system_of()(3, number))

    monkeypatch.setattr(CompanionSystems, "judged", mistaken)
    done = verified(tmp_path / "run", EVERY)
    assert done.exit_code is ExitCode.HARNESS_FAILED
    assert done.summary.failures == ["system 0 fails in a search, but holds when it is run again"]


def test_a_machine_that_raises_is_the_harnesss_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no marker")

    monkeypatch.setattr(chandy_lamport.Recorder, "on_marker", broken)
    done = verified(tmp_path / "run")
    assert done.exit_code is ExitCode.HARNESS_FAILED
    assert "could not be run: RuntimeError: no marker (broken, line" in done.summary.failures[0]


def test_what_was_run_is_one_sentence_and_nothing_is_none() -> None:
    assert companion_lead(found_with(1).tally.summary()).startswith("Companion runs: 1 system of processes, with ")
    assert companion_lead(found_with(1, Plan(seed=3, drawing=PLAN.drawing)).tally.summary()) == ""
