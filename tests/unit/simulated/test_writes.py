"""A snapshot is written, then synced: who dies in between leaves an orphan, unless the node loses power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from cutproof.faults.plan import AnyFault, AtTime, KillNode, KillTask, LoseUnsynced
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History, SnapshotDeleted
from cutproof.properties.model.verdict import Holds
from unit.simulated.worlds import attempts, ended, fired, job, journal, rows, run, shown

WRITE_US = 2_000
TASK, CHECKPOINT = "op1-0", 2


def slow(*faults: AnyFault) -> Scenario:
    return job(80, faults=faults, snapshot_write_us=WRITE_US, checkpoint_interval_us=4_000)


def taken_at() -> int:
    """When the task takes the snapshot that is to be disturbed."""
    (taken,) = [
        event.at_us
        for event in shown(run(slow(), timeline=True), TASK, "snapshot-taken")
        if event.checkpoint == CHECKPOINT
    ]
    return taken


def is_stored(history: History) -> bool:
    """Whether the disturbed snapshot became durable."""
    return (CHECKPOINT, TASK, 1) in {(one.checkpoint, one.task, one.attempt) for one in history.stored}


FAULTS: dict[str, Callable[[AtTime], AnyFault]] = {
    "kill-task": lambda at: KillTask(trigger=at, task=TASK),
    "kill-node": lambda at: KillNode(trigger=at, node=0),
    "lose-unsynced": lambda at: LoseUnsynced(trigger=at, node=0),
}


@pytest.mark.parametrize(
    ("kind", "after_us", "stored"),
    [
        ("kill-task", WRITE_US // 4, False),
        ("kill-task", WRITE_US * 3 // 4, True),
        ("kill-node", WRITE_US // 4, False),
        ("kill-node", WRITE_US * 3 // 4, True),
        ("lose-unsynced", WRITE_US // 4, False),
        ("lose-unsynced", WRITE_US * 3 // 4, False),
    ],
)
def test_what_is_left_of_a_write(kind: str, after_us: int, stored: bool) -> None:
    """A process takes along what it had not written; the power also what was not synced."""
    scenario = slow(FAULTS[kind](AtTime(at_us=taken_at() + after_us)))
    history = run(scenario)
    assert fired(history) == [kind]
    assert is_stored(history) is stored
    assert CHECKPOINT not in {one.checkpoint for one in history.completed}, "nobody was there to acknowledge it"
    assert attempts(history) == 2
    assert Counter(history.committed) == rows(scenario)


def test_an_orphan_is_discarded_by_the_next_checkpoint_that_completes() -> None:
    scenario = slow(KillTask(trigger=AtTime(at_us=taken_at() + WRITE_US * 3 // 4), task=TASK))
    history = run(scenario)
    (orphan,) = [one for one in history.stored if (one.checkpoint, one.task, one.attempt) == (CHECKPOINT, TASK, 1)]
    (deleted,) = [entry for entry in journal(SnapshotDeleted, history) if orphan.handle in entry.handles]
    completed = next(one for one in history.completed if one.attempt == 2)
    assert orphan.order < completed.order < deleted.order
    verdict = judge(scenario.workload, scenario.topology, history).verdicts["no-leaks"]
    assert isinstance(verdict, Holds)


def test_power_takes_along_what_dead_writers_had_written() -> None:
    """The task dies first and the node's power fails before its last write is synced."""
    at = taken_at() + WRITE_US * 3 // 4
    history = run(
        slow(
            KillTask(trigger=AtTime(at_us=at), task=TASK),
            LoseUnsynced(trigger=AtTime(at_us=at + WRITE_US // 8), node=0),
        )
    )
    assert fired(history) == ["kill-task", "lose-unsynced"]
    assert not is_stored(history)
    assert ended(history) == ("finished", "")
