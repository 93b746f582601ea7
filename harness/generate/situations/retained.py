"""Several snapshots are retained, and the older ones are needed: they are forked, and jobs are resumed from them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ....faults.plan import AnyFault, AtRest, AtTime, FailWrite, KillCoordinator
from ...scenario.model import AnyCommand, Cancel, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..copies import copies, death_amid_a_copy, write_of_a_copy
from ..deletions import death_amid_a_deletion, deletions
from ..engines import Tuning
from ..faults.draw_faults import at_some_time, some_task
from ..other_operators import with_other_operators
from ..stage import Frame, stage_of
from ..upgrading import with_upgrades
from . import extras


def retained(choices: Choices, frame: Frame) -> Scenario:
    """A user takes a savepoint early, and newer checkpoints complete behind it, while the sources let their logs go.

    At rest every retained snapshot is forked.  Half of the jobs are stopped before, and resumed from the savepoint or
    from the oldest snapshot; then a task dies.
    """
    recipe = frame.recipe(
        most_records=60, least_records=20, most_operators=2, parallelism=(1, 2, 2, 3), splits=(1, 2, 3)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(4, 9), memory_percent=6)
    keep = choices.pick((2, 3, 2, 1))
    stage = stage_of(
        choices, frame, recipe, tuning, retained_checkpoints=keep, trims_logs=frame.trims_logs, pooled_ids=False
    )
    target = stage.target
    commands: tuple[AnyCommand, ...] = (Savepoint(trigger=at_some_time(choices, target, share=(5, 45)), name="early"),)
    faults: tuple[AnyFault, ...] = (extras.kill(choices, target),) if choices.percent(60) else ()
    if frame.resumes_older and choices.percent(50):
        asked = at_some_time(choices, target, share=(50, 90))
        stop: AnyCommand = Cancel(trigger=asked) if choices.percent(50) else StopWithSavepoint(trigger=asked)
        pause_us = choices.pick((1_000, 0))
        again = Resume(trigger=AtTime(at_us=pause_us), snapshot=choices.pick(("early", "oldest")))
        commands = (*commands, stop, again)
        soon_us = asked.at_us + pause_us + choices.pick((4_000, 8_000, 2_000))
        faults = (*faults, replace(extras.kill(choices, target), trigger=AtTime(at_us=soon_us)))
    if frame.knows_forks:
        commands = (*commands, Fork(trigger=AtRest()))
    return stage.scenario("retained", faults=faults[: frame.max_faults], commands=commands)


def deleted(choices: Choices, frame: Frame) -> Scenario:
    """A user deletes an early savepoint, or another snapshot, mostly of a job with incremental checkpoints.  The
    coordinator may die amid the deletion, and at the end the job may be forked from each snapshot that is left."""
    recipe = frame.recipe(
        most_records=60, least_records=20, most_operators=2, parallelism=(1, 2, 2, 3), splits=(1, 2, 3)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(5, 9), memory_percent=0)
    keep = choices.pick((8, 2, 8, 3))
    stage = stage_of(
        choices, frame, recipe, tuning, retained_checkpoints=keep, trims_logs=frame.trims_logs, pooled_ids=False
    )
    if frame.knows_formats and choices.percent(60):
        stage = replace(stage, engine=replace(stage.engine, snapshot_format="incremental", full_every=8))
    commands = deletions(choices, stage.target)
    faults: tuple[AnyFault, ...] = (death_amid_a_deletion(choices),) if choices.percent(50) else ()
    if choices.percent(40):
        faults = (*faults, extras.kill(choices, stage.target))
    if frame.knows_forks and choices.percent(40):
        commands = (*commands, Fork(trigger=AtRest()))
    return stage.scenario("deleted", faults=faults[: frame.max_faults], commands=commands)


def claimed(choices: Choices, frame: Frame) -> Scenario:
    """A job is stopped, and the next one claims the snapshot from which it goes on, or leaves it to its user.

    It takes more checkpoints than it keeps.  Amid these a task or the coordinator may die, and at the end each retained
    snapshot may be forked.
    """
    recipe = frame.recipe(
        most_records=80, least_records=40, most_operators=2, parallelism=(1, 2, 2, 3), splits=(1, 2, 3)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(7, 12), memory_percent=0)
    stage = stage_of(choices, frame, recipe, tuning, retained_checkpoints=choices.pick((1, 2, 1, 3)), pooled_ids=False)
    if frame.knows_formats and choices.percent(75):
        stage = replace(stage, engine=replace(stage.engine, snapshot_format="incremental", full_every=8))
    target = stage.target
    asked = at_some_time(choices, target, share=(25, 60))
    stop: AnyCommand = Cancel(trigger=asked) if choices.percent(50) else StopWithSavepoint(trigger=asked)
    pause_us = choices.pick((1_000, 0))
    again = Resume(trigger=AtTime(at_us=pause_us), claim_mode=choices.pick(("no-claim", "claim")))
    commands: tuple[AnyCommand, ...] = (stop, again)
    faults: tuple[AnyFault, ...] = ()
    if choices.percent(40):
        soon_us = asked.at_us + pause_us + choices.pick((4_000, 8_000, 2_000))
        soon = AtTime(at_us=soon_us)
        death: AnyFault = KillCoordinator(trigger=soon) if choices.percent(50) else extras.kill(choices, target)
        faults = (replace(death, trigger=soon),)
    if frame.knows_forks and choices.percent(30):
        commands = (*commands, Fork(trigger=AtRest()))
    return stage.scenario("claimed", faults=faults[: frame.max_faults], commands=commands)


def declined_first(choices: Choices, frame: Frame) -> Scenario:
    """A job goes on from a snapshot that it leaves to its user.  A task cannot write its part of one of the job's first
    checkpoints, so that this is aborted, and another one completes."""
    recipe = frame.recipe(
        most_records=60, least_records=30, least_operators=1, most_operators=2, parallelism=(1, 1, 2), splits=(1, 2)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(7, 12), concurrent=(1,), memory_percent=0)
    stage = stage_of(choices, frame, recipe, tuning, tolerated_failures=4, pooled_ids=False)
    if frame.knows_formats:
        stage = replace(stage, engine=replace(stage.engine, snapshot_format="incremental", full_every=8))
    asked = at_some_time(choices, stage.target, share=(25, 60))
    stop: AnyCommand = Cancel(trigger=asked) if choices.percent(50) else StopWithSavepoint(trigger=asked)
    again = Resume(trigger=AtTime(at_us=1_000), claim_mode="no-claim")
    soon = AtTime(at_us=asked.at_us + 1_000 + choices.pick((2_000, 4_000, 8_000)))
    declined = FailWrite(trigger=soon, task=some_task(choices, stage.target))
    return stage.scenario("declined-first", faults=(declined,)[: frame.max_faults], commands=(stop, again))


def referred(choices: Choices, frame: Frame) -> Scenario:
    """A running job is forked by reference.  Both it and the forked jobs take more checkpoints than they keep, mostly
    incremental ones, so each of them needs files no more that another one needs."""
    recipe = frame.recipe(
        most_records=80, least_records=40, most_operators=2, parallelism=(1, 2, 2, 3), splits=(1, 2, 3)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(7, 12), memory_percent=0)
    stage = stage_of(choices, frame, recipe, tuning, retained_checkpoints=choices.pick((1, 2, 1, 3)), pooled_ids=False)
    if frame.knows_formats and choices.percent(75):
        stage = replace(stage, engine=replace(stage.engine, snapshot_format="incremental", full_every=8))
    asked = at_some_time(choices, stage.target, share=(20, 60))
    commands: tuple[AnyCommand, ...] = (Fork(trigger=asked, snapshot="oldest", by_reference=True),)
    if choices.percent(50):
        commands = (*commands, Fork(trigger=AtRest(), by_reference=True))
    return stage.scenario("referred", commands=commands)


def upgraded(choices: Choices, frame: Frame) -> Scenario:
    """A job is stopped with a savepoint, and the next one has other uids, or sums of another type.  A task or the
    coordinator may die in it, before its first checkpoint or behind it."""
    recipe = frame.recipe(
        most_records=60,
        least_records=20,
        least_operators=1,
        most_operators=2,
        parallelism=(1, 2, 2, 3),
        splits=(1, 2, 3),
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(4, 9), memory_percent=6)
    stage = stage_of(choices, frame, recipe, tuning, retained_checkpoints=choices.pick((1, 2)), pooled_ids=False)
    target = stage.target
    asked, pause_us = at_some_time(choices, target, share=(25, 60)), choices.pick((1_000, 0))
    commands: tuple[AnyCommand, ...] = (StopWithSavepoint(trigger=asked), Resume(trigger=AtTime(at_us=pause_us)))
    faults: tuple[AnyFault, ...] = ()
    if choices.percent(75):
        soon = AtTime(at_us=asked.at_us + pause_us + target.checkpoint_us * choices.pick((1, 2, 4, 6)) // 2 + 3_000)
        death: AnyFault = KillCoordinator(trigger=soon) if choices.percent(25) else extras.kill(choices, target)
        faults = (replace(death, trigger=soon),)
    scenario = stage.scenario("upgraded", faults=faults[: frame.max_faults], commands=commands)
    if not frame.knows_upgrades:
        return scenario
    return with_upgrades(choices, scenario, percent=100, takes_sums=frame.takes_sums)


def other_operators(choices: Choices, frame: Frame) -> Scenario:
    """A job is stopped with a savepoint, and the next one has an operator more or less; mostly a third one has the
    former operators again.  A task or the coordinator may die in the second."""
    recipe = frame.recipe(
        most_records=80,
        least_records=30,
        least_operators=1,
        most_operators=3,
        parallelism=(1, 2, 2, 3),
        splits=(1, 2, 3),
        shapes=("chain", "chain", "union"),
        windows_percent=0,
        clocked_percent=0,
        batches_percent=0,
        tallies_percent=0,
        retractions_percent=0,
        two_phase_percent=10,
    )
    guarantees = tuple(one for one in ("exactly-once", "exactly-once", "at-least-once") if one in frame.guarantees)
    sinks = tuple(one for one in ("transactional", "plain") if one in frame.sinks)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), sinks=sinks or ("idempotent",), checkpoints=(4, 9))
    stage = stage_of(choices, frame, recipe, tuning, retained_checkpoints=choices.pick((1, 2)), pooled_ids=False)
    target = stage.target
    asked, pause_us = at_some_time(choices, target, share=(20, 45)), choices.pick((1_000, 0))
    commands: tuple[AnyCommand, ...] = (StopWithSavepoint(trigger=asked), Resume(trigger=AtTime(at_us=pause_us)))
    if choices.percent(60):
        again = AtTime(at_us=asked.at_us + pause_us + target.span_us * choices.between(10, 40) // 100 + 4_000)
        commands = (*commands, StopWithSavepoint(trigger=again), Resume(trigger=AtTime(at_us=1_000)))
    faults: tuple[AnyFault, ...] = ()
    if choices.percent(50):
        soon = AtTime(at_us=asked.at_us + pause_us + target.checkpoint_us * choices.pick((1, 2, 4, 6)) // 2 + 3_000)
        death: AnyFault = KillCoordinator(trigger=soon) if choices.percent(25) else extras.kill(choices, target)
        faults = (replace(death, trigger=soon),)
    scenario = stage.scenario("other-operators", faults=faults[: frame.max_faults], commands=commands)
    return with_other_operators(choices, scenario, percent=100) if frame.knows_other_operators else scenario


def copied(choices: Choices, frame: Frame) -> Scenario:
    """A user has a snapshot copied or moved, mostly of a job with incremental checkpoints.  The coordinator may die
    meanwhile, and at the end the job is forked from each snapshot and from each copy."""
    recipe = frame.recipe(
        most_records=60, least_records=20, most_operators=2, parallelism=(1, 2, 2, 3), splits=(1, 2, 3)
    )
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(5, 9), memory_percent=0)
    stage = stage_of(choices, frame, recipe, tuning, retained_checkpoints=choices.pick((8, 2, 3)), pooled_ids=False)
    if frame.knows_formats and choices.percent(60):
        stage = replace(stage, engine=replace(stage.engine, snapshot_format="incremental", full_every=8))
    commands = copies(choices, stage.target)
    hit = write_of_a_copy if choices.percent(40) else death_amid_a_copy
    faults: tuple[AnyFault, ...] = (hit(choices),) if choices.percent(50) else ()
    if choices.percent(40):
        faults = (*faults, extras.kill(choices, stage.target))
    if frame.knows_forks and choices.percent(50):
        commands = (*commands, Fork(trigger=AtRest()))
    return stage.scenario("copied", faults=faults[: frame.max_faults], commands=commands)


HUNTED: dict[str, Callable[[Choices, Frame], Scenario]] = {
    "deleted": deleted,
    "claimed": claimed,
    "declined-first": declined_first,
    "referred": referred,
    "upgraded": upgraded,
    "other-operators": other_operators,
    "copied": copied,
}
TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"retained": retained}
