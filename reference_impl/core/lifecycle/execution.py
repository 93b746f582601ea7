"""How an attempt starts: numbered, deployed, and running (ABS-6).

Carbone et al. (arXiv:1506.08603, section 4.4): after a failure the whole dataflow restarts from the latest complete
snapshot.  A number is given to each attempt, and is durable before the attempt is deployed.  Each stage of the
job's life is a type (`stages`).  What becomes of an attempt that fails is in `failover`.
"""

from __future__ import annotations

from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect, SetTimer
from ..vocabulary.messages import Running
from ..vocabulary.stages import Deploying, Saving, Working
from ..vocabulary.status_changes import AttemptRunning, AttemptStarted
from ..vocabulary.timeouts import DeployTimeout
from .checkpoints_cleaner import CheckpointsCleaner
from .closing import JobClosing
from .completed_checkpoint_store import CompletedCheckpointStore
from .deployment import Deployment
from .finishing_tasks import FinishingTasks
from .job_life import JobLife
from .job_records import DeployAll, JobRecords


class Execution:
    """The execution of one job by one attempt of all tasks after another."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        *,
        life: JobLife,
        attempts: Attempts,
        completed: CompletedCheckpointStore,
        cleaner: CheckpointsCleaner,
        deployment: Deployment,
        records: JobRecords,
        finishing: FinishingTasks,
        closing: JobClosing,
    ) -> None:
        self._job = job
        self._config = config
        self._life = life
        self._attempts = attempts
        self._completed = completed
        self._cleaner = cleaner
        self._deployment = deployment
        self._records = records
        self._finishing = finishing
        self._closing = closing
        self._tasks = tuple(task for task, _, _ in graph.tasks())

    def start(self, cause: AnyCause) -> list[Effect]:
        """Begin an attempt, unless the snapshot that it would restore does not fit the job."""
        self._attempts.begin()
        restores = self._completed.to_restore() if self._config.takes_checkpoints else None
        restores, incompatible = self._deployment.fitted(restores)
        if incompatible is not None:
            return self._closing.fail(incompatible)
        self._life.enter(Saving(restores))
        self._deployment.begin(restores)
        return self._records.save(DeployAll(restores, cause))

    def deploy(self, then: DeployAll) -> list[Effect]:
        """The attempt's number is durable: order all tasks to start."""
        if not isinstance(self._life.stage, Saving):
            return []
        restores, attempt = then.restores, self._attempts.all_deployed()
        self._life.enter(Deploying(restores, self._tasks))
        return [
            AttemptStarted(attempt, restores.checkpoint if restores else None, then.cause),
            *self._cleaner.clear_logs(),
            *self._deployment.orders(self._tasks, attempt, restores),
            SetTimer(DeployTimeout(attempt), self._config.deploy_timeout_us),
        ]

    def on_running(self, message: Running) -> list[Effect]:
        """A task is restored and runs.  Once all do, the job works; if it had ended with the snapshot that they
        restored, they only finish its commits."""
        stage = self._life.stage
        if not isinstance(stage, Deploying):
            return []
        self._deployment.restored(message)
        waiting = tuple(task for task in stage.waiting if task != message.task)
        restores = stage.restores
        self._life.enter(Deploying(restores, waiting))
        if waiting:
            return []
        running = AttemptRunning(self._attempts.newest)
        ending = restores.ending if restores is not None and restores.job == self._job else None
        if restores is not None and ending is not None:
            return [running, *self._finishing.terminate(restores.checkpoint, ending)]
        self._life.enter(Working())
        return [running]
