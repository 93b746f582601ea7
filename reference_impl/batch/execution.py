"""A bounded job, executed as a batch.

The post on FLIP-147: batch mode "executes all the tasks in topological order and avoids random state access by
pre-sorting the input records".  So a task runs over all that its senders have sent, when all of them have ended.  The
input of a keyed operator is first sorted by key; the state of a key is built, used and dropped before the next key
begins.  The records that a task sends are kept until its receivers have run.  Nothing is checkpointed: a task that
fails runs again from its input.

An operator whose rows each replace the previous row of their key (`Operator.rolling`) and go to the sink emits only the
last row of a key, when the key ends: that is the batch result of an aggregation.  If another operator reads its rows,
each of them counts, as in streaming.  A window has all records of its key before the end of time comes, so none is ever
late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from ..core.backends.heap import HeapState
from ..core.decisions.tasks import Copying
from ..core.job.split_log import COPY_BITS, OFFSET_BITS, SplitLog
from ..core.job.topology import JobGraph, OperatorSpec, key_group, owner
from ..core.operators.operators import Operator
from ..core.vocabulary.errors import EngineError, Refused, expect
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.messages import Record
from ..core.vocabulary.state import END_OF_TIME, TaskState
from ..core.vocabulary.transactions import Row

RESTARTS = 3
"""how often a task may run again"""

Fed = tuple[int, Record]
"""a record, and the number of the operator's input by which it comes"""


class BatchFailed(EngineError):
    """A task failed more often than it may run again, or could not read its input again."""


class TaskDied(Exception):
    """An attempt of a task ended while it had input left."""


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one task ran; counted in its last attempt, the one that came to its end."""

    task: TaskId
    attempts: int
    taken: int
    """records"""
    keys: int
    """how often the key of the state in use changed, the first key included"""
    keys_held: int
    """the greatest number of keys of which there was state at the same time"""


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that the sinks received, subtask by subtask, and how the tasks ran, in the order in which they ran."""

    rows: tuple[Row, ...]
    tasks: tuple[TaskReport, ...]


class Run:
    """One attempt of a task: the records that it emitted, and its counts."""

    def __init__(self, dies_after: int | None) -> None:
        self.out: list[Record] = []
        self.taken = self.keys = self.keys_held = 0
        self._dies_after = dies_after

    def take(self) -> None:
        """Count one more record; raises TaskDied where the attempt is to end."""
        if self.taken == self._dies_after:
            raise TaskDied(f"it died after {self.taken} records")
        self.taken += 1

    def ends(self) -> None:
        """All input has been taken; raises TaskDied where the attempt is to end later than that."""
        if self._dies_after is not None:
            raise TaskDied(f"it died after its last record, the {self.taken}th")


class Batch:
    """One batch execution of a job; `failures` says for a task after how many records its attempts die."""

    def __init__(
        self, graph: JobGraph, logs: Sequence[SplitLog], failures: Mapping[TaskId, Sequence[int]] | None = None
    ) -> None:
        endless = [spec.name for spec in graph.operators if not spec.bounded]
        if endless:
            raise Refused(f"{', '.join(endless)} never ends, so its job cannot be executed as a batch")
        self._graph = graph
        self._logs = {log.split: log for log in logs}
        self._failures = failures or {}
        self._kept: dict[tuple[TaskId, TaskId], list[Record]] = {}
        """the records that were sent, by sender and receiver, until the receiver has run"""
        self._into: dict[TaskId, list[tuple[TaskId, int]]] = {}
        self._out: dict[TaskId, list[TaskId]] = {}
        self._partitioning: dict[TaskId, str] = {}
        for wire in graph.wires():
            self._into.setdefault(wire.receiver, []).append((wire.sender, wire.gate))
            self._out.setdefault(wire.sender, []).append(wire.receiver)
            self._partitioning[wire.sender] = wire.partitioning

    def run(self) -> BatchResult:
        """Run every task in topological order, each to its end; raises BatchFailed."""
        rows: list[Row] = []
        reports = []
        for task, spec, subtask in self._graph.tasks():
            run, attempts = self._to_its_end(task, spec, subtask)
            for sender, _ in self._into.get(task, ()):
                self._kept.pop((sender, task), None)
            self._send(task, run.out)
            if spec.role == "sink":
                rows.extend((record.key, record.value, record.tag, record.tag2) for record in run.out)
            report = TaskReport(task=task, attempts=attempts, taken=run.taken, keys=run.keys, keys_held=run.keys_held)
            reports.append(report)
        return BatchResult(rows=tuple(rows), tasks=tuple(reports))

    # -- one task ------------------------------------------------------------------

    def _to_its_end(self, task: TaskId, spec: OperatorSpec, subtask: int) -> tuple[Run, int]:
        deaths = self._failures.get(task, ())
        for attempt in range(1 + RESTARTS):
            run = Run(deaths[attempt] if attempt < len(deaths) else None)
            try:
                self._attempt(run, task, spec, subtask)
                return run, attempt + 1
            except TaskDied as death:
                cause = str(death)
            except Refused as refused:  # an error about what a user's function returns or requests names the function
                cause = str(refused)
            except Exception as error:  # whatever a user's function raises fails its task
                cause = f"its user function raised {type(error).__name__}: {error}"
            if not spec.rewindable:
                raise BatchFailed(f"{task}: {cause}; its input cannot be read again")
        raise BatchFailed(f"{task}: {RESTARTS} restarts are used up; the last cause was: {cause}")

    def _attempt(self, run: Run, task: TaskId, spec: OperatorSpec, subtask: int) -> None:
        if spec.role == "source":
            for record in self._read(self._graph.splits_of(spec, subtask)):
                run.take()
                run.out.append(record)
        elif spec.build is None:
            self._pass(run, self._input_of(task))
        else:
            self._work(run, spec, self.operator_of(spec), self._input_of(task))
        run.ends()

    def _read(self, splits: Iterable[int]) -> Iterable[Record]:
        """The splits, one after the other, each in its own order."""
        for split in splits:
            times = self._logs[split].times
            for offset, (key, value, tag) in enumerate(self._logs[split].records):
                origin = (split << OFFSET_BITS | offset) << COPY_BITS
                yield Record(key, value, tag, 0, origin, times[offset] if times else 0)

    def _input_of(self, task: TaskId) -> list[Fed]:
        """All records that were sent to a task: those of broadcast inputs first, then input by input, sender by
        sender."""
        senders = sorted(self._into[task], key=lambda one: self._partitioning[one[0]] != "broadcast")
        return [(gate, record) for sender, gate in senders for record in self._kept.get((sender, task), ())]

    def _pass(self, run: Run, fed: list[Fed]) -> None:
        for _, record in fed:
            run.take()
            run.out.append(record)

    def _work(self, run: Run, spec: OperatorSpec, operator: Operator, fed: list[Fed]) -> None:
        if not operator.keyed:
            for gate, record in fed:
                run.take()
                run.out.extend(operator.apply(record, gate))
            for waiting in operator.waiting():
                run.out.extend(waiting)
            return
        final = operator.rolling and self._feeds_the_sink(spec)
        for _, one_key in groupby(self.sort_by_key(fed), key=lambda one: one[1].key):
            rows: list[Record] = []
            run.keys += 1
            for gate, record in one_key:
                run.take()
                rows.extend(operator.apply(record, gate))
            run.keys_held = max(run.keys_held, keys_in(operator))  # an operator holds most at the end of a key
            rows.extend(operator.on_watermark(END_OF_TIME, operator.timers.take(END_OF_TIME)))
            rows.extend(operator.on_clock(END_OF_TIME, operator.alarms.take(END_OF_TIME)))
            run.out.extend(rows[-1:] if final else rows)
            self.drop_state(operator)

    def operator_of(self, spec: OperatorSpec) -> Operator:
        """An operator whose state is empty, on the heap: each attempt begins with one."""
        if spec.build is None:
            raise Refused(f"{spec.name} is no operator")
        operator = expect(spec.build(), Operator)
        operator.state = HeapState(operator.layout, Copying())
        return operator

    def sort_by_key(self, fed: list[Fed]) -> list[Fed]:
        """By key, NULL first; records of one key stay in the order of inputs, senders and sending."""
        return sorted(fed, key=lambda one: (one[1].key is not None, one[1].key or 0))

    def drop_state(self, operator: Operator) -> None:
        """A key has ended."""
        operator.resume(TaskState())

    # -- between tasks -------------------------------------------------------------

    def _feeds_the_sink(self, spec: OperatorSpec) -> bool:
        readers = [other for other in self._graph.operators if any(edge.sender == spec.name for edge in other.inputs)]
        return all(other.role == "sink" for other in readers)

    def _send(self, task: TaskId, out: list[Record]) -> None:
        """Keep the records that a task emitted, for each of its receivers."""
        receivers = self._out.get(task, [])
        if not receivers:
            return
        for position, record in enumerate(out):
            for receiver in self._choices(self._partitioning[task], record.key, position, receivers):
                self._kept.setdefault((task, receiver), []).append(record)

    def _choices(self, partitioning: str, key: int | None, position: int, receivers: list[TaskId]) -> list[TaskId]:
        if partitioning == "broadcast":
            return receivers
        return [receivers[self._choice(partitioning, key, position, len(receivers))]]

    def _choice(self, partitioning: str, key: int | None, position: int, receivers: int) -> int:
        if receivers == 1 or partitioning == "forward":
            return 0
        if partitioning == "hash":
            groups = self._graph.key_groups
            return owner(key_group(key, groups), groups, receivers)
        return position % receivers


def keys_in(operator: Operator) -> int:
    """How many keys an operator has state of."""
    return len({key for _, key, _, _ in operator.state.snapshot().entries()})
