"""What `verify` finds besides files that are not whole, and that no command accepts what it has found."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.processes.disk.files import DiskFiles
from unit.harness.reference_engine.snapshots.stores import left_by_a_job, refused, tool, tree

OP, SOURCE = TaskId("op0-0"), TaskId("source-0")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return left_by_a_job(tmp_path_factory.mktemp("made") / "store")


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "store"))


# -- records ---------------------------------------------------------------------------------


def test_a_record_that_names_the_file_of_another_task_is_accepted_by_no_command(root: Path, tmp_path: Path) -> None:
    files = DiskFiles(root)
    at, first = next((at, one) for at, one in enumerate(files.listed()) if OP in one.files)
    files.store(replace(first, handles={**first.handles, SOURCE: first.handles[OP]}))
    before = tree(root)
    code, found, _ = tool("verify", root)
    assert code == 1
    assert "names other files than the record" in found["snapshots"][at]["problems"][0]
    for words in (
        ["convert", root, first.checkpoint, "--to", "native"],
        ["move", root, first.checkpoint, tmp_path / "target"],
        ["fork", root, first.checkpoint, tmp_path / "target"],
    ):
        said = refused(*words)
        assert "names other files than the record" in said
        assert "nothing was changed" in said
    assert tree(root) == before
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"format": "foo"}, "unknown format 'foo'"),
        ({"job": -7}, "job is -7"),
        ({"attempt": -1}, "attempt is -1"),
        ({"increments": -3}, "increments is -3"),
        ({"handles": {}, "files": {}}, "names no state of any task"),
    ],
    ids=["format", "job", "attempt", "increments", "no handles"],
)
def test_a_record_of_what_cannot_be_is_refused(change: dict[str, Any], what: str, root: Path, tmp_path: Path) -> None:
    files = DiskFiles(root)
    first = files.listed()[0]
    files.store(replace(first, **change))
    before = tree(root)
    code, found, _ = tool("verify", root)
    assert code == 1
    (one,) = found["unreadable"]
    assert one["id"] == first.checkpoint
    assert what in one["problem"]
    number = first.checkpoint
    for words in (["convert", root, number, "--to", "native"], ["fork", root, number, tmp_path / "x"]):
        assert what in refused(*words)
    assert tree(root) == before
