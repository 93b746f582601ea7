"""An upgraded job takes over the states of a savepoint by its mapping, or is refused by name (SNAP-5)."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.reference_impl.core.job.topology import JobGraph
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.stages import Working
from cutproof.reference_impl.core.vocabulary.upgrades import StateMapping
from unit.core.coordinator_rig import GRAPH, OP, SOURCE, CoordinatorRig, complete_snapshot, deployed, savepoint

NO_SAVEPOINT = (
    "checkpoint 5 is no savepoint, and op cannot be new or gone, nor have another uid or type than in it: resume from a"
    " savepoint"
)


def upgraded(moves: dict[str, str], **uids: str) -> JobGraph:
    return GRAPH.upgraded(uids).taking_over(StateMapping(moves=moves))


def in_hundredths(graph: JobGraph, **converts: str) -> JobGraph:
    """The graph whose `op` keeps its state in hundredths."""
    specs = [
        msgspec.structs.replace(spec, state_type="hundredths") if spec.name == OP.rpartition("-")[0] else spec
        for spec in graph.operators
    ]
    return JobGraph(tuple(specs), graph.key_groups, msgspec.structs.replace(graph.mapping, converts=converts))


def held_as(snapshot: CompletedCheckpoint, **uids: str) -> CompletedCheckpoint:
    return msgspec.structs.replace(snapshot, uids=uids)


def submitted(graph: JobGraph, snapshot: CompletedCheckpoint) -> CoordinatorRig:
    """A job that is submitted with a snapshot of another job."""
    job = CoordinatorRig(job=2, graph=graph, coordinator={"initial": (snapshot,), "first_checkpoint": 6})
    job.start()
    return job


def began(job: CoordinatorRig) -> CoordinatorRig:
    """The job, once all of its tasks run."""
    assert set(deployed(job.saved())) == set(job.machine.tasks)
    job.running()
    return job


@pytest.mark.parametrize(
    ("graph", "snapshot"),
    [
        (upgraded({"op": "new"}, op="new"), savepoint(GRAPH)),
        (upgraded({"old": "new", "sink": "out"}, op="new", sink="out"), held_as(savepoint(GRAPH), op="old")),
        (upgraded({}, op="new"), held_as(savepoint(GRAPH), op="new")),
        (upgraded({"old": "new"}, op="new"), held_as(savepoint(GRAPH), op="new")),
        (upgraded({"old": "op"}, op="op"), held_as(savepoint(GRAPH), op="old")),
        (upgraded({}, op="new"), held_as(complete_snapshot(5), op="new")),
        (upgraded({"op": "new"}, op="new"), savepoint(GRAPH, SOURCE, OP)),
        (in_hundredths(GRAPH, op="whole-to-hundredths"), savepoint(GRAPH)),
        (
            in_hundredths(upgraded({"old": "new"}, op="new"), old="whole-to-hundredths"),
            held_as(savepoint(GRAPH), op="old"),
        ),
        (in_hundredths(GRAPH), msgspec.structs.replace(complete_snapshot(5), state_types={"op": "hundredths"})),
    ],
)
def test_a_job_begins_whose_mapping_moves_every_state(graph: JobGraph, snapshot: CompletedCheckpoint) -> None:
    assert began(submitted(graph, snapshot)).machine.stage == Working()


@pytest.mark.parametrize(
    ("graph", "snapshot", "reason"),
    [
        (
            upgraded({}, op="new"),
            savepoint(GRAPH),
            (
                "checkpoint 5 holds the state of op under the uid op, and the job has another: its mapping needs the"
                " moves op -> new"
            ),
        ),
        (
            upgraded({"sink": "out"}, op="new", sink="outlet"),
            savepoint(GRAPH),
            (
                "checkpoint 5 holds the state of op under the uid op, the state of sink under the uid sink, and the job"
                " has another: its mapping needs the moves op -> new, sink -> outlet"
            ),
        ),
        (
            GRAPH,
            held_as(savepoint(GRAPH), op="old"),
            (
                "checkpoint 5 holds the state of op under the uid old, and the job has another: its mapping needs the"
                " moves old -> op"
            ),
        ),
        (
            in_hundredths(GRAPH),
            savepoint(GRAPH),
            (
                "checkpoint 5 holds states of op that are of another type than the job's: its mapping needs the"
                " conversions op: whole-to-hundredths"
            ),
        ),
        (
            GRAPH,
            msgspec.structs.replace(savepoint(GRAPH), state_types={"op": "hundredths"}),
            (
                "checkpoint 5 holds states of op that are of another type than the job's: nothing converts op"
                " (hundredths-to-whole), so the job has to keep the type that the snapshot has"
            ),
        ),
        (
            in_hundredths(GRAPH, op="whole-to-hundredths"),
            complete_snapshot(5),
            NO_SAVEPOINT,
        ),
        (
            upgraded({"op": "new"}, op="new"),
            complete_snapshot(5),
            NO_SAVEPOINT,
        ),
    ],
)
def test_a_job_is_refused_by_what_its_mapping_lacks(
    graph: JobGraph, snapshot: CompletedCheckpoint, reason: str
) -> None:
    assert submitted(graph, snapshot).closed_for == reason


def test_each_restart_before_its_own_first_checkpoint_restores_the_savepoint_by_the_mapping() -> None:
    job = began(submitted(upgraded({"op": "new"}, op="new"), savepoint(GRAPH)))
    job.lose(OP)
    assert {task: order.handle for task, order in deployed(job.again()).items()} == savepoint(GRAPH).handles


def test_a_checkpoint_of_its_own_is_restored_under_its_own_uids() -> None:
    job = began(submitted(upgraded({"op": "new"}, op="new"), savepoint(GRAPH)))
    job.checkpoint(6)
    job.lose(OP)
    assert {order.checkpoint for order in deployed(job.again()).values()} == {6}


def test_a_snapshot_records_the_uids_that_are_no_names() -> None:
    assert upgraded({}, op="new", sink="sink").uids == {"op": "new"}
    assert upgraded({}, op="new").laid_out({"op": 2}).upgraded({"op": "op"}).uids == {}
