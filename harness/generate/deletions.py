"""Snapshots that a user has deleted while the job runs.

Most can be deleted.  The newest one is refused, unless another completes first.  At times the user repeats the command,
and at times the coordinator dies between the record and the files.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...faults.plan import AnyFault, AtPoint, KillCoordinator
from ...faults.points import DELETION_POINTS
from ..scenario.forecast import Forecast, forecast
from ..scenario.model import AnyCommand, DeleteSnapshot, Savepoint, Scenario
from .choices import Choices
from .faults.draw_faults import at_some_time

PERCENT = 4
"""the share of the scenarios with a deletion"""
KEPT = (3, 2, 8, 1)
"""how many checkpoints are retained; with many of them only users delete any"""
NAME = "unwanted"
"""of the savepoint that is deleted"""


def with_deletions(choices: Choices, scenario: Scenario, most: int) -> Scenario:
    """The scenario, at times with snapshots that are deleted; it gets no more than `most` faults in all."""
    has_some = any(isinstance(command, DeleteSnapshot) for command in scenario.commands)
    if has_some or scenario.engine.guarantee == "at-most-once" or not choices.percent(PERCENT):
        return scenario
    engine = replace(scenario.engine, retained_checkpoints=choices.pick(KEPT))
    target = forecast(scenario.workload, scenario.topology, engine)
    faults = scenario.faults
    if len(faults) < most and choices.percent(40):
        faults = (*faults, death_amid_a_deletion(choices))
    return replace(scenario, engine=engine, faults=faults, commands=(*scenario.commands, *deletions(choices, target)))


def deletions(choices: Choices, target: Forecast) -> tuple[AnyCommand, ...]:
    """A savepoint that is deleted later, the oldest snapshot, or the newest one, which is mostly refused."""
    snapshot = choices.pick((NAME, NAME, "oldest", "newest"))
    saves = (Savepoint(trigger=at_some_time(choices, target, share=(5, 45)), name=NAME),) if snapshot == NAME else ()
    wish = DeleteSnapshot(trigger=_behind_a_checkpoint(choices), snapshot=snapshot)
    again = (replace(wish, trigger=_behind_a_checkpoint(choices)),) if choices.percent(40) else ()
    return (*saves, wish, *again)


def _behind_a_checkpoint(choices: Choices) -> AtPoint:
    """There are several complete snapshots by then, of which all but one can be deleted."""
    return AtPoint(point="checkpoint-completed", occurrence=choices.pick((3, 2, 4, 2, 5)), side="after")


def death_amid_a_deletion(choices: Choices) -> AnyFault:
    """The coordinator dies while it deletes a record or a file."""
    trigger = AtPoint(
        point=choices.pick(DELETION_POINTS),
        occurrence=choices.pick((1, 2, 1, 3, 5)),
        side=choices.pick(("after", "before")),
    )
    return KillCoordinator(trigger=trigger, down_us=choices.pick((2_000, 5_000)))
