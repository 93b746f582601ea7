"""The attempts of a history: what ran in each, and which attempt a task is in."""

from __future__ import annotations

from ..model.history import AttemptStarted, History, TaskRun


class Attempts:
    """The attempts of a history.

    A recovery that restarts only some tasks (`AttemptStarted.tasks`) leaves the other tasks in their attempts; the
    attempt that serves a task is the newest one that deployed it.
    """

    def __init__(self, history: History) -> None:
        self.runs: dict[tuple[str, int], TaskRun] = {(run.task, run.attempt): run for run in history.runs}
        self.starts: dict[int, AttemptStarted] = {
            entry.attempt: entry for entry in history.journal if isinstance(entry, AttemptStarted)
        }
        self._partial = any(start.tasks for start in self.starts.values())

    def serving(self, task: str, attempt: int) -> int:
        """The attempt that a task is in while `attempt` is the newest: an earlier one if `attempt` left it running."""
        if self._partial:
            while (start := self.starts.get(attempt)) is not None and start.tasks and task not in start.tasks:
                attempt = max((number for number in self.starts if number < attempt), default=0)
        return attempt
