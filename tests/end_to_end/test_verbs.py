"""Every verb as a user runs it, in a process of its own.

Each verb that starts Spark does so once; what else needs Spark's word runs in the
process of the tests, which has a session.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from cutproof.harness.examples import EXAMPLES
from cutproof.harness.scenario.files import write_scenario
from cutproof.harness.workloads.library import listing
from cutproof.properties.model.verdict import INVARIANTS
from cutproof.properties.spark.unasked import QUICK
from end_to_end.command_line import Command, cutproof_command, environment, result


@pytest.mark.spark
def test_verify_writes_a_run_folder_and_prints_its_summary(tmp_path: Path) -> None:
    done = cutproof_command(tmp_path, "verify", "--scenarios", "40", "--seed", "7", "--out", "run", "--json")
    assert done.returncode == 0, done.stderr
    summary = result(done)
    written = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert {**summary, "seconds": None} == {**written, "seconds": None}
    assert (summary["format"], summary["seed"], summary["scenarios"]["run"]) == ("cutproof-summary/1", 7, 40)
    assert (summary["scenarios"]["violated"], summary["oracle"]["disagreements"]) == (0, 0)
    assert summary["oracle"]["engine"].startswith("pyspark ")
    assert summary["oracle"]["workloads"] > 0
    judges = summary["oracle"]
    assert 0 < judges["asked"] == 40 - sum(judges["not_asked"].values())
    assert 0 < judges["state"]["asked"] == 40 - sum(judges["state"]["not_asked"].values())
    assert 0 < summary["invariants"]["exactly-once"]["by_both"] <= summary["invariants"]["exactly-once"]["holds"]
    lines = [json.loads(line) for line in (tmp_path / "run" / "scenarios.jsonl").read_text().splitlines()]
    assert judges["not_asked"] == Counter(line["not_asked"]["rows"] for line in lines if "rows" in line["not_asked"])
    assert summary["shortfalls"] == []
    assert summary["not_judged_by_shares"].startswith("The run had 40 of the 1,500 scenarios")
    assert "shortfall" not in done.stderr
    assert "PySpark computed the expected rows in" in done.stderr
    assert set(INVARIANTS) <= set(summary["invariants"])
    kept = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"summary.json", "report.html", "junit.xml", "scenarios.jsonl", "counterexamples", "histories"} <= kept
    assert "40 scenarios" in done.stderr
    (tmp_path / "run" / "report.html").unlink()
    again = cutproof_command(tmp_path, "report", "run")
    assert again.returncode == 0
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000


def test_a_planted_defect_is_a_violation_with_a_story_that_replays(command_here: Command, tmp_path: Path) -> None:
    done = command_here("verify", "--defect", "I06", "--scenarios", "60", "--seed", "2", "--out", "run", "--json")
    assert done.returncode == 1, done.stderr
    found = result(done)["counterexamples"][0]
    assert sum(found["size"].values()) <= 12
    assert found["replay"] == f"cutproof replay run/{found['scenario']} --defect I06"
    replayed = cutproof_command(tmp_path, *found["replay"].split()[1:], "--json", "--quick")
    assert replayed.returncode == 1
    assert result(replayed)["verdicts"][found["invariant"]]["verdict"] == "violated"
    assert result(replayed)["defect_reached"] is True
    one_judge = result(replayed)["seen_by"][found["invariant"]]
    assert one_judge["judges"] == 1
    judges = result(command_here(*found["replay"].split()[1:], "--json"))["seen_by"][found["invariant"]]
    assert judges == {"judges": found["judges"], "not_asked": found["not_asked"]}
    assert bool(found["not_asked"]) is (found["judges"] == 1)
    sound = cutproof_command(tmp_path, "replay", f"run/{found['scenario']}", "--defect", "none", "--quick")
    assert sound.returncode == 0


def test_an_example_shows_what_the_text_states(command_here: Command, tmp_path: Path) -> None:
    done = command_here("verify", "--workload", "two-input-alignment", "--out", "kept", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("report: kept/report.html\n")
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        "report.html",
        "example.json",
        "scenario.json",
        "history.json",
    }
    printed_result = result(done)
    assert (printed_result["outcome"], printed_result["disagreements"]) == ("held", [])
    assert [claim["shown"] for claim in printed_result["claims"]] == [True] * 4


def test_real_flights_and_ones_own_file_are_verified(command_here: Command, tmp_path: Path) -> None:
    with (tmp_path / "own.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "value"])
        writer.writerows([f"shop {number % 5}", number] for number in range(400))
    for words in (["--workload", "flights"], ["--input", "own.csv"]):
        done = command_here("verify", *words, "--scenarios", "20", "--seed", "2", "--json")
        assert done.returncode == 0, done.stderr
        summary = result(done)
        assert (summary["scenarios"]["violated"], summary["oracle"]["disagreements"]) == (0, 0)
        assert summary["records"]["read"] >= 20 * 100


@pytest.mark.spark
def test_check_lists_what_is_lost_repeated_and_unexpected(tmp_path: Path) -> None:
    (tmp_path / "expected.csv").write_text("id,price\n1,10\n2,20\n3,30\n")
    (tmp_path / "actual.csv").write_text("id,price\n1,10\n1,10\n3,31\n9,90\n")
    words = ["check", "--expected", "expected.csv", "--actual", "actual.csv", "--key", "id", "--json"]
    done = cutproof_command(tmp_path, *words)
    assert done.returncode == 1, done.stderr
    printed_result = result(done)
    assert [printed_result[kind] for kind in ("lost", "repeated", "unexpected", "changed")] == [1, 1, 1, 1]


def test_the_same_scenario_gives_the_same_trace_under_another_hash_seed(tmp_path: Path) -> None:
    write_scenario(tmp_path / "it.json", EXAMPLES["barriers-in-stream"].scenario)
    traces = set()
    for number in ("1", "2"):
        done = cutproof_command(
            tmp_path, "replay", "it.json", "--quick", "--json", env=environment(PYTHONHASHSEED=number)
        )
        assert done.returncode == 0, done.stderr
        traces.add(result(done)["trace_sha256"])
    assert len(traces) == 1


def test_replay_prints_a_story_and_keeps_what_judge_can_judge(command_here: Command, tmp_path: Path) -> None:
    write_scenario(tmp_path / "it.json", EXAMPLES["single-input-barrier"].scenario)
    done = cutproof_command(tmp_path, "replay", "it.json", "--quick", "--story", "--out", "kept")
    assert done.returncode == 0, done.stderr
    assert all(
        words in done.stdout for words in ("What ran:", "What happened:", "Where the closing cut was:", "trace sha256")
    )
    assert (tmp_path / "kept" / "report.html").stat().st_size > 10_000
    judged = cutproof_command(tmp_path, "judge", "kept/history.json", "--quick", "--json")
    assert judged.returncode == 0, judged.stderr
    assert result(judged)["outcome"] == "held"
    text = (tmp_path / "kept" / "history.json").read_text()
    history = json.loads(text)
    history["committed"].pop()
    (tmp_path / "kept" / "altered.json").write_text(json.dumps(history))
    judged = cutproof_command(tmp_path, "judge", "kept/altered.json", "--scenario", "it.json", "--quick", "--json")
    assert judged.returncode == 1
    assert result(judged)["verdicts"]["exactly-once"]["verdict"] == "violated"
    assert result(judged)["seen_by"]["exactly-once"] == {"judges": 1, "not_asked": QUICK}
    judges = command_here("judge", "kept/altered.json", "--scenario", "it.json", "--json")
    assert result(judges)["seen_by"]["exactly-once"] == {"judges": 2, "not_asked": ""}
    assert "exactly-once: Both judges saw it." in judges.stderr
    assert f"exactly-once: One judge saw it: PySpark was not asked, because {QUICK}." in judged.stderr


def test_the_names_are_listed(tmp_path: Path) -> None:
    done = cutproof_command(tmp_path, "verify", "--workload", "list", "--json")
    assert done.returncode == 0
    assert [one["name"] for one in result(done)["workloads"]] == [one.name for one in listing()]


def test_tampering_shows_that_the_judge_has_teeth(tmp_path: Path) -> None:
    done = cutproof_command(tmp_path, "verify", "--tamper", "--scenarios", "90", "--seed", "5", "--json")
    assert done.returncode == 0, done.stderr
    report = result(done)
    assert report["caught"] > 300
    assert (report["missed"], report["not_reached"]) == (0, [])


def test_defects_are_listed_and_run(tmp_path: Path, command_here: Command) -> None:
    listed = result(cutproof_command(tmp_path, "defects", "list", "--json"))["defects"]
    assert {"id", "upstream", "invariant", "title"} == set(listed[0])
    done = command_here("defects", "run", "I06", "E03", "--json", "--out", "kept")
    assert done.returncode == 0, done.stderr
    report = result(done)
    assert (report["format"], report["caught"], report["missed"]) == ("cutproof-defects/1", 2, 0)
    assert (report["oracle"]["asked"], report["oracle"]["disagreements"]) == (4, 0)
    assert report["oracle"]["expected_rows"] > 0
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["E03.json", "I06.json"]
    missed = cutproof_command(tmp_path, "defects", "run", "B04", "--scenarios", "1", "--quick")
    assert missed.returncode == 3
