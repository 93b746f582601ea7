"""In-flight data that is redistributed: unaligned checkpoints of a job that is rescaled, and mostly back again.

S4 of `unaligned` rescales jobs to any parallelism.  Here two subtasks become three, or
three become two, with few records in flight or many.  The job has edges whose data is
redistributed, and edges that are never unaligned (forward and broadcast), which must
have no data in flight.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....faults.plan import AnyTrigger, AtPoint, AtTime
from ....properties.model.workload import Topology
from ....properties.reconstruct.layouts import rescaled
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Resume, Scenario
from ..choices import Choices
from ..engines import Tuning
from ..stage import Frame, Stage
from . import extras
from .rescaling import joined, judged_alike
from .unaligned import Crowd, crowded_stage, seasoned, without_forward

ALIGNMENTS = ("unaligned", "timeout", "unaligned", "in-turn")

FEW = Crowd(capacities=(2, 3), paces=(4, 5), alignments=ALIGNMENTS, hasty=True)
"""channels hold little"""
MANY = Crowd(capacities=(8, 16), paces=(6, 8), alignments=ALIGNMENTS, hasty=True)
"""channels hold much, and fill up"""
WITH_FORWARD_PERCENT = 40
"""how often forward edges stay"""


def two_to_three(choices: Choices, frame: Frame) -> Scenario:
    """S5: a job with records in flight is cancelled and rescaled, and mostly rescaled back later.  Now and then there
    is a failure."""
    recipe = frame.recipe(
        least_records=40,
        most_records=100,
        shapes=("chain", "union", "join", "chain"),
        least_operators=1,
        splits=(3, 2, 4),
        parallelism=(2, 3),
        varied_percent=25,
        unbounded_percent=15,
        rules_percent=75,
        batches_percent=25,
        tallies_percent=90,
    )
    layout = with_forward if choices.percent(WITH_FORWARD_PERCENT) else without_forward
    crowd = choices.pick((FEW, MANY))
    stage = crowded_stage(choices, frame, recipe, Tuning(checkpoints=(4, 10)), crowd=crowd, laid_out=layout)
    faults = tuple(extras.kill(choices, stage.target) for _ in range(choices.pick((0, 0, 1))))
    late = extras.perturbations(choices, stage.target) if choices.percent(30) else ()
    commands = there_and_back(choices, stage)
    return stage.scenario("S5", faults=faults[: frame.max_faults], commands=commands, deviations=late)


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"S5": two_to_three}


def there_and_back(choices: Choices, stage: Stage) -> tuple[AnyCommand, ...]:
    """Cancel the job and resume it with another parallelism, and mostly once more with the old parallelism."""
    old = dict(stage.topology.parallelism)
    new = _flipped(choices, stage.topology)
    if not judged_alike(stage.workload, (stage.topology,), rescaled(stage.topology, new)):
        new = {}
    commands: list[AnyCommand] = []
    for later, parallelism in ((0, new), (2, {name: old[name] for name in new}))[: 1 + choices.percent(65)]:
        pause = AtTime(at_us=choices.pick((1_000, 0, 5_000)))
        commands += [
            Cancel(trigger=_amid(choices, stage.target, later)),
            Resume(trigger=pause, parallelism=parallelism),
        ]
    return tuple(commands)


def _amid(choices: Choices, target: Forecast, later: int) -> AnyTrigger:
    """When there is in-flight data to restore: some time after a checkpoint, or as one completes."""
    if choices.percent(25):
        return seasoned(choices, target, later)
    return AtPoint(point="checkpoint-completed", occurrence=choices.between(1, 2) + later // 2)


def _flipped(choices: Choices, topology: Topology) -> dict[str, int]:
    """The other parallelism for all operators, or for one operator and all that forward edges join to it."""
    names = list(topology.parallelism)
    if choices.percent(50):
        names = joined(topology, choices.pick(names))
    return {name: 3 if topology.parallelism[name] == 2 else 2 for name in names}


def with_forward(topology: Topology) -> Topology:
    """The layout with its forward edges, if barriers may overtake on other edges, and with at least as many key groups
    as subtasks."""
    kept = {edge.receiver for edge in topology.edges if edge.partitioning in ("forward", "broadcast")}
    if all(edge.receiver in kept for edge in topology.edges):
        return without_forward(topology)
    return msgspec.structs.replace(topology, key_groups=max(topology.key_groups, 16))
