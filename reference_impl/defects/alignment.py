"""Group A: the barrier and the cut."""

from __future__ import annotations

from ..core.decisions.tasks import HeldOutput, SourceCut, Startup
from ..core.protocol.source import SourceTask
from ..core.vocabulary.effects import Effect, Mail, Open
from ..core.vocabulary.ids import CheckpointId
from ..core.vocabulary.messages import Record
from .registry import Defect


class LateBarrier:
    """A mail: the barrier, put off."""

    def __init__(self, checkpoint: CheckpointId) -> None:
        self._checkpoint = checkpoint

    def open(self, task: SourceTask) -> list[Effect]:
        return task.barrier(self._checkpoint)


class CutInTwoSteps(SourceCut):
    """A01: the source takes its position now, and sends the barrier when the mailbox gets there; records slip
    between."""

    def cut(self, source: SourceTask, checkpoint: CheckpointId) -> list[Effect]:
        self.reached = True
        return [*source.record(checkpoint), Mail(LateBarrier(checkpoint))]


class SecondEmitter(HeldOutput):
    """A03: an emitter that ignores barriers sends the buffered records."""

    def before_barrier(self, held: list[Record]) -> bool:
        self.reached = True
        return False


class OpenTooEarly(Startup):
    """A05: the task takes input as soon as it is deployed, and is restored afterwards."""

    def on_deploy(self) -> list[Effect]:
        self.reached = True
        return [Open()]


class ReleasedByTheNextRecord(HeldOutput):
    """A07: buffered records are sent when the next record comes, if one comes."""

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
        title="a source emits records while its own snapshot is taken",
        invariant="consistent-cut",
        replacements=lambda: {"source_cut": CutInTwoSteps()},
    ),
    Defect(
        id="A03",
        upstream="FLINK-9552",
        title="a second emitter sends buffered records past the barrier",
        invariant="consistent-cut",
        replacements=lambda: {"held_output": SecondEmitter()},
    ),
    Defect(
        id="A05",
        upstream="JET#542 (bd39e80f20) #2",
        title="a task processes a record before its state is restored",
        invariant="restored-state",
        replacements=lambda: {"startup": OpenTooEarly()},
    ),
    Defect(
        id="A07",
        upstream="BEAM-10558",
        title="output buffered during a snapshot is never flushed",
        invariant="no-data-loss",
        replacements=lambda: {"held_output": ReleasedByTheNextRecord()},
    ),
)
