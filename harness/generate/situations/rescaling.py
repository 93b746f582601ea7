"""Rescaling: a resumed job has another parallelism, higher or lower, of all operators or of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ....faults.plan import AtTime
from ....properties.model.workload import Topology, Workload
from ....properties.reconstruct.layouts import rescaled, widest
from ....properties.reconstruct.replay import is_determined
from ....properties.semantics.classes import classes, last_row_is_fixed
from ...scenario.layout import topologies_of
from ...scenario.model import AnyCommand, Cancel, Resume, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_time
from ..stage import Frame, stage_of
from . import extras

WIDTHS = (1, 2, 3)


def resumed_elsewhere(choices: Choices, frame: Frame) -> Scenario:
    """A job is stopped or cancelled amid its records and resumed with another parallelism, now and then twice.  Half of
    the jobs have one or two failures."""
    recipe = frame.recipe(
        most_records=60,
        parallelism=(2, 1, 2, 3),
        splits=(2, 3, 4),
        varied_percent=30,
        unbounded_percent=15,
        batches_percent=25,
        tallies_percent=50,
        rules_percent=50,
    )
    tuning = Tuning(guarantees=("exactly-once", "exactly-once", "at-least-once"), checkpoints=(2, 8), memory_percent=6)
    stage = stage_of(choices, frame, recipe, tuning)
    target = stage.target
    commands: tuple[AnyCommand, ...] = ()
    for share in ((10, 60), (30, 95))[: 1 + choices.percent(30)]:
        asked = at_some_time(choices, target, share=share)
        stop: AnyCommand = Cancel(trigger=asked) if choices.percent(33) else StopWithSavepoint(trigger=asked)
        commands = (*commands, stop, Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000)))))
    faults = tuple(extras.kill(choices, target) for _ in range(choices.pick((0, 0, 1, 2))))
    scenario = stage.scenario("laid-out-anew", faults=faults[: frame.max_faults], commands=commands)
    return with_rescaling(choices, scenario, percent=100)


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"laid-out-anew": resumed_elsewhere}


def with_rescaling(choices: Choices, scenario: Scenario, percent: int = 50, widths: Sequence[int] = WIDTHS) -> Scenario:
    """The scenario with another parallelism for `percent` of its resumes."""
    commands: list[AnyCommand] = list(scenario.commands)
    for index, command in enumerate(commands):
        if isinstance(command, Resume) and not command.parallelism and choices.percent(percent):
            before = topologies_of(msgspec.structs.replace(scenario, commands=tuple(commands[:index])))
            parallelism = other_parallelism(choices, before[-1], widths)
            if judged_alike(scenario.workload, before, rescaled(before[-1], parallelism)):
                commands[index] = msgspec.structs.replace(command, parallelism=parallelism)
    return msgspec.structs.replace(scenario, commands=tuple(commands))


def parallelism_of_a_fork(choices: Choices, scenario: Scenario) -> dict[str, int]:
    """Another parallelism, with which a fork from a snapshot of any of the jobs is judged alike; empty if it is not."""
    topologies = topologies_of(scenario)
    drawn = other_parallelism(choices, topologies[-1])
    alike = all(judged_alike(scenario.workload, topologies, rescaled(one, drawn)) for one in topologies)
    return drawn if alike else {}


def other_parallelism(choices: Choices, topology: Topology, widths: Sequence[int] = WIDTHS) -> dict[str, int]:
    """Another parallelism for all operators, or for one operator and all that forward edges join to it."""
    wide = min(choices.pick(widths), topology.key_groups)
    names = list(topology.parallelism)
    if choices.percent(60):
        names = joined(topology, choices.pick(names))
    return {name: wide for name in names if topology.parallelism[name] != wide}


def joined(topology: Topology, name: str) -> list[str]:
    """An operator and all that forward edges join to it."""
    found = [name]
    for one in found:
        for edge in topology.edges:
            if edge.partitioning == "forward" and one in (edge.sender, edge.receiver):
                found += [end for end in (edge.sender, edge.receiver) if end not in found]
    return found


def judged_alike(workload: Workload, before: tuple[Topology, ...], after: Topology) -> bool:
    """Whether the output can be judged as strictly in the new layout as in the old ones.  If it newly depends on an
    order, the engine's settings (its sink, say) may no longer be right for the job."""
    old, new = widest(before), widest((*before, after))
    return (
        classes(workload, old) == classes(workload, new)
        and last_row_is_fixed(workload, old) == last_row_is_fixed(workload, new)
        and all(
            is_determined(workload, old, every_attempt=every, at_sink=sink)
            == is_determined(workload, new, every_attempt=every, at_sink=sink)
            for every in (False, True)
            for sink in (False, True)
        )
    )
