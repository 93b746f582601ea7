"""Commands that race: two users request different ends of one job, or one user requests two.

The effect of a command depends on the earlier commands and on their progress: a drain
while a stop takes its savepoint, a cancel before either of them is done, or a savepoint
whose barriers are in flight when a drain ends the input.
"""

from __future__ import annotations

from itertools import permutations

from ....faults.plan import AnyTrigger, AtPoint, AtTime
from ....properties.model.stages import COMMITTERS
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Resume, Savepoint, StopWithSavepoint
from ..choices import Choices

KINDS = ("stop", "drain", "cancel", "savepoint")
PAIRS = tuple(permutations(KINDS, 2))
STEPS = (
    "savepoint-requested",
    "checkpoint-triggered",
    "checkpoint-acknowledged",
    "checkpoint-completed",
    "commit-requested",
    "completion-notified",
    "end-of-data-sent",
    "end-of-partition-sent",
)
"""the protocol points that can trigger the second command"""


def racing_stops(choices: Choices, target: Forecast, asked: AnyTrigger) -> tuple[AnyCommand, ...]:
    """Two commands of different kinds: the first at the trigger `asked`, the other at once, at a step of the job's end,
    or a little later."""
    first, second = choices.pick(PAIRS)
    return _command(first, asked), _command(second, _moment(choices, target, asked))


def _moment(choices: Choices, target: Forecast, asked: AnyTrigger) -> AnyTrigger:
    sort = choices.between(0, 9)
    if sort < 2:
        return asked
    if sort < 6 or not isinstance(asked, AtTime):
        occurrence = choices.pick((1, 1, 2, target.checkpoints))
        return AtPoint(point=choices.pick(STEPS), occurrence=occurrence, side=choices.pick(("after", "before")))
    return AtTime(at_us=asked.at_us + target.checkpoint_us * choices.pick((1, 2, 4, 8, 16, 32)) // 8)


def _command(kind: str, trigger: AnyTrigger) -> AnyCommand:
    match kind:
        case "cancel":
            return Cancel(trigger=trigger)
        case "savepoint":
            return Savepoint(trigger=trigger)
        case _:
            return StopWithSavepoint(trigger=trigger, drain=kind == "drain")


def as_another(choices: Choices, target: Forecast) -> tuple[Resume, ...]:
    """A resume with an additional operator, mostly in front of one that may have finished."""
    receivers = dict.fromkeys(receiver.rpartition("-")[0] for _, receiver in target.layout.channels)
    first, *others = [name for name in receivers if name not in COMMITTERS]
    behind = choices.pick((first, first, first, first, *others))
    if target.engine.guarantee == "at-most-once" or "fresh-0" in target.layout.tasks:
        return ()  # an at-most-once job restores no snapshot; the other job has such an operator already
    return (Resume(trigger=AtTime(at_us=1_000), inserted={"fresh": behind}),)
