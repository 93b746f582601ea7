"""The fault to which an answer is owed: it explains a failure of that answer, and no other failure."""

from __future__ import annotations

import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.causes import EngineRaised
from cutproof.reference_impl.core.vocabulary.events import LoadFailed, Received
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Abort
from cutproof.reference_impl.driver.runner import TaskRunner
from cutproof.reference_impl.simulated.world import World
from unit.simulated.worlds import job, started

FAULT = 7


@pytest.fixture
def world() -> World:
    return started(job(), 4_000)


@pytest.fixture
def runner(world: World) -> TaskRunner:
    found = world.latest("op1-0")
    assert found is not None
    return found


@pytest.fixture
def failures(world: World, monkeypatch: pytest.MonkeyPatch) -> list[o.Observed]:
    seen: list[o.Observed] = []
    monkeypatch.setattr(world.observer, "saw", seen.append)
    return seen


def blamed(failures: list[o.Observed]) -> list[int | None]:
    return [event.fault for event in failures if isinstance(event, o.TaskFailed)]


def test_a_failure_of_the_answer_is_owed_to_the_fault(runner: TaskRunner, failures: list[o.Observed]) -> None:
    runner.deliver(LoadFailed("the store reported an error"), FAULT)
    assert blamed(failures) == [FAULT]


def test_also_when_the_task_stands_still_as_the_answer_comes(runner: TaskRunner, failures: list[o.Observed]) -> None:
    runner.pause()
    runner.deliver(LoadFailed("the store reported an error"), FAULT)
    assert blamed(failures) == []
    runner.resume()
    assert blamed(failures) == [FAULT]


def test_a_later_failure_is_not(runner: TaskRunner, failures: list[o.Observed]) -> None:
    abort = Abort(job=1, attempt=runner.attempt, checkpoint=CheckpointId(99))
    runner.deliver(Received(abort), FAULT)
    assert runner.alive
    runner.fail(EngineRaised("KeyError"))
    assert blamed(failures) == [None]
