"""Situations that only hunts for defects draw: each combines what one kind of bug needs.

The templates of `verify` reach the same situations, but seldom, or in such large jobs that
a run takes seconds if a bug keeps it from coming to rest.  These jobs are small, and have few restarts.
"""

from __future__ import annotations

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtTime
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Perturbation, Resume, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_step, at_some_time, draw_fault, early, some_task
from ..faults.few_tolerated import lost_acks, with_short_timeout
from ..faults.stop_races import as_another
from ..faults.stragglers import late_cancel
from ..stage import Frame, Stage, Template, stage_of
from ..workloads.draw_workloads import draw_workload
from ..workloads.event_times import loosened
from . import failing_store, retained
from .endings import amid_the_end
from .local import with_engine
from .part_finished import with_first_short
from .rescaling import with_rescaling
from .shared_files import forked_increments, inherited_files, shared_files
from .unaligned import Crowd, crowded_stage, killed

BOUNDED = {"unbounded_percent": 0, "two_phase_percent": 0, "enumerated_percent": 0}
"""most of these jobs: their input ends, and neither enumerators nor committers are involved"""


def begun_as_another(choices: Choices, frame: Frame) -> Scenario:
    """A job of which one branch has finished is stopped and resumed with an additional operator.  Mostly this is
    refused, and the job is resumed as it was."""
    recipe = frame.recipe(
        least_records=40,
        most_records=60,
        shapes=("union",),
        splits=(1,),
        unbounded_percent=0,
        branch_percent=100,
        least_operators=1,
        most_operators=2,
        windows_percent=0,
        rules_percent=0,
        retractions_percent=0,
        enumerated_percent=0,
        parallelism=(1, 1, 2),
        varied_percent=0,
    )
    given = None if frame.workload is not None else (with_first_short(choices, draw_workload(choices, recipe)), None)
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(4, 8), concurrent=(1,)), given)
    target = stage.target
    stop, again = _stopped_and_resumed(choices, target, share=(50, 95), cancel_percent=40)
    return stage.scenario("begun-as-another", commands=(stop, *as_another(choices, target), again))


def ended_in_flight(choices: Choices, frame: Frame) -> Scenario:
    """Rows that an operator buffers until its input ends wait for room in full channels, and barriers overtake them."""
    recipe = frame.recipe(
        **BOUNDED,
        most_records=40,
        shapes=("chain", "chain", "union"),
        splits=(1, 2),
        least_operators=0,
        most_operators=1,
        batches_percent=100,
        windows_percent=0,
        parallelism=(1, 1, 2),
    )
    crowd = Crowd(capacities=(2, 2, 3), paces=(4, 6, 8), alignments=("unaligned", "unaligned", "timeout"), hasty=True)
    stage = crowded_stage(choices, frame, recipe, Tuning(checkpoints=(8, 24), concurrent=(2, 3)), crowd=crowd)
    faults: tuple[AnyFault, ...] = ()
    if choices.percent(30):
        faults = (killed(choices, stage.target),)
    return stage.scenario("ended-in-flight", faults=faults[: frame.max_faults])


def overlapping(choices: Choices, frame: Frame) -> Scenario:
    """Several checkpoints are in progress while a channel is slow: newer barriers arrive before older ones, and some
    checkpoints are aborted."""
    recipe = frame.recipe(
        **BOUNDED,
        most_records=50,
        shapes=("chain", "union"),
        splits=(1, 2),
        least_operators=1,
        most_operators=2,
        parallelism=(1, 2, 2),
    )
    crowd = Crowd(capacities=(3, 4, 8), alignments=("timeout", "in-turn", "unaligned"))
    stage = hasty(crowded_stage(choices, frame, recipe, Tuning(checkpoints=(6, 14), concurrent=(2, 3, 3)), crowd=crowd))
    target = stage.target
    faults: list[AnyFault] = []
    if choices.percent(75):
        sender, receiver = choices.pick(target.layout.channels)
        by_us = stage.engine.checkpoint_interval_us * choices.between(2, 10) // 2
        when = early(choices, target)
        faults.append(plan.DelayChannel(trigger=when, sender=sender, receiver=receiver, by_us=by_us, for_us=2 * by_us))
    if choices.percent(50):
        when = at_some_step(choices, target, steps=("checkpoint-triggered", "barrier-received", "snapshot-taken"))
        task = choices.pick((None, some_task(choices, target)))
        by_us = stage.engine.checkpoint_interval_us * choices.between(1, 8) // 2
        late = plan.LateMessage(trigger=early(choices, target), message="trigger", task=None, by_us=by_us)
        either: tuple[AnyFault, ...] = (plan.FailWrite(trigger=when, task=task), late)
        faults.append(choices.pick(either))
    if not faults or choices.percent(40):
        faults.append(killed(choices, target))
    return stage.scenario("overlapping", faults=tuple(faults[: max(1, frame.max_faults)]))


def overtaken(choices: Choices, frame: Frame) -> Scenario:
    """The trigger of a checkpoint is late to one source.  A task aligns its barriers when the barrier of the next
    checkpoint overtakes, in a job that tolerates no failed checkpoint."""
    recipe = frame.recipe(
        **BOUNDED,
        least_records=20,
        most_records=50,
        shapes=("chain", "union"),
        splits=(2, 3),
        least_operators=1,
        most_operators=2,
        parallelism=(2, 2, 3),
    )
    crowd = Crowd(capacities=(8, 16), alignments=("in-turn", "timeout"))
    stage = crowded_stage(choices, frame, recipe, Tuning(checkpoints=(6, 14), concurrent=(2, 3)), crowd=crowd)
    engine = msgspec.structs.replace(stage.engine, tolerated_failures=0, restart_attempts=4)
    late = _late_trigger(choices, stage.target, 4, engine.checkpoint_interval_us, most=8)
    return with_engine(stage, engine).scenario("overtaken", deviations=(late,))


def timed_out(choices: Choices, frame: Frame) -> Scenario:
    """A task loses acknowledgements, so that one checkpoint more times out in a row than the job tolerates."""
    recipe = frame.recipe(
        **BOUNDED, least_records=40, most_records=80, most_operators=1, parallelism=(1, 1, 2), splits=(1, 2)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(6, 10), concurrent=(1,))
    stage = stage_of(choices, frame, recipe, tuning, tolerated_failures=choices.pick((0, 0, 1)), restart_attempts=4)
    stage = with_engine(stage, with_short_timeout(stage.engine, stage.target))
    faults = lost_acks(choices, stage.target, stage.engine.tolerated_failures + 1)
    return stage.scenario("timed-out", faults=faults[: frame.max_faults])


def given_up_meanwhile(choices: Choices, frame: Frame) -> Scenario:
    """Unaligned checkpoints follow each other faster than records are processed, and one of them begins late."""
    stage, interval_us = _in_quick_succession(choices, frame)
    engine = msgspec.structs.replace(
        stage.engine,
        apply_cost_us=interval_us * choices.between(4, 12) // 4,
        channel_latency_us=interval_us * choices.between(0, 8) // 4,
        snapshot_write_us=interval_us * choices.pick((1, 2, 8, 16)) // 2,
    )
    when = AtTime(at_us=interval_us * choices.between(1, 8))
    by_us = interval_us * choices.between(4, 24)
    late = plan.LateMessage(trigger=when, message="trigger", task=None, by_us=by_us)
    return with_engine(stage, engine).scenario("given-up-meanwhile", faults=(late,))


def declined_upstream(choices: Choices, frame: Frame) -> Scenario:
    """One of several unaligned checkpoints in quick succession is declined.  Tasks downstream are notified of its abort
    before its barrier arrives.  The barrier then waits in front of records that the next barrier overtakes."""
    stage, interval_us = _in_quick_succession(choices, frame)
    quick_us = max(5, interval_us // 8)
    engine = msgspec.structs.replace(
        stage.engine,
        apply_cost_us=interval_us * choices.between(4, 12) // 4,
        channel_latency_us=interval_us * choices.between(4, 12) // 4,
        control_latency_us=quick_us,
        snapshot_write_us=quick_us,
    )
    layout = stage.target.layout
    task = choices.pick(layout.sources + layout.operators)
    when = AtPoint(point="snapshot-taken", task=task, occurrence=choices.between(1, 4))
    declined = plan.FailWrite(trigger=when, task=task)
    return with_engine(stage, engine).scenario("declined-upstream", faults=(declined,))


def _in_quick_succession(choices: Choices, frame: Frame) -> tuple[Stage, int]:
    """A small job with unaligned checkpoints, several at a time, and the time between two of them in µs."""
    recipe = frame.recipe(
        **BOUNDED,
        least_records=6,
        most_records=24,
        shapes=("chain", "union"),
        splits=(1, 2, 3),
        least_operators=1,
        most_operators=3,
        parallelism=(1, 1, 2),
    )
    crowd = Crowd(capacities=(8, 16, 64), alignments=("unaligned",))
    stage = hasty(crowded_stage(choices, frame, recipe, Tuning(concurrent=(3, 2)), crowd=crowd))
    interval_us = max(50, stage.engine.read_interval_us * choices.between(2, 5) // 2)
    return with_engine(stage, msgspec.structs.replace(stage.engine, checkpoint_interval_us=interval_us)), interval_us


def handed_over(choices: Choices, frame: Frame) -> Scenario:
    """A job restores a checkpoint with in-flight data, and records arrive while the in-flight data is put back."""
    recipe = frame.recipe(
        **BOUNDED,
        most_records=30,
        shapes=("chain", "union"),
        splits=(1, 2),
        least_operators=1,
        most_operators=2,
        windows_percent=0,
        parallelism=(1, 2, 2),
    )
    crowd = Crowd(capacities=(4, 3, 8), alignments=("unaligned", "timeout"))
    stage = hasty(crowded_stage(choices, frame, recipe, Tuning(checkpoints=(2, 5), concurrent=(1,)), crowd=crowd))
    blow = killed(choices, stage.target)
    return stage.scenario("handed-over", faults=(blow,))


def idle_and_back(choices: Choices, frame: Frame) -> Scenario:
    """Backpressure keeps a source from reading until it counts as idle.  Then it reads records of windows to which
    other sources have contributed meanwhile, and a task dies."""
    recipe = frame.recipe(
        least_records=60,
        most_records=90,
        shapes=("chain",),
        splits=(2,),
        windows_percent=100,
        windows_in_order=True,
        most_operators=1,
        two_phase_percent=0,
        enumerated_percent=0,
        parallelism=(2,),
        varied_percent=0,
    )
    stage = hasty(stage_of(choices, frame, recipe, Tuning(checkpoints=(2, 4), concurrent=(1,)), channel_capacity=2))
    read_us = stage.engine.read_interval_us
    if frame.workload is None and stage.workload.times():
        workload = loosened(choices, stage.workload, read_us, idle=True)
        stage = msgspec.structs.replace(stage, workload=workload)
    target = stage.target
    idle_us = max(source.idle_after_us for source in stage.workload.inputs)
    sender, receiver = choices.pick([one for one in target.layout.channels if one[0] in target.layout.sources])
    stall = plan.StallChannel(
        trigger=at_some_time(choices, target, share=(5, 50)),
        sender=sender,
        receiver=receiver,
        for_us=2 * idle_us + read_us * choices.between(2, 12),
    )
    blow = plan.KillTask(trigger=at_some_time(choices, target, share=(50, 95)), task=some_task(choices, target))
    return stage.scenario("idle-and-back", faults=(blow, stall)[: max(1, frame.max_faults)])


def kept_to_the_end(choices: Choices, frame: Frame) -> Scenario:
    """Rows wait in an incomplete batch that never fills, and a task or a node dies at the end of
    a checkpoint or of the job."""
    recipe = frame.recipe(
        **BOUNDED,
        least_records=4,
        most_records=16,
        shapes=("chain", "union"),
        splits=(1, 2),
        most_operators=1,
        batches_percent=100,
        windows_percent=0,
        parallelism=(1, 2, 3),
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(4, 8), concurrent=(1, 2)))
    target = stage.target
    last = AtPoint(point="checkpoint-completed", occurrence=choices.between(1, target.checkpoints + 1))
    trigger = last if choices.percent(60) else amid_the_end(choices, target)
    kind = choices.pick(("kill-task", "kill-node"))
    return stage.scenario("kept-to-the-end", faults=(draw_fault(choices, target, kind, trigger),))


def laid_out_sparsely(choices: Choices, frame: Frame) -> Scenario:
    """A job with few records, so that some subtasks have none, or a job with rules is rescaled."""
    recipe = frame.recipe(
        least_records=4,
        most_records=16,
        shapes=("chain", "join"),
        splits=(1, 2),
        most_operators=2,
        windows_percent=0,
        rules_percent=100,
        two_phase_percent=0,
        enumerated_percent=0,
        parallelism=(2, 3, 1),
        varied_percent=50,
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(2, 6), concurrent=(1,)))
    target = stage.target
    commands = _stopped_and_resumed(choices, target, share=(20, 99), cancel_percent=33)
    scenario = stage.scenario("laid-out-sparsely", commands=commands)
    return with_rescaling(choices, scenario, percent=100)


def ended_unnoticed(choices: Choices, frame: Frame) -> Scenario:
    """Sources end at different times, checkpoints overlap, and the trigger of one checkpoint reaches a source so late
    that the source has ended before it can send the barrier."""
    recipe = frame.recipe(
        **BOUNDED,
        most_records=30,
        shapes=("chain", "union"),
        splits=(1, 2),
        most_operators=1,
        apart=True,
        windows_percent=0,
        parallelism=(1, 2, 2),
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 8), concurrent=(2, 3)))
    target = stage.target
    times = choices.pick((1, 2))
    late = [_late_trigger(choices, target, target.checkpoints + 2, target.checkpoint_us, most=8) for _ in range(times)]
    return stage.scenario("ended-unheard", deviations=tuple({one.what: one for one in late}.values()))


def given_meanwhile(choices: Choices, frame: Frame) -> Scenario:
    """Readers request split after split, and the trigger of a checkpoint is late to one of them."""
    recipe = frame.recipe(
        most_records=40,
        shapes=("chain",),
        splits=(6, 8, 5),
        most_operators=1,
        windows_percent=0,
        unbounded_percent=0,
        two_phase_percent=0,
        enumerated_percent=100,
        parallelism=(2, 2, 1, 3),
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(2, 6), concurrent=(1,)))
    target = stage.target
    last = max(1, target.checkpoints - 1)
    late = _late_trigger(choices, target, last, 2 * stage.engine.read_interval_us, most=16)
    return stage.scenario("given-meanwhile", deviations=(late,))


def _stopped_and_resumed(
    choices: Choices, target: Forecast, share: tuple[int, int], cancel_percent: int
) -> tuple[AnyCommand, Resume]:
    """Cancel the job or stop it with a savepoint after a share of its time (per cent), and resume it."""
    asked = at_some_time(choices, target, share=share)
    stop: AnyCommand = Cancel(trigger=asked) if choices.percent(cancel_percent) else StopWithSavepoint(trigger=asked)
    return stop, Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000))))


def _late_trigger(choices: Choices, target: Forecast, last: int, unit_us: int, most: int) -> Perturbation:
    """The trigger of a checkpoint up to the `last` is late to a source, by up to `most` halves of `unit_us`."""
    return Perturbation(
        what=f"control trigger {choices.pick(target.layout.sources)}",
        occurrence=choices.between(1, last),
        by_us=unit_us * choices.between(1, most) // 2,
    )


def hasty(stage: Stage) -> Stage:
    """The stage with few restarts: otherwise an engine that a bug keeps from coming to rest would try for long."""
    return with_engine(stage, msgspec.structs.replace(stage.engine, tolerated_failures=2, restart_attempts=4))


HUNTED: dict[str, Template] = {
    "late-cancel": late_cancel,
    "begun-as-another": begun_as_another,
    "ended-in-flight": ended_in_flight,
    "overlapping": overlapping,
    "overtaken": overtaken,
    "timed-out": timed_out,
    "given-up-meanwhile": given_up_meanwhile,
    "declined-upstream": declined_upstream,
    "handed-over": handed_over,
    "idle-and-back": idle_and_back,
    "kept-to-the-end": kept_to_the_end,
    "laid-out-sparsely": laid_out_sparsely,
    "ended-unheard": ended_unnoticed,
    "given-meanwhile": given_meanwhile,
    "shared-files": shared_files,
    "inherited-files": inherited_files,
    "forked-increments": forked_increments,
    **retained.HUNTED,
    **failing_store.HUNTED,
}
"""the templates by name; `verify` draws them only if they are named"""
