"""`cutproof subject`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutproof.harness.cli.entry import main
from cutproof.harness.search import oracle
from cutproof.harness.subject_kit import trial
from cutproof.properties.model.verdict import INVARIANTS

KIT = "cutproof.harness.subject_kit.template.adapter"
FAILING = """
from cutproof import SubjectFailed
from cutproof.harness.subject_kit.template.adapter import Engine as Toy

class Failing(Toy):
    def run(self, scenario, *, timeline=False):
        raise SubjectFailed("no port is free")

class Nothing:
    name = "nothing"
"""


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trial, "CANDIDATES", 30)
    monkeypatch.setattr(trial, "SCENARIOS", 12)
    for name in ("CUTPROOF_SUBJECT", "CUTPROOF_SEED", "CUTPROOF_QUIET"):
        monkeypatch.delenv(name, raising=False)

    def start(_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(oracle.PySpark, "start", start)


def test_check_prints_a_checklist_and_starts_no_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subject", "check", f"{KIT}:Engine"]) == 0
    out, err = capsys.readouterr()
    assert err == "", "no progress in a pipe"
    assert f"{KIT}:Engine: 12 scenarios of seed 0" in out
    assert "PySpark was not asked" in out
    assert all(name in out for name in INVARIANTS)
    assert out.rstrip().endswith("Nothing is wrong in this trial.")


def test_check_as_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subject", "check", f"{KIT}:Engine", "--seed", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["format"], found["seed"], found["scenarios"]) == ("cutproof-subject-check/1", 2, 12)
    assert [one["invariant"] for one in found["invariants"]] == list(INVARIANTS)
    assert {"witnesses", "faults", "used", "unused", "violated", "malformed", "not_run", "to_do"} <= set(found)
    assert "Nothing is wrong" in err


def test_a_violation_ends_with_1_and_the_command_that_shrinks_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subject", "check", f"{KIT}:BrokenEngine"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "violated: scenario" in out
    assert f"cutproof verify --subject {KIT}:BrokenEngine --seed 0 --scenarios" in out
    assert "Nothing is wrong" not in out


def test_what_cannot_be_run_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "failing_subject.py").write_text(FAILING)
    assert main(["subject", "check", "failing_subject:Failing"]) == 4
    assert "could not be run: scenario" in capsys.readouterr().out
    assert main(["subject", "check", "failing_subject:Nothing"]) == 2
    assert "it lacks capabilities, run" in capsys.readouterr().err


def test_an_engine_with_one_job_is_checked_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders.csv").write_text("customer,price\n" + "1,2\n3,4\n" * 40)
    (tmp_path / "job.toml").write_text(
        'format = "cutproof-workload/1"\nname = "n"\n[[inputs]]\nname = "orders"\nfile = "orders.csv"\n'
        'key = "customer"\nvalue = "price"\n[[steps]]\nname = "n"\noperator = { kind = "count" }\n'
    )
    assert main(["subject", "check", f"{KIT}:Engine", "--workload", "job.toml", "--json"]) == 0
    used = json.loads(capsys.readouterr().out)["used"]
    assert "the operator count" in used
    assert "the operator map" not in used
    monkeypatch.setattr(trial, "SCENARIOS", 30)
    assert main(["subject", "check", f"{KIT}:BrokenEngine", "--workload", "job.toml"]) == 1
    assert "--stop-at-first --workload job.toml" in capsys.readouterr().out
    (tmp_path / "job.toml").write_text((tmp_path / "job.toml").read_text().replace('"count"', '"sum"'))
    assert main(["subject", "check", f"{KIT}:Engine", "--workload", "job.toml"]) == 2
    assert f"{KIT}:Engine cannot run the workload n: it needs the operator sum" in capsys.readouterr().err
    assert main(["subject", "check", f"{KIT}:Engine", "--workload", "two-input-alignment"]) == 2
    assert "is an example" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["check"], "name the subject to check"),
        (["new"], "name the folder to write"),
        (["check", "simulatd"], "did you mean 'simulated'?"),
        (["check", "spark-foreachbatch-append"], "is a pipeline, run from outside: cutproof pipeline try"),
        (["new", "my-engine"], "cannot be a Python package"),
        (["try", "simulated"], "invalid choice"),
    ],
)
def test_bad_usage_is_one_line(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subject", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert problem in line


def test_new_writes_a_folder_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subject", "new", "mine", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["next"] == ["pytest mine", "cutproof subject check mine.adapter:Engine"]
    assert sorted(found["files"]) == sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "mine").iterdir())
    assert main(["subject", "new", "mine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "mine is there already; nothing was written" in line


@pytest.mark.parametrize("words", [["subject", "list"], ["verify", "--subject", "list"]])
def test_both_lists_are_one(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    found = {one["name"]: one for one in json.loads(out)["subjects"]}
    assert found["simulated"]["judged"] == list(INVARIANTS)
    assert {"simulated", "processes", "bytewax-count"} <= set(found)
    assert "cutproof subject new NAME" in " ".join(err.split())


def test_the_subject_of_the_settings_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cutproof.toml").write_text(f'subject = "{KIT}:Engine"\n')
    assert main(["subject", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["subjects"][-1]["name"] == f"{KIT}:Engine"
