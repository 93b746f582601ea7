"""The coordinator's process when a part restarts: who is told of it, and who hears nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.causes import EngineRaised, ProcessGone
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.messages import Cancel, Deploy
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.core.vocabulary.status_changes import RegionRestarted
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.coordinated import FakeNode, losses, submit, working
from unit.processes.rig import SLOW, CoordinatorProcess, JobOptions, lives_without_harness, now

__all__ = ["lives_without_harness"]

REGIONS = [[f"{name}-{number}" for name in ("source", "map", "sink")] for number in (0, 1)]
HOMES = {task: f"node-{number}" for number, region in enumerate(REGIONS) for task in region}
JOB = JobOptions(width=2, config=msgspec.structs.replace(SLOW, failover="region"))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path, job=JOB, processes=HOMES) as made:
        yield made


def both_run(process: CoordinatorProcess) -> tuple[FakeNode, FakeNode]:
    submit(process)
    nodes = FakeNode(process, "node-0").runs(), FakeNode(process, "node-1").runs()
    working(process)
    return nodes


def arrived(node: FakeNode) -> list[tuple[type, int]]:
    return [(type(message), message.attempt) for message in node.messages]  # type: ignore[attr-defined]


def test_the_region_of_a_lost_node_waits_for_another_and_the_others_are_not_notified(
    process: CoordinatorProcess,
) -> None:
    survivor, lost = both_run(process)
    lost.peer.sock.close()
    process.harness.expect(f.JobFacts, stage=StageName.PARTIAL_FAILOVER, attempt=2)
    assert losses(process) == [(task, 1, str(ProcessGone())) for task in REGIONS[1]]
    FakeNode(process, "node-1", 1).runs(2)
    working(process, 2)
    assert arrived(survivor) == [(Deploy, 1)] * 3
    (part,) = (one.change for one in process.entries(o.StatusChanged) if isinstance(one.change, RegionRestarted))
    assert sorted(part.tasks) == sorted(REGIONS[1])


def test_a_task_that_fails_has_its_region_cancelled_where_it_lives(process: CoordinatorProcess) -> None:
    survivor, failing = both_run(process)
    failing.peer.send(f.Failed(now(), failing.tasks[1], AttemptId(1), EngineRaised("KeyError: 3")))
    failing.runs(2)
    working(process, 2)
    assert arrived(failing) == [*[(Deploy, 1)] * 3, *[(Cancel, 1)] * 3, *[(Deploy, 2)] * 3]
    assert arrived(survivor) == [(Deploy, 1)] * 3


def test_a_survivor_that_is_lost_later_is_lost_in_the_attempt_that_it_is_in(process: CoordinatorProcess) -> None:
    survivor, lost = both_run(process)
    lost.peer.sock.close()
    again = FakeNode(process, "node-1", 1).runs(2)
    working(process, 2)
    survivor.peer.sock.close()
    process.harness.expect(f.JobFacts, stage=StageName.PARTIAL_FAILOVER, attempt=3)
    assert losses(process)[3:] == [(task, 1, str(ProcessGone())) for task in REGIONS[0]]
    FakeNode(process, "node-0", 1).runs(3)
    working(process, 3)
    assert arrived(again) == [(Deploy, 2)] * 3


def test_a_node_with_tasks_of_two_regions_takes_both_down(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path, job=JOB, processes={**HOMES, REGIONS[1][2]: "node-0"}) as process:
        submit(process)
        node, other = FakeNode(process, "node-0").runs(), FakeNode(process, "node-1").runs()
        working(process)
        node.peer.sock.close()
        process.harness.expect(f.JobFacts, stage=StageName.DEPLOYING, attempt=2)
        other.deployed(2)
        assert RegionRestarted not in [type(one.change) for one in process.entries(o.StatusChanged)]
