"""Working state in files, in a simulated world: flushes, compactions, snapshots amid them, restores."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, KillTask, PauseTask
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Perturbation, Scenario
from cutproof.properties.model.workload import AnyOperator, Count, Dedup, Sum, Tumbling
from cutproof.reference_impl.core.backends.lsm import LsmState
from cutproof.reference_impl.driver.injected_exceptions import operator_work
from cutproof.reference_impl.simulated.world import World
from unit.simulated.worlds import all_there, attempts, fired, job, started

FILES: dict[str, Any] = {"state_backend": "lsm", "memtable_entries": 1, "compaction_files": 2, "compaction_us": 300}


KEYED: list[AnyOperator] = [Count(tagged=True), Sum(), Dedup(), Tumbling(size=20)]
KILL = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=2), task="op0-0")


def counting(**more: Any) -> Scenario:
    return job(60, Count(), **{**FILES, **more})


def at(point: str, occurrence: int = 2, side: str = "after") -> AtPoint:
    return AtPoint(point=point, occurrence=occurrence, task="op0-0", side=side)


def state_of(world: World, task: str = "op0-0") -> LsmState:
    runner = world.latest(task)
    work = operator_work(runner.task) if runner else None
    assert work is not None
    state = work.operator.state
    assert isinstance(state, LsmState)
    return state


@pytest.mark.parametrize("snapshot_mode", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("compaction_us", [1, 300, 5_000])
def test_a_job_whose_state_is_in_files_restores_it(snapshot_mode: str, compaction_us: int) -> None:
    """Compactions end at once, amid the writes of snapshots, or after several of them."""
    history = all_there(counting(faults=(KILL,), snapshot_mode=snapshot_mode, compaction_us=compaction_us))
    assert attempts(history) == 2


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", ["memtable-flushed", "files-compacted"])
def test_a_task_may_die_at_a_flush_and_at_a_compaction(point: str, side: str) -> None:
    trigger = at(point, 30 if point == "memtable-flushed" else 12, side)
    scenario = counting(faults=(KillTask(trigger=trigger, task="op0-0"),))
    assert list(problems_of(scenario)) == []
    assert fired(all_there(scenario)) == ["kill-task"]


@pytest.mark.parametrize("operator", KEYED, ids=lambda one: type(one).__name__)
def test_a_canonical_snapshot_has_the_same_bytes_from_both_backends(operator: AnyOperator) -> None:
    """At each checkpoint of a job; keys come in an order that is not theirs."""
    scenario = job(60, operator, memtable_entries=1, compaction_files=2, retained_checkpoints=9)
    (source,) = scenario.workload.inputs
    falling = tuple(tuple((9 - key, value, tag) for key, value, tag in split) for split in source.splits)
    workload = replace(scenario.workload, inputs=(replace(source, splits=falling),))
    scenario = replace(scenario, workload=workload)
    heap, lsm = (
        started(replace(scenario, engine=replace(scenario.engine, state_backend=backend)), 20_000).files.files
        for backend in ("heap", "lsm")
    )
    assert heap == lsm
    assert sum(b'"entries":[[' in data for data in heap.values()) >= 2


def test_a_stopped_process_merges_no_files() -> None:
    """The compaction that was under way ends after the pause."""
    pause = PauseTask(trigger=at("memtable-flushed"), task="op0-0", for_us=6_000)
    assert fired(all_there(counting(compaction_us=2_000, faults=(pause, KILL)))) == ["pause-task", "kill-task"]


def test_files_are_merged_while_the_job_runs_and_no_faster_than_a_compaction_takes() -> None:
    counts = {}
    for compaction_us in (1, 100_000):
        world = started(counting(compaction_us=compaction_us), until_us=8_000)
        counts[compaction_us] = len(state_of(world).snapshot().files())
    assert counts[1] <= 2 < 10 < counts[100_000]


def test_a_compaction_is_late_by_its_name() -> None:
    late = counting(deviations=(Perturbation(what="compaction op0-0", occurrence=1, by_us=50_000),))
    assert list(problems_of(late)) == []
    assert len(state_of(started(late, until_us=8_000)).snapshot().files()) > 10
    assert all_there(replace(late, faults=(KILL,))).unapplied == []


def test_names_of_files_never_come_twice_in_a_job() -> None:
    names = [
        {file.name for file in state_of(started(counting(faults=faults), until_us=9_000)).snapshot().files()}
        for faults in ((), (KILL,))
    ]
    assert all(names)
    assert not names[0] & names[1], "of the first attempt, and of the second"
