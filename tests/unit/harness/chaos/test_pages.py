"""A night writes its page, whatever becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.chaos import subject_night
from cutproof.harness.chaos.bank import Bank
from cutproof.harness.chaos.job import ChaosRequest, run_night
from cutproof.harness.chaos.subject_night import SubjectPart
from cutproof.harness.cli.entry import main
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.search.pool import Here
from cutproof.reports.nights.files import JUNIT, NEW, PAGE, SUMMARY
from unit.harness.subjects import Agreeing
from unit.reports.nights import banks


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_night, "Processes", lambda plan, _: Here(plan))


def request(folder: Path, out: Path | None = None) -> ChaosRequest:
    return ChaosRequest(
        bank=folder / "bank", seconds=5.0, subjects=("simulated",), seed=1, scenarios=2, workers=1, out=out
    )


def test_the_page_stands_in_the_bank_or_where_the_user_wants_it(tmp_path: Path) -> None:
    first = run_night(request(tmp_path), oracle=Agreeing())
    second = run_night(request(tmp_path, tmp_path / "out/nights"), oracle=Agreeing())
    assert (first.page, second.page) == (tmp_path / "bank" / PAGE, tmp_path / "out/nights" / PAGE)
    assert {path.name for path in second.page.parent.iterdir()} == {PAGE, JUNIT, SUMMARY, NEW}
    assert "Nights (1)" in first.page.read_text(encoding="utf-8")
    assert "Nights (2)" in second.page.read_text(encoding="utf-8")


def test_the_report_of_a_bank_is_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = tmp_path / "bank"
    with Bank(bank) as held:
        held.write_night(banks.night(0))
        assert main(["report", str(bank)]) == 2
        assert "another job has the bank" in capsys.readouterr().err
    assert main(["report", str(bank)]) == 0
    assert capsys.readouterr().out == f"written: {bank / PAGE} and {bank / JUNIT}\n"
    assert "Nights (1)" in (bank / PAGE).read_text(encoding="utf-8")
    (bank / "bank.json").unlink()
    assert main(["report", str(bank)]) == 0, "a bank is known by its nights too"


def test_a_report_leaves_a_damaged_file_to_the_night_which_tells_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = tmp_path / "bank"
    with Bank(bank) as held:
        held.write_night(banks.night(0))
    broken = bank / "failures/abcdefabcdef/failure.json"
    broken.parent.mkdir()
    broken.write_text("{", encoding="utf-8")
    assert main(["report", str(bank)]) == 0
    assert f"{broken} is cut off" in capsys.readouterr().err
    done = run_night(request(tmp_path), oracle=Agreeing())
    assert done.night.put_aside == 1
    assert not broken.exists()


def test_a_page_that_cannot_be_written_is_told_and_the_night_is_in_the_bank(tmp_path: Path) -> None:
    (tmp_path / "out" / PAGE).mkdir(parents=True)
    done = run_night(request(tmp_path, tmp_path / "out"), oracle=Agreeing())
    assert done.exit_code == ExitCode.HARNESS_FAILED
    assert str(tmp_path / "out") in done.page_failed
    assert (tmp_path / "bank/nights" / done.night.id / "night.json").exists()


def test_a_place_where_no_page_can_stand_is_told_before_the_night(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("no folder", encoding="utf-8")
    with pytest.raises(UsageError, match="out: it is no folder"):
        run_night(request(tmp_path, tmp_path / "out"), oracle=Agreeing())
    with Bank(tmp_path / "bank") as bank:
        assert bank.nights == []


def test_the_page_after_a_killed_night_does_not_show_the_night_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(part: SubjectPart) -> None:
        raise Killed

    run_night(request(tmp_path), oracle=Agreeing())
    monkeypatch.setattr(SubjectPart, "run", killed)
    with pytest.raises(Killed):
        run_night(request(tmp_path), oracle=Agreeing())
    summary = (tmp_path / "bank" / SUMMARY).read_text(encoding="utf-8")
    assert summary.startswith("## ❌ The last night did not run to its end: find out why.\n")


def test_a_night_that_the_environment_ends_is_on_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(part: SubjectPart) -> None:
        raise HarnessFailed("PySpark is gone")

    monkeypatch.setattr(SubjectPart, "run", gone)
    with pytest.raises(HarnessFailed):
        run_night(request(tmp_path), oracle=Agreeing())
    summary = (tmp_path / "bank" / SUMMARY).read_text(encoding="utf-8")
    assert summary.startswith("## ❌ Repair the job: the harness failed, so nothing is certain.\n")
    assert "- PySpark is gone." in summary
