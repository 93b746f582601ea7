"""The facts of the job, from the reports of its processes: which attempts live, and the phase of the job."""

from __future__ import annotations

from collections.abc import Callable

from ....reference_impl.core.vocabulary.ids import CheckpointId
from ....reference_impl.core.vocabulary.stages import StageName
from ....reference_impl.processes.network.frames import JobFacts, TaskFacts

ENDING = (StageName.TERMINATING, StageName.CLOSING, StageName.ENDED)
RECOVERING = (StageName.RESTARTING, StageName.PARTIAL_FAILOVER)


class Facts:
    """`entered(phase)` is called whenever the phase has changed."""

    def __init__(self, entered: Callable[[str], None]) -> None:
        self._entered = entered
        self._phase = ""
        self._job: JobFacts | None = None
        self._live: dict[str, int] = {}
        self._tasks: dict[str, TaskFacts] = {}
        self.coordinator_lives = False

    # -- reports ----------------------------------------------------------------

    def up(self, task: str, attempt: int) -> None:
        self._live[task] = attempt
        self._tasks.pop(task, None)
        self._update_phase()

    def down(self, task: str, attempt: int) -> None:
        """An attempt has ended.  A newer attempt, in another process, still lives."""
        if self._live.get(task) == attempt:
            del self._live[task]
            self._tasks.pop(task, None)
            self._update_phase()

    def task(self, reported: TaskFacts) -> None:
        if reported.task in self._live:
            self._tasks[reported.task] = reported
            self._update_phase()

    def job(self, reported: JobFacts) -> None:
        self._job = reported
        self._update_phase()

    def coordinator(self, lives: bool) -> None:
        """A coordinator has started or ended: the reports of the previous coordinator no longer hold."""
        self.coordinator_lives = lives
        self._job = None
        self._update_phase()

    # -- what is known ---------------------------------------------------------------

    def attempt_of(self, task: str) -> int | None:
        """The newest live attempt of a task; None when there is none."""
        return self._live.get(task)

    def live(self) -> list[str]:
        return list(self._live)

    @property
    def job_number(self) -> int:
        """The number of the job that the coordinator reported last; 0 before its first report."""
        return self._job.job if self._job is not None else 0

    @property
    def retained(self) -> tuple[int, ...]:
        """The checkpoints in the coordinator's memory; none before its first report, and none while it is dead."""
        return self._job.retained if self._job is not None else ()

    @property
    def under_way(self) -> bool:
        """Whether a checkpoint is in progress."""
        return self._job is not None and self._job.under_way

    @property
    def phase(self) -> str:
        """One of `faults.points.PHASES`, by the same rule as in the simulated world."""
        job = self._job
        if not self.coordinator_lives or job is None or job.stage in RECOVERING:
            return "recovering" if self._began else "deploying"
        if job.stage in ENDING and job.has_begun:
            return "finishing"
        if job.stage is not StageName.WORKING:
            return "deploying" if job.attempt in (None, 1) and job.job == 1 else "recovering"
        if job.is_ending:
            return "finishing"
        if any(reported.aligning for reported in self._tasks.values()):
            return "aligning"
        if job.newest is not None and any(_awaits_commit(one, job.newest) for one in self._tasks.values()):
            return "committing"
        return "checkpointing" if job.under_way else "running"

    _began = False
    """a coordinator has reported a job"""

    def _update_phase(self) -> None:
        begins = not self._began and self._job is not None
        self._began = self._began or begins
        before, self._phase = self._phase, self.phase
        if self._began and (begins or self._phase != before):
            self._entered(self._phase)


def _awaits_commit(reported: TaskFacts, newest: CheckpointId) -> bool:
    return reported.is_handed or (reported.unsettled is not None and reported.unsettled <= newest)
