"""Scenario templates: the situations in which stream processors really broke.

Each template builds one scenario from choices.

- S1: a crash at every step of a checkpoint
- S2: two inputs, skew, overlapping checkpoints
- S3 (`unaligned`): in-flight data, crashes, also during a replay
- S4 (`unaligned`): in-flight data rescaled to any parallelism, one snapshot restored twice
- S5 (`unaligned_rescaling`): in-flight data redistributed from two to three subtasks and back
- S6 (`shared_files`): incremental checkpoints, one of which is aborted, and one retained
- S7: two-phase commit with a failing store
- S8, S9 (`endings`): the ends of a job
- S10 (`enumerators`): splits that an enumerator assigns
- S11: windows in event time, late records, idle splits
- S12: races of the coordinator
- S14: no fault, but empty splits and epochs
- a general mix of everything
- jobs with several regions (`regional`), local recovery (`local`), another parallelism after a
  resume (`rescaling`), older snapshots (`retained`), user functions (`functional`), or a finished part
  (`part_finished`)
- narrow races (`races`), each possible coverage target (`cells`), and combinations of what the
  other templates draw (`crossing`)
"""

from __future__ import annotations

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Perturbation, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..coverage import target_scenarios as target_scenarios
from ..engines import Tuning, draw_guarantee
from ..faults import crossing, races
from ..faults.draw_faults import (
    CHECKPOINT_STEPS,
    COMMIT_STEPS,
    COORDINATOR_STEPS,
    at_some_step,
    at_some_time,
    draw_fault,
    early,
    in_some_phase,
    possible,
    some_task,
)
from ..stage import Frame, Template, stage_of
from ..workloads.event_times import known_windows, loosened
from . import (
    endings,
    enumerators,
    extras,
    functional,
    local,
    part_finished,
    regional,
    rescaling,
    retained,
    shared_files,
    unaligned,
    unaligned_rescaling,
)


def general(choices: Choices, frame: Frame) -> Scenario:
    """Any workload, any faults, sometimes commands and schedule perturbations."""
    guarantee, sink = draw_guarantee(choices, guarantees=frame.guarantees, sinks=frame.sinks)
    recipe = frame.recipe(idempotent=sink == "idempotent", mixed_percent=10)
    stage = stage_of(choices, frame, recipe, Tuning(guarantees=(guarantee,), sinks=(sink,)))
    return stage.scenario(
        "general",
        faults=extras.mixed_faults(choices, stage.target, frame.max_faults),
        commands=extras.mixed_commands(choices, stage.target) if choices.percent(22) else (),
        deviations=extras.perturbations(choices, stage.target) if choices.percent(30) else (),
    )


def crash_at_each_step(choices: Choices, frame: Frame) -> Scenario:
    """S1: a source, a map or another operator, a transactional sink, and a crash at some step of a checkpoint."""
    recipe = frame.recipe(
        most_records=40, shapes=("chain",), splits=(1, 2), least_operators=1, most_operators=2, parallelism=(1, 1, 2)
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 6)))
    trigger = at_some_step(choices, stage.target, steps=CHECKPOINT_STEPS + COMMIT_STEPS)
    kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-coordinator", "lose-unsynced"))
    if not possible(kind, stage.target):
        kind = "kill-node"
    if kind == "lose-unsynced":
        fault = extras.power_loss(choices, stage.target)
    else:
        fault = draw_fault(choices, stage.target, kind, trigger)
    return stage.scenario("S1", faults=(fault, *_later_crash(choices, stage.target)))


def _later_crash(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """Now and then a second crash, of any task."""
    return (extras.kill(choices, target),) if choices.percent(40) else ()


def two_inputs(choices: Choices, frame: Frame) -> Scenario:
    """S2: a join or a union, skew between its inputs, overlapping checkpoints, barriers that are late or aborted."""
    recipe = frame.recipe(most_records=60, shapes=("join", "join", "union"), parallelism=(1, 1, 2), most_operators=2)
    tuning = Tuning(concurrent=(2, 3), checkpoints=(6, 12), memory_percent=5)
    stage = stage_of(choices, frame, recipe, tuning)
    target = stage.target
    skew = draw_fault(choices, target, choices.pick(("delay-channel", "stall-channel")), early(choices, target))
    trouble = _overlap_trouble(choices, target)
    crash = extras.restart(choices, target) if choices.percent(50) else extras.kill(choices, target)
    late = extras.perturbations(choices, target) if choices.percent(40) else ()
    return stage.scenario("S2", faults=(crash, skew, *trouble)[: max(1, frame.max_faults)], deviations=late)


def _overlap_trouble(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    when = at_some_step(choices, target, steps=("checkpoint-triggered", "barrier-received", "snapshot-taken"))
    if choices.percent(40):
        return (plan.FailWrite(trigger=when, task=some_task(choices, target)),)
    if choices.percent(25):
        return (plan.LoseMessage(trigger=when, message="trigger", task=choices.pick(target.layout.sources)),)
    kind = choices.pick(("late-message", "lose-message", "repeat-message"))
    return (draw_fault(choices, target, kind, when),)


def two_phase_commit(choices: Choices, frame: Frame) -> Scenario:
    """S7: the external store refuses requests, hangs or loses answers, and a task or the coordinator dies between
    pre-commit, completion, notification and commit."""
    recipe = frame.recipe(most_records=60, shapes=("chain", "chain", "union"), most_operators=2)
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 7)))
    target = stage.target
    trouble = draw_fault(choices, target, "fail-commit", early(choices, target))
    steps = (*COMMIT_STEPS[:3], "checkpoint-acknowledged", "checkpoint-completed", "completion-notified")
    kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-coordinator", "lose-message", "pause-task"))
    blow = draw_fault(choices, target, kind, at_some_step(choices, target, steps=steps))
    faults: tuple[AnyFault, ...] = (trouble, blow)
    if kind == "lose-message" or choices.percent(50):
        faults = (extras.kill(choices, target), *faults)
    if choices.percent(10):
        faults = (_long_outage(choices, target), *faults)
    elif choices.percent(5):
        faults = (plan.FailCommit(trigger=early(choices, target), how="expired"), *faults)
    commands: tuple[AnyCommand, ...] = ()
    if choices.percent(12):
        commands = (Savepoint(trigger=at_some_time(choices, target, share=(20, 80))),)
    return stage.scenario("S7", faults=faults[: max(1, frame.max_faults)], commands=commands)


def _long_outage(choices: Choices, target: Forecast) -> AnyFault:
    return plan.FailCommit(trigger=early(choices, target), how="unavailable", times=choices.between(10, 40))


def coordinator_races(choices: Choices, frame: Frame) -> Scenario:
    """S12: acknowledgements that are late, repeated or simultaneous, with a restart or a new coordinator in between."""
    recipe = frame.recipe(most_records=60, parallelism=(1, 2, 2))
    tuning = Tuning(checkpoints=(4, 8), concurrent=(1, 2, 2, 3), memory_percent=4)
    stage = stage_of(choices, frame, recipe, tuning)
    target = stage.target
    kind = choices.pick(("kill-task", "kill-coordinator", "kill-task", "pause-task", "kill-node"))
    steps = (*COORDINATOR_STEPS, "ack-sent", "snapshot-persisted")
    blow = draw_fault(choices, target, kind, at_some_step(choices, target, steps=steps))
    faults: list[AnyFault] = [blow]
    if kind == "kill-coordinator" or choices.percent(50):
        faults.insert(0, extras.kill(choices, target))
    late = extras.perturbations(choices, target) if choices.percent(40) else ()
    if choices.percent(15):
        faults[0], late = _torn_completion(choices, target)
    else:
        faults.extend(_ack_trouble(choices, target))
    commands: tuple[AnyCommand, ...] = ()
    if choices.percent(25):
        commands = (Savepoint(trigger=in_some_phase(choices, target)),)
    return stage.scenario("S12", faults=tuple(faults[: max(1, frame.max_faults)]), commands=commands, deviations=late)


def _ack_trouble(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """A late or repeated acknowledgement, or another fault that is hard for a coordinator."""
    when = at_some_step(choices, target, steps=("snapshot-taken", "checkpoint-triggered", "checkpoint-acknowledged"))
    task = choices.pick((None, *target.layout.tasks))
    wrong = choices.between(0, 4)
    if wrong == 0:
        by_us = target.checkpoint_us * choices.pick((1, 4, 20))
        return (plan.LateMessage(trigger=when, message="ack", task=task, by_us=by_us),)
    if wrong == 1:
        after_us = choices.pick((10, target.checkpoint_us))
        return (plan.RepeatMessage(trigger=when, message="ack", task=task, after_us=after_us),)
    if wrong == 2:
        return (extras.second_failure(choices, target),)
    if wrong == 3 and possible("fail-read", target):
        return extras.unreadable(choices, target)
    return extras.rare_message(choices, target)


def _torn_completion(choices: Choices, target: Forecast) -> tuple[AnyFault, tuple[Perturbation, ...]]:
    """A restart after the last acknowledgement, while the record of the checkpoint is being written."""
    occurrence = choices.between(1, target.checkpoints)
    trigger = AtPoint(point="checkpoint-acknowledged", occurrence=occurrence)
    slow = Perturbation(
        what="write coordinator", occurrence=occurrence, by_us=target.checkpoint_us * choices.pick((1, 4))
    )
    return plan.KillTask(trigger=trigger, task=some_task(choices, target)), (slow,)


def event_time(choices: Choices, frame: Frame) -> Scenario:
    """S11: windows with pending timers at a crash or a final stop, late records, and splits that are idle at times."""
    windowed = bool(known_windows(frame.operators))
    recipe = frame.recipe(
        shapes=("chain", "union"),
        windows_percent=100,
        clocked_percent=25,
        windows_in_order=True,
        most_operators=2,
        splits=(2, 1, 3),
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 9)))
    windowed = windowed and bool(stage.workload.times())
    if windowed and frame.workload is None and choices.percent(50):
        workload = loosened(choices, stage.workload, stage.engine.read_interval_us, may_idle=frame.knows_idle_splits)
        stage = msgspec.structs.replace(stage, workload=workload)
    target = stage.target
    blow = extras.kill(choices, target) if choices.percent(50) else extras.restart(choices, target)
    faults: tuple[AnyFault, ...] = (blow,)
    if choices.percent(50):
        kind = choices.pick(("delay-channel", "stall-channel", "pause-task"))
        faults = (*faults, draw_fault(choices, target, kind, early(choices, target)))
    late = extras.perturbations(choices, target) if choices.percent(30) else ()
    commands: tuple[AnyCommand, ...] = extras.mixed_commands(choices, target) if choices.percent(25) else ()
    if not commands and choices.percent(25):
        commands = (StopWithSavepoint(trigger=at_some_time(choices, target, share=(30, 99))),)
    return stage.scenario("S11", faults=faults[: max(1, frame.max_faults)], commands=commands, deviations=late)


FAULTLESS = "S14"


def nothing_goes_wrong(choices: Choices, frame: Frame) -> Scenario:
    """S14: no fault, but empty splits, idle subtasks, epochs without a record, stops and resumes."""
    guarantee, sink = draw_guarantee(choices, guarantees=frame.guarantees, sinks=frame.sinks)
    recipe = frame.recipe(
        idempotent=sink == "idempotent",
        least_records=0,
        most_records=30,
        splits=(1, 2, 4),
        varied_percent=40,
        batches_percent=35,
    )
    tuning = Tuning(guarantees=(guarantee,), sinks=(sink,), checkpoints=(3, 12))
    stage = stage_of(choices, frame, recipe, tuning)
    commands: tuple[AnyCommand, ...] = ()
    if choices.percent(60):
        trigger = at_some_time(choices, stage.target, share=(10, 99))
        again = Resume(trigger=at_some_time(choices, stage.target, share=(0, 20)))
        commands = choices.pick(
            (
                (StopWithSavepoint(trigger=trigger), again),
                (StopWithSavepoint(trigger=trigger),),
                (StopWithSavepoint(trigger=trigger, drain=True),),
                (Savepoint(trigger=trigger),),
            )
        )
    late = extras.perturbations(choices, stage.target) if choices.percent(30) else ()
    return stage.scenario(FAULTLESS, commands=commands, deviations=late)


_SITUATIONS: dict[str, Template] = {
    "S1": crash_at_each_step,
    "S2": two_inputs,
    "S7": two_phase_commit,
    "S11": event_time,
    "S12": coordinator_races,
    FAULTLESS: nothing_goes_wrong,
    "general": general,
    **regional.TEMPLATES,
    **endings.TEMPLATES,
    **enumerators.TEMPLATES,
    **races.TEMPLATES,
    **rescaling.TEMPLATES,
    **retained.TEMPLATES,
    **unaligned.TEMPLATES,
    **unaligned_rescaling.TEMPLATES,
    **shared_files.TEMPLATES,
    **local.TEMPLATES,
    **functional.TEMPLATES,
    **part_finished.TEMPLATES,
}
TEMPLATES: dict[str, Template] = {
    **_SITUATIONS,
    crossing.CROSSED: crossing.crossing_of(tuple(_SITUATIONS.values())),
    **target_scenarios.TEMPLATES,
}

SHARES: dict[str, int] = {
    "S1": 10,
    "S2": 10,
    "S3": 5,
    "S4": 3,
    "S5": 3,
    "S6": 4,
    "S7": 10,
    "S8": 7,
    "S9": 5,
    "S10": 5,
    "S11": 5,
    "S12": 10,
    FAULTLESS: 5,
    "general": 11,
    "user-function": 3,
    "part-finished": 4,
    "regional": 3,
    "local": 4,
    "partly-stopped": 2,
    **dict.fromkeys(races.TEMPLATES, 2),
    **dict.fromkeys(rescaling.TEMPLATES, 3),
    **dict.fromkeys(retained.TEMPLATES, 3),
    crossing.CROSSED: 4,
    target_scenarios.TARGETS: 10,
}
"""how often each template is drawn, relative to the others; any other template has share 1, and is drawn by name"""
