"""Groups G and P: snapshots that a user has deleted while the job runs."""

from __future__ import annotations

from ...core.decisions.checkpointing import Cleanup
from ...core.vocabulary.effects import Discard, Effect
from ...core.vocabulary.events import CompletedCheckpoint, files_needed
from ...core.vocabulary.ids import CheckpointId, Handle
from ..registry import Defect


class FilesBeforeTheRecord(Cleanup):
    """P21: the files are deleted before the record, which refers to nothing if the coordinator dies in between."""

    def deletion(self, snapshot: CompletedCheckpoint, unneeded: tuple[Handle, ...]) -> list[Effect]:
        self.reached = self.reached or bool(unneeded)
        return [Discard(unneeded), Discard((), snapshot.checkpoint)]


class DeletesSharedFiles(Cleanup):
    """P22: all files of the snapshot are deleted, also those that a later one needs."""

    def deletion(self, snapshot: CompletedCheckpoint, unneeded: tuple[Handle, ...]) -> list[Effect]:
        files = (*snapshot.handles.values(), *files_needed(snapshot))
        self.reached = self.reached or any(file not in unneeded for file in files)
        return super().deletion(snapshot, files)


class DeletesWhatIsRestored(Cleanup):
    """P23: the snapshot that the job would restore after a failure can be deleted."""

    def may_be_deleted(self, snapshot: CheckpointId, restored: CheckpointId | None) -> bool:
        self.reached = self.reached or snapshot == restored
        return True


class DeletedInMemoryOnly(Cleanup):
    """P24: the record is only forgotten: the next coordinator finds it, and the files are gone."""

    def deletion(self, snapshot: CompletedCheckpoint, unneeded: tuple[Handle, ...]) -> list[Effect]:
        self.reached = self.reached or bool(unneeded)
        return [Discard(unneeded)]


DEFECTS = (
    Defect(
        id="P21",
        upstream="FLIP-47 (delete through the engine)",
        title="the files of a deleted snapshot are deleted before its record",
        invariant="restored-state",
        replacements=lambda: {"cleanup": FilesBeforeTheRecord()},
    ),
    Defect(
        id="P22",
        upstream="FLIP-47 (incremental snapshots refer to others)",
        title="a deleted snapshot takes files with it that a later one needs",
        invariant="restored-state",
        replacements=lambda: {"cleanup": DeletesSharedFiles()},
    ),
    Defect(
        id="P23",
        upstream="FLIP-47 (the last snapshot is needed)",
        title="a user can delete the snapshot that the job would restore",
        invariant="restored-state",
        replacements=lambda: {"cleanup": DeletesWhatIsRestored()},
    ),
    Defect(
        id="P24",
        upstream="FLIP-47 (delete through the engine)",
        title="a coordinator that takes over finds the record of a deleted snapshot",
        invariant="restored-state",
        replacements=lambda: {"cleanup": DeletedInMemoryOnly()},
    ),
)
