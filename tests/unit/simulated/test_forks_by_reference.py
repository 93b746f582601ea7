"""A forked job that refers to the files of its origin: who needs a file keeps it, and the last one deletes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtRest, AtTime
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import DeleteSnapshot, Fork, Savepoint, Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import Forked, History, SnapshotDeleted
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import Count
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.snapshots.references import References
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.simulated.sharing import Sharing
from unit.simulated.worlds import counted, job, journal

AMID = Fork(trigger=AtTime(at_us=30_000), snapshot="newest", by_reference=True)
A, B, C = Handle("a"), Handle("b"), Handle("c")


def incremental(*commands: object, **engine: Any) -> Scenario:
    settings = {"snapshot_format": "incremental", "full_every": 50, "retained_checkpoints": 1, **engine}
    return job(200, Count(), commands=commands, read_interval_us=400, **settings)  # type: ignore[arg-type]


def ran(scenario: Scenario) -> tuple[Run, History]:
    made = Run(scenario, Parts(), False)
    return made, made.history()


def the_fork(history: History) -> Forked:
    assert isinstance(history.forks, list)
    (one,) = history.forks
    return one


def referred(history: History, job_number: int) -> dict[int, set[str]]:
    """By checkpoint of a job, the files of other jobs that its snapshots need."""
    stored = {one.handle: [name for name, _, _ in one.files] for one in history.stored}
    return {
        one.checkpoint: {
            name
            for handle in one.handles.values()
            for name in stored.get(handle, ())
            if not name.startswith(f"job-{job_number}/")
        }
        for one in history.completed
        if one.job == job_number
    }


def assert_all_holds(scenario: Scenario, history: History) -> None:
    judged = judge(scenario.workload, scenario.topology, history)
    assert judged.violated == {}
    assert isinstance(judged.verdicts["restorable"], Holds)


def test_the_increments_of_a_fork_build_on_files_of_its_origin_that_the_origin_needs_no_more() -> None:
    scenario = incremental(AMID, full_every=6)
    _, history = ran(scenario)
    fork = the_fork(history)
    assert_all_holds(scenario, history)
    needed = referred(fork.history, 2)
    assert needed[min(needed)], "its first increment builds on the snapshot that was forked"
    assert not needed[max(needed)], "and one behind a full one does not"
    deleted = {name for one in journal(SnapshotDeleted, history) for name in one.handles}
    assert needed[min(needed)] & deleted, "the origin has let some of these files go"
    assert Counter(fork.history.committed) == counted(scenario)


def test_a_file_is_deleted_once_both_jobs_need_it_no_more() -> None:
    made, history = ran(incremental(AMID, full_every=3))
    shared = {handle for one in history.completed if one.checkpoint == the_fork(history).checkpoint
              for handle in one.handles.values()}  # fmt: skip
    assert shared
    assert not shared & set(history.residue.files)
    assert made.world.sharing().left == {}


def test_a_copy_refers_to_no_file_of_its_origin() -> None:
    scenario = incremental(replace(AMID, by_reference=False))
    _, history = ran(scenario)
    assert not any(referred(the_fork(history).history, 2).values())
    assert_all_holds(scenario, history)


def test_what_the_origins_user_deletes_stays_for_the_fork() -> None:
    early = Savepoint(trigger=AtTime(at_us=8_000), name="early", format="incremental")
    fork = Fork(trigger=AtTime(at_us=20_000), snapshot="early", by_reference=True)
    delete = DeleteSnapshot(trigger=AtTime(at_us=25_000), snapshot="early")
    scenario = incremental(early, fork, delete)
    _, history = ran(scenario)
    forked = the_fork(history)
    deleted = journal(SnapshotDeleted, history)
    assert forked.checkpoint in [one.checkpoint for one in deleted]
    assert {name for one in deleted for name in one.handles} >= {
        handle for one in history.completed if one.checkpoint == forked.checkpoint for handle in one.handles.values()
    }
    assert_all_holds(scenario, history)
    assert Counter(forked.history.committed) == counted(scenario)


def test_a_fork_that_takes_newer_snapshots_leaves_the_origin_what_it_retains() -> None:
    early = Savepoint(trigger=AtTime(at_us=8_000), name="early", format="incremental")
    scenario = incremental(early, Fork(trigger=AtRest(), snapshot="early", by_reference=True))
    _, history = ran(scenario)
    forked = the_fork(history)
    gone = {one.checkpoint for one in journal(SnapshotDeleted, forked.history)}
    assert forked.checkpoint in gone, "the fork owned its references, and has deleted its snapshot"
    assert forked.checkpoint in history.residue.retained
    assert_all_holds(scenario, history)


@pytest.mark.parametrize("point", ["file-deleted", "snapshot-deleted"])
def test_a_fork_amid_a_deletion_refers_to_what_is_still_retained(point: str) -> None:
    scenario = incremental(replace(AMID, trigger=AtPoint(point=point, occurrence=3)))
    _, history = ran(scenario)
    assert_all_holds(scenario, history)


def test_snapshots_in_memory_have_no_files_to_refer_to() -> None:
    scenario = incremental(AMID, snapshot_format="canonical", snapshot_store="memory")
    assert list(problems_of(scenario)) == [
        "command 0 (fork): by_reference: snapshots in memory have no files to refer to"
    ]


# -- the count -----------------------------------------------------------------------------


def test_the_last_of_three_jobs_deletes_a_file() -> None:
    origin = {A: b"a", B: b"b", C: b"c"}
    sharing = Sharing(References(), origin)
    one, other = sharing.begin([A, B]), sharing.begin([A])
    assert (one, other) == ({A: b"a", B: b"b"}, {A: b"a"})
    sharing.let_go(origin, A)
    sharing.let_go(one, A)
    assert (A in origin, A in one, other) == (False, False, {A: b"a"})
    sharing.let_go(other, A)
    sharing.let_go(origin, C)
    assert (origin, one, other, sharing.left) == ({B: b"b"}, {B: b"b"}, {}, {})


def test_a_file_that_is_missing_is_missing_in_the_fork_too() -> None:
    assert Sharing(References(), {A: b"a"}).begin([A, B]) == {A: b"a"}


def test_a_file_of_the_same_name_that_a_fork_writes_itself_is_its_own() -> None:
    origin = {A: b"a", B: b"b"}
    sharing = Sharing(References(), origin)
    fork = sharing.begin([A])
    fork[B] = b"other"
    sharing.let_go(origin, B)
    assert fork == {A: b"a", B: b"other"}


class NotCounted(References):
    def added(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        return jobs


class KeptForever(References):
    def removed(self, jobs: tuple[int, ...], job: int) -> tuple[int, ...]:
        return super().removed(jobs, job) or (job,)


def test_a_count_that_is_too_low_takes_a_file_away_and_one_that_is_too_high_leaves_it() -> None:
    origin = {A: b"a"}
    sharing = Sharing(NotCounted(), origin)
    fork = sharing.begin([A])
    sharing.let_go(origin, A)
    assert fork == {}
    origin = {A: b"a"}
    sharing = Sharing(KeptForever(), origin)
    sharing.let_go(sharing.begin([A]), A)
    sharing.let_go(origin, A)
    assert sharing.left == {A: b"a"}
