"""The job graph: operators, how rows go between them, and the tasks they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import msgspec

from ..vocabulary.errors import InvalidGraph
from ..vocabulary.ids import Ends, TaskId, task_id
from ..vocabulary.upgrades import WHOLE, StateMapping
from .key_groups import key_group as key_group
from .key_groups import owner as owner


class EdgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An input of an operator: the sender, and how its rows are distributed."""

    sender: str
    partitioning: str
    """forward, hash, rebalance, or broadcast: a copy of each row to every subtask"""

    @property
    def is_forward(self) -> bool:
        return self.partitioning == "forward"


class EventTime(msgspec.Struct, frozen=True, kw_only=True):
    """How a source makes watermarks.

    A split's watermark is the greatest event time read from it, minus `delay`, minus
    1.  A split from which nothing is read for `idle_after_us` is idle (0: never).
    """

    delay: int = 0
    idle_after_us: int = 0


class Built(Protocol):
    """An operator, as far as its job has to know it; `operators.Operator` is the whole of it."""

    @property
    def clocked(self) -> bool:
        """It uses processing time."""


class OperatorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An operator of the graph; `build` makes one subtask's instance."""

    name: str
    parallelism: int
    inputs: tuple[EdgeSpec, ...] = ()
    build: Callable[[], Built] | None = None
    """None for sources, sinks and two-phase operators, which are tasks of their own kind"""
    splits: tuple[int, ...] = ()
    """a source's splits; its subtask i reads the i-th, (i + parallelism)-th … of them"""
    bounded: bool = True
    """a source's input ends after its last record"""
    event_time: EventTime | None = None
    """of a source whose records have event times"""
    rewindable: bool = True
    """a source can read again from an earlier position"""
    enumerated: bool = False
    """an enumerator assigns a source's splits to its subtasks, as they ask (OPS-3)"""
    appears_us: tuple[int, ...] = ()
    """after how many µs of an attempt's run each of those splits is discovered; 0 for a split without a number"""
    shares: bool = False
    """it holds a union: at each restore every subtask is offered the items of all (OPS-2)"""
    role: str = "operator"
    """source, operator, two-phase (it commits the rows that it passes on), sink, committer or global-committer"""
    uid: str | None = None
    """under which snapshots hold its states; None: its name"""
    state_type: str = WHOLE
    """the type of the state that it keeps"""
    keeps_state: bool = True

    @property
    def commits(self) -> bool:
        """Its tasks write to the external store."""
        return self.role in ("sink", "two-phase")

    def seals(self, sink: str) -> bool:
        """Its tasks write in transactions: sinks if they are of that kind, two-phase operators always."""
        return self.role == "two-phase" or (self.role == "sink" and sink == "transactional")

    def must_be_shut_out(self, sink: str) -> bool:
        """Requests of its tasks could do harm after the end of the job: they leave transactions open, or replace rows
        of the job that follows.  A late row of a plain sink does none."""
        return self.seals(sink) or (self.role == "sink" and sink == "idempotent")


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """One channel: its ends, the input of the receiver to which it belongs, and how rows are distributed to it."""

    sender: TaskId
    receiver: TaskId
    gate: int
    partitioning: str

    @property
    def ends(self) -> Ends:
        return Ends(self.sender, self.receiver)


NO_MAPPING = StateMapping()

OVERTAKEN_EDGES = ("hash", "rebalance")
OVERTAKEN_ROLES = ("operator", "two-phase", "sink")
"""The roles of operators in front of which barriers may overtake; edges to all others are never unaligned."""


class JobGraph:
    """A validated graph: `operators` in topological order.

    `mapping`: how a job of this graph takes over the states in a snapshot of another graph.

    Raises InvalidGraph, naming operators, for a cycle, for parts that are not
    connected, or for a forward edge between unequal parallelisms (ABS-18).
    """

    def __init__(
        self, operators: tuple[OperatorSpec, ...], key_groups: int, mapping: StateMapping = NO_MAPPING
    ) -> None:
        self.key_groups = key_groups
        self.mapping = mapping
        self.operators = _sorted(operators)
        _check_connected(self.operators)
        self._by_name = {spec.name: spec for spec in self.operators}
        for spec in self.operators:
            for edge in spec.inputs:
                if edge.partitioning == "forward" and self._by_name[edge.sender].parallelism != spec.parallelism:
                    raise InvalidGraph(f"the forward edge {edge.sender} → {spec.name} joins unequal parallelisms")
        self._tasks = tuple(
            (task_id(spec.name, subtask), spec, subtask)
            for spec in self.operators
            for subtask in range(spec.parallelism)
        )
        self._of_task = {task: spec for task, spec, _ in self._tasks}
        self._wires = tuple(self._joined())

    @cached_property
    def parallelism(self) -> dict[str, int]:
        return {spec.name: spec.parallelism for spec in self.operators}

    @cached_property
    def uids(self) -> dict[str, str]:
        """The uids that are not the names of their operators."""
        return {spec.name: spec.uid for spec in self.operators if spec.uid is not None and spec.uid != spec.name}

    @cached_property
    def state_types(self) -> dict[str, str]:
        """The types of the states that are not whole."""
        return {spec.name: spec.state_type for spec in self.operators if spec.state_type != WHOLE}

    @cached_property
    def stateless(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.operators if not spec.keeps_state)

    @cached_property
    def begins_empty(self) -> tuple[str, ...]:
        """The operators of which the snapshots of other jobs have no state, as the user says."""
        return tuple(spec.name for spec in self.operators if (spec.uid or spec.name) in self.mapping.begin_empty)

    def overtaken(self, spec: OperatorSpec, may_be: Callable[[str], bool] = OVERTAKEN_EDGES.__contains__) -> bool:
        """Whether barriers may overtake the elements in an operator's inputs (FLIP-76); `may_be` decides it for an
        edge, by its partitioning.

        They may not if some input is a forward edge, whose records could not be redistributed, or a broadcast edge, of
        which all subtasks must have taken the same.  They may not on an edge to a commit stage either.  Such an
        operator aligns on all its inputs.
        """
        return spec.role in OVERTAKEN_ROLES and all(may_be(edge.partitioning) for edge in spec.inputs)

    def rescaled(self, parallelism: Mapping[str, int]) -> JobGraph:
        """The same job at another parallelism of some operators, as a user asks for it.

        Raises InvalidGraph as `laid_out`, and for a parallelism above the number of key groups.
        """
        for name, number in parallelism.items():
            if name in self._by_name and not 1 <= number <= self.key_groups:
                raise InvalidGraph(f"{name} cannot have a parallelism of {number}; it can be 1 to {self.key_groups}")
        return self.laid_out(parallelism)

    def laid_out(self, parallelism: Mapping[str, int]) -> JobGraph:
        """The same job at another parallelism of some operators, such as that at which a snapshot was taken.

        Raises InvalidGraph for an unknown operator, for a parallelism below 1, and if a forward edge would join unequal
        parallelisms.  A job may begin with more subtasks of an operator than there are key groups: some then own none.
        """
        for name, number in parallelism.items():
            if name not in self._by_name:
                raise InvalidGraph(f"{name!r} is no operator of the job")
            if number < 1:
                raise InvalidGraph(f"{name} cannot have a parallelism of {number}")
        specs = [
            msgspec.structs.replace(spec, parallelism=parallelism.get(spec.name, spec.parallelism))
            for spec in self.operators
        ]
        return JobGraph(tuple(specs), self.key_groups, self.mapping)

    def upgraded(self, uids: Mapping[str, str]) -> JobGraph:
        """The same job with other uids of some operators."""
        specs = [msgspec.structs.replace(spec, uid=uids.get(spec.name, spec.uid)) for spec in self.operators]
        return JobGraph(tuple(specs), self.key_groups, self.mapping)

    def taking_over(self, mapping: StateMapping) -> JobGraph:
        """The same job, taking over the states of other jobs' snapshots by a mapping."""
        return JobGraph(self.operators, self.key_groups, mapping)

    def spec(self, name: str) -> OperatorSpec:
        return self._by_name[name]

    def tasks(self) -> tuple[tuple[TaskId, OperatorSpec, int], ...]:
        """(task, its operator, its subtask number), in topological order."""
        return self._tasks

    def wires(self) -> tuple[Wire, ...]:
        """Every channel, by receiver in topological order."""
        return self._wires

    def _joined(self) -> Iterator[Wire]:
        for spec in self.operators:
            for subtask in range(spec.parallelism):
                for gate, edge in enumerate(spec.inputs):
                    for sender in range(self._by_name[edge.sender].parallelism):
                        if edge.partitioning != "forward" or sender == subtask:
                            yield Wire(
                                sender=task_id(edge.sender, sender),
                                receiver=task_id(spec.name, subtask),
                                gate=gate,
                                partitioning=edge.partitioning,
                            )

    def first_of(self, tasks: Sequence[TaskId]) -> list[TaskId]:
        """Those of the tasks to which none of the others sends, in topological order."""
        behind = {wire.receiver for wire in self._wires if wire.sender in tasks}
        return [task for task in tasks if task not in behind]

    def senders(self, task: TaskId) -> list[TaskId]:
        """The tasks that send to a task."""
        return [wire.sender for wire in self._wires if wire.receiver == task]

    def whole(self, tasks: Sequence[TaskId]) -> list[str]:
        """The operators all of whose subtasks are among the tasks."""
        return [
            spec.name
            for spec in self.operators
            if all(task_id(spec.name, subtask) in tasks for subtask in range(spec.parallelism))
        ]

    def operator_of(self, task: TaskId) -> OperatorSpec:
        """The operator of which a task is a subtask."""
        return self._of_task[task]

    def splits_of(self, spec: OperatorSpec, subtask: int) -> tuple[int, ...]:
        return spec.splits[subtask :: spec.parallelism]


def _sorted(operators: tuple[OperatorSpec, ...]) -> tuple[OperatorSpec, ...]:
    names = [spec.name for spec in operators]
    done: list[str] = []
    remaining = list(operators)
    for spec in operators:
        for edge in spec.inputs:
            if edge.sender not in names:
                raise InvalidGraph(f"{spec.name} reads {edge.sender!r}, which is not in the graph")
    while remaining:
        ready = [spec for spec in remaining if all(edge.sender in done for edge in spec.inputs)]
        if not ready:
            raise InvalidGraph(f"the graph has a cycle among {', '.join(spec.name for spec in remaining)}")
        done.extend(spec.name for spec in ready)
        remaining = [spec for spec in remaining if spec.name not in done]
    return tuple(sorted(operators, key=lambda spec: done.index(spec.name)))


def _check_connected(operators: tuple[OperatorSpec, ...]) -> None:
    if not operators:
        raise InvalidGraph("the graph is empty")
    reached = [operators[0].name]
    grew = True
    while grew:
        grew = False
        for spec in operators:
            ends = [spec.name, *(edge.sender for edge in spec.inputs)]
            if any(name in reached for name in ends):
                for name in ends:
                    if name not in reached:
                        reached.append(name)
                        grew = True
    lost = [spec.name for spec in operators if spec.name not in reached]
    if lost:
        raise InvalidGraph(f"{', '.join(lost)}: not connected with {operators[0].name}")
