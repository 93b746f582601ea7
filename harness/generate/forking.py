"""Forks, and resumes from other snapshots than the newest: what shows that a retained snapshot can be restored."""

from __future__ import annotations

from msgspec.structs import replace

from ...faults.plan import AtRest
from ..scenario.forecast import Forecast, forecast
from ..scenario.model import AnyCommand, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from ..scenario.upgrades import is_refused, upgrade_of
from .choices import Choices
from .faults.draw_faults import at_some_time
from .situations.rescaling import parallelism_of_a_fork

FORKED_PERCENT = 2
"""the share of scenarios with forks: each forked job costs about as much as the scenario itself"""
BY_REFERENCE_PERCENT = 40
"""the share of forks that refer to the files of their origin"""
OLDER_PERCENT = 10
"""the share of resumes that do not take the newest snapshot"""
CLAIM_PERCENT = 30
"""the share of resumes that claim the snapshot, or say that they do not"""


def with_claims(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario with resumes some of which say whose the snapshot is: the new job's, or its user's."""
    if scenario.engine.guarantee == "at-most-once":
        return scenario
    return replace(scenario, commands=tuple(_claiming(choices, one) for one in scenario.commands))


def _claiming(choices: Choices, command: AnyCommand) -> AnyCommand:
    if not isinstance(command, Resume) or command.claim_mode != "by-kind" or not choices.percent(CLAIM_PERCENT):
        return command
    return replace(command, claim_mode=choices.pick(("no-claim", "claim")))


def with_forks(choices: Choices, scenario: Scenario, *, percent: int = FORKED_PERCENT) -> Scenario:
    """The scenario, at times with forks: at rest from each retained snapshot, and now and then amid the records.

    Several snapshots are retained then, and the sources let their logs go, so that an older snapshot may lack
    something.
    """
    if scenario.engine.guarantee == "at-most-once":  # it restores no snapshot; a crossed scenario may have a fork
        return replace(scenario, commands=tuple(one for one in scenario.commands if not isinstance(one, Fork)))
    if not choices.percent(percent):
        return _with_references(choices, scenario)
    trims = scenario.engine.trims_logs or choices.percent(75)
    engine = replace(scenario.engine, retained_checkpoints=choices.pick((2, 3, 1)), trims_logs=trims)
    scenario = replace(scenario, engine=engine)
    target = forecast(scenario.workload, scenario.topology, engine)
    forks: list[AnyCommand] = [_fork(choices, scenario, target, amid=False)]
    if choices.percent(40):
        forks.append(_fork(choices, scenario, target, amid=True))
    return _with_references(choices, replace(scenario, commands=(*scenario.commands, *forks)))


def _fork(choices: Choices, scenario: Scenario, target: Forecast, *, amid: bool) -> Fork:
    trigger = at_some_time(choices, target) if amid else AtRest()
    parallelism = parallelism_of_a_fork(choices, scenario) if choices.percent(50) else {}
    return Fork(trigger=trigger, snapshot=choices.pick(("each", "each", "oldest")), parallelism=parallelism)


def _with_references(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario with forks some of which refer to the files of their origin; none does if there are no files."""
    if not any(isinstance(one, Fork) for one in scenario.commands):
        return scenario
    has_files, apart = scenario.engine.snapshot_store == "files", choices.apart("references")
    commands = tuple(
        replace(one, by_reference=has_files and (one.by_reference or apart.percent(BY_REFERENCE_PERCENT)))
        if isinstance(one, Fork)
        else one
        for one in scenario.commands
    )
    return replace(scenario, commands=commands)


def with_older_snapshots(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, at times with a resume from another snapshot than the newest; then two are retained."""
    commands = list(scenario.commands)
    older = [
        at for at, one in enumerate(commands) if isinstance(one, Resume) and not is_refused(one, scenario.workload)
    ]
    engine = scenario.engine
    if not older or engine.guarantee == "at-most-once" or engine.failover == "local" or engine.pooled_ids:
        return scenario
    if not choices.percent(OLDER_PERCENT):
        return scenario
    at, snapshot = choices.pick(older), "oldest"
    saves = [number for number, one in enumerate(commands[:at]) if isinstance(one, Savepoint | StopWithSavepoint)]
    upgrade = upgrade_of(commands[at])
    upgraded = upgrade is not None
    if upgrade is not None and (upgrade.retyped or upgrade.removed or upgrade.added or not saves):
        return scenario  # the oldest may be a checkpoint, and behind an older one the job before had other rows
    if saves and (upgraded or choices.percent(50)):
        number, snapshot = choices.pick(saves), "saved"
        commands[number] = replace(commands[number], name=snapshot)
    commands[at] = replace(commands[at], snapshot=snapshot)
    engine = replace(scenario.engine, retained_checkpoints=max(2, scenario.engine.retained_checkpoints))
    return replace(scenario, commands=tuple(commands), engine=engine)
