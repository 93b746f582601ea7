"""The topology of each job of a run, and which subtask owns which key and split in it.

A job that is resumed at another parallelism has other tasks.  This module states,
independently of the engine, which keys and splits each task owns.  A key's group is the
CRC-32 of its decimal text ("null" for NULL) modulo the number of groups.  Groups are
assigned in contiguous ranges.  Subtask i modulo the parallelism reads the i-th split of
an input.  A sealed transaction belongs to the subtask whose number is its writer's
number modulo the parallelism.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ..model.absent import first_absent
from ..model.upgrade import Upgrade, absent_after, types_after, uids_after
from ..model.workload import Topology, Workload
from .commands import Commands


def rescaled(topology: Topology, parallelism: Mapping[str, int]) -> Topology:
    """A topology with another parallelism of some operators."""
    return msgspec.structs.replace(topology, parallelism={**topology.parallelism, **parallelism})


def widest(topologies: Sequence[Topology]) -> Topology:
    """Each operator with its greatest parallelism: an order of records that holds there holds in all topologies."""
    names = topologies[0].parallelism
    return rescaled(topologies[0], {name: max(one.parallelism[name] for one in topologies) for name in names})


def layouts(topology: Topology, jobs: Iterable[int], commands: Commands) -> dict[int, Topology]:
    """The topology of each job: the previous job's, with the parallelism that the resume command set."""
    found: dict[int, Topology] = {}
    for job in sorted(jobs):
        resume = commands.resume_of(job)
        if resume is not None:
            answer = resume.issued.parallelism
            topology = rescaled(topology, {name: answer[name] for name in topology.parallelism if name in answer})
        found[job] = topology
    return found


def same_width(one: Topology, other: Topology) -> bool:
    """Whether the operators that both topologies have are as parallel in the one as in the other."""
    return all(other.parallelism.get(name, number) == number for name, number in one.parallelism.items())


def absent_nodes(workload: Workload, jobs: Iterable[int], commands: Commands) -> dict[int, tuple[str, ...]]:
    """The nodes of the workload that each job does not have."""
    return _after_upgrades(jobs, commands, absent_after, first_absent(workload))


def uids(jobs: Iterable[int], commands: Commands) -> dict[int, dict[str, str]]:
    """The uids of each job's operators, without those that are the operators' names: the previous job's, and those that
    the resume command gave."""
    return _after_upgrades(jobs, commands, uids_after, {})


def state_types(jobs: Iterable[int], commands: Commands) -> dict[int, dict[str, str]]:
    """The types of the states of each job's sums, without those that are whole: as the uids."""
    return _after_upgrades(jobs, commands, types_after, {})


_Had = TypeVar("_Had")


def _after_upgrades(
    jobs: Iterable[int], commands: Commands, after: Callable[[_Had, Upgrade], _Had], first: _Had
) -> dict[int, _Had]:
    """What each job has of the previous one, `after` the upgrade of its resume command if that has one."""
    found: dict[int, _Had] = {}
    now = first
    for job in sorted(jobs):
        resume = commands.resume_of(job)
        if resume is not None and isinstance(resume.issued.upgrade, Upgrade):
            now = after(now, resume.issued.upgrade)
        found[job] = now
    return found


def owner_of_key(key: int | None, topology: Topology, operator: str) -> int:
    """The subtask of an operator to which a key belongs."""
    text = "null" if key is None else str(key)
    group = zlib.crc32(text.encode()) % topology.key_groups
    return group * topology.parallelism[operator] // topology.key_groups


def splits_of_task(workload: Workload, topology: Topology, operator: str, subtask: int) -> tuple[int, ...]:
    """The splits that a source's subtask reads."""
    return workload.splits_of(operator)[subtask :: topology.parallelism[operator]]
