"""Snapshots that a user has copied or moved while the job runs.

At times the user repeats the command.  At times the coordinator dies between two files, or between the copy and the
deletion; or a write of the copy fails, or is torn.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...faults.plan import AnyFault, AtPoint, FailWrite, KillCoordinator, TearWrite
from ...faults.points import COPY_POINTS, DELETION_POINTS
from ..scenario.forecast import Forecast, forecast
from ..scenario.model import AnyCommand, CopySnapshot, MoveSnapshot, Savepoint, Scenario
from .choices import Choices
from .faults.draw_faults import at_some_time

PERCENT = 3
"""the share of the scenarios with a copy or a move"""
KEPT = (3, 2, 8, 1)
"""how many checkpoints are retained"""
NAME = "wanted"
"""of the savepoint that is copied or moved"""


def with_copies(choices: Choices, scenario: Scenario, most: int, *, file_faults: bool = True) -> Scenario:
    """The scenario, at times with snapshots that are copied or moved; it gets no more than `most` faults in all.
    Without `file_faults` no write of a copy fails."""
    engine = scenario.engine
    if engine.snapshot_store == "memory":  # a crossed scenario may have some
        return replace(scenario, commands=tuple(one for one in scenario.commands if not _copies(one)))
    if any(map(_copies, scenario.commands)) or engine.guarantee == "at-most-once" or not choices.percent(PERCENT):
        return scenario
    engine = replace(engine, retained_checkpoints=choices.pick(KEPT))
    target = forecast(scenario.workload, scenario.topology, engine)
    faults = scenario.faults
    if len(faults) < most and choices.percent(40):
        hit = write_of_a_copy if choices.percent(40) and file_faults else death_amid_a_copy
        faults = (*faults, hit(choices))
    return replace(scenario, engine=engine, faults=faults, commands=(*scenario.commands, *copies(choices, target)))


def _copies(command: AnyCommand) -> bool:
    return isinstance(command, CopySnapshot | MoveSnapshot)


def copies(choices: Choices, target: Forecast) -> tuple[AnyCommand, ...]:
    """A savepoint that is copied or moved later, the oldest snapshot, or the newest one, which is deleted later."""
    kind = choices.pick((CopySnapshot, MoveSnapshot))
    snapshot = choices.pick((NAME, "oldest", "newest"))
    saves = (Savepoint(trigger=at_some_time(choices, target, share=(5, 45)), name=NAME),) if snapshot == NAME else ()
    wish = kind(trigger=_behind_a_checkpoint(choices), snapshot=snapshot)
    again = (replace(wish, trigger=_behind_a_checkpoint(choices)),) if choices.percent(40) else ()
    return (*saves, wish, *again)


def _behind_a_checkpoint(choices: Choices) -> AtPoint:
    return AtPoint(point="checkpoint-completed", occurrence=choices.pick((3, 2, 4, 2, 5)), side="after")


def write_of_a_copy(choices: Choices) -> AnyFault:
    """The next write of a copy fails or is torn, of a file or of the record."""
    trigger = AtPoint(point="checkpoint-completed", occurrence=choices.pick((1, 2, 1)), side="before")
    what = choices.pick(("copy-file", "copy-record", "torn"))
    if what == "torn":
        return TearWrite(trigger=trigger, task=None, how="copy")
    return FailWrite(trigger=trigger, task=None, what=what)


def death_amid_a_copy(choices: Choices) -> AnyFault:
    """The coordinator dies while it copies a file or a record, or while it deletes what it has copied."""
    trigger = AtPoint(
        point=choices.pick((*COPY_POINTS, *COPY_POINTS, *DELETION_POINTS)),
        occurrence=choices.pick((1, 2, 1, 3, 5)),
        side=choices.pick(("after", "before")),
    )
    return KillCoordinator(trigger=trigger, down_us=choices.pick((2_000, 5_000)))
