"""P35 to P37: snapshots that a user has copied or moved while the job runs."""

from __future__ import annotations

from ...core.decisions.checkpointing import Cleanup
from ...core.vocabulary.effects import CopyFiles, Effect, StoreCopy
from ...core.vocabulary.events import CompletedSnapshot, files_needed, files_of
from ..registry import Defect


class DeletedBeforeItIsCopied(Cleanup):
    """P35: a snapshot is deleted first, and what is still there of it is copied then."""

    def move(self, copy: list[Effect], deletion: list[Effect]) -> list[Effect]:
        self.reached = True
        return [*deletion, *copy]


class RecordBeforeFiles(Cleanup):
    """P36: the record of a copy is written before the files, and says of a copy that it is complete which is not."""

    def copy(self, snapshot: CompletedSnapshot) -> list[Effect]:
        self.reached = True
        return [StoreCopy(snapshot), CopyFiles(files_of((snapshot,)))]


class CopiesItsOwn(Cleanup):
    """P37: only what was written under a snapshot's own handles is copied, and not the files to which it refers."""

    def copy(self, snapshot: CompletedSnapshot) -> list[Effect]:
        self.reached = self.reached or bool(files_needed(snapshot))
        return [CopyFiles(tuple(snapshot.handles.values())), StoreCopy(snapshot)]


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
)
