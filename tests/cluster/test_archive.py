"""The archive for executors: the package from it runs by itself, with the user's own modules and without the tests."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cutproof
from cutproof.harness.spread.archive import write_archive

ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
import cutproof, mine
from cutproof.harness.search.worker import Plan, Worker
chunk = Worker(Plan(seed=1)).chunk(0, 1)
print(cutproof.__file__.startswith(sys.argv[1]), cutproof.__version__, len(chunk.ran), mine.NAME)
"""


def test_the_package_runs_from_the_archive_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("NAME = 'my own'\n")
    monkeypatch.syspath_prepend(tmp_path)
    archive = write_archive(tmp_path, ["mine:NAME", "json:dumps"])
    assert write_archive(tmp_path, ["mine:NAME"]) == archive, "the same content has the same name"
    with zipfile.ZipFile(archive) as opened:
        assert {name.partition("/")[0] for name in opened.namelist()} == {
            "cutproof",
            f"cutproof-{cutproof.__version__}.dist-info",
            "mine.py",
        }
        assert not [name for name in opened.namelist() if "/tests/" in name or "__pycache__" in name]
        opened.extractall(tmp_path / "unpacked")
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path / "unpacked")],
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split(maxsplit=3) == ["True", cutproof.__version__, "1", "my own\n"], done.stderr
