"""Jobs of which a part has finished while the rest goes on (FIN-1, FIN-2): one short input with its own operators.

After a failure the job is restored without the finished tasks.  If a user stops the job and
resumes it with an additional operator, this is refused; the user then resumes it as it was.
"""

from __future__ import annotations

import msgspec

from ....faults.plan import AnyFault, AtTime, KillCoordinator
from ....properties.model.workload import Workload
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Resume, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_time, draw_fault
from ..faults.stop_races import as_another
from ..stage import Frame, Template, stage_of
from ..workloads.draw_workloads import draw_workload
from .endings import amid_the_end
from .rescaling import with_rescaling


def part_finished(choices: Choices, frame: Frame) -> Scenario:
    """A task, a node or the coordinator dies late in the reading.  Half of the jobs are stopped late, with a failure or
    without.  Most of these are first resumed with an additional operator, and some are rescaled."""
    recipe = frame.recipe(
        least_records=60,
        shapes=("union", "union", "join"),
        splits=(1, 2),
        mixed_percent=30,
        unbounded_percent=0,
        branch_percent=100,
        least_operators=1,
        windows_percent=0,
        rules_percent=0,
        retractions_percent=0,
        parallelism=(1, 2, 2, 3),
    )
    given = None if frame.workload is not None else (with_first_short(choices, draw_workload(choices, recipe)), None)
    tuning = Tuning(checkpoints=(6, 12), concurrent=(1, 1, 2), memory_percent=6)
    stage = stage_of(choices, frame, recipe, tuning, given)
    target = stage.target
    stops = choices.percent(50)
    faults = tuple(_blow(choices, target) for _ in range(choices.pick((0, 1) if stops else (1, 1, 2))))
    if not stops:
        return stage.scenario("part-finished", faults=faults[: frame.max_faults])
    asked = at_some_time(choices, target, share=(70, 99))
    stop: AnyCommand = Cancel(trigger=asked) if choices.percent(25) else StopWithSavepoint(trigger=asked)
    again = Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000))))
    incompatible = as_another(choices, target) if choices.percent(75) else ()
    scenario = stage.scenario("part-finished", faults=faults[: frame.max_faults], commands=(stop, *incompatible, again))
    return with_rescaling(choices, scenario, percent=30)


TEMPLATES: dict[str, Template] = {"part-finished": part_finished}


def with_first_short(choices: Choices, workload: Workload) -> Workload:
    """The workload with only the first records of its first input, at least one, so that a join has rows."""
    first, *others = workload.inputs
    most = choices.between(1, 5)
    short = msgspec.structs.replace(first, splits=tuple(records[:most] for records in first.splits))
    return msgspec.structs.replace(workload, inputs=(short, *others))


def _blow(choices: Choices, target: Forecast) -> AnyFault:
    """A failure late in the run, after the end of the short input; now and then at a step of the job's end."""
    trigger = amid_the_end(choices, target) if choices.percent(25) else at_some_time(choices, target, share=(40, 100))
    if choices.percent(15):
        return KillCoordinator(trigger=trigger, down_us=choices.pick((1_000, 5_000)))
    return draw_fault(choices, target, choices.pick(("kill-task", "kill-task", "kill-node")), trigger)
