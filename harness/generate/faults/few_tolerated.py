"""Few tolerated failures of checkpoints: the attempt restarts with the first, second or third in a row.

Elsewhere the engine tolerates so many that no job ever restarts for them.  Here it tolerates none, one or two.  At
times as many checkpoints fail as it takes: one task's writes, or acknowledgements that are lost until the checkpoint
times out.  At times no restart is left then, so that the job fails.  And at times a checkpoint completes between two
that fail, so that the tolerance is not used up.
"""

from __future__ import annotations

from msgspec.structs import replace

from ....faults.plan import AtPoint, FailWrite, LoseMessage
from ...scenario.forecast import TIMES_FORECAST, Forecast, behind_all_us, forecast
from ...scenario.model import Engine, Scenario
from ...scenario.promises import fails_a_checkpoint, restores
from ..choices import Choices
from .draw_faults import at_some_time, some_task

PERCENT = 50
PERCENT_OTHERS = 15
"""how often few failures are tolerated: where such a fault is planned, and where other faults are"""
EXCEEDED_PERCENT = 40
"""how often one checkpoint more fails than is tolerated, if there is room; only where there are no commands its faults
take the place of the last ones"""
LAST_PERCENT = 35
"""how often no restart is left for that"""
SHORT_TIMEOUT_US = 10_000


def with_few_tolerated(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    """The scenario, at times with few tolerated failures; it gets no more than `most` faults in all."""
    engine = scenario.engine
    if engine.guarantee == "at-most-once" or not scenario.faults:
        return scenario
    fails = any(fails_a_checkpoint(fault) for fault in scenario.faults)
    if not choices.percent(PERCENT if fails else PERCENT_OTHERS):
        return scenario
    few = replace(scenario, engine=replace(engine, tolerated_failures=choices.pick((0, 1, 2, 1))))
    return few if real_time else _patient(_exceeded(choices, few, most))


def _patient(scenario: Scenario) -> Scenario:
    """The scenario with time for a barrier that waits behind all rows: without a fault no checkpoint times out."""
    engine, target = scenario.engine, forecast(scenario.workload, scenario.topology, scenario.engine)
    timeout_us = max(engine.checkpoint_timeout_us, behind_all_us(scenario.workload, target))
    return replace(scenario, engine=replace(engine, checkpoint_timeout_us=timeout_us))


def _exceeded(choices: Choices, scenario: Scenario, most: int) -> Scenario:
    engine = scenario.engine
    needed = engine.tolerated_failures + 1
    kept = scenario.faults if scenario.commands else scenario.faults[: most - needed]  # some aim at the commands
    if len(kept) + needed > most or not choices.percent(EXCEEDED_PERCENT):
        return scenario
    target = forecast(scenario.workload, scenario.topology, engine)
    times_out = choices.percent(25)
    failing = lost_acks(choices, target, needed) if times_out else _failing_writes(choices, target, needed)
    if times_out:
        engine = with_short_timeout(engine, target)
    faults = (*kept, *failing)
    if choices.percent(LAST_PERCENT):
        restarts = sum(restores(fault) for fault in faults)
        engine = replace(engine, restart_attempts=min(engine.restart_attempts, restarts))
    return replace(scenario, faults=faults, engine=engine)


def _failing_writes(choices: Choices, target: Forecast, number: int) -> tuple[FailWrite, ...]:
    """One task's writes fail: the next ones, one after the other, or with one in between that does not."""
    task = some_task(choices, target)
    if number == 1 or choices.percent(40):
        soon = at_some_time(choices, target, share=(5, 70))
        return tuple(FailWrite(trigger=soon, task=task) for _ in range(number))
    first, step = choices.between(1, 2), choices.pick((2, 2, 3))
    occurrences = range(first, first + step * number, step)
    return tuple(FailWrite(trigger=_snapshot(task, occurrence), task=task) for occurrence in occurrences)


def with_short_timeout(engine: Engine, target: Forecast) -> Engine:
    """The engine with a timeout of checkpoints that is soon over, though without a fault none times out."""
    timeout_us = max(SHORT_TIMEOUT_US, TIMES_FORECAST * target.checkpoint_us)
    return replace(engine, checkpoint_timeout_us=min(engine.checkpoint_timeout_us, timeout_us))


def lost_acks(choices: Choices, target: Forecast, number: int) -> tuple[LoseMessage, ...]:
    """One task's acknowledgements are lost, one after the other."""
    task, first = some_task(choices, target), choices.between(1, 2)
    return tuple(
        LoseMessage(trigger=_snapshot(task, occurrence), message="ack", task=task)
        for occurrence in range(first, first + number)
    )


def _snapshot(task: str, occurrence: int) -> AtPoint:
    return AtPoint(point="snapshot-taken", occurrence=occurrence, task=task, side="before")
