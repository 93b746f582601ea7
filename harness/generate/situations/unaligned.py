"""Unaligned checkpoints that are taken and restored with data in flight.

Records are processed about as fast as they are read, and channels hold few of them, so that
barriers overtake records at both ends of a channel.  No edge is forward, because forward
edges are never unaligned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AtTime, InPhase
from ....properties.model.workload import Topology
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Engine, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning, promise, spilled
from ..faults.draw_faults import at_some_step, at_some_time, draw_fault, during_recovery, early, some_task
from ..stage import Frame, Stage, stage_of
from ..workloads.draw_workloads import Recipe, draw_topology, draw_workload
from . import extras
from .rescaling import with_rescaling

ALIGNMENTS = ("unaligned", "unaligned", "timeout", "timeout", "in-turn")
WIDTHS = (2, 3, 7)
TIMEOUT_US = 40_000
"""the checkpoint timeout: a checkpoint waits until data is processed, so a shorter timeout would let none complete"""


def backpressure(choices: Choices, frame: Frame) -> Scenario:
    """S3: a crash while data is in flight, then another during the replay.  Checkpoints overlap, and some are declined
    or aborted."""
    recipe = frame.recipe(
        most_records=100,
        shapes=("chain", "union", "join", "union"),
        least_operators=1,
        splits=(1, 2),
        parallelism=(1, 2, 2),
        varied_percent=40,
        windows_percent=40,
        batches_percent=25,
        tallies_percent=75,
    )
    stage = crowded_stage(choices, frame, recipe, Tuning(checkpoints=(4, 12), concurrent=(2, 1, 3)))
    target = stage.target
    faults: list[AnyFault] = [killed(choices, target) if choices.percent(75) else extras.restart(choices, target)]
    if choices.percent(50):
        faults.append(_again(choices, target))
    if choices.percent(60):
        faults.extend(_trouble(choices, target))
    late = extras.perturbations(choices, target) if choices.percent(40) else ()
    commands: tuple[AnyCommand, ...] = ()
    if choices.percent(12):
        commands = (Savepoint(trigger=at_some_time(choices, target, share=(10, 90))),)
    faults = faults[: max(1, frame.max_faults)]
    return stage.scenario("S3", faults=tuple(faults), commands=commands, deviations=late)


def rescaled_in_flight(choices: Choices, frame: Frame) -> Scenario:
    """S4: a job with data in flight is cancelled or stopped and then rescaled, now and then twice.  Now and then there
    is a crash during the replay, so that one snapshot is restored twice."""
    recipe = frame.recipe(
        most_records=100,
        shapes=("chain", "union", "join"),
        least_operators=1,
        splits=(2, 3),
        parallelism=(2, 3, 2, 3, 7),
        varied_percent=20,
        unbounded_percent=15,
        tallies_percent=60,
    )
    stage = crowded_stage(choices, frame, recipe, Tuning(checkpoints=(4, 10)))
    target = stage.target
    commands: tuple[AnyCommand, ...] = ()
    for later in (0, 4)[: 1 + choices.percent(35)]:
        asked = seasoned(choices, target, later)
        stop: AnyCommand = StopWithSavepoint(trigger=asked) if choices.percent(12) else Cancel(trigger=asked)
        commands = (*commands, stop, Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000)))))
    faults: tuple[AnyFault, ...] = tuple(extras.kill(choices, target) for _ in range(choices.pick((0, 0, 1))))
    if choices.percent(40):
        faults = (_amid_the_replay(choices, target), *faults)
    late = extras.perturbations(choices, target) if choices.percent(40) else ()
    scenario = stage.scenario("S4", faults=faults[: frame.max_faults], commands=commands, deviations=late)
    return with_rescaling(choices, scenario, percent=100, widths=WIDTHS)


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"S3": backpressure, "S4": rescaled_in_flight}


def seasoned(choices: Choices, target: Forecast, later: int = 0) -> AtTime:
    """A time when there is a snapshot to restore, `later` checkpoints on; it may be after the end of the reading."""
    quarters = choices.between(2, 14) + 4 * later
    return AtTime(at_us=target.first_completion_us + target.engine.checkpoint_interval_us * quarters // 4)


def killed(choices: Choices, target: Forecast) -> AnyFault:
    """A task dies when there is a snapshot to restore."""
    return plan.KillTask(trigger=seasoned(choices, target), task=some_task(choices, target))


def _again(choices: Choices, target: Forecast) -> AnyFault:
    """A second crash, while the in-flight data is loaded or replayed."""
    if choices.percent(50):
        return plan.KillTask(trigger=during_recovery(choices, target), task=some_task(choices, target))
    return plan.KillTask(trigger=seasoned(choices, target, later=4), task=some_task(choices, target))


def _amid_the_replay(choices: Choices, target: Forecast) -> AnyFault:
    """A crash before the resumed job has completed a checkpoint, so that the same snapshot is restored once more."""
    soon = InPhase(phase="recovering", after_us=choices.pick((2_000, 1_000, 4_000)))
    return plan.KillTask(trigger=soon, task=some_task(choices, target))


def _trouble(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """A fault that slows a channel down, or makes a checkpoint fail."""
    kind = choices.pick(("stall-channel", "delay-channel", "fail-write", "lose-message", "late-message"))
    if kind == "fail-write":
        when = at_some_step(choices, target, steps=("checkpoint-triggered", "barrier-received", "snapshot-taken"))
        return (plan.FailWrite(trigger=when, task=some_task(choices, target)),)
    if kind == "lose-message":
        message = choices.pick(("ack", "trigger"))
        return (plan.LoseMessage(trigger=early(choices, target), message=message, task=None),)
    if kind == "late-message":
        by_us = target.checkpoint_us * choices.pick((1, 4))
        return (plan.LateMessage(trigger=early(choices, target), message="trigger", task=None, by_us=by_us),)
    return (draw_fault(choices, target, kind, early(choices, target)),)


def without_forward(topology: Topology) -> Topology:
    """The layout with hash edges instead of forward edges, and at least as many key groups as subtasks."""
    edges = tuple(
        msgspec.structs.replace(edge, partitioning="hash") if edge.partitioning == "forward" else edge
        for edge in topology.edges
    )
    return msgspec.structs.replace(topology, edges=edges, key_groups=max(topology.key_groups, 16))


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """How much data is in flight."""

    capacities: tuple[int, ...] = (2, 3, 4, 8)
    """how many elements a channel holds"""
    paces: tuple[int, ...] = (4, 3, 6)
    """how long a task processes a record, in quarters of the time between two reads"""
    alignments: tuple[str, ...] = ALIGNMENTS
    hasty: bool = False
    """whether the alignment timeout is at most the time between two reads"""


USUAL = Crowd()


def crowded_stage(
    choices: Choices,
    frame: Frame,
    recipe: Recipe,
    tuning: Tuning,
    *,
    crowd: Crowd = USUAL,
    laid_out: Callable[[Topology], Topology] = without_forward,
) -> Stage:
    """A stage with records in flight when barriers arrive; `laid_out` changes the layout last."""
    if frame.workload is None:
        workload = draw_workload(choices, recipe)
        topology = laid_out(draw_topology(choices, workload, recipe))
        frame = msgspec.structs.replace(frame, workload=workload, topology=topology)
    guarantee, sink = promise("exactly-once", "transactional", frame.guarantees, frame.sinks)
    tuning = msgspec.structs.replace(tuning, guarantees=(guarantee,), sinks=(sink,))
    stage = stage_of(choices, frame, recipe, tuning)
    return stage if guarantee != "exactly-once" else crowded(choices, stage, crowd)


def crowded(choices: Choices, stage: Stage, crowd: Crowd = USUAL) -> Stage:
    """The stage with an engine in which records wait in channels and barriers overtake them."""
    alignment, capacity = choices.pick(crowd.alignments), choices.pick(crowd.capacities)
    apply_us = stage.engine.read_interval_us * choices.pick(crowd.paces) // 4
    engine = msgspec.structs.replace(
        stage.engine, alignment=alignment, channel_capacity=capacity, apply_cost_us=apply_us
    )
    if crowd.hasty:
        timeout_us = min(engine.alignment_timeout_us, engine.read_interval_us)
        engine = msgspec.structs.replace(engine, alignment_timeout_us=timeout_us)
    if stage.engine.alignment == "aligned":
        engine = spilled(choices, engine)
    interval_us = max(engine.checkpoint_interval_us, _busy_us(engine, stage.topology))
    engine = msgspec.structs.replace(engine, checkpoint_interval_us=interval_us, checkpoint_timeout_us=TIMEOUT_US)
    target = msgspec.structs.replace(stage.target, engine=engine)
    return msgspec.structs.replace(stage, engine=engine, target=target)


def _busy_us(engine: Engine, topology: Topology) -> int:
    """The checkpoint interval that leaves time for records.  Each barrier takes time of its receiver and room in its
    channel, and a snapshot may block its task."""
    wide: Counter[str] = Counter()
    for edge in topology.edges:
        wide[edge.receiver] += topology.parallelism[edge.sender]
    barriers_us = (2 if engine.alignment == "unaligned" else max(wide.values())) * engine.apply_cost_us
    under_way_us = 2 * engine.channel_latency_us // engine.channel_capacity
    written_us = engine.snapshot_write_us if engine.snapshot_mode == "synchronous" else 0
    return 2 * (barriers_us + under_way_us + written_us)
