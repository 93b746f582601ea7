"""Persistent channels: what comes is in logs, snapshots refer to it, and a restore reads it from there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cutproof.faults.plan import AtPoint, AtTime, KillCoordinator, TearWrite
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Cancel, Perturbation, Resume, Savepoint
from cutproof.harness.subject.run import run as judged
from cutproof.properties.model.history import CheckpointAborted, FaultFired, History, SnapshotDeleted, StoredState
from cutproof.properties.reconstruct.lineages import Lineages
from unit.simulated.overtaken import durations, in_flight, job, kill, loaded
from unit.simulated.worlds import all_there, run

WAYS = ("continuous", "buffer-timeout")
STORES = ("log", "files")


def referring(history: History) -> Iterator[tuple[int, StoredState]]:
    """(checkpoint, state) of what was stored with references."""
    lineages = Lineages(history)
    for number in lineages.completed:
        yield from ((number, state) for state in lineages.snapshots.states(number).values() if state.spilled)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("way", WAYS)
def test_a_snapshot_refers_to_what_was_in_flight_and_it_is_restored_from_there(way: str, store: str) -> None:
    history = all_there(job(spilling=way, spill_store=store, faults=(kill(2), kill(4))))
    states = dict(referring(history))
    assert states
    for state in states.values():
        for channel, refs in state.spilled.items():
            assert sum(end - first for _, first, end in refs) == len(state.queued[channel])
    restored = {run.loaded.checkpoint for run in history.runs if run.loaded is not None}
    assert restored & set(states)
    assert any(state.queued for state in loaded(history, 2).values())


def test_the_same_is_in_flight_however_it_is_stored() -> None:
    at_once, continuous = (all_there(job(spilling=way, faults=(kill(2),))) for way in ("at-once", "continuous"))
    first = min(in_flight(at_once))
    assert in_flight(at_once)[first]
    assert in_flight(continuous)[first] == in_flight(at_once)[first]
    assert not list(referring(at_once))
    assert not at_once.logs


def test_with_a_time_out_only_what_waits_long_is_logged() -> None:
    """A quick job without a checkpoint: everything is logged as it comes, nothing after a timeout."""
    quick = {"apply_cost_us": 1, "channel_capacity": 16, "checkpoint_interval_us": 100_000}
    assert run(job(spilling="continuous", **quick)).logs
    assert not run(job(spilling="buffer-timeout", spill_after_us=20_000, **quick)).logs


def test_a_checkpoint_waits_until_what_it_refers_to_is_durable() -> None:
    """The first one of a job: half a flush and more is still to come when everything else of it is done."""
    slow = {"spill_flush_us": 2_000, "faults": (kill(2),)}
    at_once, logged, closed = (
        durations(all_there(job(spilling=way, spill_store=store, **slow)))[0]
        for way, store in (("at-once", "log"), ("continuous", "log"), ("continuous", "files"))
    )
    assert at_once + 1_000 < closed
    assert at_once < logged


@pytest.mark.parametrize("failover", ["full", "local"])
@pytest.mark.parametrize("store", STORES)
def test_who_dies_amid_a_flush_has_acknowledged_nothing_of_it(store: str, failover: str) -> None:
    torn = TearWrite(trigger=AtPoint(point="barrier-received", task="op0-0", occurrence=3), task="op0-0")
    settings = {"spilling": "continuous", "spill_store": store, "spill_flush_us": 2_000}
    history = all_there(job(failover=failover, faults=(torn,), **settings))
    (fired,) = [one for one in history.journal if isinstance(one, FaultFired)]
    assert fired.detail == "half of what op0-0 flushes is written"
    aborted = next(one.checkpoint for one in history.journal if isinstance(one, CheckpointAborted))
    assert aborted not in {one.checkpoint for one in history.completed}
    assert not [one for one in history.stored if (one.task, one.checkpoint) == ("op0-0", aborted)]


@pytest.mark.parametrize("store", STORES)
def test_logs_are_trimmed_behind_the_oldest_checkpoint_that_is_retained(store: str) -> None:
    history = all_there(
        job(records=160, spilling="continuous", spill_store=store, retained_checkpoints=2, faults=(kill(3),))
    )
    lineages = Lineages(history)
    deleted = {one.checkpoint: one.order for one in history.journal if isinstance(one, SnapshotDeleted)}
    trimmed = [(log.name, order, before) for log in history.logs for order, before in log.trims]
    assert trimmed
    for name, order, before in trimmed:
        retained = [n for n, one in lineages.completed.items() if one.order < order < deleted.get(n, 1 << 60)]
        refs = [
            ref
            for n in retained
            for state in lineages.snapshots.states(n).values()
            for of in state.spilled.values()
            for ref in of
        ]
        assert not [first for log, first, _ in refs if log == name and first < before]


def test_a_checkpoint_that_completes_behind_a_newer_one_finds_its_logs() -> None:
    """Found by the search: the last word of checkpoint 1 comes while the record of 2 is being written, and 1 is
    retained beside 2."""
    late = (
        Perturbation(what="control ack sink-0", occurrence=1, by_us=3_000),
        Perturbation(what="write coordinator", occurrence=1, by_us=4_000),
    )
    settings = {"concurrent_checkpoints": 2, "checkpoint_interval_us": 1_500, "retained_checkpoints": 2}
    result = judged(SimulatedSubject(), job(records=160, spilling="continuous", deviations=late, **settings))
    assert [one.checkpoint for one in result.history.completed][:2] == [2, 1]
    assert 1 in dict(referring(result.history))
    assert not result.judgement.violated


@pytest.mark.parametrize("way", WAYS)
def test_the_end_of_a_job_leaves_no_log_but_those_that_its_last_snapshot_refers_to(way: str) -> None:
    history = all_there(job(spilling=way, faults=(kill(2), KillCoordinator(trigger=AtTime(at_us=9_000)))))
    assert any(log.attempt == 1 for log in history.logs)
    assert not history.residue.logs
    cancel = Cancel(trigger=AtPoint(point="checkpoint-completed", occurrence=2))
    stopped = run(job(spilling=way, commands=(cancel,)))
    newest = max(stopped.residue.retained)
    referred = {ref[0] for number, state in referring(stopped) if number == newest for ref in _refs(state)}
    assert referred
    assert set(stopped.residue.logs) == referred


def _refs(state: StoredState) -> list[tuple[str, int, int]]:
    return [ref for refs in state.spilled.values() for ref in refs]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (7, 2)])
def test_what_is_referred_to_is_redistributed_to_new_owners(before: int, after: int, way: str) -> None:
    commands = (
        Cancel(trigger=AtPoint(point="checkpoint-completed", occurrence=2)),
        Resume(trigger=AtTime(at_us=500), parallelism=dict.fromkeys(("op0", "op1", "sink"), after)),
    )
    history = all_there(job(spilling=way, width=before, records=84, commands=commands))
    taken_over = max(entry.checkpoint for entry in history.completed if entry.job == 1)
    assert taken_over in dict(referring(history))
    rescaled = min(run.attempt for run in history.runs if run.job == 2)
    assert any(state.queued for state in loaded(history, rescaled).values())


@pytest.mark.parametrize(
    "more",
    [
        {"concurrent_checkpoints": 3, "checkpoint_interval_us": 700},
        {"snapshot_store": "memory"},
        {"snapshot_mode": "synchronous"},
        {"alignment": "in-turn", "alignment_timeout_us": 300, "records": 120},
        {"commands": (Savepoint(trigger=AtTime(at_us=2_500)),)},
    ],
)
def test_several_at_a_time_in_memory_amid_savepoints_and_while_a_task_stands_still(more: dict[str, object]) -> None:
    history = all_there(job(spilling="continuous", faults=(kill(3),), **more))
    assert list(referring(history))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"spilling": "often"}, "engine.spilling is 'often'; it can be at-once, continuous, buffer-timeout"),
        ({"spill_store": "tape"}, "engine.spill_store is 'tape'; it can be log, files"),
        ({"spill_after_us": 0}, "engine.spill_after_us is 0; an element waits at least 1 µs"),
    ],
)
def test_settings_that_make_no_sense_are_reported(settings: dict[str, object], problem: str) -> None:
    assert [one for one in problems_of(job(**settings)) if one.startswith(problem)]
