"""Group K as far as splits are given out by an enumerator: given twice, from elsewhere, or not again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..core.checkpoints import Pending
from ..core.enumerator import Cut, Enumerating
from ..core.ids import TaskId
from .registry import Defect


class OpenValve(Enumerating):
    """K01: splits are given between the enumerator's cut and the reader's, who then both have them in the snapshot."""

    def holds_back(self, pending: Iterable[Pending], reader: TaskId) -> bool:
        self.reached = self.reached or super().holds_back(pending, reader)
        return False


class ReadAndReturned(Enumerating):
    """K04: a restored reader reads the splits on that it hands back, and whoever asks first is given them as well."""

    def stops_reading(self, split: int) -> bool:
        self.reached = True
        return False


class WithoutOffsets(Enumerating):
    """K07: of a split that is taken back only the number is known, and reading begins at its start."""

    def taken_back(self, returned: Mapping[int, int]) -> dict[int, int]:
        self.reached = self.reached or any(returned.values())
        return dict.fromkeys(returned, 0)


class NeverGivenAgain(Enumerating):
    """K09: splits that are handed back are stored, and only new ones are ever given out."""

    def taken_back(self, returned: Mapping[int, int]) -> dict[int, int]:
        self.reached = self.reached or bool(returned)
        return {}


class ReadersFirst(Enumerating):
    """K11: the enumerator's state is read when its readers have taken theirs: what it gave them since is lost."""

    def recorded(self, at_trigger: Cut, now: Callable[[], Cut]) -> Cut:
        later = now()
        self.reached = self.reached or later != at_trigger
        return later


DEFECTS = (
    Defect(
        id="K01",
        upstream="FLINK-16986",
        title="enumerator snapshot and event sending not atomic",
        invariant="consistent-cut",
        replacements=lambda: {"enumerating": OpenValve()},
    ),
    Defect(
        id="K04",
        upstream="FLINK-20290",
        title="splits returned twice after partial failover",
        invariant="exactly-once",
        replacements=lambda: {"enumerating": ReadAndReturned()},
    ),
    Defect(
        id="K07",
        upstream="FLINK-38453",
        title="enumerator stores split ids without offsets",
        invariant="exactly-once",
        replacements=lambda: {"enumerating": WithoutOffsets()},
    ),
    Defect(
        id="K09",
        upstream="BEAM#34890 / NATS#93 / SEATUNNEL#11677",
        title="restored splits re-added, or returned splits never re-assigned",
        invariant="no-data-loss",
        replacements=lambda: {"enumerating": NeverGivenAgain()},
    ),
    Defect(
        id="K11",
        upstream="FLINK-18641 / FLINK-25256",
        title="externally induced source snapshots tasks before the coordinator",
        invariant="consistent-cut",
        replacements=lambda: {"enumerating": ReadersFirst()},
    ),
)
