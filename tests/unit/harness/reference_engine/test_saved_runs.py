"""A run in real time is saved before it is judged: kept for a finding or on request, and whenever the judge crashed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli import machine as doctor
from cutproof.harness.cli import main
from cutproof.harness.generate.strategies import Drawing
from cutproof.harness.reference_engine.orchestrator import evidence
from cutproof.harness.reference_engine.orchestrator.evidence import Evidence
from cutproof.harness.reference_engine.services import places
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.pool import Here
from cutproof.harness.search.pool import chunk_of as decoded
from cutproof.harness.search.worker import Chunk, Plan
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import Capabilities, Subject, saved_by
from cutproof.harness.subject.run import Keep, run
from cutproof.properties.model.history import History, Residue
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptStarted
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.disk.journal import Journal
from cutproof.reference_impl.wire import HEADER
from unit.harness.scenarios import chain, join
from unit.harness.subjects import Lossy


class Saves:
    """An engine that saves its runs, as one file each."""

    name = "saves"

    def __init__(self, folder: Path, engine: SimulatedSubject | Lossy) -> None:
        self._folder = folder
        self._engine = engine
        self.saved: Path | None = None

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        history = self._engine.run(scenario, timeline=timeline)
        self.saved = self._folder / f"{len(self.there)}"
        self.saved.write_bytes(msgspec.json.encode(history))
        return history

    def forget(self) -> None:
        assert self.saved is not None
        self.saved.unlink()
        self.saved = None

    @property
    def there(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir())


def crash(case: object) -> None:
    raise ZeroDivisionError("the judge is ill")


@pytest.mark.parametrize(
    ("keep", "stays"), [("nothing", []), ("violated", ["violated"]), ("everything", ["held", "violated"])]
)
def test_what_stays_of_runs_that_were_judged(keep: Keep, stays: list[str], tmp_path: Path) -> None:
    found = []
    for name, engine, scenario in (("held", SimulatedSubject(), join()), ("violated", Lossy(), chain())):
        folder = tmp_path / name
        folder.mkdir()
        subject = Saves(folder, engine)
        result = run(subject, scenario, keep=keep)
        assert bool(result.judgement.violated) is (name == "violated")
        found += [name] if subject.there else []
        assert bool(saved_by(subject)) is bool(subject.there)
    assert found == stays


def test_whatever_is_asked_for_a_run_stays_if_the_judge_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Saves(tmp_path, SimulatedSubject())
    monkeypatch.setattr("cutproof.harness.subject.run.judge_case", crash)
    with pytest.raises(ZeroDivisionError):
        run(subject, join())
    assert subject.there == ["0"]


def chunk_of(subject: Subject, *, keep_histories: bool = False) -> Chunk:
    plan = Plan(seed=1, drawing=Drawing(max_records=20, max_faults=1), keep_histories=keep_histories)
    return decoded(Here(plan, subject).chunk(0, 1).result())


def test_a_search_keeps_all_only_on_request(tmp_path: Path) -> None:
    for keep_histories in (False, True):
        subject = Saves(tmp_path, SimulatedSubject())
        assert [one.outcome.in_a_word for one in chunk_of(subject, keep_histories=keep_histories).ran] == ["held"]
        assert len(subject.there) == keep_histories


def test_a_search_states_where_the_run_is_that_its_judge_crashed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Saves(tmp_path, SimulatedSubject())
    monkeypatch.setattr("cutproof.harness.subject.run.judge_case", crash)
    (undriven,) = chunk_of(subject).undriven
    assert undriven.reason.startswith("ZeroDivisionError: the judge is ill (crash, line ")
    assert undriven.reason.endswith(f"; the run is kept: `cutproof judge {tmp_path / '0'}`")


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessesSubject]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = subject_called("processes")
    assert isinstance(made, ProcessesSubject)
    yield made
    made.close()


def test_a_run_on_processes_is_judged_again_from_its_journals(
    processes: ProcessesSubject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its processes are gone, and so is the one that could not judge it."""
    assert not run(processes, join()).judgement.violated
    assert doctor.kept().runs == 0
    with monkeypatch.context() as ill:
        ill.setattr("cutproof.harness.subject.run.judge_case", crash)
        with pytest.raises(ZeroDivisionError):
            run(processes, join())
    processes.close()
    (folder,) = places.runs().iterdir()
    assert doctor.kept().runs == 1

    assert main(["judge", str(folder), "--quick", "--json"]) == ExitCode.HELD
    printed_result = json.loads(capsys.readouterr().out)
    assert (printed_result["history"], printed_result["scenario"]) == (str(folder), str(folder / "scenario.json"))
    assert (printed_result["subject"], printed_result["outcome"]) == ("processes", "held")
    assert printed_result["verdicts"]["no-leaks"]["verdict"] == "holds"

    assert main(["doctor", "--prune", "--json", "--out", str(tmp_path / "out")]) == ExitCode.HELD
    assert json.loads(capsys.readouterr().out)["runs"] == 1
    assert doctor.kept().runs == 0


def script(folder: Path) -> Evidence:
    """A run of which two processes have written some batches; the end of one is torn."""
    (folder / "journal").mkdir(parents=True)
    for name in ("coordinator.0", "sink-0.0"):
        journal = Journal(folder / "journal" / name, Clock(lambda: 1))
        for detail in ("first", "second"):
            journal.saw(o.StatusChanged(1, AttemptStarted(AttemptId(1), None, detail)))
            journal.flush()
        journal.saw(o.FaultFired(0, "running", "by hand", None))
        journal.close()
    with (folder / "journal" / "sink-0.0").open("ab") as torn:
        torn.write(b"\x01\x00")
    return Evidence(
        scenario=chain(),
        committed=[],
        residue=Residue(),
        quiet=True,
        cut_short=False,
        lasting=[],
        unapplied=[],
        rolls_back=False,
        begun=1,
        timeline=False,
    )


def batches(data: bytes) -> list[bytes]:
    """A journal's batches, as bytes."""
    found = []
    while len(data) >= HEADER.size and len(data) >= (end := HEADER.size + HEADER.unpack_from(data)[1]):
        found.append(data[:end])
        data = data[end:]
    return found


def cut_at_a_batch(journals: Path) -> None:
    path = journals / "coordinator.0"
    path.write_bytes(b"".join(batches(path.read_bytes())[:-1]))


def without_one_in_the_middle(journals: Path) -> None:
    path = journals / "coordinator.0"
    first, _, *rest = batches(path.read_bytes())
    path.write_bytes(b"".join([first, *rest]))


def doubled(journals: Path) -> None:
    path = journals / "coordinator.0"
    path.write_bytes(path.read_bytes() * 2)


def another_of_its_length(journals: Path) -> None:
    path = journals / "coordinator.0"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def without_its_torn_end(journals: Path) -> None:
    path = journals / "sink-0.0"
    path.write_bytes(path.read_bytes()[:-2])


@pytest.mark.parametrize(
    ("alter", "complaint"),
    [
        (cut_at_a_batch, "the journal coordinator.0 is altered: "),
        (without_one_in_the_middle, "the journal coordinator.0 is altered: "),
        (doubled, "the journal coordinator.0 is altered: "),
        (another_of_its_length, "the journal coordinator.0 is altered: its checksum is wrong"),
        (without_its_torn_end, "the journal sink-0.0 is altered: "),
        (lambda journals: (journals / "coordinator.0").write_bytes(b""), "the journal coordinator.0 is altered: 0 b"),
        (lambda journals: (journals / "sink-0.0").unlink(), "the journal sink-0.0 is missing"),
        (lambda journals: (journals / "sink-0.1").write_bytes(b""), "the journal sink-0.1 does not belong to this run"),
    ],
)
def test_a_kept_run_whose_journals_are_altered_is_not_judged(
    alter: Callable[[Path], object], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence.keep(script(tmp_path / "run"), tmp_path / "run" / "journal", folder := tmp_path / "kept")
    evidence.kept(folder)
    alter(folder / "journal")
    assert main(["judge", str(folder), "--quick"]) == UsageError.exit_code
    printed_text = capsys.readouterr()
    assert (printed_text.out, printed_text.err.count("\n")) == ("", 1)
    assert complaint in printed_text.err


def test_a_kept_run_whose_evidence_is_altered_is_not_judged(tmp_path: Path) -> None:
    evidence.keep(script(tmp_path / "run"), tmp_path / "run" / "journal", folder := tmp_path / "kept")
    path = folder / "evidence.json"
    before = path.read_text()
    path.write_text(before.replace('"quiet":true', '"quiet":false'))
    assert path.read_text() != before
    with pytest.raises(UsageError, match=r"evidence\.json is altered: its checksum is wrong"):
        evidence.kept(folder)


def test_a_kept_run_has_its_store_of_snapshots(tmp_path: Path) -> None:
    (tmp_path / "store" / "records").mkdir(parents=True)
    (tmp_path / "store" / "records" / "chk-1").write_bytes(b"a record")
    folder = evidence.keep(
        script(tmp_path / "run"), tmp_path / "run" / "journal", tmp_path / "kept", tmp_path / "store"
    )
    evidence.kept(folder)
    assert (folder / "store" / "records" / "chk-1").read_bytes() == b"a record"


def test_a_fault_that_the_scenario_does_not_have_is_one_line(tmp_path: Path) -> None:
    plain = script(tmp_path / "run")
    plain = msgspec.structs.replace(plain, scenario=msgspec.structs.replace(plain.scenario, faults=()))
    evidence.keep(plain, tmp_path / "run" / "journal", folder := tmp_path / "kept")
    with pytest.raises(UsageError, match=r"coordinator\.0 reports fault 0, which the scenario does not have"):
        evidence.kept(folder)


def test_a_folder_that_is_no_kept_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evidence.json").write_text("{}")
    assert main(["judge", str(tmp_path), "--quick"]) == UsageError.exit_code
    printed_text = capsys.readouterr()
    assert printed_text.out == ""
    assert printed_text.err.count("\n") == 1
    assert f"{tmp_path} holds no readable run on processes: " in printed_text.err


def test_a_place_that_cannot_be_written_is_the_environments_failure(
    tmp_path: Path, processes: ProcessesSubject
) -> None:
    (tmp_path / "file").write_text("")
    processes.keep = tmp_path / "file"
    with pytest.raises(HarnessFailed, match=r"^the run cannot be kept in .*; name another place with XDG_STATE_HOME$"):
        processes.run(join())


@pytest.mark.parametrize(("short", "said"), [(False, msgspec.UNSET), (True, True)])
def test_a_history_from_journals_says_whether_a_checkpoints_timeout_is_short(
    short: bool, said: bool | msgspec.UnsetType, tmp_path: Path
) -> None:
    found = msgspec.structs.replace(script(tmp_path / "run"), short_timeout=short)
    assert evidence.history_of(found, tmp_path / "run" / "journal").short_timeout is said
