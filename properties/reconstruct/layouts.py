"""How the jobs of a run are laid out, one after the other, and who owns what in each.

A job that is resumed at another parallelism has other tasks.  Which keys and
splits each owns is told here once more, apart from the engine: key groups are
the CRC-32 of a key's decimal text ("null" for NULL) modulo their number, given
out in contiguous ranges; the i-th split of an input is read by subtask i modulo
the parallelism; a sealed transaction belongs to the subtask whose number is its
writer's modulo the parallelism.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.workload import Topology, Workload
from .commands import Commands


def rescaled(topology: Topology, parallelism: Mapping[str, int]) -> Topology:
    """A topology with another parallelism of some operators."""
    return msgspec.structs.replace(topology, parallelism={**topology.parallelism, **parallelism})


def widest(topologies: Sequence[Topology]) -> Topology:
    """Each operator as wide as it ever was: what may be said of the order of records in all of them."""
    names = topologies[0].parallelism
    return rescaled(topologies[0], {name: max(one.parallelism[name] for one in topologies) for name in names})


def layouts(topology: Topology, jobs: Iterable[int], commands: Commands) -> dict[int, Topology]:
    """How each job was laid out: as the one before, but for what the command that resumed it said."""
    found: dict[int, Topology] = {}
    for job in sorted(jobs):
        resume = commands.resume_of(job)
        if resume is not None:
            answer = resume.issued.parallelism
            topology = rescaled(topology, {name: answer[name] for name in topology.parallelism if name in answer})
        found[job] = topology
    return found


def owner_of_key(key: int | None, topology: Topology, operator: str) -> int:
    """The subtask of an operator to which a key belongs."""
    text = "null" if key is None else str(key)
    group = zlib.crc32(text.encode()) % topology.key_groups
    return group * topology.parallelism[operator] // topology.key_groups


def splits_of_task(workload: Workload, topology: Topology, operator: str, subtask: int) -> tuple[int, ...]:
    """The splits that a source's subtask reads."""
    return workload.splits_of(operator)[subtask :: topology.parallelism[operator]]
