"""Group I: what a two-phase commit gets wrong."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.decisions.commits import (
    Committing,
    GlobalCommitting,
    PreCommitting,
    Rejected,
    SealStep,
    SinkRecovery,
    Succeeded,
    Verdict,
)
from ..core.decisions.part import Part
from ..core.decisions.postponed import Postponed
from ..core.decisions.snapshots.contents import SnapshotContents
from ..core.decisions.snapshots.naming import Naming
from ..core.vocabulary.ids import AttemptId, CheckpointId, TaskId, is_newer, oldest
from ..core.vocabulary.state import Sealed, TaskState
from ..core.vocabulary.transactions import EPOCH, Commit, Done, Fence, NoAnswer, Outcome, Row, Unfinished
from .registry import Defect


class NoFlush(PreCommitting):
    """I01: the sink acknowledges the checkpoint while the client still buffers rows."""

    def steps(self) -> tuple[SealStep | Postponed[SealStep], ...]:
        self.reached = True
        return (SealStep.seal, SealStep.begin)


class CommitsOnlyThis(Committing):
    """I03: a notification commits its own checkpoint's transaction and no older one."""

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        self.reached = self.reached or any(is_newer(checkpoint, transaction.checkpoint) for transaction in sealed)
        return [transaction for transaction in sealed if transaction.checkpoint == checkpoint]


class CommitsById(Committing):
    """I04: a commit names only the transactional id, under which there may be a newer, unfinished transaction."""

    def request(self, writer: TaskId, attempt: AttemptId, name: str) -> Commit:
        self.reached = self.reached or EPOCH in name
        return Commit(writer=writer, attempt=attempt, name=name, by_id=True)


class SwallowsInRecovery(SinkRecovery):
    """I05: a commit that fails during recovery is taken for one that was done earlier."""

    def verdict(self, outcome: Outcome) -> Verdict:
        self.reached = self.reached or not isinstance(outcome, Done)
        return Succeeded()


class TakesNewsForData(GlobalCommitting):
    """I14: the notification that a checkpoint is complete is taken as proof that all its committables have arrived."""

    def up_to(self, settled: Sequence[CheckpointId | None], notified: CheckpointId | None) -> CheckpointId | None:
        self.reached = self.reached or is_newer(notified, oldest(settled))
        return notified


class KeepsSealed(SinkRecovery):
    """I06: of the transactions of earlier attempts only those that were never sealed are aborted."""

    def to_abort(self, restored: Sequence[Sealed], unfinished: Sequence[Unfinished]) -> list[str]:
        right = super().to_abort(restored, unfinished)
        still_open = [name for name, sealed_for in unfinished if sealed_for is None]
        self.reached = self.reached or any(name not in still_open for name in right)
        return [name for name in right if name in still_open]


class ForgetsFailed(Committing):
    """I11: a commit that fails is logged, and forgotten."""

    def verdict(self, outcome: Outcome) -> Verdict:
        if not isinstance(outcome, NoAnswer):
            return super().verdict(outcome)
        self.reached = True
        return Succeeded()


class KeepsOneOfMany(SnapshotContents):
    """I12: restored transactions are kept by subtask alone, so that one replaces the others."""

    def restored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or len(state.transactions) > 1
        return msgspec.structs.replace(state, transactions=state.transactions[-1:])


class AbortsRestored(SnapshotContents):
    """I19: the transactions in the restored snapshot are aborted, although the restored positions are behind their
    records."""

    def restored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or bool(state.transactions)
        return msgspec.structs.replace(state, transactions=[])


class SealsLater(PreCommitting):
    """I27: records are processed between the snapshot and the sealing of its transaction."""

    def steps(self) -> tuple[SealStep | Postponed[SealStep], ...]:
        self.reached = True
        return (SealStep.flush, Postponed((SealStep.flush, SealStep.seal, SealStep.begin)))


class NoFence(SinkRecovery):
    """I35: an attempt that was given up can still write, because the new one sets up no fence."""

    def fence(self, writer: TaskId, attempt: AttemptId) -> Fence:
        self.reached = self.reached or attempt > 1
        return Fence(writer=writer, attempt=AttemptId(0))


class LabelsStartAgain(Naming):
    """I37: after a restore the labels of transactions start again from the beginning."""

    def __init__(self) -> None:
        self._first: dict[tuple[TaskId, AttemptId], int] = {}
        """the serial with which each attempt began"""

    def transaction(self, job: int, task: TaskId, attempt: AttemptId, serial: int) -> str:
        self.reached = self.reached or attempt > 1
        return f"job-{job}/{task}/{serial - self._first.setdefault((task, attempt), serial)}"


class SealsEmpty(PreCommitting):
    """I38: a transaction without rows is sealed, and the store forgets it."""

    def seals(self, rows: int) -> bool:
        self.reached = self.reached or not rows
        return True


class StaysInTransaction(Committing):
    """I10: the handle of a failed commit still counts as in use, and its next use is refused."""

    _in_use = False

    def verdict(self, outcome: Outcome) -> Verdict:
        if self._in_use:
            self.reached, self._in_use = True, False
            return Rejected(str(outcome))
        self._in_use = isinstance(outcome, NoAnswer)
        return super().verdict(outcome)


class NobodyListens(SinkRecovery):
    """I22: restored transactions are announced before anybody listens, and so are never committed."""

    def __init__(self) -> None:
        self.unannounced: list[Sealed] = []

    def to_commit(self, restored: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        self.reached = self.reached or bool(restored)
        self.unannounced.extend(restored)
        return []


class CommitsOnlyWhatWasAnnounced(Committing):
    """I22: a later notification commits only transactions that were announced since."""

    def __init__(self, recovery: NobodyListens) -> None:
        self._recovery = recovery

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        return [one for one in super().due(sealed, checkpoint) if one not in self._recovery.unannounced]


class CommitsAllSealed(Committing):
    """J17: a late notification commits every sealed transaction, also newer ones."""

    def due(self, sealed: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        self.reached = self.reached or any(is_newer(one.checkpoint, checkpoint) for one in sealed)
        return list(sealed)


class IdentityOfAttempt(Naming):
    """I18: the identity that distinguishes a row from its repetition contains the attempt that wrote the row."""

    def identity(self, row: Row, by_key: bool, attempt: AttemptId) -> tuple[int | None, ...]:
        self.reached = self.reached or attempt > 1
        return (*super().identity(row, by_key, attempt), attempt)


class SeesWhoResumes(SnapshotContents):
    """I09: a restored sink resumes transactions if its snapshot has any."""

    resumes = False

    def restored(self, state: TaskState) -> TaskState:
        self.resumes = bool(state.transactions)
        return super().restored(state)


class SharedNobody(SinkRecovery):
    """I09: all sinks without an identity share one object; the first sink that resumes a transaction writes its
    identity into the object, and every later sink takes that identity."""

    def __init__(self, contents: SeesWhoResumes) -> None:
        self._contents = contents
        self._nobody: TaskId | None = None

    def fence(self, writer: TaskId, attempt: AttemptId) -> Fence:
        identity = self._nobody or writer
        self.reached = self.reached or identity != writer
        if self._contents.resumes:
            self._nobody = writer
        return super().fence(identity, attempt)


class BoundedEpochs(SinkRecovery):
    """I07: the snapshot has a transaction's id and epoch, but not how often the store's epochs have wrapped around:
    after that a restored sink names another transaction."""

    EPOCHS = 3

    def to_commit(self, restored: Sequence[Sealed], checkpoint: CheckpointId | None) -> list[Sealed]:
        due = super().to_commit(restored, checkpoint)
        known = [msgspec.structs.replace(one, name=self._as_kept(one.name)) for one in due]
        self.reached = self.reached or known != due
        return known

    def _as_kept(self, name: str) -> str:
        """The name, with an epoch that begins again at the boundary."""
        identity, epoch, serial = name.rpartition("-") if EPOCH in name else (name, "", "")
        return f"{identity}{epoch}{int(serial) % self.EPOCHS}" if epoch else name


def _with_one_identity() -> dict[str, Part]:
    contents = SeesWhoResumes()
    return {"snapshot_contents": contents, "sink_recovery": SharedNobody(contents)}


def _announced_too_early() -> dict[str, Part]:
    recovery = NobodyListens()
    return {"sink_recovery": recovery, "committing": CommitsOnlyWhatWasAnnounced(recovery)}


DEFECTS = (
    Defect(
        id="I01",
        upstream="FLINK-4027 / FLINK-5701 / JET#624",
        title="the sink acknowledges a checkpoint before it has sent all writes",
        invariant="consistent-cut",
        replacements=lambda: {"pre_committing": NoFlush()},
    ),
    Defect(
        id="I03",
        upstream="FLINK-10377",
        title="a notification commits only the transaction of its own checkpoint",
        invariant="progress",
        replacements=lambda: {"committing": CommitsOnlyThis()},
    ),
    Defect(
        id="I04",
        upstream="FLINK-8132",
        title="recovery commits the wrong transaction of a reused transactional id",
        invariant="exactly-once",
        replacements=lambda: {"committing": CommitsById()},
    ),
    Defect(
        id="I05",
        upstream="FLINK-8086 / FLINK-7784",
        title="a failed commit during recovery is ignored",
        invariant="progress",
        replacements=lambda: {"sink_recovery": SwallowsInRecovery()},
    ),
    Defect(
        id="I06",
        upstream="FLINK-40626",
        title="a superseded sealed transaction is never aborted",
        invariant="no-leaks",
        replacements=lambda: {"sink_recovery": KeepsSealed()},
    ),
    Defect(
        id="I07",
        upstream="FLINK-40689",
        title="a restored sink names another transaction after the store's epochs wrapped around",
        invariant="progress",
        replacements=lambda: {"sink_recovery": BoundedEpochs()},
    ),
    Defect(
        id="I09",
        upstream="FLINK-23509",
        title="all sinks share one initial identity, which a resumed sink overwrites",
        invariant="progress",
        replacements=_with_one_identity,
    ),
    Defect(
        id="I11",
        upstream="FLINK-24773 / FLINK-23896",
        title="failed commits are logged and forgotten",
        invariant="progress",
        replacements=lambda: {"committing": ForgetsFailed()},
    ),
    Defect(
        id="I12",
        upstream="FLINK-29627 / 29509 / 29512 (DELTA#467)",
        title="restored transactions of one subtask replace each other",
        invariant="exactly-once",
        replacements=lambda: {"snapshot_contents": KeepsOneOfMany()},
    ),
    Defect(
        id="I14",
        upstream="FLINK-24530",
        title="a global committer takes a notification for the arrival of all committables",
        invariant="visibility",
        replacements=lambda: {"global_committing": TakesNewsForData()},
    ),
    Defect(
        id="I19",
        upstream="HUDI#13530 (9570) / #5950 (4311) / #10312 (7132) / #18051",
        title="recovery aborts transactions whose records are not read again",
        invariant="exactly-once",
        replacements=lambda: {"snapshot_contents": AbortsRestored()},
    ),
    Defect(
        id="I27",
        upstream="SEATUNNEL#9826",
        title="records are processed between the snapshot and the pre-commit",
        invariant="consistent-cut",
        replacements=lambda: {"pre_committing": SealsLater()},
    ),
    Defect(
        id="I35",
        upstream="RISINGWAVE#27087",
        title="writers of an earlier attempt are not fenced",
        invariant="exactly-once",
        replacements=lambda: {"sink_recovery": NoFence()},
    ),
    Defect(
        id="I37",
        upstream="SEATUNNEL#4717 / #4881",
        title="the labels of transactions after a restore equal committed ones",
        invariant="exactly-once",
        replacements=lambda: {"naming": LabelsStartAgain()},
    ),
    Defect(
        id="I38",
        upstream="FLINK-31363",
        title="an empty transaction is sealed although the store drops it",
        invariant="progress",
        replacements=lambda: {"pre_committing": SealsEmpty()},
    ),
    Defect(
        id="I10",
        upstream="FLINK-25126",
        title="a handle is not reset when its commit failed",
        invariant="progress",
        replacements=lambda: {"committing": StaysInTransaction()},
    ),
    Defect(
        id="I22",
        upstream="FLINK-19166 / FLINK-18110",
        title="restored transactions are announced before a listener is registered",
        invariant="progress",
        replacements=lambda: _announced_too_early(),
    ),
    Defect(
        id="J17",
        upstream="FLINK-25920",
        title="a late notification commits transactions of newer checkpoints",
        invariant="visibility",
        replacements=lambda: {"committing": CommitsAllSealed()},
    ),
    Defect(
        id="I18",
        upstream="ICEBERG#16009 / #14182 / FLINK-36517",
        title="the deduplication key contains the attempt",
        invariant="exactly-once",
        replacements=lambda: {"naming": IdentityOfAttempt()},
    ),
)
