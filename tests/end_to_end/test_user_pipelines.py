"""Pipelines that are run from outside, as users do: `pipeline list`, `pipeline try`, `verify --pipeline`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, KillNode
from cutproof.harness.scenario.files import read_scenario, write_scenario
from cutproof.harness.user_pipelines.library import SHIPPED, path_of
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.properties.spark.unasked import GIVEN
from end_to_end.command_line import TIMEOUT_S, Command, command, environment
from unit.harness.user_pipelines.toys import NEEDS_BYTEWAX, toy

VERIFY = ("verify", "--profile", "smoke", "--seed", "1", "--out", "run")
REPEATING = ('"careful"', '"repeating"')
AMID_A_FILE = (
    "SELECT count(*) FROM done",
    "SELECT (SELECT count(*) FROM rows) > 8 * (SELECT count(*) FROM done) + 2",
)
SOME_COUNTED = "SELECT (SELECT sum(n) FROM counts) > 2 + (SELECT coalesce(sum(records), 0) FROM done)"


def test_the_pipelines_of_the_package_are_listed(command_inside: Command) -> None:
    done = command_inside("pipeline", "list", "--json")
    assert command_inside("verify", "--pipeline", "list", "--json").stdout == done.stdout
    assert done.returncode == 0
    listed = {one["name"]: one["installed"] for one in json.loads(done.stdout)["pipelines"]}
    assert set(listed) == set(SHIPPED)
    assert listed["spark-foreachbatch-append"]


def test_a_trial_ends_with_3_if_an_entry_does_not_work(command_inside: Command, tmp_path: Path) -> None:
    toy(tmp_path)
    done = command_inside("pipeline", "try", "toy.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "10 records given, 10 rows read" in done.stdout
    toy(tmp_path, ("n AS value", "n + 1 AS value"), ("timeout_s = 5", "timeout_s = 1"))
    done = command_inside("pipeline", "try", "toy.toml")
    assert done.returncode == 3
    assert "NO" in done.stdout


def test_a_file_that_cannot_be_used_ends_with_2(command_inside: Command, tmp_path: Path) -> None:
    toy(tmp_path, ("settle_s", "settles"))
    for words in (("pipeline", "try", "toy.toml"), ("verify", "--pipeline", "toy.toml")):
        done = command_inside(*words)
        assert done.returncode == 2
        assert "unknown field `settles`" in done.stderr
        assert done.stderr.count("\n") == 1
    toy(tmp_path)
    done = command_inside("verify", "--pipeline", "toy.toml", "--subject", "processes")
    assert (done.returncode, "--subject does not go with --pipeline" in done.stderr) == (2, True)
    done = command_inside("verify", "--pipeline", "nowhere")
    assert (done.returncode, "`cutproof pipeline list` names them" in done.stderr) == (2, True)


@pytest.mark.spark
def test_a_scenario_of_a_pipeline_that_repeats_rows_replays(command_here: Command, tmp_path: Path) -> None:
    path = toy(tmp_path, REPEATING, AMID_A_FILE)
    subject = PipelineSubject(path)
    kill = KillNode(node=0, trigger=AtAim(aim="a-file-is-done"))
    write_scenario(tmp_path / "scenario.json", replace(subject.without_faults(30), faults=(kill,)))
    assert read_scenario(tmp_path / "scenario.json").pipeline == "toy"
    done = command_here("replay", "scenario.json", "--subject", subject.name)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "exactly-once" in done.stdout
    refused = command_here("replay", "scenario.json")
    assert refused.returncode == 2
    assert "the aim 'a-file-is-done' belongs to a pipeline's file" in refused.stderr


BY_SQL = ('steps = [{ kind = "count" }]', 'sql = "SELECT key, count(*) AS value, 0 AS tag FROM input GROUP BY key"')
TABLE = ("n AS value, 0 AS tag FROM rows", "n AS value, 0 AS tag FROM counts")


@pytest.mark.spark
def test_pyspark_computes_the_rows_of_a_pipeline_with_an_sql_text(command_here: Command, tmp_path: Path) -> None:
    toy(tmp_path, BY_SQL, TABLE)
    done = command_here("verify", "--pipeline", "toy.toml", "--seed", "1", "--scenarios", "1", "--out", "run", "--json")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["scenarios"]["held"], summary["oracle"]["not_asked"]) == (0, 1, {GIVEN: 1})
    lead = "PySpark computed the expected rows in 1 of 1 scenario, and the quick checker only compared them."
    assert lead in " ".join(done.stderr.split())
    wrong = (REPEATING, ("SELECT count(*) FROM done", SOME_COUNTED), ("timeout_s = 5", "timeout_s = 1"))
    subject = PipelineSubject(toy(tmp_path, BY_SQL, TABLE, *wrong))
    kill = KillNode(node=0, trigger=AtAim(aim="a-file-is-done"))
    write_scenario(tmp_path / "scenario.json", replace(subject.without_faults(30), faults=(kill,)))
    again = command_here("replay", "scenario.json", "--subject", subject.name, "--out", "again")
    assert again.returncode == 1, again.stdout + again.stderr
    assert "exactly-once is violated: wrong row" in again.stdout
    assert f"One judge saw it: {GIVEN}" in again.stdout
    judged = command_here("judge", "again/history.json", "--scenario", "scenario.json")
    assert judged.returncode == 1, judged.stdout + judged.stderr


@pytest.mark.spark
def test_a_text_that_is_not_allowed_is_refused_before_anything_runs(command_here: Command, tmp_path: Path) -> None:
    begun = ("[run]", '[run]\nbefore = [["touch", "{pipeline}/begun"]]')
    toy(tmp_path, (BY_SQL[0], "sql = 'SELECT * FROM csv.`/etc/passwd`'"), begun)
    for words in (("pipeline", "try", "toy.toml"), (*VERIFY, "--pipeline", "toy.toml")):
        done = command_here(*words)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "computes.sql: it reads csv./etc/passwd; it can read the view 'input' alone" in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "begun").exists()


@NEEDS_BYTEWAX
@pytest.mark.spark
def test_bytewax_holds_and_its_recovery_is_exercised(command_here: Command, tmp_path: Path) -> None:
    """A machine that is too busy may let a kill come too late: then the run falls short, and nothing else."""
    done = command_here(*VERIFY, "--pipeline", "bytewax-count", "--json")
    summary = json.loads(done.stdout)
    assert (summary["scenarios"]["run"], summary["scenarios"]["violated"]) == (8, 0)
    assert summary["invariants"]["exactly-once"]["exercised"] >= 4
    assert done.returncode == (3 if summary["shortfalls"] else 0)
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000


def test_nothing_is_left_when_a_verification_is_killed(tmp_path: Path) -> None:
    path = toy(tmp_path)
    (folder := tmp_path / "temporary").mkdir()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    marked = environment(TMPDIR=str(folder))
    harness = subprocess.Popen(command(*VERIFY, "--pipeline", path), cwd=tmp_path, env=marked, **quiet)
    deadline = time.monotonic() + TIMEOUT_S
    while not (alive := pipelines_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    deadline = time.monotonic() + 20
    while (left := [*pipelines_of(folder), *folder.glob("cutproof-pipeline-*")]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def pipelines_of(folder: Path) -> list[str]:
    """The processes of toy pipelines of a verification that has this folder for temporary files.  The run gives each
    of them a folder below it for its own."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            given = (entry / "environ").read_bytes()
        except OSError:
            continue
        below = f"TMPDIR={folder}/".encode()
        if any(word.endswith(b"toy.py") for word in words) and any(one.startswith(below) for one in given.split(b"\0")):
            found.append(entry.name)
    return found


def test_the_name_of_a_pipeline_and_its_path_mean_the_same() -> None:
    assert path_of("spark-foreachbatch-append") == SHIPPED["spark-foreachbatch-append"].path
