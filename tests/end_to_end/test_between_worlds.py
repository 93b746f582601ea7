"""A snapshot that one world has taken is restored by the other: simulator and processes, there and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.reference_engine.orchestrator.evidence import kept as saved_run
from cutproof.harness.reference_engine.orchestrator.orchestrator import Orchestrator
from cutproof.harness.reference_engine.services import rocksdb
from cutproof.harness.reference_engine.snapshots.directory import Directory
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import digest, write_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import AttemptStarted
from cutproof.properties.model.verdict import Violated
from end_to_end.command_line import cutproof_command, only_line, result
from unit.harness.reference_engine.snapshots.continuing import assert_it_holds, begun, left, stopped, unstopped
from unit.simulated.worlds import journal

BACKENDS = [
    "heap",
    pytest.param("lsm", marks=pytest.mark.skipif(not rocksdb.is_there(), reason=rocksdb.ADVICE)),
]
IN_THE_DATABASE, IN_SQLITE = "sink-0", "sink-1"
"""seeds of scenarios, by which a run on processes writes into the one store or the other"""


@pytest.fixture(scope="module")
def processes() -> Iterator[Callable[..., ProcessesSubject]]:
    """Makes subjects that share their servers."""
    first = ProcessesSubject()
    yield lambda defect=None: ProcessesSubject(defect, services=first._services)
    first.close()


Make = Callable[..., Any]


@pytest.mark.parametrize("seed", [IN_THE_DATABASE, IN_SQLITE])
@pytest.mark.parametrize("to", BACKENDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_simulator_to_processes_and_back(processes: Make, tmp_path: Path, backend: str, to: str, seed: str) -> None:
    """Three runs are one history; the second is killed amid its work, and recovers from a snapshot of its own."""
    kill = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=2), task="op0-0")
    assert left(tmp_path / "first", SimulatedSubject(), stopped(state_backend=backend)).judgement.violated == {}
    oldest = str(min(Directory(tmp_path / "first").records))
    middle = processes()
    middle.leave_in(tmp_path / "second")
    scenario = replace(stopped(state_backend=to), faults=(kill,), seed=seed)
    crossed = begun(tmp_path / "first", middle, scenario, oldest)
    assert_it_holds(crossed)
    assert [one.restores for one in journal(AttemptStarted, crossed.history)][1] == int(oldest)
    back = begun(tmp_path / "second", SimulatedSubject(), unstopped(state_backend=backend))
    assert_it_holds(back)
    assert back.history.subject == "simulated"
    assert len(back.history.committed) == 12


@pytest.mark.parametrize("backend", BACKENDS)
def test_processes_to_the_simulator_at_another_parallelism(processes: Make, tmp_path: Path, backend: str) -> None:
    """The source is slow, so that a busy machine does not stop the job after the last record."""
    slow: Scenario = stopped(state_backend=backend, snapshot_format="incremental", read_interval_us=2_000)
    first = left(tmp_path / "kept", processes(), slow)
    assert first.judgement.violated == {}
    wide: Scenario = unstopped()
    wide = replace(wide, topology=replace(wide.topology, parallelism=dict.fromkeys(wide.topology.parallelism, 2)))
    for number in Directory(tmp_path / "kept").records:
        assert_it_holds(begun(tmp_path / "kept", SimulatedSubject(), wide, str(number)))


def test_nobody_works_on_the_snapshots_of_a_job_that_runs(
    processes: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def watched(orchestrator: Orchestrator) -> None:
        store = orchestrator.context.config.store
        said.append(only_line(cutproof_command(tmp_path, "snapshots", "list", str(store))))
        run_it(orchestrator)
        said.append(only_line(cutproof_command(tmp_path, "snapshots", "delete", str(store), "1")))

    run_it = Orchestrator.run
    monkeypatch.setattr(Orchestrator, "run", watched)
    kept = tmp_path / "kept"
    assert left(kept, processes(), stopped()).judgement.violated == {}
    assert [line.partition(";")[0].partition(" in ")[0] for line in said] == ["cutproof: a job runs"] * 2
    assert cutproof_command(tmp_path, "snapshots", "list", str(kept)).returncode == 0


def test_a_saved_run_has_what_it_began_with_and_is_begun_from(processes: Make, tmp_path: Path) -> None:
    left(tmp_path / "kept", SimulatedSubject(), stopped())
    subject = processes()
    subject.keep = tmp_path / "saved"
    crossed = run(subject, subject.begin_from(tmp_path / "kept", "2", stopped()), keep="everything")
    assert subject.saved is not None
    scenario, history = saved_run(subject.saved)
    assert (scenario, digest(history)) == (crossed.scenario, digest(crossed.history))
    assert_it_holds(begun(subject.saved, SimulatedSubject(), unstopped()))


@pytest.mark.parametrize(
    ("defect", "invariant", "difference"),
    [
        ("F16", "restored-state", "loaded state differs"),  # a restored position is replaced by a new one
        ("L06", "restored-state", "loaded state differs"),  # timers are dropped
    ],
)
def test_processes_that_lose_what_the_simulator_stored_are_caught(
    processes: Make, tmp_path: Path, defect: str, invariant: str, difference: str
) -> None:
    left(tmp_path / "kept", SimulatedSubject(), stopped())
    assert_it_holds(begun(tmp_path / "kept", processes(), unstopped(), "1"))
    verdict = begun(tmp_path / "kept", processes(defect), unstopped(), "1").judgement.verdicts[invariant]
    assert isinstance(verdict, Violated)
    assert verdict.difference == difference


def test_as_a_user_types_it_and_pyspark_judges_it(tmp_path: Path) -> None:
    write_scenario(tmp_path / "stopped.json", stopped())
    write_scenario(tmp_path / "goes-on.json", unstopped())
    assert cutproof_command(tmp_path, "replay", "stopped.json", "--snapshots", "kept", "--quick").returncode == 0
    words = ("replay", "goes-on.json", "--from", "kept", "--subject", "processes")
    done = cutproof_command(tmp_path, *words, "--snapshots", "next", "--out", "report", "--json")
    assert done.returncode == 0, done.stderr
    assert result(done)["verdicts"]["exactly-once"]["verdict"] == "holds"
    assert cutproof_command(tmp_path, "judge", "report/history.json", "--quick").returncode == 0
    assert cutproof_command(tmp_path, "snapshots", "verify", "next").returncode == 0
    for path in (tmp_path / "kept" / "snapshots").rglob("op0-0-*"):
        path.write_bytes(path.read_bytes()[:-1])
    damaged = cutproof_command(tmp_path, *words, "--quick")
    assert damaged.returncode == 2
    assert "checksum" in only_line(damaged)
