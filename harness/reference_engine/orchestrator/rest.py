"""When a job with endless input is at rest: a complete checkpoint covers all that it did, and nothing is in flight."""

from __future__ import annotations

from ....reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from ....reference_impl.processes.loop import monotonic_us
from ....reference_impl.processes.network.frames import Ask, Count, Freeze
from .context import Context
from .layout import COORDINATOR


class Rest:
    """Asks the tasks after each complete checkpoint for their progress since then.  If there is none, it freezes the
    job: no checkpoint is triggered any more."""

    def __init__(self, context: Context, endless: bool) -> None:
        """`endless`: some input never ends.  Any other job ends by itself."""
        self._context = context
        self._endless = endless
        settings = context.config.settings
        self._echo_us = context.real(4 * (settings.snapshot_write_us + settings.control_latency_us))
        self._counts: dict[str, Count] = {}
        self._asked = False
        self._frozen = False

    @property
    def _is_busy(self) -> bool:
        """Whether a timed action is pending, or happened so lately that its effects may still be in flight."""
        context = self._context
        return context.due > 0 or context.healing > 0 or monotonic_us() < context.busy_us + self._echo_us

    def completed(self, checkpoint: CheckpointId) -> None:
        """A checkpoint is complete: ask the tasks for their progress since then."""
        if not self._endless or self._is_busy or self._frozen:
            return
        self._counts.clear()
        self._asked = True
        for process in self._context.placement.processes:
            member = self._context.processes.current(process)
            if member is not None:
                member.send(Ask(self._context.clock.tick(), checkpoint))

    def counted(self, count: Count) -> None:
        self._counts[count.task] = count
        if self._asked and self._covers_all() and not self._is_busy:
            self._asked = False
            self._freeze(True)

    @property
    def _tasks(self) -> tuple[TaskId, ...]:
        """The tasks of the current job."""
        return self._context.placement.of_job(self._context.facts.job_number)

    def _covers_all(self) -> bool:
        """Whether no task has progressed since its snapshot, and no channel has an element in flight."""
        counts, facts = self._counts, self._context.facts
        if not counts.keys() >= set(self._tasks):
            return False
        if any(count.attempt != facts.attempt_of(task) for task, count in counts.items()):
            return False  # reported by an older attempt; after a partial failover the tasks have different attempts
        if not all(count.is_idle and count.at_mark == count.now for count in counts.values()):
            return False
        sent = {name: number for count in counts.values() for name, number in count.sent.items()}
        received = {name: number for count in counts.values() for name, number in count.received.items()}
        return sent == received

    def _freeze(self, on: bool) -> None:
        self._frozen = on
        member = self._context.processes.current(COORDINATOR)
        if member is not None:
            member.send(Freeze(self._context.clock.tick(), self._context.facts.job_number, not on))

    @property
    def is_at_rest(self) -> bool:
        """Whether the job is frozen and its last checkpoint over.  A frozen job that is disturbed is unfrozen."""
        if not self._frozen:
            return False
        facts = self._context.facts
        whole = facts.coordinator_lives and all(facts.attempt_of(task) is not None for task in self._tasks)
        if not whole or self._is_busy or facts.phase in ("recovering", "deploying"):
            self._freeze(False)
            return False
        return facts.phase == "running" and not facts.under_way
