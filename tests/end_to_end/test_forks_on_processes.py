"""Jobs that are forked on processes from snapshots of a run, at rest and while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtRest, AtTime, FailCommit
from cutproof.harness.reference_engine.orchestrator.copies import Copies, StoresOfFork
from cutproof.harness.reference_engine.orchestrator.evidence import kept as saved_run
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.scenario.files import digest, write_scenario
from cutproof.harness.scenario.model import (
    CopySnapshot,
    DeleteSnapshot,
    Fork,
    MoveSnapshot,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
)
from cutproof.harness.subject.port import ScenarioRefused
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, Forked, History, JobEnded, SnapshotDeleted, TaskFailed
from cutproof.properties.model.upgrade import Upgrade
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.model.workload import Count, Sum
from end_to_end.command_line import cutproof_command, result
from unit.simulated.worlds import counted, job, journal

EARLY = Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="early")
AT_REST = Fork(trigger=AtRest())
IN_THE_DATABASE, IN_SQLITE = "sink-0", "sink-1"
"""seeds of scenarios, by which a run on processes writes into the one store or the other"""
Make = Callable[..., ProcessesSubject]


@pytest.fixture(scope="module")
def processes() -> Iterator[Make]:
    """Makes subjects that share their servers."""
    first = ProcessesSubject()
    yield lambda defect=None: ProcessesSubject(defect, services=first._services)
    first.close()


def forked(*commands: object, **engine: object) -> Scenario:
    return job(60, Count(), commands=commands, **{"retained_checkpoints": 2, "trims_logs": True, **engine})  # type: ignore[arg-type]


SLOWLY = {"read_interval_us": 1_000}
"""the job lasts until its third checkpoint is complete, also on a busy machine"""


def forks(ran: Result) -> list[Forked]:
    assert isinstance(ran.history.forks, list)
    return ran.history.forks


def restorable(ran: Result) -> object:
    return ran.judgement.verdicts["restorable"]


@pytest.mark.parametrize(
    ("sink", "seed"),
    [
        ("transactional", IN_THE_DATABASE),
        ("transactional", IN_SQLITE),
        ("idempotent", IN_SQLITE),
        ("plain", IN_THE_DATABASE),
    ],
)
def test_every_retained_snapshot_is_forked_and_yields_what_is_owed(processes: Make, sink: str, seed: str) -> None:
    scenario = replace(forked(EARLY, AT_REST, sink=sink), seed=seed)
    ran = run(processes(), scenario)
    assert ran.judgement.violated == {}
    assert [one.checkpoint for one in forks(ran)] == ran.history.residue.retained
    assert len(forks(ran)) == 3
    for one in forks(ran):
        assert one.retained == ran.history.residue.retained
        assert journal(AttemptStarted, one.history)[-1].restores == one.checkpoint
        assert journal(JobEnded, one.history)[-1].status == "finished"
        if sink == "transactional":
            assert Counter(one.history.committed) == counted(scenario)
    assert restorable(ran) == Holds(exercised=3)


def test_a_fork_has_the_uids_and_types_of_the_job_that_took_its_snapshot(processes: Make) -> None:
    """The first job's sums are whole, the second one's are in hundredths, under another uid."""
    stop = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=3))
    other = {"op0": "total"}
    upgrade = Upgrade(
        renamed=other, moves=other, retyped={"op0": "hundredths"}, converts={"op0": "whole-to-hundredths"}
    )
    resume = Resume(trigger=AtTime(at_us=500), upgrade=upgrade)
    commands = (EARLY, stop, resume, AT_REST)
    ran = run(processes(), job(60, Sum(), commands=commands, retained_checkpoints=2))
    assert ran.judgement.violated == {}
    jobs = {one.checkpoint: one.job for one in ran.history.completed}
    assert {jobs[one.checkpoint] for one in forks(ran)} == {1, 2}
    assert {journal(JobEnded, one.history)[-1].status for one in forks(ran)} == {"finished"}
    assert isinstance(restorable(ran), Holds)


def test_a_running_job_is_forked_at_another_parallelism(processes: Make) -> None:
    """It is forked twice from its first checkpoint, which it deletes later."""
    now = AtPoint(point="checkpoint-completed", occurrence=2)
    wide = Fork(trigger=now, snapshot="oldest", parallelism={"op0": 2, "sink": 2})
    ran = run(processes(), forked(Fork(trigger=now, snapshot="oldest"), wide))
    first, second = forks(ran)
    assert ran.judgement.violated == {}
    assert (first.command, second.command) == (0, 1)
    assert first.checkpoint == second.checkpoint == 1
    assert 1 in [one.checkpoint for one in journal(SnapshotDeleted, ran.history)]
    for one, subtasks in ((first, 1), (second, 2)):
        attempt = journal(AttemptStarted, one.history)[-1]
        assert attempt.restores == 1
        tasks = Counter(task.operator for task in one.history.runs if task.attempt == attempt.attempt)
        assert tasks == {"source": 1, "op0": subtasks, "sink": subtasks}
        assert Counter(one.history.committed) == counted(ran.scenario)
    assert restorable(ran) == Holds(exercised=2)


def test_a_fork_has_what_its_user_deletes_later(processes: Make) -> None:
    fork = Fork(trigger=AtPoint(point="checkpoint-completed", occurrence=3), snapshot="early")
    delete = DeleteSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=5), snapshot="early")
    ran = run(processes(), forked(EARLY, fork, delete, read_interval_us=1_000))
    (one,) = forks(ran)
    assert one.checkpoint in [deleted.checkpoint for deleted in journal(SnapshotDeleted, ran.history)]
    assert one.checkpoint not in [deleted.checkpoint for deleted in journal(SnapshotDeleted, one.history)]
    assert restorable(ran) == Holds(exercised=1)


def test_a_job_without_a_snapshot_is_not_forked(processes: Make) -> None:
    ran = run(processes(), forked(Fork(trigger=AtPoint(point="record-read", occurrence=1))))
    assert ran.history.unapplied == ["command 0: fork"]
    assert isinstance(restorable(ran), Unknown)


def test_an_older_snapshot_whose_transaction_expired_is_not_accused(processes: Make) -> None:
    expired = FailCommit(trigger=AtPoint(point="commit-sent", occurrence=1), task="sink-0", how="expired")
    ran = run(processes(), replace(forked(EARLY, AT_REST), faults=(expired,)))
    assert ran.judgement.violated == {}


@pytest.mark.parametrize("spill_store", ["log", "files"])
def test_what_was_in_flight_is_copied_with_the_logs_of_channels(processes: Make, spill_store: str) -> None:
    settings = {"alignment": "unaligned", "spilling": "continuous", "spill_store": spill_store, "apply_cost_us": 1_500}
    ran = run(processes(), forked(EARLY, AT_REST, channel_capacity=4, **settings))
    assert ran.judgement.violated == {}
    assert isinstance(restorable(ran), Holds)


@pytest.mark.parametrize(
    ("fork", "settings", "says"),
    [
        (AT_REST, {"snapshot_store": "memory"}, "coordinator's memory"),
        (replace(AT_REST, parallelism={"op0": 2}), {}, "unequal parallelisms"),
    ],
)
def test_a_fork_that_cannot_run_is_refused_in_one_line(
    processes: Make, fork: Fork, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(ScenarioRefused, match=says) as refused:
        processes().run(forked(EARLY, fork, **settings))
    assert len(str(refused.value).splitlines()) == 1


def test_a_file_that_is_missing_is_named(processes: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    missing: list[str] = []

    def copied(copies: Copies, *, is_at_rest: bool) -> None:
        take(copies, is_at_rest=is_at_rest)
        for copy in copies.taken:
            path = min((copy.root / "snapshots").rglob("op0-0-*"))
            missing.append(path.relative_to(copy.root / "snapshots").as_posix())
            path.unlink()

    take = Copies.at_the_end
    monkeypatch.setattr(Copies, "at_the_end", copied)
    ran = run(processes(), forked(EARLY, AT_REST))
    failed = [entry.reason for one in forks(ran) for entry in journal(TaskFailed, one.history)]
    assert failed
    assert all(f"{missing[0]} is not in the store" in reason for reason in failed)
    found = restorable(ran)
    assert isinstance(found, Violated)
    assert found.difference == "not restored"


def test_a_saved_run_has_its_forks(processes: Make, tmp_path: Path) -> None:
    subject = processes()
    subject.keep = tmp_path / "saved"
    ran = run(subject, forked(EARLY, AT_REST), keep="everything")
    assert subject.saved is not None
    scenario, history = saved_run(subject.saved)
    assert isinstance(history.forks, list)
    assert len(history.forks) == 3
    assert (scenario, digest(history)) == (ran.scenario, digest(ran.history))


def test_as_a_user_types_it_and_pyspark_judges_it(tmp_path: Path) -> None:
    write_scenario(tmp_path / "forked.json", forked(EARLY, AT_REST))
    done = cutproof_command(tmp_path, "replay", "forked.json", "--subject", "processes", "--out", "report", "--json")
    assert done.returncode == 0, done.stderr
    assert result(done)["verdicts"]["restorable"] == {"verdict": "holds", "exercised": 3}
    assert result(done)["not_asked"] == {}
    assert cutproof_command(tmp_path, "judge", "report/history.json", "--quick").returncode == 0


def test_a_fork_by_reference_needs_files_that_its_origin_has_deleted(processes: Make) -> None:
    """Its increments build on files of the other job, which are links to the same bytes."""
    linked: list[int] = []

    class Watched(ProcessesSubject):
        def _fork(self, scenario: Scenario, history: History, stores: StoresOfFork, number: int) -> Forked:
            linked.extend(
                path.stat().st_nlink for path in (stores.copy.root / "snapshots").rglob("*") if path.is_file()
            )
            return super()._fork(scenario, history, stores, number)

    now = AtPoint(point="checkpoint-completed", occurrence=2)
    fork = Fork(trigger=now, snapshot="newest", by_reference=True)
    subject = Watched(services=processes()._services)
    settings = {"snapshot_format": "incremental", "full_every": 3, "retained_checkpoints": 1}
    ran = run(subject, forked(fork, **settings, **SLOWLY))
    (one,) = forks(ran)
    assert ran.judgement.violated == {}
    assert restorable(ran) == Holds(exercised=1)
    deleted = {name for entry in journal(SnapshotDeleted, ran.history) for name in entry.handles}
    needed = {name for entry in one.history.stored if entry.handle.startswith("job-2/") for name, _, _ in entry.files}
    assert needed & deleted
    assert 1 in linked, "the origin has unlinked it"


@pytest.mark.parametrize("snapshot_format", ["canonical", "incremental"])
def test_a_job_is_forked_from_each_copy_that_a_user_has(processes: Make, snapshot_format: str) -> None:
    """Also if the run has deleted the snapshot since."""
    second, third = (AtPoint(point="checkpoint-completed", occurrence=number) for number in (2, 3))
    commands = (MoveSnapshot(trigger=second), CopySnapshot(trigger=third, snapshot="newest"), AT_REST)
    ran = run(processes(), forked(*commands, trims_logs=False, snapshot_format=snapshot_format, **SLOWLY))
    assert ran.judgement.violated == {}
    copies = ran.history.residue.copies
    assert isinstance(copies, list)
    assert len(copies) == 2
    assert [one.checkpoint for one in forks(ran) if one.from_copy] == copies
    assert [one.checkpoint for one in forks(ran) if not one.from_copy] == ran.history.residue.retained
    assert copies[0] not in ran.history.residue.retained
    for one in forks(ran):
        assert journal(AttemptStarted, one.history)[-1].restores == one.checkpoint
        assert Counter(one.history.committed) == Counter(ran.history.committed)
    assert restorable(ran) == Holds(exercised=2 + len(ran.history.residue.retained))


def test_a_copy_without_its_shared_files_is_not_restored(processes: Make) -> None:
    move = MoveSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=3), snapshot="newest")
    ran = run(processes("P37"), forked(move, AT_REST, trims_logs=False, snapshot_format="incremental", full_every=60))
    assert isinstance(restorable(ran), Violated)


def test_no_job_is_forked_from_a_copy_whose_input_the_sources_have_let_go(processes: Make) -> None:
    move = MoveSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=2))
    ran = run(processes(), forked(move, AT_REST, trims_logs=True))
    assert ran.judgement.violated == {}
    assert [one.from_copy for one in forks(ran)] == [False] * len(ran.history.residue.retained)


def test_a_copy_has_its_in_flight_data_itself(processes: Make) -> None:
    """The snapshot has it in the logs of channels, which its job goes on using."""
    copy = CopySnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=3), snapshot="newest")
    settings = {"alignment": "unaligned", "spilling": "continuous", "apply_cost_us": 2_000, "channel_capacity": 4}
    ran = run(processes(), forked(copy, AT_REST, trims_logs=False, retained_checkpoints=60, **settings))
    assert ran.judgement.violated == {}
    (one,) = [fork for fork in forks(ran) if fork.from_copy]
    assert [channel for channel in one.history.channels if channel.recovered]
    assert Counter(one.history.committed) == Counter(ran.history.committed)
