"""The formats of a scenario's snapshots: of checkpoints, and of savepoints that name their own."""

from __future__ import annotations

import msgspec

from ..scenario.model import AnyCommand, Savepoint, Scenario, StopWithSavepoint, format_of
from .choices import Choices

SHARE = 40
"""per cent of the scenarios whose checkpoints are not canonical"""


def with_formats(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, often with incremental or native checkpoints, and with savepoints in formats of their own.

    Snapshots in the coordinator's memory are left as they are, since they have no files; with at-most-once there are
    none.
    """
    engine = scenario.engine
    if engine.snapshot_store == "memory" or engine.guarantee == "at-most-once":
        return scenario
    if engine.snapshot_format == "canonical" and choices.percent(SHARE):
        engine = msgspec.structs.replace(
            engine,
            snapshot_format=choices.pick(("incremental", "incremental", "incremental", "native")),
            full_every=choices.pick((4, 2, 3, 8, 1)),
        )
    commands = tuple(_in_some_format(choices, command) for command in scenario.commands)
    return msgspec.structs.replace(scenario, engine=engine, commands=commands)


def _in_some_format(choices: Choices, command: AnyCommand) -> AnyCommand:
    """A savepoint of the job's own format, or of another."""
    if not isinstance(command, Savepoint | StopWithSavepoint) or format_of(command) or not choices.percent(SHARE):
        return command
    return msgspec.structs.replace(command, format=choices.pick(("canonical", "native", "incremental")))
