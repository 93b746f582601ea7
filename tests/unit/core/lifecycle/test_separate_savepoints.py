"""The ways of taking savepoints that FLIP-47 rejects: out of recovery, with side effects or without (SNAP-6)."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.messages import Complete, Terminate
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptStarted, CheckpointAborted
from unit.core.coordinator_rig import TASKS, CoordinatorRig, addressed, answer, complete_snapshot, of

MODES = ("never-restored", "without-side-effects")


def beside_a_checkpoint(savepoints: str) -> CoordinatorRig:
    """Checkpoint 1 is complete, and then savepoint 2."""
    job = CoordinatorRig(savepoints=savepoints).up()
    job.checkpoint(1)
    job.command("savepoint")
    job.saved()
    job.ack(2)
    return job


def restored(job: CoordinatorRig) -> int | None:
    """The snapshot that the next attempt restores once a task is lost."""
    job.lose()
    (begun,) = of(AttemptStarted, job.again())
    return begun.restores


@pytest.mark.parametrize(
    ("savepoints", "notified"), [("snapshots", True), ("never-restored", True), ("without-side-effects", False)]
)
def test_whether_a_savepoint_commits(savepoints: str, notified: bool) -> None:
    effects = beside_a_checkpoint(savepoints).stored(2)
    assert addressed(Complete, effects) == (list(TASKS) if notified else [])
    assert answer(effects) == (9, 2, ""), "it is complete all the same"


@pytest.mark.parametrize(("savepoints", "found"), [("snapshots", 2), *((mode, 1) for mode in MODES)])
def test_what_recovery_goes_back_to(savepoints: str, found: int) -> None:
    job = beside_a_checkpoint(savepoints)
    job.stored(2)
    assert restored(job) == found


@pytest.mark.parametrize("savepoints", MODES)
def test_the_savepoint_that_ends_a_job_commits_and_is_restored(savepoints: str) -> None:
    job = CoordinatorRig(savepoints=savepoints).up()
    job.checkpoint(1)
    job.command("stop-with-savepoint")
    job.saved()
    job.ack(2)
    assert addressed(Terminate, job.stored(2)) == list(TASKS)
    assert restored(job) == 2


@pytest.mark.parametrize(("savepoints", "aborted"), [("snapshots", [1]), ("without-side-effects", [])])
def test_whether_a_savepoint_subsumes_a_pending_checkpoint(savepoints: str, aborted: list[int]) -> None:
    job = CoordinatorRig(savepoints=savepoints).up()
    job.trigger()
    job.command("savepoint")
    job.saved()
    job.ack(2)
    effects = job.stored(2)
    assert [one.checkpoint for one in of(CheckpointAborted, effects)] == aborted


def test_a_job_that_begins_with_a_savepoint_restores_it_again_until_it_has_a_checkpoint() -> None:
    snapshot = complete_snapshot(2, savepoint=True)
    job = CoordinatorRig(job=2, savepoints="without-side-effects", coordinator={"initial": (snapshot,)}).up()
    assert restored(job) == 2


def test_what_is_refused() -> None:
    with pytest.raises(Refused, match="unknown kind of savepoints 'none'"):
        Config(savepoints="none").check()
    with pytest.raises(Refused, match="go on from the newest snapshot"):
        Config(savepoints="never-restored", failover="region").check()
