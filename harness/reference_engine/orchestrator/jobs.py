"""The jobs of a run, one after the other: the harness submits, observes and resumes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UNSET, UnsetType

from ....faults.plan import AtTime
from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary.ends import Status
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from ....reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from ....reference_impl.processes.disk.files import COPIES, DiskFiles, DiskJobs
from ....reference_impl.processes.disk.logs import DiskLogs
from ....reference_impl.processes.network.frames import Ended, Returned, Submit, TakeOver
from ...scenario.model import Resume, Scenario
from ...scenario.snapshots import CLAIMED, named, saved_as
from ..snapshots.beginning import Behind
from ..subjects.translation import resume_issued
from .context import Context
from .processes import Member

PAUSE_US = 1_000

Submission = tuple[AttemptId, int, tuple[CompletedCheckpoint, ...], bool, CheckpointId | None]
"""How a job was submitted, as in `Submit`: its first attempt and checkpoint, and the snapshots with which it begins."""


class Jobs:
    """Submits the jobs of a run.  `coordinator()` is the process that receives them."""

    def __init__(
        self,
        context: Context,
        scenario: Scenario,
        coordinator: Callable[[], Member | None],
        begins: Behind | None = None,
    ) -> None:
        self._context = context
        self._scenario = scenario
        self._coordinator = coordinator
        self._memory = scenario.engine.snapshot_store == "memory"
        self._files = DiskFiles(context.config.store)
        self._logs = DiskLogs(context.config.store, whole_files=False)
        self._records = DiskJobs(context.config.store)
        self._submission: Submission = (AttemptId(1), 1, (), False, None)
        self._claims: dict[CheckpointId, bool] = begins.past.claims if begins is not None else {}
        self._answers: dict[int, int | None] = {}
        self._retained: tuple[int, ...] = ()
        self.unapplied = [command for command in scenario.commands if isinstance(command, Resume)]
        self._begins = begins
        self._before = begins.past.job if begins is not None else 0
        self.number = self._before
        self.is_over = True
        self.is_resuming = False

    @property
    def is_all_over(self) -> bool:
        """Whether the last job has ended."""
        return self.is_over and not self.is_resuming and self.number > self._before

    def begin(self) -> None:
        """Submit the first job."""
        if self._begins is None:
            self.submit()
            return
        issued, returned = self._begins.past.begin()
        self._context.journal.saw(issued)
        past = self._begins.past
        begun_from = CheckpointId(past.checkpoint) if past.claimed is not None else None
        self.submit(self._begins.stores.records, begun_from)
        self._context.journal.saw(returned)

    def submit(
        self,
        initial: tuple[CompletedCheckpoint, ...] = (),
        named: CheckpointId | None = None,
        *,
        recall: bool = False,
    ) -> None:
        """Submit a job.  Its attempts and checkpoints get numbers that the previous job cannot have used."""
        previous = self._records.load(self.number) if self.number else None
        self.number += 1
        self.is_over = False
        attempt, checkpoint = (previous.attempt + 2, previous.next_checkpoint + 8) if previous else (1, 1)
        self._submission = (AttemptId(attempt), checkpoint, initial, recall, named)
        member = self._coordinator()
        if member is not None:
            member.send(Submit(self._context.clock.tick(), self.number, *self._submission, dict(self._claims)))

    def take_over(self, member: Member) -> None:
        """Have a new coordinator take over the current job, if there is one."""
        if not self.is_over:
            member.send(TakeOver(self._context.clock.tick(), self.number, *self._submission, dict(self._claims)))

    def returned(self, frame: Returned) -> None:
        """A command was answered."""
        self._answers.setdefault(frame.command, frame.checkpoint)

    def ended(self, frame: Ended) -> None:
        """A job has ended.  The next one is submitted after a pause, if the scenario has a resume."""
        if frame.job != self.number or self.is_over:
            return
        self.is_over = True
        self._retained = frame.retained
        if not self.unapplied or frame.status is Status.FINISHED:
            return
        command = self.unapplied[0]
        pause = command.trigger.at_us if isinstance(command.trigger, AtTime) else PAUSE_US
        self.is_resuming = True
        self._context.after_real(self._context.real(pause), lambda: self._resume(command, frame.status))

    def _resume(self, command: Resume, status: Status) -> None:
        self.is_resuming = False
        initial = () if self._memory else self._files.survey()[0]
        retained = self._retained if self._memory else tuple(one.checkpoint for one in initial)
        found = named(command.snapshot, retained, self._scenario, self._answers)
        snapshot = CheckpointId(found[0]) if found else None
        other = snapshot if command.snapshot != "newest" else None
        if snapshot is None and (status is Status.FAILED or command.inserted or command.snapshot != "newest"):
            return
        self.unapplied.pop(0)
        resumes = [at for at, one in enumerate(self._scenario.commands) if isinstance(one, Resume)]
        number = resumes[self.number - self._before - 1]
        journal = self._context.journal
        claimed = CLAIMED[command.claim_mode] if snapshot is not None else None
        if snapshot is not None and claimed is not None:
            self._claims[snapshot] = claimed
        journal.saw(resume_issued(number, command, other, claimed))
        self.submit(initial, other if claimed is None else snapshot, recall=self._memory and bool(retained))
        journal.saw(o.command_returned(number, snapshot, None))

    def meant(self, snapshot: str) -> CheckpointId | None:
        """The snapshot that a user means.  A savepoint may be gone by then: a user may repeat the command."""
        found = named(snapshot, self.retained(), self._scenario, self._answers)
        meant = found[0] if found else saved_as(snapshot, self._scenario, self._answers)
        return CheckpointId(meant) if meant is not None else None

    def named(self, snapshot: str, retained: Sequence[int]) -> tuple[int, ...]:
        """Those of the retained snapshots for which the words of a command stand."""
        return named(snapshot, retained, self._scenario, self._answers)

    def restorable(self) -> list[int]:
        """The retained checkpoints whose records are on disk.  A job that runs may be about to delete a record: a
        snapshot counts while its coordinator knows it too."""
        recorded = [int(one.checkpoint) for one in self._files.survey()[0]]
        return recorded if self.is_over else [one for one in recorded if one in self._context.facts.retained]

    def record(self) -> JobRecord:
        """The durable record of the latest job, or what the first one will say."""
        attempt, checkpoint, *_ = self._submission
        first = JobRecord(job=self.number, attempt=attempt, next_checkpoint=CheckpointId(checkpoint))
        return self._records.load(self.number) or first

    def retained(self) -> list[int]:
        """The checkpoints that the last job or its user retains."""
        if self.is_over:
            return list(self._retained)
        if self._memory:
            return list(self._context.facts.retained)
        return [int(one.checkpoint) for one in self._files.survey()[0]]

    def copies(self) -> tuple[list[int] | UnsetType, list[str] | UnsetType]:
        """The copies in the directory of the user, and the files there; UNSET if nobody has asked for any."""
        folder = self._context.config.store / COPIES
        if not folder.is_dir():
            return UNSET, UNSET
        there = DiskFiles(folder)
        return [int(one.checkpoint) for one in there.survey()[0]], [str(handle) for handle in there.handles()]

    def logs(self) -> list[str]:
        """The names of the existing logs of persistent channels."""
        return self._logs.names()

    def handles(self) -> list[str]:
        return [str(handle) for handle in self._files.handles()]
