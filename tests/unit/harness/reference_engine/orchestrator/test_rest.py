"""When a job whose input never ends is at rest, which ends its run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime, InPhase
from cutproof.harness.scenario.model import Scenario
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.processes.network import frames as f
from unit.harness.puppets import Run, Script, now, played_by_puppets
from unit.harness.scenarios import chain
from unit.harness.stage import job_facts, planned

__all__ = ["played_by_puppets"]

AT_POINT = AtPoint(point="ack-sent", occurrence=1)


def endless(scenario: Scenario) -> Scenario:
    """The scenario with an input that never ends."""
    inputs = tuple(msgspec.structs.replace(source, bounded=False) for source in scenario.workload.inputs)
    return msgspec.structs.replace(scenario, workload=msgspec.structs.replace(scenario.workload, inputs=inputs))


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(*faults: plan.AnyFault, is_endless: bool = True, **engine: Any) -> Run:
        scenario = planned(chain(), *faults, **engine)
        runs.append(Run(tmp_path, endless(scenario) if is_endless else scenario))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def completes(run: Run, checkpoint: int) -> Script:
    run.coordinator.say(f.Completed(now(), CheckpointId(checkpoint)))
    yield from run.settles()


def works(run: Run, **changed: Any) -> Script:
    """The coordinator reports on the job."""
    run.coordinator.say(msgspec.structs.replace(job_facts(**changed), stamp=now()))
    yield from run.settles()


def count(run: Run, task: str, **changed: Any) -> Script:
    """A task answers that it has done nothing since the checkpoint, and that nine elements passed each channel."""
    channels = run.placement.channels
    sent = {name: 9 for name, (sender, _) in channels.items() if sender == task}
    received = {name: 9 for name, (_, receiver) in channels.items() if receiver == task}
    answer = f.Count(now(), TaskId(task), AttemptId(1), 9, 9, True, sent, received)
    run.home(task).say(msgspec.structs.replace(answer, **changed))
    yield from run.settles()


def counts(run: Run, odd: str = "", **changed: Any) -> Script:
    for task in run.placement.tasks:
        yield from count(run, task, **(changed if task == odd else {}))


def begins(run: Run, checkpoint: int = 4) -> Script:
    """The job runs for a while, and then completes a checkpoint."""
    yield from run.begins()
    yield from run.passes_us(1_000_000)
    yield from completes(run, checkpoint)


def freezes(run: Run) -> list[bool]:
    """What each coordinator was told: whether to freeze the job."""
    return [not order.off for puppet in run.named("coordinator") for order in puppet.received(f.Freeze)]


def asked(run: Run) -> dict[str, list[int]]:
    """The checkpoints after which each process was asked for its counts."""
    return {puppet.name: [order.checkpoint for order in puppet.received(f.Ask)] for puppet in run.launcher.puppets}


def test_counts_that_agree_with_the_checkpoint_bring_the_job_to_rest(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        assert asked(run) == {"coordinator": []} | {task: [4] for task in run.placement.tasks}
        assert freezes(run) == []
        run.may_end()
        yield from counts(run)
        raise AssertionError("the run goes on")

    run = begin()
    run.run(script)
    assert freezes(run) == [True]
    assert run.orchestrator.evidence().quiet


@pytest.mark.parametrize(
    ("odd", "changed"),
    [
        ("map-0", {"now": 10}),
        ("map-0", {"at_mark": None}),
        ("sink-1", {"is_idle": False}),
        ("count-0", {"attempt": 2}),
        ("map-1", {"sent": {"map-1>count-0": 10, "map-1>count-1": 9}}),
        ("sink-0", {"received": {"count-0>sink-0": 8, "count-1>sink-0": 9}}),
    ],
)
def test_one_count_that_does_not_agree_is_no_rest(begin: Callable[..., Run], odd: str, changed: dict[str, Any]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        yield from counts(run, odd, **changed)

    run = begin()
    run.run(script)
    assert freezes(run) == []
    assert not run.orchestrator.evidence().quiet


def test_a_part_that_restarted_by_itself_rests_in_an_attempt_of_its_own(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        run.home("count-0").up(2)
        yield from counts(run)
        assert freezes(run) == [], "what the older attempt counted is not what there is"
        run.may_end()
        yield from count(run, "count-0", attempt=AttemptId(2))

    run = begin()
    run.run(script)
    assert freezes(run) == [True]
    assert run.orchestrator.evidence().quiet


def test_it_takes_the_counts_of_all_tasks(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        *others, last = run.placement.tasks
        for task in others:
            yield from count(run, task)
        assert freezes(run) == []
        run.may_end()
        yield from count(run, last)

    run = begin()
    run.run(script)
    assert run.orchestrator.evidence().quiet


def test_each_process_is_asked_once_however_many_tasks_it_has(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        assert asked(run) == {"coordinator": [], "node-0": [4], "node-1": [4]}
        run.may_end()
        yield from counts(run)

    run = begin(plan.KillNode(trigger=AT_POINT, node=0))
    run.run(script)
    assert run.orchestrator.evidence().quiet


def test_a_job_that_ends_by_itself_is_not_asked(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        assert not any(asked(run).values())
        yield from run.finishes()

    run = begin(is_endless=False)
    run.run(script)
    assert run.orchestrator.evidence().quiet


LATER = InPhase(phase="checkpointing", occurrence=1, after_us=1_000_000)


@pytest.mark.parametrize(
    ("busy", "fault"),
    [
        ("due", plan.KillTask(trigger=LATER, task="map-0")),
        ("healing", plan.PauseTask(trigger=AT_POINT, task="map-0", for_us=1_000_000)),
        ("lately", plan.FailWrite(trigger=AtTime(at_us=0), task="map-0")),
    ],
)
def test_while_something_is_to_come_or_has_just_come_nothing_rests(
    begin: Callable[..., Run], busy: str, fault: plan.AnyFault
) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        if busy == "due":
            yield from works(run, under_way=True)
            yield from works(run)
        elif busy == "healing":
            yield from run.reaches("ack-sent", "map-1")
            yield from run.passes_us(1_000_000)
        else:
            yield from run.fires(0, "map-0")
        yield from counts(run)
        assert freezes(run) == []
        before = asked(run)
        yield from completes(run, 5)
        assert asked(run) == before

    run = begin(fault)
    run.run(script)
    assert not run.orchestrator.evidence().quiet


@pytest.mark.parametrize("disturbed", ["task", "coordinator", "fault", "recovers"])
def test_what_disturbs_a_job_at_rest_lets_it_go_on(begin: Callable[..., Run], disturbed: str) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        yield from works(run, under_way=True)
        yield from counts(run)
        assert freezes(run) == [True]
        if disturbed == "task":
            run.newest("map-0").down()
        elif disturbed == "coordinator":
            run.launcher.ends(run.coordinator, code=70)
        elif disturbed == "fault":
            yield from run.reaches("ack-sent", "map-1")
        else:
            yield from works(run, stage=StageName.RESTARTING)
        yield from run.passes_us(1_500_000)
        assert freezes(run) == ([True] if disturbed == "coordinator" else [True, False])
        assert run.coordinator.received(f.Freeze) == [] or disturbed != "coordinator", "a new one is not frozen"
        before = len(asked(run)["map-1"])
        yield from completes(run, 5)
        assert len(asked(run)["map-1"]) == before + 1, "it may come to rest again"

    run = begin(plan.PauseTask(trigger=AT_POINT, task="map-0", for_us=100))
    run.run(script)
    assert not run.orchestrator.evidence().quiet


def test_a_checkpoint_under_way_is_waited_for(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from begins(run)
        yield from works(run, under_way=True)
        yield from counts(run)
        yield from run.passes_us(500_000)
        assert freezes(run) == [True]
        run.may_end()
        yield from works(run)
        raise AssertionError("the run goes on")

    run = begin()
    run.run(script)
    assert freezes(run) == [True]
    assert run.orchestrator.evidence().quiet


@pytest.mark.parametrize("store", ["memory", "files"])
def test_the_checkpoints_in_the_coordinators_memory_are_those_that_it_reported_last(
    begin: Callable[..., Run], store: str
) -> None:
    """A coordinator may retain more than its newest one.  If the store is not its memory, the store itself is read."""

    def script(run: Run) -> Script:
        yield from begins(run)
        yield from works(run, newest=4, retained=(2, 4))
        run.may_end()
        yield from counts(run)

    run = begin(snapshot_store=store)
    run.run(script)
    evidence = run.orchestrator.evidence()
    assert evidence.quiet
    assert evidence.residue.retained == ([2, 4] if store == "memory" else [])
