"""The hunt for planted defects: what counts as caught, and what is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.harness.defects_run import (
    HINTS,
    Catch,
    DefectRun,
    Field,
    Hunter,
    Named,
    hunt,
    read,
    report_of,
    reproduce,
    run_defects,
)
from cutproof.harness.exit_codes import UsageError
from cutproof.harness.files import write_scenario
from cutproof.harness.repetition import Rate
from cutproof.harness.run import run
from cutproof.harness.scenario import Scenario
from cutproof.harness.strategies.templates import TEMPLATES
from cutproof.harness.subjects.simulated import SimulatedSubject
from cutproof.properties.history import History
from cutproof.reference_impl.defects import DEFECTS
from cutproof.reports.model import Size

LEAK = Named(id="I06", upstream="FLINK-40626", invariant="no-leaks")
WRONGLY_NAMED = Named(id="I06", upstream="FLINK-40626", invariant="order")


@pytest.fixture(scope="module")
def found() -> DefectRun:
    return hunt(LEAK, seed=0, scenarios=60)


def test_a_defect_is_reached_caught_and_shrunk(found: DefectRun) -> None:
    assert (found.id, found.reached, found.caught, found.invariant) == ("I06", True, True, "no-leaks")
    assert 1 <= found.scenarios_tried <= 60
    assert found.size.tasks + found.size.records + found.size.faults <= 12
    assert found.scenario is not None
    assert (found.scenario.defect, found.scenario.expects) == ("I06", "no-leaks")


def test_its_scenario_is_violated_with_the_defect_and_not_without(found: DefectRun) -> None:
    assert found.scenario is not None
    faulty, sound = SimulatedSubject("I06"), SimulatedSubject()
    catch = Catch.of(run(faulty, found.scenario), "no-leaks")
    assert catch is not None
    assert catch.difference == found.difference
    assert Hunter(faulty, sound, catch)(found.scenario)
    assert not Hunter(sound, sound, catch)(found.scenario)
    assert not Hunter(faulty, faulty, catch)(found.scenario)
    other = msgspec.structs.replace(catch, difference="another difference")
    assert not Hunter(faulty, sound, other)(found.scenario)
    nothing_else = msgspec.structs.replace(catch, violated=frozenset())
    assert not Hunter(faulty, sound, nothing_else)(found.scenario)


def test_a_defect_that_does_not_violate_what_it_is_named_for_is_missed() -> None:
    missed = hunt(WRONGLY_NAMED, seed=0, scenarios=10)
    assert (missed.reached, missed.caught, missed.scenarios_tried) == (True, False, 10)
    assert "no-leaks" in missed.violated_instead


def test_the_report_counts_and_leaves_the_scenarios_out(found: DefectRun) -> None:
    missed = msgspec.structs.replace(found, id="A99", caught=False, size=Size(), scenario=None)
    report = report_of([found, missed])
    assert (report.format, report.caught, report.missed) == ("cutproof-defects/1", 1, 1)
    assert [row["id"] for row in report.defects] == ["A99", "I06"]
    assert not {"scenario", "rate"} & set(report.defects[0])


def test_one_worker_hunts_in_this_process() -> None:
    (run,) = run_defects([LEAK], Field(seed=0, scenarios=60))
    assert run.caught


def test_a_scenario_from_a_folder_stands_in_for_the_hunt(found: DefectRun, tmp_path: Path) -> None:
    assert found.scenario is not None
    assert not read(LEAK, tmp_path).caught
    write_scenario(tmp_path / "I06.json", found.scenario)
    told = read(LEAK, tmp_path)
    assert (told.caught, told.reached, told.difference, told.size) == (True, True, found.difference, found.size)
    missed = read(WRONGLY_NAMED, tmp_path)
    assert not missed.caught
    assert "no-leaks" in missed.violated_instead
    (tmp_path / "A01.json").write_bytes((tmp_path / "I06.json").read_bytes())
    with pytest.raises(UsageError, match="was found with the defect I06, not with A01"):
        read(Named(id="A01", upstream="", invariant="exactly-once"), tmp_path)
    (tmp_path / "A01.json").write_text("{")
    with pytest.raises(UsageError, match="is cut off"):
        read(Named(id="A01", upstream="", invariant="exactly-once"), tmp_path)


class Sometimes(SimulatedSubject):
    """With its defect in every third run only, beginning with the second."""

    def __init__(self, defect: str) -> None:
        super().__init__(defect)
        self.runs = 0

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        self.runs += 1
        engine = SimulatedSubject(self.defect) if self.runs % 3 == 2 else SimulatedSubject()
        return engine.run(scenario, timeline=timeline)


def test_elsewhere_it_is_caught_if_it_shows_at_all_and_its_rate_is_told(found: DefectRun) -> None:
    assert found.scenario is not None
    told = reproduce(found, found.scenario, Sometimes("I06"), SimulatedSubject(), 7)
    assert (told.caught, told.reached, told.rate) == (True, True, Rate(reproduced=2, runs=7))
    assert report_of([told]).defects[0]["rate"] == Rate(reproduced=2, runs=7)
    never = reproduce(found, found.scenario, SimulatedSubject(), SimulatedSubject(), 2)
    assert (never.caught, never.reached, never.rate) == (False, False, Rate(reproduced=0, runs=2))


def test_elsewhere_it_is_not_caught_if_the_sound_engine_is_accused_too(found: DefectRun) -> None:
    assert found.scenario is not None
    told = reproduce(found, found.scenario, SimulatedSubject("I06"), SimulatedSubject("I06"), 1)
    assert not told.caught
    assert "no-leaks" in told.violated_instead


def test_each_scenario_is_run_on_the_subject_that_is_named(
    found: DefectRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found.scenario is not None
    write_scenario(tmp_path / "I06.json", found.scenario)
    made: list[str | None] = []

    def called(name: str, defect: str | None = None) -> SimulatedSubject:
        assert name == "processes"
        made.append(defect)
        return SimulatedSubject(defect)

    monkeypatch.setattr("cutproof.harness.defects_run.subject_called", called)
    (told,) = run_defects([LEAK], Field(subject="processes", folder=tmp_path, runs=2))
    assert (told.caught, told.rate) == (True, Rate(reproduced=2, runs=2))
    assert made == ["I06", None]


def test_hints_name_defects_and_templates() -> None:
    assert set(HINTS) <= set(DEFECTS)
    assert {template for templates in HINTS.values() for template in templates} <= set(TEMPLATES)
