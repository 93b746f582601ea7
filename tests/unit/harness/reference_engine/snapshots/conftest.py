"""A directory of snapshots for each test of the tool; a file may have another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from unit.harness.reference_engine.snapshots.stores import left_by_a_job


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return left_by_a_job(tmp_path_factory.mktemp("made") / "store")


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "store"))
