"""A run's secret and PostgreSQL's password: in no command line, environment or file of a run, kept ones included."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.harness.reference_engine.orchestrator import opening
from cutproof.harness.reference_engine.orchestrator.layout import DATABASE, store_of
from cutproof.harness.reference_engine.services import postgres
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import run

SECRET, PASSWORD = b"thirty-two bytes of a known text", "a-password-that-a-test-knows"
CORPUS = Path(__file__).parents[3] / "corpus" / "processes"
DEFECT = "A01"
POLL_S = 0.05


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, which PostgreSQL's user can enter."""
    made = Path(tempfile.mkdtemp(prefix="cutproof-test-"))
    made.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    monkeypatch.setenv("TMPDIR", str(made))
    yield made
    shutil.rmtree(made)


def with_a_database() -> Scenario:
    scenario = read_scenario(CORPUS / f"{DEFECT}.json")
    return next(one for number in range(99) if store_of(one := replace(scenario, seed=str(number))) == DATABASE)


class Looking:
    """A thread that looks at every process and every file there is, until it is stopped."""

    def __init__(self, *folders: Path) -> None:
        self.found: set[str] = set()
        self.seen: set[str] = set()
        self._folders = folders
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self) -> Looking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def once(self) -> None:
        for name in ("cmdline", "environ"):
            for path in Path("/proc").glob(f"[0-9]*/{name}"):
                self._look(path)
        for folder in self._folders:
            for path, _, names in os.walk(folder):  # which passes over a folder that goes meanwhile
                for name in names:
                    self._look(Path(path) / name)

    def _go_on(self) -> None:
        while not self._over.wait(POLL_S):
            self.once()

    def _look(self, path: Path) -> None:
        if path.name == "postgres-password" or "base" in path.parts:
            return  # the file of mode 0600 that initdb reads and that is deleted; tables
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            return  # it has gone
        self.seen.add(path.name)
        for what in (SECRET, SECRET.hex().encode(), PASSWORD.encode()):
            if what in data:
                self.found.add(f"{path}: {what!r}")


def test_neither_can_be_read_while_a_run_goes_on_or_afterwards(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(opening, "new_secret", lambda: drawn.append("secret") or SECRET)
    monkeypatch.setattr(postgres, "new_password", lambda: drawn.append("password") or PASSWORD)
    subject = ProcessesSubject(DEFECT, keep=tmp_path)
    try:
        with Looking(temporary, tmp_path) as looking:
            result = run(subject, with_a_database(), keep="everything")
            looking.once()
    finally:
        subject.close()
    assert sorted(drawn) == ["password", "secret"]
    assert looking.found == set()
    assert result.history.runs
    assert any(tmp_path.iterdir()), "the run was kept"
    assert "coordinator.0" in looking.seen, "a journal was looked at"
    assert "pg_hba.conf" in looking.seen, "and PostgreSQL's folder"
