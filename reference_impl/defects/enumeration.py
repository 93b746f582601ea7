"""Group K as far as splits are given out by an enumerator: given twice, from elsewhere, or not again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.decisions.enumerating import Enumerating
from ..core.vocabulary.ids import TaskId
from ..core.vocabulary.state import EnumeratorState
from .registry import Defect


class OpenValve(Enumerating):
    """K01: splits are assigned between the enumerator's snapshot and the reader's: both snapshots have them."""

    def holds_back(self, reader: TaskId, in_checkpoint: Sequence[TaskId]) -> bool:
        self.reached = self.reached or super().holds_back(reader, in_checkpoint)
        return False


class ReadAndReturned(Enumerating):
    """K04: a restored reader goes on reading the splits that it hands back, and another reader is assigned them too."""

    def read_on(self, restored: Mapping[int, int], returned: Mapping[int, int]) -> dict[int, int]:
        self.reached = self.reached or bool(returned)
        return dict(restored)


class WithoutOffsets(Enumerating):
    """K07: the enumerator knows only the number of a split that is handed back; reading begins at the split's start."""

    def taken_back(self, unassigned: Mapping[int, int], returned: Mapping[int, int]) -> dict[int, int]:
        self.reached = self.reached or any(returned.values())
        return super().taken_back(unassigned, dict.fromkeys(returned, 0))


class NeverGivenAgain(Enumerating):
    """K09: splits that are handed back are stored, but only new ones are ever assigned."""

    def taken_back(self, unassigned: Mapping[int, int], returned: Mapping[int, int]) -> dict[int, int]:
        self.reached = self.reached or bool(returned)
        return dict(unassigned)


class ReadersFirst(Enumerating):
    """K11: the enumerator's state is read after its readers have taken their snapshots: splits assigned between are
    lost."""

    def snapshot(self, unassigned: dict[int, int], assigned: dict[int, TaskId]) -> EnumeratorState:
        self.reached = self.reached or bool(unassigned)
        return EnumeratorState(unassigned=unassigned, assigned=assigned)


DEFECTS = (
    Defect(
        id="K01",
        upstream="FLINK-16986",
        title="splits are assigned between the enumerator's snapshot and the reader's",
        invariant="consistent-cut",
        replacements=lambda: {"enumerating": OpenValve()},
    ),
    Defect(
        id="K04",
        upstream="FLINK-20290",
        title="a restored reader reads splits that it has handed back",
        invariant="exactly-once",
        replacements=lambda: {"enumerating": ReadAndReturned()},
    ),
    Defect(
        id="K07",
        upstream="FLINK-38453",
        title="the enumerator stores split ids without offsets",
        invariant="exactly-once",
        replacements=lambda: {"enumerating": WithoutOffsets()},
    ),
    Defect(
        id="K09",
        upstream="BEAM#34890 / NATS#93 / SEATUNNEL#11677",
        title="splits that are handed back are never assigned again",
        invariant="no-data-loss",
        replacements=lambda: {"enumerating": NeverGivenAgain()},
    ),
    Defect(
        id="K11",
        upstream="FLINK-18641 / FLINK-25256",
        title="the enumerator's state is read after its readers have taken their snapshots",
        invariant="consistent-cut",
        replacements=lambda: {"enumerating": ReadersFirst()},
    ),
)
