"""State in a log-structured merge tree, drawn last: what else a scenario has does not depend on it.

The memtable takes few keys, so that the working state is larger, and compactions are due often.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...faults.plan import AtPoint, KillTask
from ...faults.points import STATE_POINTS
from ...properties.model.workload import KEYED, Tally
from ..scenario.layout import layout_of
from ..scenario.model import Engine, Perturbation, Scenario
from .choices import Choices

PERCENT = 30
"""the share of the scenarios with state by key"""
PERCENT_OF_FAULTS = 30
"""how often one of these has a fault at a flush or a compaction, if one more is allowed"""
PERCENT_OF_PERTURBATIONS = 25
"""how often one of these has a compaction that lasts longer"""
_EARLY = {"memtable-flushed": 8, "files-compacted": 3}
"""up to which occurrence a point is aimed at: most jobs reach it"""


def with_state_in_files(choices: Choices, scenario: Scenario, most: int) -> Scenario:
    """The scenario, at times with its state in files, and then at times with something that happens to them.  `most`
    faults are allowed."""
    tasks = tasks_with_state(scenario)
    if not tasks or not choices.percent(PERCENT):
        return scenario
    engine = replace(
        scenario.engine,
        state_backend="lsm",
        memtable_entries=choices.pick((2, 1, 3, 5)),
        compaction_files=choices.pick((2, 2, 3, 4)),
        compaction_us=_duration(choices, scenario.engine),
    )
    faults, deviations = scenario.faults, scenario.deviations
    if len(faults) < most and choices.percent(PERCENT_OF_FAULTS):
        task, point = choices.pick(tasks), choices.pick(STATE_POINTS)
        occurrence, side = choices.between(1, _EARLY[point]), choices.pick(("after", "before"))
        trigger = AtPoint(point=point, occurrence=occurrence, task=task, side=side)
        faults = (*faults, KillTask(trigger=trigger, task=task))
    if choices.percent(PERCENT_OF_PERTURBATIONS):
        by_us = engine.snapshot_write_us * choices.pick((1, 4, 10))
        what = f"compaction {choices.pick(tasks)}"
        deviations = (*deviations, Perturbation(what=what, occurrence=choices.between(1, 4), by_us=by_us))
    return replace(scenario, engine=engine, faults=faults, deviations=deviations)


def _duration(choices: Choices, engine: Engine) -> int:
    """From a part of a snapshot's write to several of them: compactions end before, amid and after writes."""
    return max(1, engine.snapshot_write_us * choices.pick((2, 1, 4, 12)) // 4)


def tasks_with_state(scenario: Scenario) -> tuple[str, ...]:
    """The tasks of operators that keep state by key."""
    keyed = {
        node.name
        for node in scenario.workload.nodes
        if isinstance(node.operator, KEYED) and not isinstance(node.operator, Tally)
    }
    layout = layout_of(scenario.workload, scenario.topology, scenario.engine.committing)
    return tuple(task for task in layout.operators if task.rpartition("-")[0] in keyed)
