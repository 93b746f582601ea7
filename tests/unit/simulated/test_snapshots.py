"""Snapshots in time: written while work goes on (ABS-8) or not (ABS-13), missing (ABS-5), in memory (ABS-14)."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtTime, InPhase, KillCoordinator, KillTask, TearWrite
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Cancel, Resume, Scenario, StopWithSavepoint
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import CommandReturned, History, TaskFailed
from cutproof.properties.model.verdict import Unknown
from cutproof.reference_impl.core.decisions.parts import Parts
from unit.simulated.worlds import attempts, ended, fired, job, journal, rows, run, shown, started

SLOW = {"snapshot_write_us": 2_000, "checkpoint_interval_us": 4_000}


def worked_while_writing(history: History) -> dict[int, int]:
    """Records that op1-0 applied between taking each snapshot and the store's word that it is durable."""
    counts: dict[int, int] = {}
    writing: int | None = None
    for event in shown(history, "op1-0", "snapshot-taken", "record-applied", "snapshot-persisted"):
        if event.what == "snapshot-taken":
            writing = event.checkpoint
            counts[event.checkpoint or 0] = 0
        elif event.what == "snapshot-persisted":
            writing = None
        elif writing is not None:
            counts[writing] += 1
    return counts


def stood_still_us(history: History) -> int:
    """The longest that op1-0 took nothing while records were coming."""
    times = [event.at_us for event in shown(history, "op1-0", "record-applied")]
    return max(later - earlier for earlier, later in itertools.pairwise(times))


def slow(mode: str) -> Scenario:
    return job(60, snapshot_mode=mode, **SLOW)


def test_processing_goes_on_while_the_state_is_written() -> None:
    amid, *_ = worked_while_writing(run(slow("asynchronous"), timeline=True)).values()
    assert amid >= 8, "2,000 µs at a record every 200 µs"


def test_a_synchronous_snapshot_makes_its_task_stand_still_for_the_write() -> None:
    """What it costs is measured: the write's whole time, in the one task and not in the other."""
    still, going = run(slow("synchronous"), timeline=True), run(slow("asynchronous"), timeline=True)
    assert set(worked_while_writing(still).values()) == {0}
    assert stood_still_us(going) <= 400
    assert 2_000 <= stood_still_us(still) <= 2_000 + 400
    assert Counter(still.committed) == Counter(going.committed)


def test_the_write_takes_longer_with_each_byte_if_it_is_to() -> None:
    """So a synchronous snapshot's stall grows with the state."""
    plain = slow("synchronous")
    by_size = replace(plain, engine=replace(plain.engine, snapshot_byte_ns=10_000))
    history, before = run(by_size, timeline=True), run(plain, timeline=True)
    sizes = [len(one.state) for one in history.stored]
    grown_us = stood_still_us(history) - stood_still_us(before)
    assert 10 * min(sizes) - 200 <= grown_us <= 10 * max(sizes) + 200, "10 µs a byte, to a record of 200 µs"
    assert grown_us > 200
    assert Counter(history.committed) == Counter(before.committed)


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_the_acknowledgement_waits_until_the_state_is_durable(mode: str) -> None:
    history = run(slow(mode), timeline=True)
    durable = {
        (event.task, event.checkpoint): event.at_us for event in history.timeline if event.what == "snapshot-persisted"
    }
    acks = [event for event in history.timeline if event.what == "ack-arrived"]
    assert len(acks) == len(durable) > 0
    assert all(event.at_us >= durable[(event.peer, event.checkpoint)] + 200 for event in acks)


def test_a_kill_between_the_snapshot_and_its_durability_leaves_nothing() -> None:
    taken = AtPoint(point="snapshot-taken", occurrence=2, task="op1-0")
    history = run(job(faults=(KillTask(trigger=taken, task="op1-0"),)))
    (failed,) = journal(TaskFailed, history)
    of_dead = [one.checkpoint for one in history.stored if one.task == "op1-0" and one.attempt == failed.attempt]
    assert of_dead == [1]


# -- missing and torn --------------------------------------------------------------------------------------------


def test_a_pointer_to_nothing_is_found_and_named() -> None:
    """The files behind a complete checkpoint vanish; the next restore says which one, and starts nothing instead."""
    world = started(job(restart_attempts=1), 5_000)
    assert world.newest is not None
    handle, committed = world.newest.handles["op1-0"], world.external.rows()
    del world.files.files[handle]
    runner = world.latest("source-0")
    assert runner is not None
    world.kill(runner, "it was killed", 0)
    world.loop.run(60_000)
    assert world.job_over
    (end,) = [entry for entry in world.observer.history.journal if entry.__struct_config__.tag == "job-ended"]  # type: ignore[attr-defined]
    assert end.status == "failed"
    assert f"could not be read: {handle} is not in the store" in end.reason
    assert world.external.rows() == committed, "nothing was started from the beginning instead"


def test_half_a_file_is_never_restored() -> None:
    scenario = job(faults=(TearWrite(trigger=AtTime(at_us=4_000), task="op1-0"),))
    history = run(scenario)
    assert fired(history) == ["tear-write"]
    assert attempts(history) == 2
    assert Counter(history.committed) == rows(scenario)


# -- in the coordinator's memory ---------------------------------------------------------------------------------


def test_in_memory_a_dead_task_is_restored() -> None:
    scenario = job(snapshot_store="memory", faults=(KillTask(trigger=AtTime(at_us=6_000), task="op1-0"),))
    history = run(scenario)
    restored = [one.loaded.checkpoint for one in history.runs if one.attempt == 2 and one.loaded]
    assert restored
    assert ended(history) == ("finished", "")
    assert Counter(history.committed) == rows(scenario)


def test_a_dead_coordinators_memory_is_lost_and_the_job_reports_it() -> None:
    history = run(job(snapshot_store="memory", faults=(KillCoordinator(trigger=AtTime(at_us=6_000)),)))
    assert ended(history) == ("failed", "its snapshots were in the memory of the coordinator that died (ABS-14)")
    assert len(history.completed) > 0
    assert not any(one.reads for one in history.runs if one.attempt > 1)


def test_a_job_that_was_being_cancelled_is_not_resumed_from_nothing_without_its_snapshots() -> None:
    scenario = job(
        snapshot_store="memory",
        commands=(Cancel(trigger=AtTime(at_us=6_000)), Resume(trigger=AtTime(at_us=5_000))),
        faults=(KillCoordinator(trigger=AtTime(at_us=6_125)),),
    )
    history = run(scenario)
    answer, *_ = [entry for entry in history.journal if isinstance(entry, CommandReturned)]
    assert answer.error == ""
    assert fired(history) == ["kill-coordinator"]
    assert ended(history) == ("failed", "its snapshots were in the memory of the coordinator that died (ABS-14)")
    assert not judge(scenario.workload, scenario.topology, history).violated


@pytest.mark.parametrize("after_us", [0, 250])
def test_a_resumed_job_whose_coordinator_dies_at_once_does_not_begin_from_its_memory(after_us: int) -> None:
    """The new job has no record yet, which would say that there was a snapshot."""
    scenario = job(
        snapshot_store="memory",
        control_latency_us=600,
        commands=(StopWithSavepoint(trigger=AtTime(at_us=6_000)), Resume(trigger=AtTime(at_us=5_000))),
        faults=(KillCoordinator(trigger=InPhase(phase="recovering", after_us=after_us)),),
    )
    history = run(scenario)
    assert fired(history) == ["kill-coordinator"]
    assert attempts(history) == 1
    assert ended(history) == ("failed", "its snapshots were in the memory of the coordinator that died (ABS-14)")
    judgement = judge(scenario.workload, scenario.topology, history)
    assert not judgement.violated
    assert isinstance(judgement.verdicts["progress"], Unknown), "the job that was resumed made none"


def test_a_job_resumed_without_a_snapshot_starts_from_nothing_whoever_dies() -> None:
    scenario = job(
        snapshot_store="memory",
        commands=(Cancel(trigger=AtTime(at_us=500)), Resume(trigger=AtTime(at_us=2_000))),
        faults=(KillCoordinator(trigger=InPhase(phase="recovering")),),
    )
    history = run(scenario)
    assert fired(history) == ["kill-coordinator"]
    assert ended(history) == ("finished", "")
    assert Counter(history.committed) == rows(scenario)


def test_a_coordinator_that_dies_before_the_first_snapshot_loses_nothing() -> None:
    scenario = job(snapshot_store="memory", faults=(KillCoordinator(trigger=AtTime(at_us=800)),))
    history = run(scenario)
    assert ended(history) == ("finished", "")
    assert Counter(history.committed) == rows(scenario)


def test_a_log_that_discards_loses_nothing() -> None:
    """Killed and resumed amid records: what was discarded is asked for by nobody."""
    commands = (StopWithSavepoint(trigger=AtTime(at_us=9_000)), Resume(trigger=AtTime(at_us=500)))
    scenario = job(
        80, faults=(KillTask(trigger=AtTime(at_us=5_000), task="op1-0"),), commands=commands, trims_logs=True
    )
    made = Run(scenario, Parts(), False)
    history = made.history()
    assert made.world.jobs.begins(0) > 0
    assert Counter(history.committed) == Counter(run(job(80)).committed)
