"""Group A: the barrier and the cut."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.decisions.postponed import Postponed
from ..core.decisions.tasks import CutStep, HeldOutput, HeldStep, SourceCut, StartStep, Startup
from ..core.vocabulary.messages import Record
from .registry import Defect


class CutInTwoSteps(SourceCut):
    """A01: the source takes its position now, and sends the barrier when the mailbox gets there; records slip
    between."""

    def steps(self) -> tuple[CutStep | Postponed[CutStep], ...]:
        self.reached = True
        return (CutStep.record_position, Postponed((CutStep.send_barrier,)))


class SecondEmitter(HeldOutput):
    """A03: an emitter that ignores barriers sends the buffered records."""

    def steps(self) -> tuple[HeldStep, ...]:
        self.reached = True
        return (HeldStep.pass_on,)


class OpenTooEarly(Startup):
    """A05: the task takes input as soon as it is deployed, and is restored afterwards."""

    def steps(self) -> tuple[StartStep, ...]:
        self.reached = True
        return (StartStep.open_inputs, StartStep.restore)


class ReleasedByTheNextRecord(HeldOutput):
    """A07: buffered records are sent when the next record comes, if one comes."""

    def steps(self) -> tuple[HeldStep, ...]:
        self.reached = True
        return (HeldStep.pass_on,)

    def needs_mail(self, held: Sequence[Record]) -> bool:
        self.reached = self.reached or bool(held)
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
