"""What the end-to-end tests share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING

import pytest

from cutproof.harness.cli import main
from end_to_end.command_line import Command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that also PostgreSQL can enter, which may run as somebody else: pytest's are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="cutproof-test-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def command_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """`command_line.cutproof_command` in this process, in the test's folder: for what ends before Spark is started."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CUTPROOF_")]:
        monkeypatch.delenv(name)

    def run(*words: str | Path) -> CompletedProcess[str]:
        capfd.readouterr()
        code = main([*map(str, words)])
        return CompletedProcess(words, code, *capfd.readouterr())

    return run


@pytest.fixture
def command_here(spark: SparkSession, command_inside: Command) -> Command:
    """The same for all else, since this process has a Spark session that is up.

    Tables are named by their whole path: Java stays in the folder in which it was started.
    """
    return command_inside
