"""When a run that does not come to rest is cut off."""

from __future__ import annotations

from ....reference_impl.core.vocabulary.ids import CheckpointId
from ....reference_impl.processes.loop import monotonic_us
from ....reference_impl.processes.network.frames import Ask, Count
from ...scenario.model import Scenario
from ..subjects.translation import standstill_us
from .context import Context

LEAST_US, MOST_US = 20_000_000, 300_000_000
"""of the machine's clock: the shortest standstill that ends a run, and the longest duration of a run"""
CHECK_US = 2_000_000
"""how often the progress of a long run is checked"""


class Bound:
    """Ends a run that takes too long.

    A run that makes no progress for longer than a correct job ever needs is ended, and what it did not do counts
    against it.  A run that still makes progress when the harness has no more time for it is ended too, and the
    missing part does not count against it.

    Progress is a record read or taken by a task, or a new attempt that starts.  A completed checkpoint is no
    progress: a job that only completes checkpoints never comes to rest.
    """

    def __init__(self, context: Context, scenario: Scenario) -> None:
        self._context = context
        self._limit_us = context.real(context.config.settings.limit_us)
        self._standstill_us = max(LEAST_US, min(self._limit_us, context.real(standstill_us(scenario))))
        self._done: dict[str, tuple[int, int]] = {}
        """task: (attempt, records)"""
        self._newest = 0
        self._began = self._moved = self._checked = monotonic_us()
        self.is_short = False
        """the run ends because the harness has no more time, not because it stands still"""

    def begin(self) -> None:
        """The job is submitted."""
        self._began = self._moved = self._checked = monotonic_us()

    def came_up(self, attempt: int) -> None:
        if attempt > self._newest:
            self._newest = attempt
            self._moved = monotonic_us()

    def counted(self, count: Count) -> None:
        done = (count.attempt, count.now)
        if self._done.get(count.task, (0, 0)) != done:
            self._done[count.task] = done
            self._moved = monotonic_us()

    def remaining_us(self) -> int:
        """The time until `is_reached` must be called again."""
        return max(0, min(self._began + MOST_US, self._checked + CHECK_US) - monotonic_us())

    def is_reached(self, checkpoint: CheckpointId | None) -> bool:
        """Whether the run must end.  If not, each task is asked for its number of records, now and at the newest
        complete checkpoint, if there is one."""
        now = monotonic_us()
        self._checked = now
        awaits = self._context.due > 0 and now < self._began + self._limit_us
        if now >= self._moved + self._standstill_us and not awaits:
            return True
        self.is_short = now >= self._began + MOST_US
        if not self.is_short:
            for process in self._context.placement.processes:
                member = self._context.processes.current(process)
                if member is not None:
                    member.send(Ask(self._context.clock.tick(), checkpoint))
        return self.is_short
