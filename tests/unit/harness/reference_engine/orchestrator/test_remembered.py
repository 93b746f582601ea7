"""What a run makes in a PostgreSQL of the user's is noted until it is gone; what is left is named, and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest

from cutproof.harness.cli import main
from cutproof.harness.cli.machine import examine
from cutproof.harness.reference_engine.orchestrator import opening, remembered
from cutproof.harness.reference_engine.orchestrator.layout import DATABASE, store_of
from cutproof.harness.reference_engine.services import places, postgres
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed
from cutproof.harness.scenario.model import Scenario
from unit.harness.scenarios import chain
from unit.harness.stage import planned
from unit.processes.stores import PASSWORD, RunningServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RunningServer]:
    """The user's, with state folder and cache in the test's folder."""
    made = RunningServer()
    monkeypatch.setenv(postgres.DSN_VARIABLE, made.dsn)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield made
    made.close()


@pytest.fixture
def subject(server: RunningServer) -> Iterator[ProcessesSubject]:
    made = ProcessesSubject()
    yield made
    made.close()


def into_the_database() -> Scenario:
    drawn = (msgspec.structs.replace(planned(chain()), seed=name) for name in "abcdef")
    return next(scenario for scenario in drawn if store_of(scenario) == DATABASE)


def schemas(server: RunningServer) -> list[str]:
    with psycopg.connect(server.dsn) as session:
        return [name for (name,) in session.execute("SELECT schema_name FROM information_schema.schemata")]


def reported_by_doctor(folder: Path) -> str:
    return next(one.found for one in examine(folder / "out", start_spark=False) if one.what == "in PostgreSQL")


def prune(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, int, list[str]]:
    """The exit code of `doctor --prune`, of how many runs it has removed what was left, what it says of others."""
    code = main(["doctor", "--prune", "--json", "--out", str(folder / "out")])
    printed = json.loads(capsys.readouterr().out)
    return code, printed["databases"], printed["failed"]


def test_what_a_server_that_has_ended_keeps_is_named_and_removed_on_request(
    subject: ProcessesSubject,
    server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(opening, "UP_WITHIN_S", 0.1)
    true = opening.Opened.close

    def stopped_first(closing: opening.Opened) -> None:
        server.stop()
        true(closing)

    monkeypatch.setattr(opening.Opened, "close", stopped_first)
    with pytest.raises(HarnessFailed) as raised:
        subject.run(into_the_database())
    ((path, note),) = remembered.pending_cleanups()
    assert str(raised.value).endswith(
        f"; the schema {note.run}, and prepared transactions whose names begin with {note.run}| are left in "
        "PostgreSQL, and `cutproof doctor --prune` removes them once it answers"
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in path.read_text()
    assert reported_by_doctor(tmp_path) == f"left by past runs: {note.run}; --prune removes them"

    code, cleared, (failed,) = prune(tmp_path, capsys)
    assert (code, cleared) == (ExitCode.HARNESS_FAILED, 0)
    assert failed.startswith(f"{note.what} cannot be removed from PostgreSQL ({note.dsn}): ")

    server.start()
    assert note.run in schemas(server)
    assert prune(tmp_path, capsys) == (ExitCode.HELD, 1, [])
    assert note.run not in schemas(server)
    assert remembered.pending_cleanups() == []
    assert reported_by_doctor(tmp_path) == "nothing of past runs is left"


def test_while_a_run_is_under_way_its_note_is_nobodys_to_act_on_and_then_it_is_deleted(
    subject: ProcessesSubject, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = opening.Opened.close
    noted: list[str] = []

    def looked_first(closing: opening.Opened) -> None:
        noted.extend(path.stem for path in places.pending_cleanups().iterdir())
        assert remembered.pending_cleanups() == []
        true(closing)

    monkeypatch.setattr(opening.Opened, "close", looked_first)
    subject.run(into_the_database())
    assert len(noted) == 1
    assert not set(noted) & set(schemas(server))
    assert list(places.pending_cleanups().iterdir()) == []


def test_what_the_launcher_itself_takes_away_is_forgotten(
    subject: ProcessesSubject, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(closing: opening.Opened) -> None:
        raise HarnessFailed("broken for a test")

    monkeypatch.setattr(opening.Opened, "close", broken)
    with pytest.raises(HarnessFailed, match=r"^broken for a test$"):
        subject.run(into_the_database())
    assert list(places.pending_cleanups().iterdir()) == []
    assert [name for name in schemas(server) if name.startswith("c")] == []
