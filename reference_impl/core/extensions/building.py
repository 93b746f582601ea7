"""Creates tasks, each with the extensions that its job's settings want, and no others."""

from __future__ import annotations

from collections.abc import Sequence

from ..backends.keyed_state import FiledState
from ..decisions.parts import Parts
from ..job.config import Config
from ..job.split_log import SplitLog
from ..job.task_spec import TaskSpec
from ..job.topology import EventTime
from ..operators.operators import Operator
from ..protocol.barrier_alignment import Alignment, OnTransition
from ..protocol.input_task import InputTask, Work
from ..protocol.sink import TransactionalSink
from ..protocol.source import SourceTask
from .event_time import InputEventTime, SourceEventTime, TimedWork
from .filed_work import FiledWork
from .in_flight_data.persistent import Ledger
from .in_flight_data.unaligned import Unaligned
from .opening import Opener, open_state
from .operator_work import OperatorWork
from .sinks.committing import Committer, DownstreamCommitter, GlobalCommitter
from .sinks.direct_sink import DirectSink, Identity
from .sinks.store_requests import Requests
from .sinks.transaction_names import NewNames, PooledIds
from .snapshots.reading import Reading
from .snapshots.snapshot_files import SnapshotFiles
from .sources.log_trimming import LogTrimming
from .sources.split_reader import SplitReader


class TaskBuilder:
    """Creates the tasks of one job."""

    def __init__(
        self,
        config: Config,
        parts: Parts,
        opener: Opener = open_state,
        on_transition: OnTransition | None = None,
    ) -> None:
        """`opener` opens the working state of operators."""
        self._config = config
        self._parts = parts
        self._open_state = opener
        self._aligner = Alignment(parts.awaited_barriers, on_transition)

    # -- sources -------------------------------------------------------------------

    def source(
        self, spec: TaskSpec, logs: Sequence[SplitLog], bounded: bool = True, event_time: EventTime | None = None
    ) -> SourceTask:
        files, in_flight = self._files(), self._in_flight(spec)
        reading = Reading(spec, self._parts, files)
        time = SourceEventTime(event_time, self._parts.watermarks) if event_time is not None else None
        return SourceTask(
            spec, self._config, self._parts, logs, bounded, time, reading, files, in_flight, None, self._trimming()
        )

    def split_reader(self, spec: TaskSpec, logs: Sequence[SplitLog], bounded: bool = True) -> SourceTask:
        """A source to which an enumerator assigns its splits."""
        files, in_flight = self._files(), self._in_flight(spec)
        reading = Reading(spec, self._parts, files)
        splits = SplitReader(self._parts.enumerating, logs)
        return SourceTask(
            spec, self._config, self._parts, (), bounded, None, reading, files, in_flight, splits, self._trimming()
        )

    # -- tasks with inputs -----------------------------------------------------------

    def operator(self, spec: TaskSpec, operator: Operator) -> InputTask:
        state = operator.state = self._open_state(spec, operator.layout, self._config, self._parts)
        if not isinstance(state, FiledState):
            work = OperatorWork(spec, operator)
            return InputTask(*self._task(spec, work, work), operator=work, timers=work)
        filed = FiledWork(spec, operator, state)
        return InputTask(*self._task(spec, filed, filed), operator=filed, timers=filed)

    def two_phase(self, spec: TaskSpec) -> InputTask:
        """A two-phase operator: in the middle of a job, it commits the rows that it passes on (FIN-3).

        Figure 4 of the post on FLIP-147 chains such tasks.  Each gathers rows in transactions of its own, seals them at
        the barrier and commits them when the checkpoint is complete, as a transactional sink does.  It also emits each
        row at once, as any operator does.

        With `together` it emits the end of its data at once too, so that a whole chain of such tasks waits for one
        final checkpoint.  With `one-by-one` it emits the end only when it has committed and finishes, so that each task
        waits for a checkpoint of its own.
        """
        return self._sink(spec, passes_on=True, holds_end=self._config.finishing == "one-by-one")

    def transactional_sink(self, spec: TaskSpec) -> InputTask:
        return self._sink(spec)

    def writer(self, spec: TaskSpec) -> InputTask:
        """A transactional sink with a committer behind it."""
        return self._sink(spec, DownstreamCommitter())

    def _sink(
        self,
        spec: TaskSpec,
        committer: DownstreamCommitter | None = None,
        *,
        passes_on: bool = False,
        holds_end: bool = False,
    ) -> InputTask:
        names = PooledIds(spec) if self._config.pooled_ids else NewNames(spec, self._parts.naming)
        sink = TransactionalSink(names, Requests(), committer, passes_on=passes_on)
        return InputTask(*self._task(spec, sink), transactions=sink, holds_end=holds_end)

    def direct_sink(self, spec: TaskSpec, identity: Identity | None) -> InputTask:
        return InputTask(*self._task(spec, DirectSink(identity)))

    def committer(self, spec: TaskSpec) -> InputTask:
        work = Committer(spec)
        return InputTask(*self._task(spec, work), transactions=work)

    def global_committer(self, spec: TaskSpec) -> InputTask:
        work = GlobalCommitter(spec)
        return InputTask(*self._task(spec, work), transactions=work, publishes=True)

    def _task(
        self, spec: TaskSpec, work: Work, timed: TimedWork | None = None
    ) -> tuple[TaskSpec, Config, Parts, Work, Alignment, Reading, SnapshotFiles, InputEventTime, Unaligned | None]:
        """What every task with inputs is made of."""
        parts, files = self._parts, self._files()
        event_time = InputEventTime(len(spec.input_channels), parts.watermarks, timed)
        reading, in_flight = Reading(spec, parts, files), self._in_flight(spec)
        return spec, self._config, parts, work, self._aligner, reading, files, event_time, in_flight

    # -- extensions ------------------------------------------------------------------

    def _files(self) -> SnapshotFiles:
        """A user may ask for a savepoint of any format, whatever that of checkpoints."""
        return SnapshotFiles(self._parts.naming, self._parts.increments)

    def _trimming(self) -> LogTrimming | None:
        return LogTrimming() if self._config.trims_logs else None

    def _in_flight(self, spec: TaskSpec) -> Unaligned | None:
        """None: all barriers wait their turn, and no channel is persistent."""
        config = self._config
        ledger = self._ledger(spec) if self._keeps_logs(spec) else None
        if ledger is None and config.alignment == "aligned":
            return None
        return Unaligned(
            self._parts.capture,
            ledger,
            overtaken_inputs=spec.overtaken,
            outputs=spec.all_outputs,
            overtaken_outputs=spec.overtaken_outputs,
        )

    def _keeps_logs(self, spec: TaskSpec) -> bool:
        config = self._config
        return config.keeps_logs and (spec.overtaken or (config.recovers_from_logs and bool(spec.input_channels)))

    def _ledger(self, spec: TaskSpec) -> Ledger:
        config, parts = self._config, self._parts
        folder = parts.naming.logs(spec.job, spec.task, spec.channels_of or spec.attempt)
        logs = [f"{folder}/{channel}" for channel in spec.input_channels]
        return Ledger(logs, parts.persisting, config.spill_after_us * (config.spilling == "buffer-timeout"))
