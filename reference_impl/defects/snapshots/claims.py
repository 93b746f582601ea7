"""Groups G and P: snapshots that a job claims, or does not, when a user resumes from them."""

from __future__ import annotations

from ...core.decisions.checkpointing import Cleanup
from ...core.decisions.snapshots.increments import Increments
from ...core.vocabulary.events import Claims, CompletedCheckpoint
from ...core.vocabulary.formats import Filed
from ...core.vocabulary.ids import CheckpointId, Handle
from ..registry import Defect


class RelativeToItsOwn(Increments):
    """G08: the files that an increment takes over from a claimed snapshot are acknowledged under names in its own
    directory: nobody refers to the files themselves once that snapshot is deleted."""

    def acknowledged(self, filed: Filed) -> tuple[Handle, ...]:
        names = super().acknowledged(filed)
        if not filed.new:
            return names
        directory = filed.new[0].file.name.rpartition("/")[0]
        relative = tuple(
            name if _job(name) == _job(directory) else Handle(f"{directory}/{name.rpartition('/')[2]}")
            for name in names
        )
        self.reached = self.reached or relative != names
        return relative


def _job(name: str) -> str:
    return name.split("/", 1)[0]


class FullOnlyWhenTriggeredFirst(Increments):
    """G09: only the first checkpoint that is triggered in a job builds on nothing: if it is aborted, the next one is an
    increment on the snapshot that the job has not claimed."""

    def __init__(self) -> None:
        self._triggered: dict[int, None] = {}
        """the jobs in which a checkpoint was triggered"""

    def may_build_on(
        self, snapshot: CompletedCheckpoint, job: int, begun_from: CheckpointId | None, claims: Claims
    ) -> bool:
        allowed = super().may_build_on(snapshot, job, begun_from, claims)
        if allowed or snapshot.checkpoint != begun_from:
            return allowed
        wrongly = job in self._triggered and bool(snapshot.files)
        self._triggered[job] = None
        self.reached = self.reached or wrongly
        return wrongly


class BuildsOnWhatIsNotItsOwn(Increments):
    """P25: the first checkpoint of a job is an increment on the snapshot from which it was begun, claimed or not."""

    def may_build_on(
        self, snapshot: CompletedCheckpoint, job: int, begun_from: CheckpointId | None, claims: Claims
    ) -> bool:
        allowed = super().may_build_on(snapshot, job, begun_from, claims)
        wrongly = not allowed and snapshot.checkpoint == begun_from and bool(snapshot.files)
        self.reached = self.reached or wrongly
        return allowed or wrongly


class NeverDeletesWhatItClaimed(Cleanup):
    """P26: a savepoint that was claimed counts as its user's all the same, and stays for ever."""

    def owns(self, snapshot: CompletedCheckpoint, claims: Claims) -> bool:
        self.reached = self.reached or (snapshot.savepoint and claims.get(snapshot.checkpoint, False))
        return super().owns(snapshot, claims) and not snapshot.savepoint


class DeletesWhatItDidNotClaim(Cleanup):
    """P27: a checkpoint from which a job was begun without claiming it is deleted as if it were the job's own."""

    def owns(self, snapshot: CompletedCheckpoint, claims: Claims) -> bool:
        owned = super().owns(snapshot, claims)
        self.reached = self.reached or (not owned and not snapshot.savepoint)
        return owned or not snapshot.savepoint


DEFECTS = (
    Defect(
        id="G08",
        upstream="FLINK-39964 / FLINK-40254",
        title="an increment refers to files of a claimed snapshot as if they were in its own directory",
        invariant="restored-state",
        replacements=lambda: {"increments": RelativeToItsOwn()},
    ),
    Defect(
        id="G09",
        upstream="FLINK-25192 (invariant)",
        title="after a resume without a claim only the first checkpoint triggered is full, even if it is aborted",
        invariant="restored-state",
        replacements=lambda: {"increments": FullOnlyWhenTriggeredFirst()},
    ),
    Defect(
        id="P25",
        upstream="FLIP-193 (no-claim)",
        title="the first checkpoint refers to files of a snapshot that the job has not claimed",
        invariant="restored-state",
        replacements=lambda: {"increments": BuildsOnWhatIsNotItsOwn()},
    ),
    Defect(
        id="P26",
        upstream="FLIP-193 (claim)",
        title="a savepoint that a job has claimed is never deleted",
        invariant="no-leaks",
        replacements=lambda: {"cleanup": NeverDeletesWhatItClaimed()},
    ),
    Defect(
        id="P27",
        upstream="FLIP-193 (no-claim)",
        title="a job deletes the checkpoint from which it was begun and which it has not claimed",
        invariant="restored-state",
        replacements=lambda: {"cleanup": DeletesWhatItDidNotClaim()},
    ),
)
