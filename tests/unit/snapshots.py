"""Complete snapshots as a coordinator records them, for tests that have none."""

from __future__ import annotations

from collections.abc import Mapping

from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId


def snapshot(
    checkpoint: int, *, attempt: int = 1, savepoint: bool = False, handles: Mapping[str, str] | None = None
) -> CompletedCheckpoint:
    """Of job 1, ending nothing."""
    return CompletedCheckpoint(
        checkpoint=CheckpointId(checkpoint),
        job=1,
        attempt=AttemptId(attempt),
        savepoint=savepoint,
        ending=None,
        handles={TaskId(task): Handle(handle) for task, handle in (handles or {}).items()},
    )
