"""P35 to P37, P49: snapshots that a user has copied or moved while the job runs."""

from __future__ import annotations

import msgspec

from ...core.decisions.checkpointing import Cleanup, MoveStep, record_of_copy
from ...core.vocabulary.effects import Effect
from ...core.vocabulary.events import CompletedCheckpoint, FilesCopied, files_needed
from ..registry import Defect


class DeletedBeforeItIsCopied(Cleanup):
    """P35: a snapshot is deleted first and copied then, and the copy gets its record though files are gone."""

    def steps_of_move(self) -> tuple[MoveStep, ...]:
        self.reached = True
        return (MoveStep.delete, MoveStep.copy)

    def may_be_recorded(self, copied: FilesCopied) -> bool:
        return True


class RecordBeforeFiles(Cleanup):
    """P36: the record of a copy is written before the files, and says of a copy that it is complete which is not."""

    def copy(self, snapshot: CompletedCheckpoint) -> list[Effect]:
        self.reached = True
        return [record_of_copy(snapshot), *super().copy(snapshot)]


class CopiesItsOwn(Cleanup):
    """P37: only what was written under a snapshot's own handles is copied, and not the files to which it refers."""

    def copy(self, snapshot: CompletedCheckpoint) -> list[Effect]:
        self.reached = self.reached or bool(files_needed(snapshot))
        (files,) = super().copy(snapshot)
        return [msgspec.structs.replace(files, handles=tuple(snapshot.handles.values()))]


class RecordWithoutFiles(Cleanup):
    """P49: a copy gets its record although a file is missing or cannot be written."""

    def may_be_recorded(self, copied: FilesCopied) -> bool:
        self.reached = self.reached or copied.failure is not None
        return True


DEFECTS = (
    Defect(
        id="P35",
        upstream="FLIP-47 (move through the engine)",
        title="a snapshot that is moved is deleted before it is copied",
        invariant="restored-state",
        replacements=lambda: {"cleanup": DeletedBeforeItIsCopied()},
    ),
    Defect(
        id="P36",
        upstream="FLIP-47 (move through the engine)",
        title="a copy counts as complete before its files are there",
        invariant="restored-state",
        replacements=lambda: {"cleanup": RecordBeforeFiles()},
    ),
    Defect(
        id="P37",
        upstream="FLIP-47 (self-contained savepoints)",
        title="a copy lacks the files that its snapshot shares with others",
        invariant="restored-state",
        replacements=lambda: {"cleanup": CopiesItsOwn()},
    ),
    Defect(
        id="P49",
        upstream="FLIP-47 (self-contained savepoints)",
        title="a copy counts as complete although a file could not be copied",
        invariant="restored-state",
        replacements=lambda: {"cleanup": RecordWithoutFiles()},
    ),
)
