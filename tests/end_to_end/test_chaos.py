"""`cutproof chaos` as a user types it: its exit codes, its JSON, and bad input."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest

from cutproof.harness.chaos import job, subject_night
from cutproof.harness.chaos.bank import Bank
from cutproof.harness.search import worker
from cutproof.harness.search.pool import Here
from cutproof.harness.shrink.on_subject import shrink_on
from end_to_end.command_line import Command, only_line, result
from unit.harness.subjects import Agreeing


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights without Spark and without worker processes, that shrink hastily."""
    monkeypatch.setattr(job, "PySpark", Agreeing)
    monkeypatch.setattr(subject_night, "Processes", lambda plan, _: Here(plan))
    monkeypatch.setattr(worker, "shrink_on", functools.partial(shrink_on, max_runs=10))
    monkeypatch.setattr(os, "fsync", lambda handle: None)


NIGHT = ("chaos", "--bank", "bank", "--time", "300ms", "--seed", "16", "--profile", "smoke")


def test_a_night_finds_a_planted_defect_and_the_next_one_knows_it(command_inside: Command, tmp_path: Path) -> None:
    first = result(command_inside(*NIGHT, "--defect", "A01", "--json"))
    assert first["format"] == "cutproof-summary/1"
    assert first["bank"]["new"] > 0
    assert first["scenarios"]["violated"] > 0
    assert {one["id"] for one in first["counterexamples"]} == {
        path.name for path in (tmp_path / "bank/failures").iterdir()
    }
    replay = first["counterexamples"][0]["replay"].split()
    os.chdir(tmp_path / "bank")
    assert command_inside(*replay[1:], "--quick").returncode == 1, "it fails again, in the folder of the bank"
    os.chdir(tmp_path)

    held = command_inside(*NIGHT)
    assert held.returncode == 0
    assert held.stderr == ""
    assert f"{first['bank']['new']} fixed" in held.stdout
    assert "plan: simulated gets 0.3 s" in held.stdout
    assert json.loads((tmp_path / "bank/index.json").read_text())["format"] == "cutproof-bank-index/2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("chaos", "--time", "1s"), "a night needs --bank DIR"),
        (("chaos", "--bank", "bank"), "a night needs --time TIME"),
        (("chaos", "--bank", "bank", "--time", "soon"), "is not a time"),
        ((*NIGHT, "--subject", "simulated", "--subject", "simulated"), "named twice"),
        ((*NIGHT, "--subject", "simulatd"), "did you mean 'simulated'"),
        ((*NIGHT, "--defect", "Z99"), "there is no defect 'Z99'"),
        ((*NIGHT, "--known-failures", "nowhere.toml"), "no file of known failures"),
        ((*NIGHT, "--master", "h:1"), "'h:1' is no Spark master"),
        (
            (*NIGHT, "--master", "local[2]", "--subject", "simulated", "--subject", "processes"),
            "processes runs in real time, on processes of this machine; leave out --master, or test processes in a",
        ),
        ((*NIGHT, "--master", "local[2]", "--pipeline", "spark-file"), "--master does not go with --pipeline"),
        ((*NIGHT, "--master", "local[2]", "--workers", "2"), "--master does not go with --workers"),
        (("chaos", "init", "cron", "--master", "yarn", "--workers", "2"), "--master does not go with --workers"),
        (("chaos", "merge", "bank"), "chaos merge takes two banks"),
        (("chaos", "merge", "bank", "other", "--bank", "bank"), "chaos merge takes no --bank"),
        (("chaos", "merge", "bank", "nowhere"), "there is no bank nowhere"),
        (("chaos", "begin"), "does not know 'begin'"),
    ],
)
def test_bad_input_is_one_line(command_inside: Command, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = command_inside(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("bank/nights/*")), "no night has begun"


def test_two_jobs_on_one_bank_are_refused(command_inside: Command, tmp_path: Path) -> None:
    with Bank(tmp_path / "bank"):
        done = command_inside(*NIGHT, "--quiet")
        assert done.returncode == 2
        assert "another job has the bank bank open" in only_line(done)


def test_banks_are_merged(command_inside: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Bank(tmp_path / name):
            pass
    done = command_inside("chaos", "merge", "one", "two", "--json")
    assert done.returncode == 0
    assert result(done) == {"format": "cutproof-merge/1", "failures": 0, "nights": 0, "remarks": []}
