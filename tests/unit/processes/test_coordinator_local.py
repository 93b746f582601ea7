"""The coordinator's process when tasks recover locally: who gets their addresses, which orders come too late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.messages import Deploy
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.coordinated import APART, FakeNode, meddle, submit, working
from unit.processes.rig import SLOW, TASKS, CoordinatorProcess, JobOptions, lives_without_harness, until

__all__ = ["lives_without_harness"]

SOURCE, MAP, SINK = TASKS
CONFIG = msgspec.structs.replace(
    SLOW, sink="transactional", alignment="unaligned", spilling="continuous", failover="local"
)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    with CoordinatorProcess(tmp_path, job=JobOptions(config=CONFIG), processes=APART) as made:
        yield made


def all_run(process: CoordinatorProcess) -> dict[str, FakeNode]:
    submit(process)
    nodes = {task: FakeNode(process, task) for task in TASKS}
    for node in nodes.values():
        node.runs()
    working(process)
    return nodes


def lost(process: CoordinatorProcess, node: FakeNode, attempt: int = 2) -> None:
    """It is to come up as that attempt, alone."""
    node.peer.sock.close()
    process.harness.expect(f.JobFacts, stage=StageName.PARTIAL_FAILOVER, attempt=attempt)


def orders(node: FakeNode) -> list[int]:
    return [message.attempt for message in node.messages if isinstance(message, Deploy)]


def is_order(frame: f.Frame) -> bool:
    return isinstance(frame, f.ForTask) and isinstance(frame.message, Deploy)


def test_who_comes_later_learns_before_its_orders_who_has_recovered_locally(process: CoordinatorProcess) -> None:
    nodes = all_run(process)
    lost(process, nodes[MAP])
    FakeNode(process, MAP, 1).peer.expect(f.ForTask, task=MAP)
    nodes[SOURCE].peer.expect(f.Moved, task=MAP, attempt=2)
    newcomer = FakeNode(process, SINK, 1)
    newcomer.peer.expect(f.Moved, task=MAP, attempt=2)
    until(lambda: orders(newcomer))
    received = [frame for frame in newcomer.peer.arrived if isinstance(frame, f.Moved) or is_order(frame)]
    assert received[0] == newcomer.peer.all(f.Moved, task=MAP)[0]


def test_when_all_have_come_up_again_nobody_recovers_locally(process: CoordinatorProcess) -> None:
    nodes = all_run(process)
    lost(process, nodes[MAP])
    FakeNode(process, MAP, 1).peer.expect(f.ForTask, task=MAP)
    nodes[SOURCE].peer.expect(f.Moved, task=MAP, attempt=2)
    process.world.control.to_task(MAP, Deploy(job=1, attempt=AttemptId(2)))
    newcomer = FakeNode(process, SINK, 1)
    until(lambda: orders(newcomer))
    assert newcomer.peer.all(f.Moved, task=MAP, attempt=2) == []


def test_an_order_that_is_repeated_does_not_reach_the_process_that_comes_after(tmp_path: Path) -> None:
    """Its attempt was lost with the process that had it: as another it would come up in its own place."""
    config = msgspec.structs.replace(CONFIG, restart_delay_us=60_000_000)
    with CoordinatorProcess(tmp_path, job=JobOptions(config=config), processes=APART) as process:
        nodes = all_run(process)
        process.world.control.to_task(MAP, Deploy(job=1, attempt=AttemptId(1)))
        process.answers()
        assert orders(nodes[MAP]) == [1, 1], "it is there still"
        lost(process, nodes[MAP], attempt=1)
        after = FakeNode(process, MAP, 1)
        process.world.control.to_task(MAP, Deploy(job=1, attempt=AttemptId(1)))
        process.answers()
        assert orders(after) == []


def test_an_order_that_is_late_is_not_waited_with_in_place_of_the_newer(process: CoordinatorProcess) -> None:
    nodes = all_run(process)
    meddle(process, "late", "deploy", by_us=0)  # changes nothing, and reports the order to the harness
    lost(process, nodes[MAP])
    process.harness.expect(f.Fired, detail="deploy of map-0: late", attempt=2)
    process.answers()
    process.world.control.to_task(MAP, Deploy(job=1, attempt=AttemptId(1)))
    again = FakeNode(process, MAP, 1)
    again.peer.expect(f.ForTask, task=MAP)
    assert orders(again) == [2]
    process.world.control.to_task(MAP, Deploy(job=1, attempt=AttemptId(1)))
    process.answers()
    assert orders(again) == [2]
