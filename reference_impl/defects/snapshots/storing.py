"""Group P: files of snapshots that are taken for durable, or for deleted, before they are."""

from __future__ import annotations

from ...core.decisions.snapshots.storing import Storing
from ...core.vocabulary.effects import Discard, Effect
from ...core.vocabulary.formats import WriteStep
from ...core.vocabulary.ids import CheckpointId, Handle
from ..registry import Defect


class AcknowledgesUnsynced(Storing):
    """P31: a task acknowledges when its bytes are with the operating system: half of them may be on the disk."""

    def acknowledged_after(self) -> WriteStep:
        self.reached = True
        return WriteStep.WRITTEN


class AcknowledgesUnsyncedNames(Storing):
    """P32: a task acknowledges when its files are synced: their names may be lost with the power."""

    def acknowledged_after(self) -> WriteStep:
        self.reached = True
        return WriteStep.LINKED


class ForgetsFailedDeletes(Storing):
    """P33: what could not be deleted is taken for deleted."""

    def on_failed_delete(self, files: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Effect]:
        self.reached = True
        return []


class FilesWithoutTheRecord(Storing):
    """P34: when a record cannot be deleted, its files are deleted all the same, and the record refers to nothing."""

    def on_failed_delete(self, files: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Effect]:
        self.reached = self.reached or (checkpoint is not None and bool(files))
        return [Discard(files)]


DEFECTS = (
    Defect(
        id="P31",
        upstream="nodedb#78",
        title="a snapshot is acknowledged before its bytes are synced",
        invariant="restored-state",
        replacements=lambda: {"storing": AcknowledgesUnsynced()},
    ),
    Defect(
        id="P32",
        upstream="ClickHouse#111339",
        title="a snapshot is acknowledged before the names of its files are synced",
        invariant="restored-state",
        replacements=lambda: {"storing": AcknowledgesUnsyncedNames()},
    ),
    Defect(
        id="P33",
        upstream="FLINK-26450",
        title="files that could not be deleted are taken for deleted",
        invariant="no-leaks",
        replacements=lambda: {"storing": ForgetsFailedDeletes()},
    ),
    Defect(
        id="P34",
        upstream="FLINK-27051",
        title="the record of a checkpoint could not be deleted, and its files are deleted",
        invariant="restored-state",
        replacements=lambda: {"storing": FilesWithoutTheRecord()},
    ),
)
