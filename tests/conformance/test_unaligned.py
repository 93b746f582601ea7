"""Checkpoints whose barriers overtake, whoever runs them: what was in flight is in them, and comes back (FLIP-76)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.answers import expected_rows
from conformance.conforming import EXACTLY, PATIENTLY, committed, conforms, statuses
from cutproof.faults.plan import AtPoint, AtTime, CutChannel, KillCoordinator, KillTask
from cutproof.harness.scenario.model import Cancel, Engine, Resume, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.port import Subject
from cutproof.harness.workloads.library import GENERAL
from cutproof.properties.model.history import AttemptStarted, History
from cutproof.properties.model.workload import Input, Node, Tumbling, Workload
from cutproof.properties.reconstruct.snapshots import decode_state
from cutproof.reference_impl.core.vocabulary.state import TaskState

CROWDED = {
    "alignment": "unaligned",
    "channel_capacity": 4,
    "read_interval_us": 200,
    "apply_cost_us": 300,
    "checkpoint_interval_us": 3_000,
    **PATIENTLY,
    "tolerated_failures": 20,
}
"""Operators are slower than sources, and channels are small: all are full of records soon."""
AMID = AtPoint(point="checkpoint-completed", occurrence=2)
"""two checkpoints are complete, and the channels are full"""


def scenario(workload: str, *faults: Any, **engine: Any) -> Scenario:
    return of(GENERAL[workload][1](), *faults, **engine)


def of(found: Workload, *faults: Any, **engine: Any) -> Scenario:
    return Scenario(
        workload=found,
        topology=lay_out(found, dict.fromkeys([source.name for source in found.inputs], 2)),
        engine=Engine(**{**CROWDED, **engine}),
        faults=faults,
        seed=found.name,
    )


def states(history: History) -> list[tuple[int, str, TaskState]]:
    """What was stored: (checkpoint, operator, state)."""
    decoded = [(one.checkpoint, one.task.rpartition("-")[0], decode_state(one.state)) for one in history.stored]
    assert all(state is not None for _, _, state in decoded)
    return [(checkpoint, operator, state) for checkpoint, operator, state in decoded if state is not None]


def in_flight(history: History) -> Counter[str]:
    """How many stored states of each operator hold what a barrier overtook on the way to it."""
    return Counter(operator for _, operator, state in states(history) if state.queued)


def put_back(history: History) -> dict[int, int]:
    """How many records that were in flight each attempt took up again."""
    counts: Counter[int] = Counter()
    for channel in history.channels:
        counts[channel.attempt] += len(channel.recovered)
    return {attempt: count for attempt, count in counts.items() if count}


def into(history: History, task: str, attempt: int) -> dict[str, list[int]]:
    """The same records by channel, of one attempt of a task."""
    return {
        channel.name: channel.recovered
        for channel in history.channels
        if channel.attempt == attempt and channel.name.endswith(f">{task}")
    }


def attempts(history: History) -> list[int]:
    return [entry.attempt for entry in history.journal if isinstance(entry, AttemptStarted)]


@pytest.mark.parametrize(("workload", "victim"), [("orders", "count-0"), ("order-payments", "sink-0")])
def test_full_channels_are_in_the_checkpoint_and_come_back_after_a_crash(
    subject: Subject, workload: str, victim: str
) -> None:
    asked = scenario(workload, KillTask(trigger=AMID, task=victim))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert statuses(result) == ["finished"]
    assert in_flight(result.history)
    assert any(state.unsent for _, _, state in states(result.history)), "outputs were full too"
    assert list(put_back(result.history)) == [2]


def test_a_second_crash_while_what_came_back_is_worked_on(subject: Subject) -> None:
    """The next attempt is restored with the same again, none of it lost and none of it twice."""
    again = AtPoint(point="task-running", task="count-0", occurrence=2, side="after")
    asked = scenario(
        "orders", KillTask(trigger=AMID, task="count-1"), KillTask(trigger=again, task="count-0"), restart_attempts=4
    )
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert attempts(result.history) == [1, 2, 3]
    second, third = [into(result.history, "count-0", attempt) for attempt in (2, 3)]
    assert second == third
    assert any(second.values())


def test_a_barrier_that_has_waited_long_enough_overtakes(subject: Subject) -> None:
    asked = scenario("orders", KillTask(trigger=AMID, task="count-0"), alignment="timeout", alignment_timeout_us=400)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert in_flight(result.history)
    assert put_back(result.history)


def test_a_barrier_that_may_wait_longer_overtakes_nothing(subject: Subject) -> None:
    asked = scenario(
        "orders", KillTask(trigger=AMID, task="count-0"), alignment="timeout", alignment_timeout_us=300_000
    )
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert not in_flight(result.history)
    assert put_back(result.history) == {}


def test_one_checkpoint_after_the_other_is_of_another_kind(subject: Subject) -> None:
    asked = scenario("orders", KillTask(trigger=AMID, task="count-0"), alignment="in-turn", alignment_timeout_us=400)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    holding = {checkpoint % 3 for checkpoint, _, state in states(result.history) if state.queued}
    assert 0 not in holding, "every third checkpoint is aligned"
    assert 1 in holding, "every other third overtakes at once"
    assert {checkpoint % 3 for checkpoint, _, _ in states(result.history)} == {0, 1, 2}


@pytest.mark.parametrize("committing", ["committer", "global"])
def test_nothing_overtakes_what_is_to_be_committed(subject: Subject, committing: str) -> None:
    """A committable belongs to the checkpoint whose barrier is behind it: those edges stay aligned."""
    asked = scenario("orders", KillTask(trigger=AMID, task="committer-0"), committing=committing)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    found = in_flight(result.history)
    assert found
    assert {"committer", "global-committer"}.isdisjoint(found)
    assert not any(state.unsent for _, operator, state in states(result.history) if operator == "sink")


def test_what_is_in_flight_is_in_the_coordinator_s_memory_too(subject: Subject) -> None:
    asked = scenario("orders", KillTask(trigger=AMID, task="count-0"), snapshot_store="memory")
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert put_back(result.history)


def test_a_coordinator_that_dies_while_snapshots_wait_for_barriers(subject: Subject) -> None:
    dies = KillCoordinator(trigger=AtPoint(point="barrier-received", occurrence=9, side="after"))
    asked = scenario("orders", dies)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert put_back(result.history)


def test_a_connection_that_breaks_with_all_that_was_in_it(subject: Subject) -> None:
    asked = scenario("orders", CutChannel(trigger=AMID, sender="orders-0", receiver="count-0"))
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert put_back(result.history)


def test_watermarks_that_were_overtaken_come_back_in_their_places(subject: Subject) -> None:
    """Each record is followed by its watermark: what closes a window must not be lost, nor come early."""
    splits = tuple(tuple((number % 3, number, 100 * split + number) for number in range(60)) for split in range(1, 3))
    readings = Input(name="readings", splits=splits, times=(tuple(range(0, 600, 10)),) * 2)
    windows = Node(name="window", operator=Tumbling(size=50), inputs=("readings",))
    found = Workload(name="windows", inputs=(readings,), nodes=(windows,))
    asked = of(found, KillTask(trigger=AMID, task="window-0"))
    result = conforms(subject, asked, *EXACTLY)
    assert put_back(result.history)
    assert any(time is not None for one in result.history.channels for time, _ in one.recovered_watermarks)
    assert sum(committed(result).values()) == 12 * 3, "as many windows as there are, of each key"


def test_a_job_that_nothing_ends_comes_to_rest(subject: Subject) -> None:
    """What barriers overtook and what was put back add up with what was sent: nothing is under way any more."""
    orders = GENERAL["orders"][1]()
    endless = replace(orders, inputs=tuple(replace(source, bounded=False) for source in orders.inputs))
    asked = of(endless, KillTask(trigger=AMID, task="count-0"))
    result = conforms(subject, asked, "exactly-once", "no-data-loss", "consistent-cut", "progress")
    assert committed(result) == expected_rows(asked.workload)
    assert put_back(result.history)
    assert result.history.quiet
    assert statuses(result) == []


# -- persistent channels -------------------------------------------------------------------------------------------


def referred_to(history: History) -> Counter[str]:
    """How many elements of each log some stored state refers to."""
    found: Counter[str] = Counter()
    for one in history.stored:
        state = decode_state(one.state)
        assert state is not None
        for log, first, end in (ref for refs in state.spilled.values() for ref in refs):
            found[log] += end - first
    return found


@pytest.mark.parametrize(
    ("spilling", "store"), [("continuous", "log"), ("continuous", "files"), ("buffer-timeout", "log")]
)
def test_what_was_in_flight_comes_back_from_logs(subject: Subject, spilling: str, store: str) -> None:
    asked = scenario("orders", KillTask(trigger=AMID, task="count-0"), spilling=spilling, spill_store=store)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert referred_to(result.history)
    assert list(put_back(result.history)) == [2]
    assert result.history.residue.logs == [], "the job is over, and its last checkpoint is aligned"


def test_two_crashes_and_a_new_coordinator_amid_it(subject: Subject) -> None:
    """Each attempt has logs of its own; a new coordinator finds out which of them are still needed."""
    again = AtPoint(point="task-running", task="count-0", occurrence=2, side="after")
    dies = KillCoordinator(trigger=AtPoint(point="barrier-received", occurrence=30, side="after"))
    faults = KillTask(trigger=AMID, task="count-1"), KillTask(trigger=again, task="count-0"), dies
    asked = scenario("orders", *faults, spilling="continuous", restart_attempts=4)
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert len(attempts(result.history)) == 4
    assert {log.attempt for log in result.history.logs} >= {1, 3, 4}
    assert result.history.residue.logs == []


def test_references_in_the_coordinator_s_memory(subject: Subject) -> None:
    crash = KillTask(trigger=AMID, task="count-0")
    asked = scenario("orders", crash, snapshot_store="memory", spilling="continuous")
    result = conforms(subject, asked, *EXACTLY)
    assert committed(result) == expected_rows(asked.workload)
    assert referred_to(result.history)
    assert put_back(result.history)


@pytest.mark.parametrize("store", ["files", "memory"])
def test_at_rest_the_job_holds_as_many_checkpoints_as_it_is_to_retain(subject: Subject, store: str) -> None:
    """The logs to which the older one refers are there beside those of the newest, and none of them is left over."""
    orders = GENERAL["orders"][1]()
    endless = replace(orders, inputs=tuple(replace(source, bounded=False) for source in orders.inputs))
    asked = of(
        endless,
        KillTask(trigger=AMID, task="count-0"),
        spilling="continuous",
        snapshot_store=store,
        retained_checkpoints=2,
    )
    result = conforms(subject, asked, "exactly-once", "no-leaks", "progress")
    assert result.history.quiet
    assert result.history.residue.retained == [one.checkpoint for one in result.history.completed][-2:]


def test_what_is_referred_to_is_redistributed(subject: Subject) -> None:
    """The job is cancelled with data in flight, and goes on with other widths: all read the logs, and deal."""
    commands = (Cancel(trigger=AMID), Resume(trigger=AtTime(at_us=1_000), parallelism={"count": 3, "sink": 3}))
    asked = replace(scenario("orders", spilling="continuous"), commands=commands)
    result = conforms(subject, asked, "exactly-once", "consistent-cut", "restored-state")
    assert committed(result) == expected_rows(asked.workload)
    assert statuses(result) == ["cancelled", "finished"]
    assert referred_to(result.history)
    assert put_back(result.history)
