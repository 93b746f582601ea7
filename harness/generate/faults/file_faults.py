"""Faults on the files of snapshots: names that are lost with the power, deletes that fail, a death between two files.

They are modes of faults that are drawn anyway, or faults more.  A delete that fails is tried again, and a lost link is
of a snapshot that nobody has acknowledged; so they are seen only by an engine that takes either for done.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint
from ....faults.points import FILE_POINT
from ...scenario.forecast import Forecast, forecast
from ...scenario.model import Scenario
from ..choices import Choices
from .draw_faults import at_some_record, early

SHARE = 10
"""per cent of the scenarios with snapshots in files and with faults"""
SHARE_IN_REAL_TIME = 30


def with_file_faults(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    """The scenario, at times with faults on files; it gets no more than `most` faults in all."""
    engine = scenario.engine
    if engine.snapshot_store != "files" or engine.guarantee == "at-most-once" or not scenario.faults:
        return scenario
    if not choices.percent(SHARE_IN_REAL_TIME if real_time else SHARE):
        return scenario
    faults = tuple(_in_some_mode(choices, fault) for fault in scenario.faults)
    if len(faults) < most:
        target = forecast(scenario.workload, scenario.topology, engine)
        faults = (*faults, *_one_more(choices, target))
        if len(faults) < most and choices.percent(40):
            faults = (*faults, _death_between(choices, target))
    return msgspec.structs.replace(scenario, faults=faults)


def _in_some_mode(choices: Choices, fault: AnyFault) -> AnyFault:
    match fault:
        case plan.TearWrite(task=str()) if choices.percent(50):
            return msgspec.structs.replace(fault, how="lost-link")
        case plan.FailWrite() if choices.percent(50):
            return msgspec.structs.replace(fault, task=None, what=some_delete(choices))
        case _:
            return fault


def _one_more(choices: Choices, target: Forecast) -> Iterator[AnyFault]:
    if not target.reads:
        return
    if choices.percent(60):
        yield plan.FailWrite(trigger=early(choices, target), task=None, what=some_delete(choices))
    else:
        task = choices.pick(target.layout.tasks)
        yield plan.TearWrite(trigger=at_some_record(choices, target), task=task, how="lost-link")


def _death_between(choices: Choices, target: Forecast) -> AnyFault:
    """A task dies before or after a file of a snapshot of its own has its name."""
    task = choices.pick(target.layout.tasks)
    occurrence, side = choices.pick((2, 1, 3, 5, 9)), choices.pick(("after", "before"))
    return plan.KillTask(trigger=AtPoint(point=FILE_POINT, occurrence=occurrence, task=task, side=side), task=task)


def some_delete(choices: Choices) -> str:
    return choices.pick(("delete-file", "delete-file", "delete-record"))
