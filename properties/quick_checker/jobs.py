"""How the jobs of one run are laid out: their nodes, their topologies, and the uids and types of their operators.

A resume may change each of these.  The workload has every node that some job has (`absent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ..model.absent import first_absent, laid_without, without
from ..model.upgrade import SCALES, WHOLE
from ..model.workload import SINK, Topology, Workload
from ..reconstruct.commands import Commands
from ..reconstruct.layouts import absent_nodes, layouts, state_types, uids, widest
from ..semantics.classes import GRADES, classes


class Jobs:
    """The jobs of a run; `numbers` are those of all jobs, also of those that ended before their first attempt."""

    def __init__(self, workload: Workload, submitted: Topology, numbers: frozenset[int], commands: Commands) -> None:
        self._workload = workload
        self._submitted = submitted
        self._numbers = numbers
        self._commands = commands

    @cached_property
    def absent(self) -> Mapping[int, tuple[str, ...]]:
        """By job, the nodes of the workload that it lacks."""
        return absent_nodes(self._workload, self._numbers, self._commands)

    @cached_property
    def any_absent(self) -> bool:
        """Whether some job lacks a node of the workload."""
        return any(self.absent.values())

    @cached_property
    def _with_all_nodes(self) -> Mapping[int, Topology]:
        return layouts(self._submitted, self._numbers, self._commands)

    @cached_property
    def layouts(self) -> Mapping[int, Topology]:
        """The topology of each job.  One that ended before its first attempt has one too: the next job inherits it."""
        return {job: laid_without(layout, self.absent[job]) for job, layout in self._with_all_nodes.items()}

    @cached_property
    def first(self) -> Topology:
        """The topology of the first job: the submitted one, without the nodes that this job lacks."""
        return laid_without(self._submitted, first_absent(self._workload))

    @cached_property
    def topology(self) -> Topology:
        """The widest topology of all jobs, with all nodes: an order of records that holds in it holds in all jobs."""
        return widest((self._submitted, *self._with_all_nodes.values()))

    @cached_property
    def rescale(self) -> bool:
        """Whether some job has another topology than the first, apart from nodes that were added or removed."""
        return any(layout != self._submitted for layout in self._with_all_nodes.values())

    @cached_property
    def uids(self) -> Mapping[int, Mapping[str, str]]:
        """By job, the uids of its operators that are not their names."""
        return uids(self._numbers, self._commands)

    @cached_property
    def state_types(self) -> Mapping[int, Mapping[str, str]]:
        """By job, the types of the states of its sums that are not whole."""
        return state_types(self._numbers, self._commands)

    def scale(self, node: str, job: int) -> int:
        """In how many parts of a whole the state of a node is in a job."""
        return SCALES[self.state_types.get(job, {}).get(node, WHOLE)]

    def reader(self, name: str, job: int) -> str:
        """The node, or the sink, to which a node sends in a job."""
        return next(reader for reader, senders in self._senders[job].items() if name in senders)

    @cached_property
    def upgraded(self) -> bool:
        """Whether some job has other nodes, uids or types of state than another."""
        return self.any_absent or any(self.uids.values()) or any(self.state_types.values())

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads of all jobs, without the nodes that they lack; equal ones once."""
        return tuple(without(self._workload, absent) for absent in dict.fromkeys(self.absent.values())) or (
            self._workload,
        )

    def senders(self, operator: str, job: int) -> tuple[str, ...]:
        """What sends to a node, or to the sink, in a job; nothing if the job lacks the node."""
        return self._senders[job].get(operator, ())

    @cached_property
    def _senders(self) -> Mapping[int, Mapping[str, tuple[str, ...]]]:
        found: dict[int, Mapping[str, tuple[str, ...]]] = {}
        for job, absent in self.absent.items():
            there = without(self._workload, absent)
            found[job] = {node.name: node.inputs for node in there.nodes} | {SINK: (there.output,)}
        return found

    @cached_property
    def classes(self) -> Mapping[str, str]:
        """The class of each input and node: the worst that it has in some job.  Where a job lacks a node, the node's
        rows are those of its input."""
        found = [self._classes_without(absent) for absent in dict.fromkeys([*self.absent.values()]) or [()]]
        return {name: max((one[name] for one in found), key=GRADES.index) for name in found[0]}

    def _classes_without(self, absent: tuple[str, ...]) -> dict[str, str]:
        found = classes(without(self._workload, absent), laid_without(self.topology, absent))
        for node in self._workload.nodes:
            if node.name in absent:
                found[node.name] = found[node.inputs[0]]
        return found
