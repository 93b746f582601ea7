"""The work around an operator whose state is in files: it reports flushes, and has files merged (ABS-10)."""

from __future__ import annotations

from collections.abc import Mapping

from ..backends.keyed_state import FiledState
from ..job.task_spec import TaskSpec
from ..operators.operators import Operator
from ..protocol.input_task import Handler
from ..vocabulary.effects import Compact, Effect, MemtableFlushed
from ..vocabulary.events import Compacted, Ticked
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Record
from .operator_work import OperatorWork


class FiledWork(OperatorWork):
    """After each step that may have changed the state, it says what became of the files."""

    def __init__(self, spec: TaskSpec, operator: Operator, state: FiledState) -> None:
        super().__init__(spec, operator)
        self._state = state

    def also_takes(self) -> Mapping[type, Handler]:
        return {**super().also_takes(), Compacted: self.on_compacted}

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        return self._filed(super().on_record(record, channel))

    def on_time(self, time: int) -> list[Effect]:
        return self._filed(super().on_time(time))

    def on_tick(self, event: Ticked) -> list[Effect]:
        return self._filed(super().on_tick(event))

    def on_end(self) -> list[Effect]:
        return self._filed(super().on_end())

    def on_restored(self) -> list[Effect]:
        return self._filed(super().on_restored())

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        return self._filed(super().snapshot(checkpoint))

    def on_compacted(self, event: Compacted) -> list[Effect]:
        self._state.end_compaction()
        return self._filed([])

    def _filed(self, effects: list[Effect]) -> list[Effect]:
        flushed = self._state.take_flushes()
        if flushed:
            effects = [*effects, *[MemtableFlushed()] * flushed]
        return [*effects, Compact()] if self._state.begin_compaction() else effects
