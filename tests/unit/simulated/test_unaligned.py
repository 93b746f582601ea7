"""Unaligned checkpoints: barriers overtake, and what they overtook is in the snapshot and comes first at a restore."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest

from cutproof.faults.plan import AtPoint, AtTime, DelayChannel
from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import AnyCommand, Cancel, Resume, Savepoint
from cutproof.harness.subject.run import run as run_and_judge
from cutproof.properties.model.history import CheckpointTriggered, FaultFired, History
from cutproof.properties.model.verdict import Holds
from cutproof.properties.reconstruct.in_flight import records
from cutproof.properties.reconstruct.lineages import Lineages
from cutproof.reference_impl.core.decisions.parts import Parts
from unit.simulated.overtaken import channels_held, durations, in_flight, job, kill, loaded
from unit.simulated.worlds import all_there, journal, shown

# -- the cut -----------------------------------------------------------------------------------------------------


def test_what_barriers_overtook_is_in_the_snapshots_of_both_ends() -> None:
    history = all_there(job(faults=(kill(2),)))
    lineages = Lineages(history)
    held = [one for number in lineages.completed for one in lineages.snapshots.in_flight(number).values()]
    assert any(one.queued for one in held)
    assert any(one.unsent for one in held)


def test_a_checkpoint_takes_no_longer_where_channels_are_full() -> None:
    """Aligned, barriers wait behind what is queued; unaligned, they take their way and no more."""
    faults = (kill(2),)
    unaligned = durations(all_there(job(faults=faults)))
    aligned = durations(all_there(job(faults=faults, alignment="aligned")))
    assert max(unaligned) < 2_500 < max(aligned)


@pytest.mark.parametrize("snapshot_mode", ["asynchronous", "synchronous"])
def test_no_channel_is_blocked_and_the_barrier_goes_on_before_the_snapshot_is_written(snapshot_mode: str) -> None:
    """A task's barrier is out as its first one comes, and downstream before its state is at the store, however long
    that takes and if the task stands still meanwhile (FIG. 1 of the proposal)."""
    slow = DelayChannel(trigger=AtTime(at_us=600), sender="op0-1", receiver="op1-0", by_us=2_000, for_us=20_000)
    scenario = job(snapshot_write_us=1_000, snapshot_mode=snapshot_mode, faults=(slow,))
    history = Run(scenario, Parts(), True).history()
    for task, receiver in (("source-0", "op0-0"), ("op0-0", "op1-0"), ("op1-0", "sink-0")):
        came, sent, stored = (
            _times(history, task, what) for what in ("barrier-received", "barrier-sent", "snapshot-persisted")
        )
        assert sent == came[:1] * 2 or task == "source-0", "at once, into either channel"
        assert sent[-1] + 1_000 <= stored[0]
        downstream = shown(history, receiver, "barrier-received")
        assert min(one.at_us for one in downstream if (one.peer, one.checkpoint) == (task, 1)) < stored[0]
    two = shown(history, "op1-0", "barrier-received", "barrier-sent", "record-applied")
    one, other = (at for at, event in enumerate(two) if event.what == "barrier-received" and event.checkpoint == 1)
    between = [(event.what, event.peer) for event in two[one + 1 : other]]
    assert ("record-applied", two[one].peer) in between, "the channel that has delivered is read on"
    assert ("barrier-sent", "sink-0") in between, "and the barrier is out before the other channel has delivered"


def _times(history: History, task: str, what: str) -> list[int]:
    """When such a thing was seen of the first checkpoint at a task."""
    return [one.at_us for one in shown(history, task, what) if one.checkpoint == 1]


def test_with_one_input_alone_a_barrier_overtakes_too() -> None:
    history = all_there(job(width=1, faults=(kill(2),)))
    assert any(in_flight(history).values())


def test_barriers_overtake_in_local_channels_and_in_remote_ones() -> None:
    """Of two nodes each has every second task: a barrier is there at once, or it is under way."""
    scenario = job(faults=(kill(2),), local_channels=True, channel_latency_us=150)
    assert scenario.engine.nodes == 2
    history = all_there(scenario)
    tasks = [run.task for run in history.runs if run.attempt == 1]
    local = {f"{one}>{other}": tasks.index(one) % 2 == tasks.index(other) % 2 for one in tasks for other in tasks}
    assert {local[channel] for channel in channels_held(history)} == {True, False}
    times: dict[bool, set[int]] = {True: set(), False: set()}
    history = Run(scenario, Parts(), True).history()
    for receiver in tasks:
        for came in shown(history, receiver, "barrier-received"):
            for sent in shown(history, came.peer, "barrier-sent"):
                if (sent.peer, sent.checkpoint, sent.attempt) == (receiver, came.checkpoint, came.attempt):
                    times[local[f"{came.peer}>{receiver}"]].add(came.at_us - sent.at_us)
    assert min(times[True]) == 0
    assert min(times[False]) == 150


@pytest.mark.parametrize(
    "more", [{"concurrent_checkpoints": 3}, {"snapshot_store": "memory"}, {"snapshot_mode": "synchronous"}]
)
def test_several_at_a_time_in_memory_and_while_a_task_stands_still(more: dict[str, object]) -> None:
    history = all_there(job(faults=(kill(3),), checkpoint_interval_us=700, **more))
    assert any(in_flight(history).values())
    begun = [(entry.order, 1) for entry in journal(CheckpointTriggered, history)]
    under_way = accumulate(step for _, step in sorted([*begun, *((one.order, -1) for one in history.completed)]))
    assert (max(under_way) > 1) is ("concurrent_checkpoints" in more)


# -- edges that are never unaligned ---------------------------------------------------------------------------------


def test_a_forward_edge_is_never_unaligned_and_so_is_its_receiver() -> None:
    history = all_there(job(partitioning="forward", faults=(kill(2),)))
    channels = channels_held(history)
    assert channels
    assert not [channel for channel in channels if ">op0-" in channel]


def test_a_rebalance_is_overtaken() -> None:
    history = all_there(job(partitioning="rebalance", faults=(kill(2),)))
    channels = channels_held(history)
    assert [channel for channel in channels if ">op0-" in channel]


def test_what_is_sealed_for_a_checkpoint_is_never_overtaken() -> None:
    """With slow committers there is something that a barrier could overtake."""
    slow = {"width": 3, "checkpoint_interval_us": 700, "concurrent_checkpoints": 3, "apply_cost_us": 500}
    history = all_there(job(committing="global", faults=(kill(2),), **slow))
    lineages = Lineages(history)
    held = {
        channel
        for number in lineages.completed
        for channel, one in lineages.snapshots.in_flight(number).items()
        if one.queued or one.unsent
    }
    assert held
    assert not [channel for channel in held if "committer" in channel]


# -- recovery ----------------------------------------------------------------------------------------------------


def test_what_was_in_flight_is_taken_before_anything_new() -> None:
    history = all_there(job(faults=(kill(2),)))
    restored = loaded(history, 2)
    assert any(state.queued for state in restored.values())
    for run in history.runs:
        if run.attempt == 2 and restored[run.task].queued:
            queued = {n: [origin for origin, _ in records(held)] for n, held in restored[run.task].queued.items()}
            for number, origins in queued.items():
                taken = [origin for channel, origin in run.applies if channel == number]
                assert taken[: len(origins)] == origins
    for channel in history.channels:
        sender = restored.get(channel.name.partition(">")[0]) if channel.attempt == 2 else None
        if sender is not None and sender.unsent:
            run = next(one for one in history.runs if channel.name in one.outputs and one.attempt == 2)
            again = records(sender.unsent.get(run.outputs.index(channel.name), ()))
            assert channel.sent[: len(again)] == [origin for origin, _ in again]


def test_a_checkpoint_amid_the_replay_is_right_and_so_is_a_second_crash_in_it() -> None:
    """The second attempt is hit as soon as it has completed a checkpoint, with what it was restored with in it."""
    history = all_there(job(faults=(kill(2), kill(3)), checkpoint_interval_us=600))
    first, second = in_flight(history)[_restored(history, 2)], in_flight(history)[_restored(history, 3)]
    replayed = {origin for origins in first.values() for origin in origins}
    assert replayed & {origin for origins in second.values() for origin in origins}


def _restored(history: History, attempt: int) -> int:
    return next(run.loaded.checkpoint for run in history.runs if run.attempt == attempt and run.loaded is not None)


# -- in turn, after a timeout ---------------------------------------------------------------------------------------


def test_after_a_time_out_an_alignment_goes_on_unaligned() -> None:
    aligned_for_long = all_there(job(alignment="timeout", alignment_timeout_us=60_000, faults=(kill(2),)))
    timed_barriers = all_there(job(alignment="timeout", alignment_timeout_us=300, faults=(kill(2),)))
    assert not any(in_flight(aligned_for_long).values())
    assert any(in_flight(timed_barriers).values())
    assert max(durations(timed_barriers)) < max(durations(aligned_for_long))


def test_an_alignment_that_waits_for_a_slow_channel_times_out_too() -> None:
    """No barrier lies in a queue then: one has been taken, the other is still under way."""
    slow = DelayChannel(trigger=AtTime(at_us=600), sender="op0-0", receiver="op1-0", by_us=4_000, for_us=20_000)
    settings = {"apply_cost_us": 20, "channel_capacity": 64, "faults": (slow, kill(2))}
    aligned_for_long = all_there(job(alignment="timeout", alignment_timeout_us=60_000, **settings))
    timed_barriers = all_there(job(alignment="timeout", alignment_timeout_us=300, **settings))
    assert in_flight(aligned_for_long)[1] == {}
    assert list(in_flight(timed_barriers)[1]) == ["op0-0>op1-0"]
    assert _marked_us(timed_barriers, "op1-0") + 3_000 < _marked_us(aligned_for_long, "op1-0")


def _marked_us(history: History, task: str) -> int:
    """When a task took its first snapshot."""
    return next(run.marks[0].at_us for run in history.runs if run.task == task)


@pytest.mark.parametrize(
    "settings",
    [
        {"alignment": "timeout", "alignment_timeout_us": 10_000_000},
        {"alignment": "in-turn", "alignment_timeout_us": 10_000_000},
        {"spilling": "buffer-timeout", "spill_after_us": 10_000_000},
    ],
)
def test_an_alignment_timeout_that_outlasts_the_job_does_not_keep_it_from_ending(settings: dict[str, object]) -> None:
    """Its timers are pending when all is over, and say nothing then."""
    found = run_and_judge(SimulatedSubject(), job(faults=(kill(2),), **settings))
    assert found.case.ended is not None
    assert found.history.quiet
    assert isinstance(found.judgement.verdicts["no-leaks"], Holds)


def test_each_checkpoint_the_next_way() -> None:
    held = in_flight(all_there(job(alignment="in-turn", alignment_timeout_us=300, records=120, faults=(kill(4),))))
    assert not any(channels for number, channels in held.items() if number % 3 == 0)
    assert any(channels for number, channels in held.items() if number % 3 == 1)


def test_a_savepoint_is_aligned() -> None:
    """Its user may lay the job out anew, and nothing is to be found in flight in it."""
    ask = Savepoint(trigger=AtTime(at_us=2_500))
    history = all_there(job(commands=(ask,), faults=(kill(3),)))
    savepoints = [entry.checkpoint for entry in history.completed if entry.savepoint]
    assert len(savepoints) == 1
    assert in_flight(history)[savepoints[0]] == {}
    assert any(in_flight(history).values())


# -- rescaled -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitioning", ["hash", "rebalance", "forward"])
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (7, 2), (2, 7)])
def test_what_was_in_flight_finds_its_new_owners(before: int, after: int, partitioning: str) -> None:
    operators = ("op0", "op1", "sink") if partitioning != "forward" else ("op1", "sink")
    commands: Sequence[AnyCommand] = (
        Cancel(trigger=AtPoint(point="checkpoint-completed", occurrence=2)),
        Resume(trigger=AtTime(at_us=500), parallelism=dict.fromkeys(operators, after)),
    )
    scenario = job(partitioning=partitioning, width=before, records=84, commands=tuple(commands))
    history = all_there(scenario)
    taken_over = max(entry.checkpoint for entry in history.completed if entry.job == 1)
    assert in_flight(history)[taken_over]
    assert any(
        state.queued for state in loaded(history, min(run.attempt for run in history.runs if run.job == 2)).values()
    )


def test_there_and_back_again_with_a_crash_between() -> None:
    commands = (
        Cancel(trigger=AtTime(at_us=4_500)),
        Resume(trigger=AtTime(at_us=500), parallelism={"op1": 7, "sink": 3}),
        Cancel(trigger=AtTime(at_us=24_000)),
        Resume(trigger=AtTime(at_us=500), parallelism={"op1": 2, "sink": 2}),
    )
    history = all_there(job(records=240, commands=commands, faults=(kill(2, "op1-1"),)))
    assert {run.job for run in history.runs} == {1, 2, 3}
    assert [entry.kind for entry in journal(FaultFired, history)] == ["kill-task"]
    assert len({run.attempt for run in history.runs if run.job == 2}) == 2, "the crash came in the other layout"
    for number in (1, 2):
        taken_over = max(entry.checkpoint for entry in history.completed if entry.job == number)
        assert in_flight(history)[taken_over], f"nothing was in flight when job {number} was cancelled"


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"alignment": "sideways"}, "engine.alignment is 'sideways'; it can be aligned, unaligned, timeout, in-turn"),
        ({"guarantee": "at-least-once"}, "engine.alignment unaligned is for exactly-once: at-least-once"),
        (
            {"alignment": "timeout", "alignment_timeout_us": 0},
            "engine.alignment_timeout_us is 0; a barrier waits at least 1 µs",
        ),
    ],
)
def test_settings_that_make_no_sense_are_reported(settings: dict[str, object], problem: str) -> None:
    assert [one for one in problems_of(job(**settings)) if one.startswith(problem)]
