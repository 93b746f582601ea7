"""The archive of Spark's classes: used when it is there, and not while one is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.properties.spark.session import class_archive


def test_java_gets_the_archive_that_is_there_and_none_while_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = tmp_path / "java"
    java.write_text("one build")
    archive = class_archive.place(java)
    assert class_archive.added(java, "") == ""
    archive.parent.mkdir()
    archive.write_bytes(b"classes")
    assert class_archive.added(java, "").endswith(f" -XX:SharedArchiveFile={archive}")
    assert class_archive.added(java, class_archive.making_archive(tmp_path / "other.jsa")) == ""


def test_another_build_of_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = tmp_path / "java"
    java.write_text("one build")
    former = class_archive.place(java)
    java.write_text("another build")
    assert class_archive.place(java) != former
