"""The run folder: taken over or refused, written as it goes, and told about when it cannot be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli import main
from cutproof.harness.counterexamples import store
from cutproof.harness.counterexamples.store import RunFolder, read_outcomes, read_view
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.scenario.files import read_scenario, text_of
from cutproof.harness.search.outcome import ScenarioOutcome, outcome_of
from cutproof.harness.subject.run import run
from cutproof.reports.model import CounterexampleView, ReportView, Summary
from unit.harness.scenarios import chain

CORPUS = Path(__file__).parents[3] / "corpus"


@pytest.fixture(scope="module")
def outcome() -> ScenarioOutcome:
    result = run(SimulatedSubject(), chain())
    return outcome_of(4, chain(), result.history, result.judgement.verdicts, keep_history=True)


def test_scenarios_are_there_as_soon_as_they_are_added(tmp_path: Path, outcome: ScenarioOutcome) -> None:
    with RunFolder(tmp_path / "a" / "run") as folder:
        folder.add([outcome])
        (kept,) = read_outcomes(folder.path)
        assert kept == msgspec.structs.replace(outcome, history=None)
        assert (folder.path / "histories" / "4.json").exists()


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path, outcome: ScenarioOutcome) -> None:
    with RunFolder(tmp_path / "run") as folder:
        folder.add([outcome])
    with (tmp_path / "run" / "scenarios.jsonl").open("ab") as file:
        file.write(b'{"index": 5, "scen')
    assert len(list(read_outcomes(tmp_path / "run"))) == 1


def test_an_earlier_run_is_replaced_as_a_whole(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        folder.add_counterexample("old", text_of(chain()))
        folder.finish(ReportView(summary=Summary(seed=1)))
    with RunFolder(tmp_path / "run") as folder:
        names = sorted(path.name for path in folder.path.iterdir())
        assert names == ["counterexamples", "histories", "scenarios.jsonl"]
        assert not list((folder.path / "counterexamples").iterdir())


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"is not empty and no run folder: it has thesis\.tex"):
        RunFolder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write into .*: Not a directory"):
        RunFolder(tmp_path / "file" / "run")


def test_a_counterexample_is_a_scenario_file(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        relative = folder.add_counterexample("exactly-once-4", text_of(chain()))
    assert relative == "counterexamples/exactly-once-4.json"
    assert read_scenario(tmp_path / "run" / relative) == chain()


def test_the_view_is_kept_so_that_the_report_can_be_written_again(tmp_path: Path) -> None:
    view = ReportView(summary=Summary(seed=9, subject="x"))
    with RunFolder(tmp_path / "run") as folder:
        folder.finish(view)
    assert read_view(tmp_path / "run") == view
    first = (tmp_path / "run" / "report.html").read_bytes()
    store.write_report(tmp_path / "run", read_view(tmp_path / "run"))
    assert (tmp_path / "run" / "report.html").read_bytes() == first


def test_a_counterexample_whose_history_has_things_by_their_number_is_kept(tmp_path: Path) -> None:
    scenario = read_scenario(CORPUS / "K01.json")
    history = SimulatedSubject().run(scenario, timeline=True)
    assert any(one.enumerators for one in history.completed), "who has which split, by the split's number"
    shown = CounterexampleView(
        id="it", invariant="consistent-cut", difference="split held twice", story="", history=history
    )
    view = ReportView(summary=Summary(seed=9, subject="x"), counterexamples=(shown,))
    with RunFolder(tmp_path / "run") as folder:
        folder.finish(view)
    assert read_view(tmp_path / "run") == view


def test_a_full_disk_at_the_report_keeps_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_report", full)
    with RunFolder(tmp_path / "run") as folder, pytest.raises(HarnessFailed, match="No space left on device"):
        folder.finish(ReportView(summary=Summary(seed=9)))
    assert msgspec.json.decode((tmp_path / "run" / "summary.json").read_bytes(), type=Summary).seed == 9


def test_a_folder_without_a_view_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_view(tmp_path)


def test_a_bug_in_rendering_is_the_harness_failing_and_no_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunFolder(tmp_path / "run") as folder:
        folder.finish(ReportView(summary=Summary(seed=9)))

    def broken(view: ReportView) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr("cutproof.harness.counterexamples.store.rendered", broken)
    assert main(["report", str(tmp_path / "run")]) == ExitCode.HARNESS_FAILED
    assert capsys.readouterr().err.startswith("cutproof: the harness failed: ZeroDivisionError")
    (tmp_path / "run" / "view.json").write_text('{"summary": 1}')
    assert main(["report", str(tmp_path / "run")]) == ExitCode.USAGE
