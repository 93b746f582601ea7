"""Group P: the logs of persistent channels, and what snapshots refer to in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..core.decisions.persisting import Persisting
from ..core.decisions.snapshots.naming import Naming
from ..core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..core.vocabulary.messages import Complete
from ..core.vocabulary.state import Ref, TaskState
from .registry import Defect


class NotYetDurable(Persisting):
    """P01: the snapshot is written while the data that it refers to is still being flushed."""

    def is_safe(self, serial: int, synced: int) -> bool:
        self.reached = self.reached or serial > synced
        return True


class BehindTheNewest(Persisting):
    """P02: the logs are trimmed behind the newest complete checkpoint, though an older one is retained."""

    def needed_from(self, taken: Sequence[CheckpointId], complete: Complete) -> CheckpointId | None:
        self.reached = self.reached or complete.logs_from != complete.checkpoint
        return super().needed_from(taken, msgspec.structs.replace(complete, logs_from=complete.checkpoint))


class OneLate(Persisting):
    """P03: the replay begins after the first element that the snapshot refers to."""

    def read_back(self, states: Iterable[TaskState]) -> tuple[Ref, ...]:
        refs = super().read_back(states)
        self.reached = self.reached or bool(refs)
        return tuple(Ref(ref.log, ref.first + 1, ref.end) for ref in refs)


class LogOfTheTask(Naming):
    """P04: the logs of all attempts of a task have the same names."""

    def logs(self, job: int, task: TaskId, attempt: AttemptId) -> str:
        self.reached = self.reached or attempt > 1
        return f"job-{job}/log/{task}"


DEFECTS = (
    Defect(
        id="P01",
        upstream="FLIP-76 (flush)",
        title="a snapshot refers to spilled data that is not durable",
        invariant="consistent-cut",
        replacements=lambda: {"persisting": NotYetDurable()},
    ),
    Defect(
        id="P02",
        upstream="FLIP-76 (truncation)",
        title="spilled data is trimmed one checkpoint too early",
        invariant="restored-state",
        replacements=lambda: {"persisting": BehindTheNewest()},
    ),
    Defect(
        id="P03",
        upstream="FLIP-76 (replay)",
        title="the replay of spilled data begins one element too late",
        invariant="restored-state",
        replacements=lambda: {"persisting": OneLate()},
    ),
    Defect(
        id="P04",
        upstream="FLIP-76 (several attempts)",
        title="a new attempt writes to the log to which the last checkpoint refers",
        invariant="restored-state",
        replacements=lambda: {"naming": LogOfTheTask()},
    ),
)
