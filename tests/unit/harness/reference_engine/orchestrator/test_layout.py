"""Who lives where in a run of processes, through what, and what each process is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime, InPhase
from cutproof.harness.reference_engine.orchestrator.layout import (
    COORDINATOR,
    GIVEN_UP_US,
    Placement,
    RunConfig,
    lives_together,
    proxied,
    store_of,
)
from cutproof.harness.reference_engine.orchestrator.opening import points_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Resume, Savepoint
from cutproof.properties.model.history import TaskFailed
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.processes.configuration import CoordinatorConfiguration, NodeConfiguration
from unit.harness.scenarios import chain
from unit.harness.stage import laid_out, planned

LATER = AtTime(at_us=900)
KILL_NODE, PAUSE_NODE = plan.KillNode(trigger=LATER, node=0), plan.PauseNode(trigger=LATER, node=1, for_us=10)
KILL, PAUSE = plan.KillTask(trigger=LATER, task="count-1"), plan.PauseTask(trigger=LATER, task="map-0", for_us=5)
TEAR, TEAR_RECORD = plan.TearWrite(trigger=LATER, task="count-0"), plan.TearWrite(trigger=LATER, task=None)
UNSYNCED = plan.LoseUnsynced(trigger=LATER, node=0)
RAISE = plan.RaiseInOperator(trigger=LATER, task="count-0")
TASKS = ("source-0", "source-1", "map-0", "map-1", "count-0", "count-1", "sink-0", "sink-1")


def laid(folder: Path, *faults: Any, nodes: int = 2, **options: Any) -> tuple[Placement, RunConfig]:
    return laid_out(folder, planned(chain(), *faults, nodes=nodes), **options)


def placed(folder: Path, *faults: Any, nodes: int = 2) -> Placement:
    return laid(folder, *faults, nodes=nodes)[0]


# -- processes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "together"),
    [
        ((), False),
        ((KILL_NODE,), True),
        ((PAUSE_NODE,), True),
        ((KILL_NODE, RAISE, TEAR_RECORD, UNSYNCED), True),
        ((UNSYNCED,), False),
        ((KILL_NODE, KILL), False),
        ((PAUSE_NODE, PAUSE), False),
        ((KILL_NODE, TEAR), False),
    ],
)
def test_tasks_of_a_node_live_together_where_a_fault_hits_nodes_and_none_hits_one_task(
    faults: tuple[Any, ...], together: bool
) -> None:
    assert lives_together(planned(chain(), *faults)) is together


def test_apart_each_task_has_a_process_of_its_name(tmp_path: Path) -> None:
    placement = placed(tmp_path, KILL)
    assert placement.processes == TASKS
    assert [placement.within(task) for task in TASKS] == [(task,) for task in TASKS]
    assert placement.homes_of(["map-1", "nobody-0", "map-1"]) == ("map-1",)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_together_each_node_is_a_process(tmp_path: Path, nodes: int) -> None:
    placement = placed(tmp_path, KILL_NODE, nodes=nodes)
    assert placement.processes == tuple(f"node-{number}" for number in range(nodes))
    for node in range(nodes):
        assert placement.within(f"node-{node}") == placement.on_node(node)
        assert placement.homes_of(placement.on_node(node)) == (f"node-{node}",)
    assert sorted(task for process in placement.processes for task in placement.within(process)) == sorted(TASKS)


def test_a_node_without_tasks_has_no_process(tmp_path: Path) -> None:
    assert len(placed(tmp_path, KILL_NODE, nodes=20).processes) == len(TASKS)


def test_a_node_means_the_same_tasks_as_in_the_simulator(tmp_path: Path) -> None:
    scenario = planned(chain(40), plan.KillNode(trigger=AtTime(at_us=2_000), node=1), nodes=3)
    history = SimulatedSubject().run(scenario)
    died = {entry.task for entry in history.journal if isinstance(entry, TaskFailed) and entry.fault == 0}
    placement = laid_out(tmp_path, scenario)[0]
    assert died == set(placement.on_node(1)) == set(placement.within("node-1"))


def test_what_commits_behind_the_sink_has_processes_of_its_own(tmp_path: Path) -> None:
    scenario = planned(chain(), KILL, committing="global")
    placement = laid_out(tmp_path, scenario)[0]
    behind = ("committer-0", "committer-1", "global-committer-0")
    assert placement.processes == (*TASKS, *behind)
    assert placement.sinks == ("sink-0", "sink-1")
    assert placement.committing == ("sink-0", "sink-1", *behind)


# -- channels and stores ---------------------------------------------------------------------------------------------


def test_only_channels_that_a_fault_hits_lead_through_a_proxy(tmp_path: Path) -> None:
    cut = plan.CutChannel(trigger=LATER, sender="map-1", receiver="count-0")
    late = plan.DelayChannel(trigger=LATER, sender="count-0", receiver="sink-1", by_us=5, for_us=9)
    nowhere = plan.StallChannel(trigger=LATER, sender="sink-0", receiver="map-0", for_us=9)
    placement = placed(tmp_path)
    assert proxied(planned(chain(), KILL), placement) == ()
    assert proxied(planned(chain(), late, KILL, cut, nowhere), placement) == ("map-1>count-0", "count-0>sink-1")


def test_all_do_when_the_proxy_dies(tmp_path: Path) -> None:
    placement = placed(tmp_path)
    died = plan.KillProxy(trigger=LATER)
    assert proxied(planned(chain(), died), placement) == tuple(placement.channels)
    assert len(placement.channels) == 10


def test_sinks_write_where_the_seed_states_and_shrinking_does_not_change_it() -> None:
    seeds = [str(number) for number in range(40)]
    full = [store_of(msgspec.structs.replace(chain(), seed=seed)) for seed in seeds]
    assert set(full) == {"database", "sqlite"}
    assert full == [store_of(msgspec.structs.replace(planned(chain(), KILL), seed=seed)) for seed in seeds]


def test_a_database_that_dies_is_written_to() -> None:
    dies = plan.KillDatabase(trigger=LATER)
    assert {store_of(msgspec.structs.replace(planned(chain(), dies), seed=str(seed))) for seed in range(10)} == {
        "database"
    }


def test_only_points_that_something_waits_for_are_announced() -> None:
    kill = plan.KillTask(trigger=AtPoint(point="ack-sent", occurrence=2), task="map-0")
    phase = plan.KillNode(trigger=InPhase(phase="aligning", occurrence=1), node=0)
    scenario = msgspec.structs.replace(
        planned(chain(), kill, KILL, phase),
        commands=(
            Savepoint(trigger=AtPoint(point="barrier-sent", occurrence=1)),
            Resume(trigger=AtPoint(point="checkpoint-completed", occurrence=1)),
        ),
    )
    assert points_of(scenario) == {"ack-sent", "barrier-sent"}
    assert points_of(planned(chain())) == frozenset()


# -- what a process is told ------------------------------------------------------------------------------------------


def test_a_node_is_notified_of_all_its_tasks_and_channels(tmp_path: Path) -> None:
    placement, config = laid(tmp_path, KILL_NODE, felt=["map-1>count-0", "map-1>count-1"])
    perturbations = (("step map-1", 3, 50),)
    decoded = msgspec.msgpack.decode(config.configure(placement, "node-0", 2, perturbations), type=NodeConfiguration)
    assert (decoded.process, decoded.incarnation, decoded.coordinator_port) == ("node-0", 2, 1)
    assert decoded.tasks == ("source-0", "map-0", "count-0", "sink-0")
    assert set(decoded.routes) == {name for name in placement.channels if name.partition(">")[0] in decoded.tasks}
    assert decoded.felt == {"map-1>count-0"}, "those it receives"
    assert (decoded.perturbations, decoded.heartbeat_timeout_us, decoded.scale) == (perturbations, GIVEN_UP_US, 20)


def test_the_coordinator_receives_where_each_task_lives(tmp_path: Path) -> None:
    for faults, wanted in (((), dict(zip(TASKS, TASKS, strict=True))), ((KILL_NODE,), None)):
        folder = tmp_path / str(len(faults))
        folder.mkdir()
        placement, config = laid(folder, *faults)
        decoded = msgspec.msgpack.decode(config.configure(placement, COORDINATOR, 0, ()), type=CoordinatorConfiguration)
        assert decoded.processes == (wanted or {TaskId(task): f"node-{n % 2}" for n, task in enumerate(TASKS)})
