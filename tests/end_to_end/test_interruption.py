"""Ctrl-C in the middle, and a disk that is full: what was done so far is kept and reported."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from end_to_end.command_line import TIMEOUT_S, command, environment, without_java
from end_to_end.test_nothing_left import remaining


def _wait_for_scenarios(path: Path) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < until, "no scenario was judged"
        time.sleep(0.05)


def test_ctrl_c_keeps_and_reports_what_was_done(tmp_path: Path) -> None:
    words = command("verify", "--scenarios", "100000", "--seed", "1", "--out", "run", "--json")
    running = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=without_java(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _wait_for_scenarios(tmp_path / "run" / "scenarios.jsonl")
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130
    assert "Traceback" not in stderr
    summary = json.loads(stdout)
    assert summary["interrupted"] is True
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    kept = (tmp_path / "run" / "scenarios.jsonl").read_text().splitlines()
    assert 0 < summary["scenarios"]["run"] == len(kept) < 100_000
    assert (tmp_path / "run" / "report.html").exists()


MOMENTS = {
    "beginning": "cutproof.harness.search.search:Search.run",
    "running": "cutproof.harness.counterexamples.store:RunFolder.add",
    "starting Spark": "cutproof.harness.search.oracle:PySpark.wait",
    "judging": "cutproof.harness.search.oracle:PySpark.examine",
    "shrinking": "cutproof.harness.counterexamples.findings:FindingBuilder.findings",
    "telling": "cutproof.harness.counterexamples.findings:story_of_case",
    "writing": "cutproof.harness.counterexamples.store:RunFolder.finish",
    "written": "cutproof.harness.counterexamples.store:write_report",
}


@pytest.mark.parametrize(
    ("moment", "number"), [*((moment, "SIGINT") for moment in MOMENTS), ("running", "SIGTERM"), ("writing", "SIGTERM")]
)
def test_an_interruption_at_any_moment_leaves_a_report(moment: str, number: str, tmp_path: Path) -> None:
    script = [sys.executable, str(Path(__file__).with_name("interrupted.py")), number, MOMENTS[moment]]
    words = ["verify", "--scenarios", "12", "--seed", "1", "--defect", "A01", "--out", "run", "--quiet", "--json"]
    done = subprocess.run(
        [*script, *words], cwd=tmp_path, env=without_java(tmp_path), capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if "interrupted" in line] == [
        "cutproof: interrupted; what was done so far is kept"
    ]
    summary = json.loads(done.stdout)
    assert summary["interrupted"] is True
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    kept = (tmp_path / "run" / "scenarios.jsonl").read_text().splitlines()
    assert summary["scenarios"]["run"] == len(kept)
    assert (tmp_path / "run" / "report.html").exists()
    found = {one["scenario"] for one in summary["counterexamples"]}
    assert bool(found) == bool(summary["scenarios"]["violated"])
    assert all((tmp_path / "run" / scenario).exists() for scenario in found)


FILE = Path(__file__).parents[1] / "corpus" / "processes" / "A01.json"
SLOW = {"CUTPROOF_TIME_SCALE": "1000"}
"""a scenario takes many times as long as an interruption may"""
WITHIN_S = 20.0
"""for a machine that has other things to do; on one that has not it is two or three"""

ON_PROCESSES = {
    "verify": ("verify", "--subject", "processes", "--scenarios", "100", "--seed", "1876", "--out", "run"),
    "replay": ("replay", FILE, "--subject", "processes", "--quick"),
    "defects": ("defects", "run", "A01", "A03", "--subject", "processes", "--scenarios", FILE.parent),
}


@pytest.mark.usefixtures("toxiproxy_server")
@pytest.mark.parametrize(
    ("verb", "signals"),
    [
        ("verify", (signal.SIGTERM,)),
        ("verify", (signal.SIGINT, signal.SIGINT)),
        ("replay", (signal.SIGINT, signal.SIGTERM)),
        ("defects", (signal.SIGTERM, signal.SIGTERM)),
    ],
)
def test_an_interruption_does_not_wait_for_a_run_on_processes(
    verb: str, signals: tuple[signal.Signals, ...], open_folder: Path
) -> None:
    temporary = open_folder / "temporary"
    temporary.mkdir()
    temporary.chmod(0o711)
    running = subprocess.Popen(
        command(*ON_PROCESSES[verb], "--json"),
        cwd=open_folder,
        env={**without_java(open_folder), "TMPDIR": str(temporary), **SLOW},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + TIMEOUT_S
    while not any(temporary.glob("cutproof-*/c*_1/journal/*.0")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < until, "no run has begun"
        time.sleep(0.05)
    began = time.monotonic()
    for number in signals:
        running.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the second finds what the first does under way
            running.wait(0.2)
    stdout, stderr = running.communicate(timeout=TIMEOUT_S)
    assert (running.returncode, time.monotonic() - began < WITHIN_S) == (130, True), stderr
    assert json.loads(stdout).get("interrupted", True)
    assert "Traceback" not in stderr
    assert remaining(temporary) == []
    assert list(temporary.iterdir()) == []


def test_a_disk_that_is_full_is_the_environments_failure(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the full disk."""
    limit = 100_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        command("verify", "--scenarios", "200", "--seed", "1", "--out", "run", "--quiet"),
        cwd=tmp_path,
        env=without_java(tmp_path),  # Spark fails on such a disk as well
        preexec_fn=limited,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 4
    assert any(line.startswith("cutproof: cannot write run/scenarios.jsonl") for line in done.stderr.splitlines())
    assert "Traceback" not in done.stderr
    assert (tmp_path / "run" / "scenarios.jsonl").stat().st_size > 0


def test_ctrl_c_before_anything_has_begun_is_no_traceback(tmp_path: Path) -> None:
    """What a command needs is still being imported."""
    (tmp_path / "msgspec.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    done = subprocess.run(
        command("doctor"), cwd=tmp_path, env=environment(PYTHONPATH=str(tmp_path)), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
