"""Jobs with a user function of the package (OPS-4).  Its state, declared or its own, must survive what the state of
other operators must survive.

A function that uses time has inputs with event times that are never late, or with none.
An ordered function stands where the records of each key come along one path.  The
counterparts know only positions, so a function that uses time is drawn with aligned
barriers.  Other functions have much data in flight half of the time.
"""

from __future__ import annotations

import msgspec

from ....faults.plan import AtTime
from ....properties.model.workload import Union, Workload
from ...reference_engine.functions import SHIPPED
from ...reference_engine.functions.base import UserFunction
from ...scenario.model import AnyCommand, Cancel, Resume, Scenario, StopWithSavepoint
from ...subject.abilities import knows
from ..choices import Choices
from ..engines import Tuning, draw_guarantee
from ..faults.draw_faults import at_some_time
from ..stage import Frame, Stage, Template, stage_of
from ..workloads.draw_workloads import Chain, Recipe, draw_inputs, draw_topology, is_possible
from ..workloads.event_times import draw_times
from ..workloads.records import draw_keys
from . import extras
from .rescaling import with_rescaling
from .unaligned import crowded_stage, without_forward


def user_function(choices: Choices, frame: Frame) -> Scenario:
    """A function amid other operators, and any faults.  Half of the jobs are stopped and resumed with another
    parallelism; the others have other commands or none."""
    stage = _stage(choices, frame)
    faults = extras.mixed_faults(choices, stage.target, frame.max_faults)
    late = extras.perturbations(choices, stage.target) if choices.percent(30) else ()
    if choices.percent(50):
        commands: tuple[AnyCommand, ...] = extras.mixed_commands(choices, stage.target) if choices.percent(40) else ()
        return stage.scenario("user-function", faults=faults, commands=commands, deviations=late)
    asked = at_some_time(choices, stage.target, share=(10, 80))
    stop: AnyCommand = Cancel(trigger=asked) if choices.percent(40) else StopWithSavepoint(trigger=asked)
    again = Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000))))
    scenario = stage.scenario("user-function", faults=faults, commands=(stop, again), deviations=late)
    return with_rescaling(choices, scenario, percent=100)


TEMPLATES: dict[str, Template] = {"user-function": user_function}


def _stage(choices: Choices, frame: Frame) -> Stage:
    """A stage with a function, unless the subject knows none or the workload is given."""
    sinks = frame.sinks - {"idempotent"} or frame.sinks
    guarantee, sink = draw_guarantee(choices, guarantees=frame.guarantees, sinks=sinks)
    recipe = frame.recipe(
        most_records=60, splits=(2, 1, 3), shapes=("chain", "chain", "union"), parallelism=(2, 1, 2, 3)
    )
    tuning = Tuning(guarantees=(guarantee,), sinks=(sink,))
    functions = known_functions(recipe.operators)
    if frame.workload is not None or not functions or sink == "idempotent":
        return stage_of(choices, frame, recipe, tuning)
    function = choices.pick(functions)
    workload = draw_functional(choices, recipe, function)
    if not _goes_by_time(function) and guarantee == "exactly-once" and choices.percent(50):
        topology = without_forward(draw_topology(choices, workload, recipe))
        given = msgspec.structs.replace(frame, workload=workload, topology=topology)
        return crowded_stage(choices, given, recipe, tuning)
    return stage_of(choices, frame, recipe, tuning, (workload, None))


def known_functions(operators: frozenset[str] | None) -> tuple[UserFunction, ...]:
    """The functions of the package that a subject knows."""
    return tuple(function for function in SHIPPED if knows(operators, function.operator))


def _goes_by_time(function: UserFunction) -> bool:
    return function.function.timed or function.function.clocked


def draw_functional(choices: Choices, recipe: Recipe, function: UserFunction) -> Workload:
    """The function behind stateless operators, and now and then an operator behind it that does not depend on the order
    of its rows."""
    shape = choices.pick([shape for shape in recipe.shapes if shape != "join" and is_possible(shape, recipe)])
    inputs = draw_inputs(choices, recipe, shape, draw_keys(choices, separate=function.ordered))
    if function.function.timed:
        inputs = draw_times(choices, inputs)
    chain = Chain(choices, recipe, ordered=False)
    end = chain.append(Union(), tuple(source.name for source in inputs)) if shape == "union" else inputs[0].name
    end = chain.extend(end, choices.between(0, max(0, recipe.most_operators - 2)), stateful=False)
    end = chain.append(function.operator, (end,))
    if recipe.most_operators > 1 and choices.percent(40):
        chain.extend(end, 1)
    return Workload(name=f"functional {shape}", inputs=inputs, nodes=tuple(chain.nodes))
