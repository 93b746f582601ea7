"""An exception within a process is a failure in the history, and never one of the harness: by real runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, KillNode
from cutproof.harness.reference_engine.subjects import process_job
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, FaultFired, JobEnded, TaskFailed
from cutproof.properties.model.verdict import Holds
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.causes import ProcessGone
from unit.harness import breaking
from unit.harness.journals import Script, entries
from unit.harness.scenarios import chain
from unit.harness.stage import planned


@pytest.fixture(scope="module")
def subject() -> Iterator[ProcessesSubject]:
    made = ProcessesSubject()
    yield made
    made.close()


def asked(note: Path, *faults: KillNode) -> Scenario:
    """Writes into files: `other` is a seed that stands for those."""
    scenario = planned(chain(60), *faults, checkpoint_interval_us=1_500)
    return msgspec.structs.replace(scenario, name=str(note), seed="other")


def failures(result: Result) -> list[TaskFailed]:
    return [entry for entry in result.history.journal if isinstance(entry, TaskFailed)]


def goes_on(result: Result, *, amid_records: bool = True) -> None:
    """Another attempt has finished the job, and it has committed what an undisturbed job commits.  If nobody knows
    whether a record was read before the failure, *exactly-once* may not be exercised."""
    history = result.history
    undisturbed = SimulatedSubject().run(msgspec.structs.replace(result.scenario, faults=()))
    assert Counter(history.committed) == Counter(undisturbed.committed)
    assert [entry.status for entry in history.journal if isinstance(entry, JobEnded)] == ["finished"]
    assert len([entry for entry in history.journal if isinstance(entry, AttemptStarted)]) == 2
    assert history.quiet
    for name in ("exactly-once", "no-data-loss", "consistent-cut")[not amid_records :]:
        assert isinstance(result.judgement.verdicts[name], Holds), (name, result.judgement.verdicts[name])


def is_found(result: Result, *words: str, amid_records: bool = True) -> None:
    """The judge blames the engine, by these words, and for nothing else."""
    goes_on(result, amid_records=amid_records)
    assert list(result.judgement.violated) == ["progress"]
    found = result.judgement.violated["progress"]
    assert found.difference == "unexplained failure"
    assert [word for word in words if word not in found.message] == []


def test_what_a_machine_raises_fails_its_task_and_names_it(
    subject: ProcessesSubject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_job, "FACTORY", breaking.IN_A_MACHINE)
    result = run(subject, asked(tmp_path / "note"))
    (failed,) = failures(result)
    assert failed.task.startswith(("map-", "count-"))
    assert (failed.attempt, failed.fault) == (1, None)
    assert failed.reason == "the engine raised RuntimeError: broken for a test"
    is_found(result, failed.task, failed.reason)


def test_what_ends_a_process_fails_its_tasks_and_names_its_exit_and_its_last_words(
    subject: ProcessesSubject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_job, "FACTORY", breaking.IN_A_PROCESS)
    result = run(subject, asked(tmp_path / "note"))
    (failed,) = failures(result)
    assert (failed.attempt, failed.fault) == (1, None)
    assert failed.reason == "its process ended with exit code 1: unit.harness.breaking.Ended: broken for a test"
    is_found(result, failed.task, failed.reason, amid_records=False)


def test_a_node_that_is_killed_is_one_process_and_takes_all_its_tasks_along(
    subject: ProcessesSubject, tmp_path: Path
) -> None:
    kill = KillNode(trigger=AtPoint(point="checkpoint-completed", occurrence=1), node=1)
    result = run(subject, asked(tmp_path / "note", kill))
    assert [entry.fault for entry in result.history.journal if isinstance(entry, FaultFired)] == [0]
    assert sorted(one.task for one in failures(result)) == ["count-1", "map-1", "sink-1", "source-1"]
    assert {(one.reason, one.fault) for one in failures(result)} == {("its node was lost", 0)}
    goes_on(result)
    assert result.judgement.violated == {}


@pytest.mark.parametrize("first", ["coordinator", "harness"])
def test_whoever_sees_first_that_a_process_has_ended_its_end_is_reported_as_the_harness_knows_it(
    tmp_path: Path, first: str
) -> None:
    script = Script(tmp_path)
    script.attempt(1, "map-0")
    if first == "coordinator":
        script.fails("map-0", ProcessGone(), by="coordinator")
    script.later()
    script.harness.saw(o.Died("map-0", 0, "its process ended with exit code 70: why", None))
    if first == "harness":
        script.fails("map-0", ProcessGone(), by="coordinator")
    (failed,) = entries(TaskFailed, script.history())
    assert (failed.task, failed.reason, failed.fault) == ("map-0", "its process ended with exit code 70: why", None)
