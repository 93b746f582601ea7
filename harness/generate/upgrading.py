"""Resumes with an upgrade: operators with other uids or types, and the mapping of their states (SNAP-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ...faults.plan import AtTime
from ...properties.model.upgrade import CONVERSION, HUNDREDTHS, WHOLE, Upgrade
from ...properties.model.workload import Count, Dedup, Greater, Model, Sum, is_signed
from ...properties.semantics.classes import class_of
from ..scenario.model import AnyCommand, Resume, Scenario, StopWithSavepoint
from ..scenario.upgrades import sums
from .choices import Choices

UPGRADED_PERCENT = 12
"""the share of resumes from a savepoint that upgrade the job"""
RETYPED_PERCENT = 75
"""the share of upgrades of a job with a sum that change the type of its state"""

ALIKE = (Count, Dedup, Greater, Model)
"""operators of one input that keep a state by key, as a sum does"""


class Given(msgspec.Struct):
    """What the jobs so far have."""

    uids: dict[str, list[str]]
    """by operator that was renamed, the uids that it had or has, the latest last"""
    retyped: dict[str, None]
    """the sums whose state is in hundredths"""

    def mapping(self) -> Upgrade:
        """A mapping from the snapshots of all jobs so far: to each latest uid, and to hundredths."""
        converts = {uid: CONVERSION for name in self.retyped for uid in self.uids.get(name, [name])}
        return Upgrade(moves=moves_to_the_latest(self.uids), converts=converts)


def with_upgrades(
    choices: Choices, scenario: Scenario, *, percent: int = UPGRADED_PERCENT, takes_sums: bool = True
) -> Scenario:
    """The scenario, at times with resumes that give operators other uids, and sums another type of state.

    The mapping mostly has all that is needed.  At times a job comes first whose mapping lacks something, and which is
    refused; its user then adds what is missing, or takes the old uids and types again.
    """
    if scenario.engine.guarantee == "at-most-once":
        return scenario
    counted = scenario
    scenario = _with_a_sum(choices, scenario) if takes_sums else scenario
    commands: list[AnyCommand] = []
    given = Given(uids={}, retyped={})
    upgraded = False
    for command in scenario.commands:
        if isinstance(command, Resume) and not command.inserted and command.upgrade is UNSET:
            if _from_a_savepoint(command, commands) and choices.percent(percent):
                commands += _upgraded(choices, command, scenario, given)
                upgraded = True
                continue
            if upgraded:  # the snapshot may be older than the last upgrade
                command = replace(command, upgrade=given.mapping())
        commands.append(command)
    return replace(scenario, commands=tuple(commands)) if upgraded else counted


def _with_a_sum(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, mostly with a sum in the place of another operator by key, if it has no sum: few have one."""
    nodes = scenario.workload.nodes
    by_key = [at for at, one in enumerate(nodes) if isinstance(one.operator, ALIKE) and not is_signed(one.operator)]
    if not by_key or sums(scenario.workload) or scenario.engine.sink == "idempotent" or not choices.percent(75):
        return scenario  # an idempotent sink may recognise the rows of others by their keys
    chosen = choices.pick(by_key)
    changed = tuple(replace(one, operator=Sum()) if at == chosen else one for at, one in enumerate(nodes))
    workload, topology = replace(scenario.workload, nodes=changed), scenario.topology
    if class_of(workload, topology) != class_of(scenario.workload, topology):
        return scenario  # a sum shows in which order its rows came where another operator does not
    return replace(scenario, workload=workload)


def moves_to_the_latest(given: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The moves from every earlier uid of an operator to its latest."""
    return {old: uids[-1] for uids in given.values() for old in uids[:-1] if old != uids[-1]}


def _from_a_savepoint(command: Resume, before: Sequence[AnyCommand]) -> bool:
    """Whether the job begins with a savepoint, unless a fault prevents that."""
    return command.snapshot not in ("newest", "oldest") or (
        command.snapshot == "newest" and any(isinstance(one, StopWithSavepoint) for one in before[-1:])
    )


def _upgraded(choices: Choices, command: Resume, scenario: Scenario, given: Given) -> tuple[Resume, ...]:
    """The resume with an upgrade; at times another one in front of it, which is refused."""
    operators = list(scenario.topology.parallelism)
    types = {name: HUNDREDTHS for name in sums(scenario.workload) if name not in given.retyped}
    if command.snapshot != "newest" or not types or not choices.percent(RETYPED_PERCENT):
        types = {}
    number = choices.pick((1, 1, 2, 3)) if not types else choices.pick((0, 0, 1, 2))
    chosen = dict.fromkeys(choices.pick(operators) for _ in range(number))
    before = {name: list(given.uids.get(name, [name])) for name in chosen}
    for name in chosen:
        uids = given.uids.setdefault(name, [name])
        uids.append(f"{name}-as-{len(uids) + 1}")
    given.retyped.update(dict.fromkeys(types))
    renamed = {name: given.uids[name][-1] for name in chosen}
    wanted = replace(given.mapping(), renamed=renamed, retyped=types)
    whole = replace(command, upgrade=wanted)
    sort = choices.between(0, 9)
    if sort < 6:
        return (whole,)
    refused = Resume(trigger=AtTime(at_us=1_000), snapshot=command.snapshot, upgrade=_lacking(choices, wanted))
    if sort < 9:
        return refused, whole
    for name, uids in before.items():
        given.uids[name] = [*given.uids[name], uids[-1]]
    for name in types:
        given.retyped.pop(name)
    back = replace(
        given.mapping(), renamed={name: uids[-1] for name, uids in before.items()}, retyped=dict.fromkeys(types, WHOLE)
    )
    return refused, replace(command, upgrade=back)


def _lacking(choices: Choices, wanted: Upgrade) -> Upgrade:
    """The upgrade whose mapping lacks something that it needs."""
    if wanted.retyped and (not wanted.renamed or choices.percent(50)):
        return replace(wanted, converts={})
    lacking = choices.pick(list(wanted.renamed.values()))
    fewer = {old: new for old, new in wanted.moves.items() if new != lacking}
    return replace(wanted, moves=fewer if choices.percent(50) else {})
