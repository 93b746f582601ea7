"""Resumes with an upgrade: operators with other uids, and the mapping by which their states are found (SNAP-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ...faults.plan import AtTime
from ...properties.model.upgrade import Upgrade
from ..scenario.model import AnyCommand, Resume, Scenario, StopWithSavepoint
from .choices import Choices

UPGRADED_PERCENT = 12
"""the share of resumes from a savepoint that upgrade the job"""


def with_upgrades(choices: Choices, scenario: Scenario, *, percent: int = UPGRADED_PERCENT) -> Scenario:
    """The scenario, at times with resumes that give operators other uids.

    The mapping mostly has all that is needed.  At times a job comes first whose mapping lacks something, and which is
    refused; its user then adds what is missing, or takes the old uids again.
    """
    if scenario.engine.guarantee == "at-most-once":
        return scenario
    commands: list[AnyCommand] = []
    given: dict[str, list[str]] = {}
    """by operator, the uids that it had or has, the latest last"""
    for command in scenario.commands:
        if isinstance(command, Resume) and not command.inserted and command.upgrade is UNSET:
            if _from_a_savepoint(command, commands) and choices.percent(percent):
                commands += _upgraded(choices, command, list(scenario.topology.parallelism), given)
                continue
            if given:  # the snapshot may be older than the last upgrade
                command = replace(command, upgrade=Upgrade(moves=moves_to_the_latest(given)))
        commands.append(command)
    return replace(scenario, commands=tuple(commands)) if given else scenario


def moves_to_the_latest(given: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The moves from every earlier uid of an operator to its latest."""
    return {old: uids[-1] for uids in given.values() for old in uids[:-1] if old != uids[-1]}


def _from_a_savepoint(command: Resume, before: Sequence[AnyCommand]) -> bool:
    """Whether the job begins with a savepoint, unless a fault prevents that."""
    return command.snapshot not in ("newest", "oldest") or (
        command.snapshot == "newest" and any(isinstance(one, StopWithSavepoint) for one in before[-1:])
    )


def _upgraded(
    choices: Choices, command: Resume, operators: list[str], given: dict[str, list[str]]
) -> tuple[Resume, ...]:
    """The resume with an upgrade; at times another one in front of it, which is refused."""
    chosen = dict.fromkeys(choices.pick(operators) for _ in range(choices.pick((1, 1, 2, 3))))
    before = {name: list(given.get(name, [name])) for name in chosen}
    for name in chosen:
        uids = given.setdefault(name, [name])
        uids.append(f"{name}-as-{len(uids) + 1}")
    renamed = {name: given[name][-1] for name in chosen}
    moves = moves_to_the_latest(given)
    whole = replace(command, upgrade=Upgrade(renamed=renamed, moves=moves))
    sort = choices.between(0, 9)
    if sort < 6:
        return (whole,)
    lacking = choices.pick(list(renamed.values()))
    fewer = {old: new for old, new in moves.items() if new != lacking}
    refused = Resume(
        trigger=AtTime(at_us=1_000),
        snapshot=command.snapshot,
        upgrade=Upgrade(renamed=renamed, moves=fewer if choices.percent(50) else {}),
    )
    if sort < 9:
        return refused, whole
    for name, uids in before.items():
        given[name] = [*given[name], uids[-1]]
    back = {name: uids[-1] for name, uids in before.items()}
    return refused, replace(command, upgrade=Upgrade(renamed=back, moves=moves_to_the_latest(given)))
