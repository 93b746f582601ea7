"""What the engine itself raises is a failure in the history, and never an exception of the harness."""

from __future__ import annotations

import pytest

from cutproof.harness.reference_engine.subjects.recorder import Recorder
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import AttemptStarted, CoordinatorDown, History, TaskFailed
from cutproof.properties.model.verdict import Violated
from cutproof.reference_impl.core.decisions.checkpointing import Situation, Triggering
from cutproof.reference_impl.core.decisions.commits import Committing
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.protocol.barrier_alignment import Alignment, State
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.state import Sealed, Snapshot, TaskState
from unit.simulated.worlds import job, journal

SCENARIO = job(restart_attempts=2)


class Forgets(Committing):
    """A sink that raises when a checkpoint is complete."""

    def due(self, sealed: list[Sealed], completed: CheckpointId) -> list[Sealed]:
        raise KeyError(completed)


class Confuses(Triggering):
    """A coordinator that raises when it is to start a checkpoint."""

    def allowed(self, now: Situation) -> bool:
        raise KeyError("allowed")


def history_of(scenario: Scenario, parts: Parts) -> History:
    return Run(scenario, parts, False).history()


def difference(history: History) -> str:
    verdict = judge(SCENARIO.workload, SCENARIO.topology, history).verdicts["progress"]
    assert isinstance(verdict, Violated)
    return verdict.difference


def test_a_task_whose_machine_raises_has_failed_without_a_fault_and_is_restarted() -> None:
    history = history_of(SCENARIO, Parts(committing=Forgets()))
    first, *_ = journal(TaskFailed, history)
    assert (first.task, first.reason, first.fault) == ("sink-0", "the engine raised KeyError: 1", None)
    assert len(journal(AttemptStarted, history)) == 3
    assert difference(history) == "unexplained failure"


def test_a_coordinator_whose_machine_raises_is_down_without_a_fault_and_followed_by_another() -> None:
    history = history_of(SCENARIO, Parts(triggering=Confuses()))
    first, second, *_ = journal(CoordinatorDown, history)
    assert (first.fault, second.fault) == (None, None)
    assert first.reason == "the engine raised KeyError: 'allowed'"
    verdict = judge(SCENARIO.workload, SCENARIO.topology, history).verdicts["progress"]
    assert isinstance(verdict, Violated)
    assert verdict.difference == "unexplained failure"
    assert verdict.message == f"the coordinator failed, and no fault explains it: {first.reason}"


def test_an_assertion_of_the_engine_is_reported_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only what a decision raises: also what the machine holds impossible."""

    def impossible(self: Committing, sealed: list[Sealed], completed: CheckpointId) -> list[Sealed]:
        raise AssertionError("this cannot be")

    monkeypatch.setattr(Committing, "due", impossible)
    history = history_of(SCENARIO, Parts())
    assert journal(TaskFailed, history)[0].reason == "the engine raised AssertionError: this cannot be"
    assert difference(history) == "unexplained failure"


def test_an_attempt_that_cannot_be_made_has_failed_without_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its machine's making raises: the run goes on, and says so."""

    def without(self: Alignment, blocking: bool, last: CheckpointId) -> State:
        raise KeyError("no state")

    monkeypatch.setattr(Alignment, "initial", without)
    history = history_of(SCENARIO, Parts())
    first, *_ = journal(TaskFailed, history)
    assert (first.task, first.reason, first.fault) == ("op0-0", "the engine raised KeyError: 'no state'", None)
    tasks = [run.task for run in history.runs]
    assert ("source-0" in tasks, "op0-0" in tasks) == (True, False)
    assert difference(history) == "unexplained failure"


def test_a_task_that_the_job_has_not_cannot_be_made() -> None:
    """It is the engine's failure to ask for it, and the run's to show it."""
    run = Run(SCENARIO, Parts(), False)
    run.world.loop.at(3_000, lambda *_: run.world.come_up(TaskId("nobody-0"), AttemptId(1)))
    (failed,) = journal(TaskFailed, history := run.history())
    assert (failed.task, failed.reason, failed.fault) == ("nobody-0", "the job has no task nobody-0", None)
    assert difference(history) == "unexplained failure"


@pytest.mark.parametrize("store", ["files", "memory"])
def test_a_state_that_cannot_be_put_into_words_fails_its_task(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: Snapshot) -> TaskState:
        raise ValueError("no words for it")

    monkeypatch.setattr(Snapshot, "materialise", cannot)
    history = history_of(job(restart_attempts=2, snapshot_store=store), Parts())
    assert journal(TaskFailed, history)[0].reason == "the engine raised ValueError: no words for it"
    assert difference(history) == "unexplained failure"


def test_what_the_harness_raises_is_not_taken_for_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here as it takes down that a task has started: the run ends, for nothing that it shows can be believed."""

    def broken(self: Recorder, *arguments: object) -> object:
        raise RuntimeError("the harness's own")

    monkeypatch.setattr(Recorder, "task_started", broken)
    with pytest.raises(RuntimeError, match="the harness's own"):
        history_of(SCENARIO, Parts())
