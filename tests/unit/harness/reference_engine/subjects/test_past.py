"""What a job that is forked from a run on processes has behind it."""

from __future__ import annotations

from cutproof.faults.plan import AtTime
from cutproof.harness.reference_engine.subjects.past import past_of_fork
from cutproof.harness.scenario.model import Fork, Scenario
from cutproof.properties.model.history import History, PersistentLog, SnapshotDeleted
from cutproof.properties.model.workload import Count
from unit.simulated.worlds import job, run

CHECKPOINT = 1


def spilled() -> tuple[Scenario, History]:
    """A run of which a log has discarded what checkpoint 1 had in flight, once that was deleted."""
    scenario = job(
        40,
        Count(),
        alignment="unaligned",
        spilling="continuous",
        commands=(Fork(trigger=AtTime(at_us=1), snapshot="each"),),
    )
    return scenario, run(scenario)


def logs_behind(scenario: Scenario, history: History, copied_us: int) -> list[PersistentLog]:
    past, _ = past_of_fork(scenario, history, CHECKPOINT, command=0, job=1, copied_us=copied_us)
    return past.history.logs


def discarded(logs: list[PersistentLog]) -> list[int]:
    """The orders at which something was discarded."""
    return sorted(
        order for log in logs for order in (*(order for order, _ in log.trims), log.cleared) if order is not None
    )


def test_what_a_log_discarded_after_the_copy_is_not_behind_the_fork() -> None:
    scenario, history = spilled()
    deleted = next(one for one in history.journal if isinstance(one, SnapshotDeleted))
    assert deleted.checkpoint == CHECKPOINT
    assert discarded(history.logs)[-1] > deleted.order
    before = discarded(logs_behind(scenario, history, deleted.at_us - 1))
    assert before == [order for order in discarded(history.logs) if order < deleted.order]


def test_what_a_log_discarded_before_the_copy_is_behind_the_fork() -> None:
    scenario, history = spilled()
    at_us = max(one.at_us for one in history.journal)
    assert discarded(logs_behind(scenario, history, at_us)) == discarded(history.logs) != []
