"""The upgrades of a scenario's resumes (SNAP-5): what the jobs are called by, and what is wrong with an upgrade."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

import msgspec

from ...properties.model.absent import first_absent
from ...properties.model.stages import COMMITTERS
from ...properties.model.upgrade import CONVERSION, HUNDREDTHS, SCALES, Upgrade, absent_after, types_after, uids_after
from ...properties.model.workload import (
    STATEFUL,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Map,
    Model,
    Sum,
    Union,
    Workload,
    is_signed,
    problems,
)
from .model import Command, Resume, Scenario

_Known = TypeVar("_Known")

CHANGEABLE = (Map, Filter, Count, Sum, Dedup, Greater, Model)
"""The operators that can be added to a job or removed from it."""
BESIDE_CHANGES = (*CHANGEABLE, FlatMap, Union)
"""The operators that a workload can have whose nodes are added or removed.  Of others it is not described what they
make of rows that reach them through other nodes than before."""
_KINDS = "maps, filters, flat maps, unions, counts, sums, deduplications, greaters and models that take no rows back"

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
    removed, added = ([name for name in names if name in operators] for names in (upgrade.removed, upgrade.added))
    begin_empty = tuple(uid for uid in upgrade.begin_empty if uid not in gone and (uid in operators or added))
    moves = {old: new for old, new in upgrade.moves.items() if not {old, new} & gone}
    retyped = {name: kind for name, kind in upgrade.retyped.items() if name in operators}
    converts = {uid: how for uid, how in upgrade.converts.items() if uid not in gone and (uid in operators or retyped)}
    return msgspec.structs.replace(
        upgrade,
        renamed=renamed,
        retyped=retyped,
        moves=moves,
        converts=converts,
        removed=tuple(removed),
        added=tuple(added),
        begin_empty=begin_empty,
    )


def is_refused(command: Command, workload: Workload) -> bool:
    """Whether a job must be refused if it is resumed like this: it has new operators that are not to begin empty, or
    drops state without its user's permission, or gives uids to which its mapping moves no state, or types to which it
    converts none."""
    if isinstance(command, Resume) and command.inserted:
        return True
    upgrade = upgrade_of(command)
    if upgrade is None:
        return False
    if not upgrade.allow_non_restored_state and any(name in keeping_state(workload) for name in upgrade.removed):
        return True
    if any(name not in upgrade.begin_empty for name in upgrade.added):
        return True
    return any(uid != name and uid not in upgrade.moves.values() for name, uid in upgrade.renamed.items()) or (
        HUNDREDTHS in upgrade.retyped.values() and not upgrade.converts
    )


def uids_of(scenario: Scenario) -> tuple[Mapping[str, str], ...]:
    """The uids of the operators in a scenario's jobs, in order; without those that are the operators' names."""
    return _folded(scenario, {}, uids_after)


def types_of(scenario: Scenario) -> tuple[Mapping[str, str], ...]:
    """The types of the states of the sums in a scenario's jobs, in order; without those that are whole."""
    return _folded(scenario, {}, types_after)


def absent_of(scenario: Scenario) -> tuple[tuple[str, ...], ...]:
    """The nodes of the workload that a scenario's jobs lack, in order."""
    return _folded(scenario, first_absent(scenario.workload), absent_after)


def _folded(scenario: Scenario, first: _Known, after: Callable[[_Known, Upgrade], _Known]) -> tuple[_Known, ...]:
    """Something of each job: of the first one, and `after` the upgrade of each resume."""
    found = [first]
    for command in scenario.commands:
        if isinstance(command, Resume):
            upgrade = upgrade_of(command)
            found.append(after(found[-1], upgrade) if upgrade is not None else found[-1])
    return tuple(found)


def keeping_state(workload: Workload) -> list[str]:
    """The nodes whose state a job drops if they are removed from it."""
    return [node.name for node in workload.nodes if isinstance(node.operator, STATEFUL)]


def changeable(scenario: Scenario) -> list[str]:
    """The nodes that can be added to a job or removed from it."""
    nodes = [node for node in scenario.workload.nodes if isinstance(node.operator, CHANGEABLE)]
    return [node.name for node in nodes if node.name not in scenario.engine.two_phase]


def sums(workload: Workload) -> list[str]:
    """The nodes whose state can have another type: sums that are not signed."""
    return [node.name for node in workload.nodes if isinstance(node.operator, Sum) and not node.operator.signed]


def upgrade_problems(scenario: Scenario) -> Iterator[str]:
    """What is wrong with the upgrades of a scenario's resumes.

    An operator may have a uid again that it had.  A uid of another operator is never given: its states would be found
    under the wrong one.  The uid of an inserted operator is its name.
    """
    if any(absent_of(scenario)):
        yield from _change_problems(scenario)
    yield from _idle_changes(scenario)
    owners = {name: name for name in (*scenario.topology.parallelism, *COMMITTERS)}
    for index, command in enumerate(scenario.commands):
        if not isinstance(command, Resume):
            continue
        where, upgrade = f"command {index} (resume)", upgrade_of(command)
        if upgrade is not None:
            yield from (f"{where}: {problem}" for problem in _problems(scenario, upgrade, owners))
            owners.update((uid, name) for name, uid in upgrade.renamed.items())
        for name in command.inserted:
            if owners.setdefault(name, name) != name:
                yield f"{where}: a new operator cannot have the uid {name!r}, which is or was that of {owners[name]}"


def _idle_changes(scenario: Scenario) -> Iterator[str]:
    """The nodes that are added though they are there, or removed though they are not.

    Behind a resume that is refused, the next one may say the same again: its job is the first that has the change.
    """
    before, can_change = [first_absent(scenario.workload)], changeable(scenario)
    for index, command in enumerate(scenario.commands):
        if not isinstance(command, Resume):
            continue
        now, where, upgrade = before[-1], f"command {index} (resume)", upgrade_of(command)
        if upgrade is not None:
            for name in upgrade.added:
                if name in can_change and not any(name in absent for absent in before):
                    yield f"{where}: upgrade.added: the job before has {name} already"
            for name in upgrade.removed:
                if all(name in absent for absent in before):
                    yield f"{where}: upgrade.removed: the job before does not have {name}"
            now = absent_after(now, upgrade)
        before = [*before, now] if is_refused(command, scenario.workload) else [now]


def _change_problems(scenario: Scenario) -> Iterator[str]:
    """What is wrong with a scenario whose jobs do not have all nodes of the workload."""
    workload, topology = scenario.workload, scenario.topology
    if scenario.engine.sink == "idempotent":
        yield "an idempotent sink knows rows by what the last node makes: no job can have other nodes than the first"
    for node in workload.nodes:
        if not isinstance(node.operator, BESIDE_CHANGES) or is_signed(node.operator):
            yield f"nodes can be added and removed only in a workload of {_KINDS}; {node.name} is none of these"
    for source in workload.inputs:
        if source.times:
            yield f"nodes can be added and removed only where no input has event time, and {source.name} has it"
    if problems(workload, topology):
        return
    yield from _inserted_before_absent(scenario)
    can_change = changeable(scenario)
    for job, absent in enumerate(absent_of(scenario), 1):
        for name in absent:
            if name not in can_change:
                yield f"job {job} cannot lack {name!r}, which is no node that can be added or removed"


def _inserted_before_absent(scenario: Scenario) -> Iterator[str]:
    resumes = [command for command in scenario.commands if isinstance(command, Resume)]
    for job, (resume, absent) in enumerate(zip(resumes, absent_of(scenario)[1:], strict=True), 2):
        for name, behind in resume.inserted.items():
            if behind in absent:
                yield f"{name} is to be inserted before {behind!r}, which job {job} does not have"


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
    for name, kind in upgrade.retyped.items():
        if name not in sums(scenario.workload):
            yield f"upgrade.retyped: {name!r} is no sum, or one that takes rows back"
        elif kind not in SCALES:
            yield f"upgrade.retyped: {kind!r} is no type of a sum's state; it can be {', '.join(SCALES)}"
    for name in (*upgrade.removed, *upgrade.added):
        if name not in changeable(scenario):
            yield f"upgrade: {name!r} is no node that can be added or removed"
        elif name in upgrade.removed and name in upgrade.added:
            yield f"upgrade: {name} cannot be both added and removed"
    for field in ("removed", "added", "begin_empty"):
        names = Counter(getattr(upgrade, field))
        yield from (f"upgrade.{field}: {name!r} is given twice" for name, times in names.items() if times > 1)
    known = {**owners, **given}
    for uid in upgrade.begin_empty:
        if known.get(uid) not in changeable(scenario):
            yield f"upgrade.begin_empty: no node that can be added has or had the uid {uid!r}"
    for uid, conversion in upgrade.converts.items():
        if known.get(uid) not in sums(scenario.workload):
            yield f"upgrade.converts: no sum has or had the uid {uid!r}"
        elif conversion != CONVERSION:
            yield f"upgrade.converts: {conversion!r} is no conversion; it can be {CONVERSION}"
    for old, new in upgrade.moves.items():
        lost = [uid for uid in (old, new) if uid not in known]
        if lost:
            yield f"upgrade.moves: no operator has or had the uid {lost[0]!r}"
        elif known[old] != known[new]:
            yield f"upgrade.moves: {old!r} is a uid of {known[old]}, and {new!r} one of {known[new]}"
