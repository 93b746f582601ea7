"""Group A: the barrier and the cut."""

from __future__ import annotations

from ..core.effects import Effect, Mail, Open
from ..core.ids import CheckpointId
from ..core.messages import Record
from ..core.parts import HeldOutput, SourceCut, Startup
from ..core.source import SourceTask
from .registry import Defect


class LateBarrier:
    """A mail: the barrier, put off."""

    def __init__(self, checkpoint: CheckpointId) -> None:
        self._checkpoint = checkpoint

    def open(self, task: SourceTask) -> list[Effect]:
        return task.barrier(self._checkpoint)


class CutInTwoSteps(SourceCut):
    """A01: the position now, the barrier when the mailbox gets there; records slip between."""

    def cut(self, source: SourceTask, checkpoint: CheckpointId) -> list[Effect]:
        self.reached = True
        return [*source.record(checkpoint), Mail(LateBarrier(checkpoint))]


class SecondEmitter(HeldOutput):
    """A03: what is held back is let out by an emitter that knows nothing of barriers."""

    def before_barrier(self, held: list[Record]) -> bool:
        self.reached = True
        return False


class OpenTooEarly(Startup):
    """A05: the task takes input as soon as it is deployed, and is restored after that."""

    def on_deploy(self) -> list[Effect]:
        self.reached = True
        return [Open()]


class ReleasedByTheNextRecord(HeldOutput):
    """A07: what is held back goes out when the next record comes, if one comes."""

    def before_barrier(self, held: list[Record]) -> bool:
        self.reached = True
        return False

    def by_itself(self) -> bool:
        self.reached = True
        return False


DEFECTS = (
    Defect(
        id="A01",
        upstream="FLINK-2098",
        title="source emits while its own snapshot runs",
        invariant="consistent-cut",
        replacements=lambda: {"source_cut": CutInTwoSteps()},
    ),
    Defect(
        id="A03",
        upstream="FLINK-9552",
        title="second emitter bypasses the order of barriers",
        invariant="consistent-cut",
        replacements=lambda: {"held_output": SecondEmitter()},
    ),
    Defect(
        id="A05",
        upstream="JET#542 (bd39e80f20) #2",
        title="one processing call before restore",
        invariant="restored-state",
        replacements=lambda: {"startup": OpenTooEarly()},
    ),
    Defect(
        id="A07",
        upstream="BEAM-10558",
        title="output held back during a snapshot is never flushed",
        invariant="no-data-loss",
        replacements=lambda: {"held_output": ReleasedByTheNextRecord()},
    ),
)
