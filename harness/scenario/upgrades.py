"""The upgrades of a scenario's resumes (SNAP-5): what the jobs are called by, and what is wrong with an upgrade."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import msgspec

from ...properties.model.stages import COMMITTERS
from ...properties.model.upgrade import Upgrade, uids_after
from .model import Command, Resume, Scenario

_UID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def upgrade_of(command: Command) -> Upgrade | None:
    """What a resume changes in the job; None for every other command, and if it changes nothing."""
    if isinstance(command, Resume) and isinstance(command.upgrade, Upgrade):
        return command.upgrade
    return None


def among(command: Resume, operators: Collection[str]) -> Upgrade | msgspec.UnsetType:
    """The upgrade of a resume without what it says of operators that are not there."""
    upgrade = upgrade_of(command)
    if upgrade is None:
        return msgspec.UNSET
    renamed = {name: uid for name, uid in upgrade.renamed.items() if name in operators}
    gone = {uid for name, uid in upgrade.renamed.items() if name not in operators}
    moves = {old: new for old, new in upgrade.moves.items() if not {old, new} & gone}
    return msgspec.structs.replace(upgrade, renamed=renamed, moves=moves)


def is_refused(command: Command) -> bool:
    """Whether a job must be refused if it is resumed like this: it has new operators, or gives uids to which its
    mapping moves no state."""
    if isinstance(command, Resume) and command.inserted:
        return True
    upgrade = upgrade_of(command)
    return upgrade is not None and any(
        uid != name and uid not in upgrade.moves.values() for name, uid in upgrade.renamed.items()
    )


def uids_of(scenario: Scenario) -> tuple[Mapping[str, str], ...]:
    """The uids of the operators in a scenario's jobs, in order; without those that are the operators' names."""
    found: list[Mapping[str, str]] = [{}]
    for command in scenario.commands:
        if isinstance(command, Resume):
            upgrade = upgrade_of(command)
            found.append(uids_after(found[-1], upgrade) if upgrade is not None else found[-1])
    return tuple(found)


def upgrade_problems(scenario: Scenario) -> Iterator[str]:
    """What is wrong with the upgrades of a scenario's resumes.

    An operator may have a uid again that it had.  A uid of another operator is never given: its states would be found
    under the wrong one.
    """
    owners = {name: name for name in (*scenario.topology.parallelism, *COMMITTERS)}
    for index, command in enumerate(scenario.commands):
        upgrade = upgrade_of(command)
        if upgrade is not None:
            yield from (f"command {index} (resume): {problem}" for problem in _problems(scenario, upgrade, owners))
            owners.update((uid, name) for name, uid in upgrade.renamed.items())


def _problems(scenario: Scenario, upgrade: Upgrade, owners: Mapping[str, str]) -> Iterator[str]:
    if scenario.engine.guarantee == "at-most-once":
        yield "an at-most-once job restores no snapshot, so an upgrade has no states to find"
    given: dict[str, str] = {}
    for name, uid in upgrade.renamed.items():
        if name not in scenario.topology.parallelism:
            yield f"upgrade.renamed: there is no operator {name!r}"
        elif not _UID.fullmatch(uid):
            yield f"upgrade.renamed: {uid!r} cannot be a uid (letters, digits, - and _)"
        elif given.setdefault(uid, owners.get(uid, name)) != name:
            yield f"upgrade.renamed: {name} cannot have the uid {uid!r}, which is or was that of {given[uid]}"
    known = {**owners, **given}
    for old, new in upgrade.moves.items():
        lost = [uid for uid in (old, new) if uid not in known]
        if lost:
            yield f"upgrade.moves: no operator has or had the uid {lost[0]!r}"
        elif known[old] != known[new]:
            yield f"upgrade.moves: {old!r} is a uid of {known[old]}, and {new!r} one of {known[new]}"
