"""The machines of a job graph's tasks, and their channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..core.decisions.parts import Parts
from ..core.extensions.building import TaskBuilder
from ..core.extensions.opening import Opener, open_state
from ..core.extensions.sinks.direct_sink import Identity
from ..core.job.config import Config
from ..core.job.routing import Output
from ..core.job.split_log import SplitLog
from ..core.job.task_spec import TaskSpec
from ..core.job.topology import JobGraph, OperatorSpec, Wire
from ..core.operators.operators import Operator
from ..core.protocol.barrier_alignment import OnTransition
from ..core.protocol.task import Task
from ..core.vocabulary.causes import AnyCause, TaskUnknown, raised
from ..core.vocabulary.errors import EngineError, expect
from ..core.vocabulary.ids import AttemptId, Ends, TaskId


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: the graph, its settings and decisions, the splits that its sources
    read, and how an idempotent sink's rows replace each other (None for a plain sink).

    `later` are the graphs of the jobs that resume it, rescaled or not."""

    graph: JobGraph
    config: Config
    parts: Parts
    logs: Sequence[SplitLog]
    identity: Identity | None = None
    later: tuple[JobGraph, ...] = ()
    on_transition: OnTransition | None = None

    def graph_of(self, number: int) -> JobGraph:
        """The graph of the first job (1), or of one that was resumed."""
        graphs = (self.graph, *self.later)
        return graphs[min(number, len(graphs)) - 1]

    @property
    def passing(self) -> tuple[TaskId, ...]:
        """The two-phase operators' tasks: the job's output does not show what they commit."""
        return passing((self.graph, *self.later))


class Unmade(EngineError):
    """The engine raised when an attempt of a task was created, so the attempt has failed."""

    def __init__(self, cause: AnyCause) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Machines:
    """Creates the machine of any attempt of any task of a job; raises Unmade if the engine raises."""

    def __init__(self, job: Job, number: int = 1, opener: Opener = open_state) -> None:
        """`number`: of the job; a resumed job may have been rescaled.  `opener` opens operators' working state."""
        self._job = job
        self.graph = job.graph_of(number)
        self._build = TaskBuilder(job.config, job.parts, opener, job.on_transition)
        self._logs = {log.split: log for log in job.logs}
        self._specs = {task: (spec, subtask) for task, spec, subtask in self.graph.tasks()}
        self._into: dict[TaskId, list[Wire]] = {task: [] for task in self._specs}
        self._out: dict[TaskId, list[Wire]] = {task: [] for task in self._specs}
        self._described: dict[TaskId, TaskSpec] = {}
        for wire in self.graph.wires():
            self._into[wire.receiver].append(wire)
            self._out[wire.sender].append(wire)
        self._inputs = {task: [wire.ends for wire in wires] for task, wires in self._into.items()}
        self._outputs = {task: [wire.ends for wire in wires] for task, wires in self._out.items()}

    def inputs(self, task: TaskId) -> Sequence[Ends]:
        """Its input channels, in the task's numbering."""
        return self._inputs[task]

    def outputs(self, task: TaskId) -> Sequence[Ends]:
        """Its output channels, in the task's numbering."""
        return self._outputs[task]

    def place(self, task: TaskId) -> tuple[str, int]:
        """Its operator and its subtask number."""
        if task not in self._specs:
            raise Unmade(TaskUnknown(task))
        spec, subtask = self._specs[task]
        return spec.name, subtask

    def machine(
        self,
        task: TaskId,
        attempt: AttemptId,
        job: int,
        begins: Callable[[int], int],
        channels_of: AttemptId | None = None,
    ) -> Task:
        """One attempt of a task that has not taken any event yet; `begins`: where a split's log begins now;
        `channels_of`: as in `TaskSpec`."""
        try:
            return self._machine(task, attempt, job, begins, channels_of)
        except Exception as error:  # any exception, also one of a user function, fails this attempt
            raise Unmade(raised(error)) from error

    def _machine(
        self, task: TaskId, attempt: AttemptId, job: int, begins: Callable[[int], int], channels_of: AttemptId | None
    ) -> Task:
        spec, _ = self._specs[task]
        if task not in self._described:
            self._described[task] = self._describe(task, job, attempt)
        described = msgspec.structs.replace(self._described[task], job=job, attempt=attempt, channels_of=channels_of)
        return self._of_role(spec, described, begins)

    def _describe(self, task: TaskId, job: int, attempt: AttemptId) -> TaskSpec:
        """What all attempts of a task share."""
        spec, subtask = self._specs[task]
        return TaskSpec(
            task=task,
            job=job,
            attempt=attempt,
            gates=tuple(wire.gate for wire in self._into[task]),
            outputs=self._distributed(self._out[task]),
            key_groups=self.graph.key_groups,
            subtask=subtask,
            parallelism=spec.parallelism,
            splits=self.graph.splits_of(spec, subtask),
            overtaken=bool(spec.inputs) and self._overtaken(spec),
            partitioning=tuple(edge.partitioning for edge in spec.inputs),
        )

    def _overtaken(self, spec: OperatorSpec) -> bool:
        return self.graph.overtaken(spec, self._job.parts.capture.may_overtake)

    def _distributed(self, out: Sequence[Wire]) -> tuple[Output, ...]:
        """How rows are distributed to these output channels."""
        if not out:
            return ()
        overtaken = self._overtaken(self._specs[out[0].receiver][0])
        return (Output(partitioning=out[0].partitioning, channels=tuple(range(len(out))), overtaken=overtaken),)

    def _of_role(self, spec: OperatorSpec, described: TaskSpec, begins: Callable[[int], int]) -> Task:
        build = self._build
        if spec.role == "source":
            splits = spec.splits if spec.enumerated else described.splits
            logs = [
                msgspec.structs.replace(self._logs[split], begins=begins(split), rewindable=spec.rewindable)
                for split in splits
            ]
            if spec.enumerated:
                return build.split_reader(described, logs, spec.bounded)
            return build.source(described, logs, spec.bounded, spec.event_time)
        if spec.role == "operator" and spec.build is not None:
            return build.operator(described, expect(spec.build(), Operator))
        if spec.role == "two-phase":
            return build.two_phase(described)
        if spec.role == "committer":
            return build.committer(described)
        if spec.role == "global-committer":
            return build.global_committer(described)
        if described.outputs:
            return build.writer(described)
        if self._job.config.sink == "transactional":
            return build.transactional_sink(described)
        return build.direct_sink(described, self._job.identity)


def passing(graphs: Sequence[JobGraph]) -> tuple[TaskId, ...]:
    """The tasks of two-phase operators in all jobs of a run, each once; they commit to tables of their own."""
    tasks = (task for graph in graphs for task, spec, _ in graph.tasks() if spec.role == "two-phase")
    return tuple(dict.fromkeys(tasks))


def numbered(graphs: Sequence[JobGraph]) -> dict[TaskId, int]:
    """The tasks of all jobs of a run, each once: those of the first job in its order, then those of later ones."""
    tasks = dict.fromkeys(task for graph in graphs for task, _, _ in graph.tasks())
    return {task: number for number, task in enumerate(tasks)}
