"""Verifications and nights on a standalone Spark cluster: a master and two workers of one core, as processes of this
machine."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster import night
from cluster.standalone import Cluster, cluster, processes_of
from cutproof.harness.chaos import subject_night
from cutproof.harness.chaos.bank import Bank
from cutproof.harness.chaos.job import run_night
from cutproof.harness.counterexamples.store import RunFolder, read_outcomes
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.search.campaign import verify_campaign
from cutproof.harness.search.pool import Here
from cutproof.harness.search.verification import Request, campaign_of
from cutproof.reports.nights.model import Night
from end_to_end.command_line import TIMEOUT_S, command, environment
from unit.harness.subjects import Agreeing

SCENARIOS = 400
"""four tasks for two cores, of which two are a job"""
DEFECT = "I06"
SEED = 2
POLL_S = 0.05
IMPATIENT = """
import sys
from cutproof.harness.cli import main
from cutproof.properties.spark.cluster import tasks

tasks.NO_EXECUTOR_S = 2.0
sys.exit(main())
"""
"""cutproof, which waits two seconds for an executor where a user's waits a minute"""


WORKERS = ("one", "two")


@pytest.fixture(scope="module")
def cluster_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder) as made:
        yield made
    assert processes_of(folder) == []


@pytest.fixture
def machines(cluster_of_tests: Cluster) -> Cluster:
    """The cluster with all its workers: those that a test has killed are started again."""
    cluster_of_tests.have(*WORKERS)
    return cluster_of_tests


def start(folder: Path, words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment(SPARK_LOCAL_IP="127.0.0.1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def verification(master: str, scenarios: int, *more: str) -> list[str]:
    words = ["verify", "--scenarios", str(scenarios), "--seed", str(SEED), "--out", "run", "--json", *more]
    return command(*words, "--master", master)


def until(there: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not there():
        assert time.monotonic() < deadline, why
        time.sleep(POLL_S)


def wait_for_results(run: Path) -> None:
    path = run / "scenarios.jsonl"
    until(lambda: path.exists() and path.stat().st_size > 0, "no scenario was judged")


def scenarios_of(run: Path) -> dict[int, Any]:
    """The lines of scenarios.jsonl by index, without times; each index is there once."""
    lines = [json.loads(line) for line in (run / "scenarios.jsonl").read_text().splitlines()]
    by_index = {line["index"]: {name: line[name] for name in line if not name.endswith("_s")} for line in lines}
    assert len(by_index) == len(lines)
    return by_index


def contents(run: Path, folder: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in (run / folder).iterdir()}


def test_ctrl_c_ends_the_executors(machines: Cluster, tmp_path: Path) -> None:
    running = start(tmp_path, verification(machines.master, 100_000))
    wait_for_results(tmp_path / "run")
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130, stderr
    assert json.loads(stdout)["interrupted"] is True
    until(lambda: not any(map(machines.executors, WORKERS)), "an executor goes on")


def test_a_killed_command_leaves_no_executor(machines: Cluster, tmp_path: Path) -> None:
    running = start(tmp_path, verification(machines.master, 100_000))
    wait_for_results(tmp_path / "run")
    running.kill()
    running.communicate(timeout=TIMEOUT_S)
    until(lambda: not any(map(machines.executors, WORKERS)), "an executor goes on")
    assert list(read_outcomes(tmp_path / "run"))


def test_a_worker_is_killed_in_the_middle_and_everything_is_as_on_one_machine(
    machines: Cluster, tmp_path: Path
) -> None:
    running = start(tmp_path, verification(machines.master, SCENARIOS, "--defect", DEFECT, "--keep-histories"))
    machines.wait_for_executor("two")
    wait_for_results(tmp_path / "run")
    machines.kill("two")
    assert len(scenarios_of(tmp_path / "run")) < SCENARIOS, "nothing was left to do"
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 1, stderr
    summary = json.loads(stdout)
    assert (summary["failures"], summary["oracle"]["disagreements"]) == ([], 0)
    assert summary["oracle"]["asked"] > 0
    request = Request(defect=DEFECT, seed=SEED, scenarios=SCENARIOS, keep_histories=True)
    with RunFolder(tmp_path / "here") as here:
        verify_campaign(campaign_of(request), subject=SimulatedSubject(DEFECT), folder=here, oracle=Agreeing())
    assert len(scenarios_of(here.path)) == SCENARIOS
    assert scenarios_of(tmp_path / "run") == scenarios_of(here.path)
    # A history is everything that happened, in order: its digest is the digest of the run.
    assert len(contents(here.path, "histories")) == SCENARIOS
    assert contents(tmp_path / "run", "histories") == contents(here.path, "histories")
    assert contents(here.path, "counterexamples")
    assert contents(tmp_path / "run", "counterexamples") == contents(here.path, "counterexamples")


def test_a_lost_cluster_is_told_in_one_line_and_what_was_done_is_kept(machines: Cluster, tmp_path: Path) -> None:
    words = verification(machines.master, 100_000)
    running = start(tmp_path, [sys.executable, "-c", IMPATIENT, *words[words.index("verify") :]])
    wait_for_results(tmp_path / "run")
    for name in WORKERS:
        machines.kill(name)
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 4, stderr
    summary = json.loads(stdout)
    why = f"the Spark cluster {machines.master} has left no executor for 2 s"
    assert summary["failures"] == [why]
    assert "Traceback" not in stderr
    assert len(scenarios_of(tmp_path / "run")) == summary["scenarios"]["run"] > 0


def last_night(bank: Path) -> Night:
    """The night's record, while it goes on too."""
    (path,) = bank.glob("nights/*/night.json")
    return msgspec.json.decode(path.read_bytes(), type=Night)


def wait_for_a_chunk(bank: Path) -> None:
    there = (bank / "nights").glob
    until(
        lambda: any(one.scenarios.run for _ in there("2*") for one in last_night(bank).subjects), "nothing was judged"
    )


def what_does_not_depend_on_the_machine(bank: Path) -> object:
    """What a night counted of each subject, and the failures of its bank with their scenarios."""
    subjects = [
        (one.subject, one.seed, one.scenarios, one.targets, one.transitions, one.transitions_with, one.left_out)
        for one in last_night(bank).subjects
    ]
    with Bank(bank) as kept:
        assert (kept.unshrunk, kept.remarks) == ({}, [])
        found = {one.id: (one.origin, one.story, kept.scenario(one.id)) for one in kept.failures.values()}
    return subjects, found


def test_a_worker_is_killed_in_a_night_and_the_bank_is_as_on_one_machine(
    machines: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(night.__file__, tmp_path / "night.py")
    there, here = tmp_path / "there", tmp_path / "here"
    running = start(tmp_path, [sys.executable, "night.py", str(there), machines.master])
    machines.wait_for_executor("two")
    wait_for_a_chunk(there)
    machines.kill("two")
    assert sum(one.scenarios.run for one in last_night(there).subjects) < 2 * night.SCENARIOS, "nothing was left to do"
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 1, stderr
    summary = json.loads(stdout)
    assert (summary["failures"], summary["oracle"]["disagreements"]) == ([], 0)
    assert summary["oracle"]["asked"] > 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(subject_night, "Processes", lambda plan, _: Here(plan))
    run_night(night.request(here), oracle=Agreeing())
    assert summary["bank"]["new"] == len(list(here.glob("failures/*"))) > 1
    assert what_does_not_depend_on_the_machine(there) == what_does_not_depend_on_the_machine(here)


def test_a_night_that_is_ended_leaves_no_executor_and_a_whole_bank(machines: Cluster, tmp_path: Path) -> None:
    words = command("chaos", "--bank", "bank", "--time", "10m", "--json", "--master", machines.master)
    running = start(tmp_path, words)
    wait_for_a_chunk(tmp_path / "bank")
    running.send_signal(signal.SIGTERM)
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130, stderr
    ended = last_night(tmp_path / "bank")
    assert (ended.exit_code, ended.subjects[0].scenarios.run) == (130, json.loads(stdout)["scenarios"]["run"])
    with Bank(tmp_path / "bank") as bank:
        assert bank.remarks == []
    until(lambda: not any(map(machines.executors, WORKERS)), "an executor goes on")
