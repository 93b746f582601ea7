"""A server of a run that is killed by nobody's plan is a failure of the environment, never a violation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, KillDatabase
from cutproof.harness.reference_engine.orchestrator import bound, databases, opening
from cutproof.harness.reference_engine.orchestrator.layout import DATABASE, SQLITE, store_of
from cutproof.harness.reference_engine.orchestrator.services import Services
from cutproof.harness.reference_engine.services import postgres
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.runtime.exit_codes import HarnessFailed
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import JobEnded
from cutproof.properties.model.verdict import Unknown
from cutproof.reference_impl.processes.launching.offspring import children_of
from unit.harness.scenarios import chain
from unit.harness.stage import planned
from unit.processes.stores import RunningServer
from unit.standstill import kill, stop

NAMES = ("a", "b", "c", "d", "e", "f")


def writing_to(store: str) -> Scenario:
    """A scenario whose sinks write there; it cuts a channel, so it needs Toxiproxy too."""
    drawn = (msgspec.structs.replace(chain(), seed=name) for name in NAMES)
    return next(scenario for scenario in drawn if store_of(scenario) == store)


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """Those of the subject, which it would have made itself."""
    monkeypatch.delenv(postgres.DSN_VARIABLE, raising=False)
    made = Services()
    yield made
    made.close()


def lost(services: Services, scenario: Scenario) -> str:
    """What a run says whose servers are these."""
    subject = ProcessesSubject(services=services)
    with pytest.raises(HarnessFailed) as raised:
        subject.run(scenario)
    assert not services.is_started, "the next run starts others"
    return str(raised.value)


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_toxiproxy_that_was_killed(services: Services) -> None:
    kill(services.proxies.pid)
    assert "Toxiproxy" in lost(services, writing_to(SQLITE))


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_toxiproxy_that_hangs_when_a_run_begins_is_replaced(services: Services) -> None:
    before = services.proxies.pid
    stop(before)
    subject = ProcessesSubject(services=services)
    history = subject.run(writing_to(SQLITE))
    assert [entry.status for entry in history.journal if isinstance(entry, JobEnded)] == ["finished"]
    assert services.proxies.pid not in (0, before)
    assert any(end.pid == before for end in services.launcher.exits)


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_database_that_was_killed(services: Services) -> None:
    kill(services.database.pid)
    assert "PostgreSQL" in lost(services, writing_to(DATABASE))


def test_a_database_that_the_plan_still_holds_down_at_the_end_is_given_back(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound, "MOST_US", 3_000_000)
    at = AtPoint(point="checkpoint-triggered")  # a sink is there then, and known to be
    scenario = planned(chain(40), KillDatabase(trigger=at, down_us=1_000_000_000))
    subject = ProcessesSubject(services=services)
    result = run(subject, scenario)
    history = result.history
    assert (history.quiet, history.cut_short, history.lasting, history.healed) == (False, True, [0], None)
    progress = result.judgement.verdicts["progress"]
    assert isinstance(progress, Unknown)
    assert progress.detail == "a fault lasted until the run was cut off"
    assert result.judgement.violated == {}
    assert services.database.answers(), "for the next run"


@pytest.mark.usefixtures("toxiproxy_server")
def test_a_database_of_the_users_that_is_unreachable_at_the_end(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was seen of the run, it is not judged."""
    server = RunningServer()
    monkeypatch.setenv(postgres.DSN_VARIABLE, server.dsn)
    monkeypatch.setattr(opening, "UP_WITHIN_S", 0.1)
    true = opening.Opened.close

    def stopped_first(closing: opening.Opened) -> None:
        server.stop()
        true(closing)

    monkeypatch.setattr(opening.Opened, "close", stopped_first)
    try:
        text = lost(services, writing_to(DATABASE))
    finally:
        server.close()
    assert text.startswith("the PostgreSQL that CUTPROOF_POSTGRES names has not answered for 0.1 s; the schema ")


def test_a_killed_database_has_stopped_before_its_processes_are_counted(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that it forked after the counting would live on, and keep the next server from starting."""
    database = services.database
    states: list[str] = []
    found: list[int] = []

    def counted(pid: int) -> list[int]:
        states.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
        found.extend(children_of(pid))
        return found

    monkeypatch.setattr(databases, "children_of", counted)
    database.kill()
    assert states == ["T"]
    assert found
    assert [pid for pid in found if _runs(pid)] == []
    database.wait_until_up(databases.UP_WITHIN_S)


def _runs(pid: int) -> bool:
    """Whether there is such a process of PostgreSQL's that has not ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it is being taken away
        return False
    return "postgres" in text and text.rpartition(")")[2].split()[0] != "Z"
