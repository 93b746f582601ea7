"""The orders that deploy the tasks of an attempt, each with its part of the snapshot that is restored (ABS-6)."""

from __future__ import annotations

from collections.abc import Sequence

from ..decisions.parts import Parts
from ..decisions.snapshots.compatibility import layout_of
from ..extensions.rescaling.rescaled_deployment import deployment_from, with_unions
from ..extensions.sources.enumerator import SplitAssignment
from ..job.config import Config
from ..job.topology import JobGraph
from ..vocabulary.causes import AnyIncompatible
from ..vocabulary.effects import Effect, SendToTask
from ..vocabulary.events import CompletedCheckpoint
from ..vocabulary.ids import AttemptId, TaskId
from ..vocabulary.messages import Deploy, Running
from .task_ends import TaskEnds


class Deployment:
    """How the tasks of one job are deployed, and what the coordinator knows of each that begins."""

    def __init__(
        self, job: int, graph: JobGraph, config: Config, parts: Parts, *, ends: TaskEnds, splits: SplitAssignment
    ) -> None:
        self._job = job
        self._graph = graph
        self._overtakes = config.alignment != "aligned"
        self._restore_choice = parts.restore_choice
        self._upgrading = parts.upgrading
        self._ends = ends
        self._splits = splits

    def fitted(self, restores: CompletedCheckpoint | None) -> tuple[CompletedCheckpoint | None, AnyIncompatible | None]:
        """The snapshot as this job takes it over (`Upgrading`), and why the job cannot; None if it can."""
        if restores is None:
            return None, None
        mapping = self._upgrading.mapping(self._graph.mapping, restores, self._job)
        refused = self._upgrading.refusal(self._graph, restores, mapping)
        restores = self._upgrading.adopted(self._graph, restores, mapping)
        return restores, refused or self._restore_choice.refusal(self._graph, restores)

    # -- tasks begin -----------------------------------------------------------------

    def begin(self, restores: CompletedCheckpoint | None) -> None:
        """All tasks begin.  What is known of them follows from the snapshot that they restore."""
        self._ends.begin(self.finished_before(restores))
        self._splits.begin(restores)

    def begin_region(self, tasks: Sequence[TaskId], restores: CompletedCheckpoint | None) -> None:
        self._ends.begin_region(tasks, self.finished_before(restores))

    def restored(self, message: Running) -> None:
        """A task has restored its part; a reader hands its splits back (OPS-3)."""
        self._splits.take_back(message.task, message.returned)

    def finished_before(self, restores: CompletedCheckpoint | None) -> tuple[TaskId, ...]:
        """The tasks of the operators that the snapshot counts as finished as a whole."""
        if restores is None:
            return ()
        whole = layout_of(self._graph, restores).whole(restores.finished)
        return tuple(task for task, spec, _ in self._graph.tasks() if spec.name in whole)

    # -- the orders to start -----------------------------------------------------------

    def orders(
        self,
        tasks: Sequence[TaskId],
        attempt: AttemptId,
        restores: CompletedCheckpoint | None,
        *,
        suspends: bool = True,
    ) -> list[Effect]:
        """The deployments of these tasks, each with the state that it restores."""
        finished = self.finished_before(restores)
        before = layout_of(self._graph, restores) if restores is not None else self._graph
        if restores is not None and before is not self._graph:
            in_flight = self._overtakes or restores.in_flight
            return deployment_from(self._graph, before, tasks, attempt, self._job, restores, finished, in_flight)
        orders = deployment(tasks, attempt, self._job, restores, finished, suspends=suspends)
        return with_unions(self._graph, orders, restores)


def deployment(
    tasks: Sequence[TaskId],
    attempt: AttemptId,
    job: int,
    restores: CompletedCheckpoint | None,
    finished: Sequence[TaskId] = (),
    *,
    suspends: bool = True,
) -> list[Effect]:
    """The orders that deploy tasks, each with its part of the snapshot.

    If this job has already ended with the snapshot, the attempt only finishes the job's commits, and its sources are
    suspended (not so with `suspends` False: a part of a running job goes on reading).  Tasks of a finished operator
    start as finished.
    """
    if restores is None:
        return [SendToTask(task, Deploy(job=job, attempt=attempt)) for task in tasks]
    suspended = suspends and restores.ending is not None and restores.job == job
    return [
        SendToTask(
            task,
            Deploy(
                job=job,
                attempt=attempt,
                checkpoint=restores.checkpoint,
                handle=None if task in restores.states else restores.handles.get(task),
                state=restores.states.get(task),
                suspended=suspended,
                finished=task in finished,
            ),
        )
        for task in tasks
    ]
