"""Creates tasks, each with the extensions that its job's settings want, and no others."""

from __future__ import annotations

from collections.abc import Sequence

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.task_spec import TaskSpec
from ..job.topology import EventTime
from ..lifecycle.reading import Reading
from ..operators.operator_work import OperatorWork
from ..operators.operators import Operator
from ..protocol.input_task import InputTask, Work
from ..protocol.sink import DirectSink, Identity, TransactionalSink
from ..protocol.source import SourceTask, SplitLog
from .committing import Committer, CommitterBehind, GlobalCommitter
from .in_flight import InFlight
from .persistent import Ledger
from .split_reader import SplitReader
from .two_phase import TwoPhaseOperator


class TaskBuilder:
    """Creates the tasks of one job."""

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config = config
        self._parts = parts

    # -- sources -------------------------------------------------------------------

    def source(
        self, spec: TaskSpec, logs: Sequence[SplitLog], bounded: bool = True, event_time: EventTime | None = None
    ) -> SourceTask:
        reading, in_flight = Reading(spec, self._parts), self._in_flight(spec)
        return SourceTask(spec, self._config, self._parts, logs, bounded, event_time, reading, in_flight)

    def split_reader(self, spec: TaskSpec, logs: Sequence[SplitLog], bounded: bool = True) -> SourceTask:
        """A source to which an enumerator assigns its splits."""
        reading, in_flight = Reading(spec, self._parts), self._in_flight(spec)
        splits = SplitReader(self._parts.enumerating, logs)
        return SourceTask(spec, self._config, self._parts, (), bounded, None, reading, in_flight, splits)

    # -- tasks with inputs -----------------------------------------------------------

    def operator(self, spec: TaskSpec, operator: Operator) -> InputTask:
        return self._at_work(spec, OperatorWork(spec, operator))

    def two_phase(self, spec: TaskSpec) -> InputTask:
        return self._at_work(spec, TwoPhaseOperator(self._config))

    def transactional_sink(self, spec: TaskSpec) -> InputTask:
        return self._at_work(spec, TransactionalSink())

    def direct_sink(self, spec: TaskSpec, identity: Identity | None) -> InputTask:
        return self._at_work(spec, DirectSink(identity))

    def writer(self, spec: TaskSpec) -> InputTask:
        """A transactional sink with a committer behind it."""
        return self._at_work(spec, TransactionalSink(CommitterBehind()))

    def committer(self, spec: TaskSpec) -> InputTask:
        return self._at_work(spec, Committer(spec))

    def global_committer(self, spec: TaskSpec) -> InputTask:
        return self._at_work(spec, GlobalCommitter(spec))

    def _at_work(self, spec: TaskSpec, work: Work) -> InputTask:
        return InputTask(spec, self._config, self._parts, work, Reading(spec, self._parts), self._in_flight(spec))

    # -- extensions ------------------------------------------------------------------

    def _in_flight(self, spec: TaskSpec) -> InFlight | None:
        """None: all barriers wait their turn, and no channel is persistent."""
        config = self._config
        ledger = self._ledger(spec) if self._keeps_logs(spec) else None
        if ledger is None and config.alignment == "aligned":
            return None
        return InFlight(
            self._parts.capture,
            ledger,
            overtaken_inputs=spec.overtaken,
            outputs=spec.all_outputs,
            overtaken_outputs=spec.overtaken_outputs,
        )

    def _keeps_logs(self, spec: TaskSpec) -> bool:
        config = self._config
        return config.keeps_logs and (spec.overtaken or (config.recovers_from_logs and bool(spec.gates)))

    def _ledger(self, spec: TaskSpec) -> Ledger:
        config, parts = self._config, self._parts
        folder = parts.naming.logs(spec.job, spec.task, spec.channels_of or spec.attempt)
        logs = [f"{folder}/{channel}" for channel, _ in enumerate(spec.gates)]
        return Ledger(logs, parts.persisting, config.spill_after_us * (config.spilling == "buffer-timeout"))
