"""What the engine itself raises is a failure in the history, and never an exception of the harness."""

from __future__ import annotations

import pytest
from worlds import job, journal

from cutproof.harness.scenario import Scenario
from cutproof.harness.subjects.simulated import Run
from cutproof.properties.history import AttemptStarted, CoordinatorDown, History, TaskFailed
from cutproof.properties.judge import judge
from cutproof.properties.verdict import Violated
from cutproof.reference_impl.core.coordinator import Coordinator
from cutproof.reference_impl.core.ids import CheckpointId
from cutproof.reference_impl.core.parts import Committing, Parts, Triggering
from cutproof.reference_impl.core.state import Sealed

SCENARIO = job(restart_attempts=2)


class Forgets(Committing):
    """A sink that raises when a checkpoint is complete."""

    def due(self, sealed: list[Sealed], completed: CheckpointId) -> list[Sealed]:
        raise KeyError(completed)


class Confuses(Triggering):
    """A coordinator that raises when it is to start a checkpoint."""

    def allowed(self, coordinator: Coordinator) -> bool:
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
    assert difference(history) == "unexplained failure"


def test_an_assertion_of_the_engine_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only what a decision raises: also what the machine holds impossible."""

    def impossible(self: Committing, sealed: list[Sealed], completed: CheckpointId) -> list[Sealed]:
        raise AssertionError("this cannot be")

    monkeypatch.setattr(Committing, "due", impossible)
    history = history_of(SCENARIO, Parts())
    assert journal(TaskFailed, history)[0].reason == "the engine raised AssertionError: this cannot be"
    assert difference(history) == "unexplained failure"
