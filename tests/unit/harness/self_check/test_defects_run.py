"""The hunt for planted defects: what counts as caught, and what is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli import main
from cutproof.harness.generate.situations.hunted import HUNTED
from cutproof.harness.generate.situations.templates import SHARES, TEMPLATES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.scenario.files import write_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.oracle import Examined
from cutproof.harness.self_check.defects import (
    Catch,
    DefectRun,
    Field,
    Hunter,
    Named,
    attempted,
    hunt,
    read,
    reproduce,
    run_defects,
)
from cutproof.harness.self_check.defects_report import confirmed, report_of
from cutproof.harness.self_check.hunts import HINTS, templates_for
from cutproof.harness.shrink.repetition import Rate
from cutproof.harness.subject.port import ScenarioRefused, SubjectFailed
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import History
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
    result = read(LEAK, tmp_path)
    assert (result.caught, result.reached, result.difference, result.size) == (
        True,
        True,
        found.difference,
        found.size,
    )
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


def test_elsewhere_it_is_caught_if_it_shows_at_all_and_its_rate_is_reported(found: DefectRun) -> None:
    assert found.scenario is not None
    result = reproduce(found, found.scenario, Sometimes("I06"), SimulatedSubject(), 7)
    assert (result.caught, result.reached, result.rate) == (True, True, Rate(reproduced=2, runs=7))
    assert report_of([result]).defects[0]["rate"] == Rate(reproduced=2, runs=7)
    never = reproduce(found, found.scenario, SimulatedSubject(), SimulatedSubject(), 2)
    assert (never.caught, never.reached, never.rate) == (False, False, Rate(reproduced=0, runs=2))


def test_elsewhere_it_is_not_caught_if_the_sound_engine_is_accused_too(found: DefectRun) -> None:
    assert found.scenario is not None
    result = reproduce(found, found.scenario, SimulatedSubject("I06"), SimulatedSubject("I06"), 1)
    assert not result.caught
    assert "no-leaks" in result.violated_instead


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

    monkeypatch.setattr("cutproof.harness.self_check.defects.subject_called", called)
    (result,) = run_defects([LEAK], Field(subject="processes", folder=tmp_path, runs=2))
    assert (result.caught, result.rate) == (True, Rate(reproduced=2, runs=2))
    assert made == ["I06", None]


# -- what breaks -------------------------------------------------------------------------------------------------


class Breaking(SimulatedSubject):
    """An engine, or a harness around it, that meets what it does not know."""

    error: Exception = KeyError(0)

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        raise self.error


@pytest.fixture
def one_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hunt for E03 breaks."""

    def engine(defect: str | None = None) -> SimulatedSubject:
        return Breaking(defect) if defect == "E03" else SimulatedSubject(defect)

    monkeypatch.setattr("cutproof.harness.self_check.defects.SimulatedSubject", engine)


@pytest.mark.usefixtures("one_breaks")
def test_a_hunt_that_breaks_is_reported_and_the_others_go_on() -> None:
    wanted = [Named(id="E03", upstream="", invariant="no-leaks"), LEAK]
    broken, found = run_defects(wanted, Field(seed=0, scenarios=60, shrinks=False), workers=1)
    assert (broken.id, broken.caught, broken.reached, broken.error) == ("E03", False, False, "KeyError: 0")
    assert "raise self.error" in broken.trace
    assert found.caught
    report = report_of([broken, found])
    assert (report.caught, report.missed, report.broken) == (1, 1, 1)
    assert [row.get("error") for row in report.defects] == ["KeyError: 0", None]
    assert "trace" not in report.defects[0]


@pytest.mark.usefixtures("one_breaks")
def test_the_command_reports_the_others_and_calls_it_a_failure_of_the_harness(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["defects", "run", "E03", "I06", "--workers", "1", "--quick", "--no-shrink"]
    assert main(words) == ExitCode.HARNESS_FAILED
    result = capsys.readouterr()
    assert result.err == "cutproof: an error ended the hunt for E03: KeyError: 0 (CUTPROOF_DEBUG=1 shows where)\n"
    assert [line.split()[3] for line in result.out.splitlines() if line.startswith(("E03", "I06"))] == [
        "BROKEN",
        "caught",
    ]
    assert result.out.splitlines()[-1] == "1 caught, 1 missed"
    monkeypatch.setenv("CUTPROOF_DEBUG", "1")
    assert main(words) == ExitCode.HARNESS_FAILED
    assert "raise self.error\nKeyError: 0\n" in capsys.readouterr().err


def test_what_a_hunt_prints_as_it_breaks_is_one_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Breaking, "error", SubjectFailed("refused\n" * 2_000))
    monkeypatch.setattr("cutproof.harness.self_check.defects.SimulatedSubject", Breaking)
    result = attempted(LEAK, Field(scenarios=1)).error
    assert result.startswith("SubjectFailed: refused refused")
    assert len(result) <= 240
    assert "\n" not in result


class Refusing(SimulatedSubject):
    """An engine that refuses every scenario but the last of eight."""

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        if scenario.seed != "0 7":
            raise ScenarioRefused("its run is too large")
        return super().run(scenario, timeline=timeline)


@pytest.fixture
def refusing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine with the defect refuses scenarios, or the one without (None)."""

    def engine(defect: str | None = None) -> SimulatedSubject:
        return Refusing(defect) if defect == request.param else SimulatedSubject(defect)

    monkeypatch.setattr("cutproof.harness.self_check.defects.SimulatedSubject", engine)


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize(("refusing", "refused", "last"), [("I06", 7, 6), (None, 4, 6)], indirect=["refusing"])
def test_a_scenario_that_is_refused_ends_no_hunt(refused: int, last: int) -> None:
    result = hunt(LEAK, seed=0, scenarios=8, shrinks=False)
    assert (result.caught, result.scenarios_tried, result.refused) == (True, 8, refused)
    assert result.refusal == f"scenario {last} of seed 0: ScenarioRefused: its run is too large"
    assert report_of([result]).defects[0]["refused"] == refused


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("refusing", ["I06"], indirect=True)
def test_what_was_refused_is_named_where_nothing_is_caught(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrongly = msgspec.structs.replace(DEFECTS["I06"], invariant=WRONGLY_NAMED.invariant)
    monkeypatch.setitem(DEFECTS, "I06", wrongly)
    options = ("--scenarios", "8", "--seed", "0", "--no-shrink", "--quick")
    assert main(["defects", "run", "I06", *options]) == ExitCode.FELL_SHORT
    words = "7 scenarios could not be run, the last scenario 6 of seed 0: ScenarioRefused: its run is too large"
    captured = capsys.readouterr()
    assert captured.err == f"cutproof: the hunt for I06: {words}\n"
    assert "MISSED" in captured.out


def test_an_environment_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Breaking, "error", HarnessFailed("no server"))
    monkeypatch.setattr("cutproof.harness.self_check.defects.SimulatedSubject", Breaking)
    with pytest.raises(HarnessFailed, match="no server"):
        attempted(LEAK, Field(scenarios=1))


def test_a_smaller_scenario_that_breaks_the_engine_is_no_smaller_case(found: DefectRun) -> None:
    assert found.scenario is not None
    catch = Catch.of(run(SimulatedSubject("I06"), found.scenario), "no-leaks")
    assert catch is not None
    assert not Hunter(Breaking("I06"), SimulatedSubject(), catch)(found.scenario)


# -- without shrinking, and with PySpark's word ------------------------------------------------------------------


def test_without_shrinking_the_scenario_is_the_one_that_was_drawn(found: DefectRun) -> None:
    as_drawn = hunt(LEAK, seed=0, scenarios=60, shrinks=False)
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, templates=templates_for("I06")))
    drawn = draw(0, as_drawn.scenarios_tried - 1)
    assert as_drawn.scenario == msgspec.structs.replace(drawn, defect="I06", expects="no-leaks")
    assert (as_drawn.scenarios_tried, as_drawn.seconds_to_shrink) == (found.scenarios_tried, 0.0)
    assert as_drawn.size.records > found.size.records


class Listening:
    """An oracle that takes down what it is asked, and says otherwise of the questions whose places are given."""

    def __init__(self, *contradicted: int) -> None:
        self.contradicted = contradicted
        self.asked: list[bytes] = []

    def start(self) -> None:
        pass

    def wait(self) -> None:
        pass

    def examine(self, questions: Sequence[bytes]) -> Examined:
        self.asked = list(questions)
        return Examined(engine="another", disagreements=tuple((place, "otherwise") for place in self.contradicted))


def test_pyspark_is_asked_once_about_both_runs_of_each_that_was_caught() -> None:
    (caught,) = run_defects([LEAK], Field(seed=0, scenarios=60, shrinks=False, asks=True))
    missed = msgspec.structs.replace(caught, id="A99", caught=False, questions=())
    oracle = Listening(3)
    asked, examined = confirmed([caught, missed, caught], oracle)
    assert (asked, oracle.asked) == (4, [*caught.questions, *caught.questions])
    assert examined.disagreements == ((2, "otherwise"),)
    report = report_of([caught, missed], oracle=(asked, examined))
    assert report.oracle is not None
    assert (report.oracle["engine"], report.oracle["asked"], report.oracle["disagreements"]) == ("another", 4, 1)
    assert report_of([caught]).oracle is None


def test_pyspark_is_not_asked_where_nothing_was_caught() -> None:
    oracle = Listening()
    missed = DefectRun(
        id="A01", upstream="", reached=False, caught=False, invariant="", scenarios_tried=1, seconds_to_find=0.0
    )
    assert confirmed([missed], oracle) == (0, Examined())
    assert oracle.asked == []


@pytest.mark.parametrize(("contradicted", "code"), [((), ExitCode.HELD), ((1,), ExitCode.HARNESS_FAILED)])
def test_two_judges_that_disagree_are_a_failure_of_the_harness(
    contradicted: tuple[int, ...], code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cutproof.harness.search.oracle.PySpark", lambda: Listening(*contradicted))
    assert main(["defects", "run", "I06", "--no-shrink"]) == code
    result = capsys.readouterr()
    assert "another was asked about 2 runs" in result.out
    assert result.err == ("cutproof: the two judges disagree about I06: otherwise\n" if contradicted else "")


# -- what is drawn -----------------------------------------------------------------------------------------------


def test_hints_name_defects_and_templates() -> None:
    assert set(HINTS) <= set(DEFECTS)
    named = {template for templates in HINTS.values() for template in templates}
    assert named <= set(TEMPLATES) | set(HUNTED)
    assert set(HUNTED) <= named


def test_hunts_alone_draw_what_is_for_hunts() -> None:
    assert not set(HUNTED) & set(SHARES)
    assert not set(HUNTED) & set(TEMPLATES)
    assert set(templates_for("A01")) == set(SHARES)


@pytest.mark.parametrize("template", sorted(HUNTED))
def test_the_correct_engine_is_not_accused_of_what_is_drawn_for_hunts(template: str) -> None:
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, templates=(template,)))
    for index in range(25):
        result = draw(7, index)
        assert result.name == template
        assert not run(SimulatedSubject(), result).judgement.violated, result.seed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("defect", ["B04", "B09", "E12", "P07", "P09", "P10", "J09", "C06", "L03", "P34"])
def test_what_was_missed_or_took_minutes_is_caught_soon_with_any_seed(defect: str, seed: int) -> None:
    named = Named(id=defect, upstream="", invariant=DEFECTS[defect].invariant)
    assert hunt(named, seed, scenarios=60, shrinks=False).caught


@pytest.mark.parametrize("seed", [2, 3])
def test_a_scenario_whose_run_comes_to_rest_is_preferred(seed: int) -> None:
    """With these seeds the first that catches C06 restarts until the time limit."""
    found = hunt(Named(id="C06", upstream="", invariant=DEFECTS["C06"].invariant), seed, scenarios=60, shrinks=False)
    assert found.scenario is not None
    assert run(SimulatedSubject("C06"), found.scenario).history.quiet
