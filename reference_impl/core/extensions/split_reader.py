"""A source that asks for its splits: an enumerator assigns each split to one reader at a time (OPS-3).

A reader asks when it has read all its splits, and asks again until it is answered.
After a restore a reader first hands back the splits of its snapshot.  The enumerator
assigns them again, with their positions, to the readers that ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ..decisions.parts import Parts
from ..job.config import Config
from ..protocol.source import SourceTask, SplitLog
from ..protocol.task import InTransit, Reading, TaskSpec
from ..vocabulary.effects import Effect, Fail, PollAgain, Report, SetTimer
from ..vocabulary.events import TimerFired
from ..vocabulary.messages import Ask, Assign, Assigned, Running
from ..vocabulary.timeouts import RetryAsk


class SplitReader(SourceTask):
    """Reads the splits assigned to it in turn; each is one of `logs`."""

    MESSAGES: ClassVar[dict[type, str]] = SourceTask.MESSAGES | {Assign: "_on_assign"}

    def __init__(
        self,
        spec: TaskSpec,
        config: Config,
        parts: Parts,
        logs: Sequence[SplitLog],
        bounded: bool,
        reading: Reading,
        in_flight: InTransit | None = None,
    ) -> None:
        super().__init__(spec, config, parts, (), bounded, None, reading, in_flight)
        self._known = {log.split: log for log in logs}
        self._returned: dict[int, int] = {}
        self._given: dict[int, int] = {}
        self._asked = 0
        self._answered = 0
        self._no_more_splits = False

    @property
    def awaits_splits(self) -> bool:
        return not (self._no_more_splits or self.finished)

    # -- coming up -----------------------------------------------------------------

    def _take_positions(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)

    def opened(self) -> list[Effect]:
        stops_reading = self.parts.enumerating.stops_reading
        self._returned = self.positions
        self.positions = {}
        self._hold({split: position for split, position in self._returned.items() if not stops_reading(split)})
        return super().opened()

    def came_up(self) -> Running:
        return Running(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task, returned=self._returned)

    # -- splits --------------------------------------------------------------------

    def end_of_splits(self) -> list[Effect]:
        """Every split that it has is read: ask for more, unless no more will come."""
        if self._no_more_splits:
            return super().end_of_splits()
        if self._asked > self._answered:
            return []
        self._asked += 1
        return self._ask()

    def _ask(self) -> list[Effect]:
        question = Ask(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task, number=self._asked)
        return [Report(question), SetTimer(RetryAsk(), self.config.retry_us)]

    def on_timer(self, event: TimerFired) -> list[Effect]:
        if not isinstance(event.timeout, RetryAsk):
            return super().on_timer(event)
        unanswered = self._asked > self._answered and not self.input_ended and not self.finished
        return self._ask() if unanswered else []

    def _on_assign(self, message: Assign) -> list[Effect]:
        """Take the new splits of an assignment; one that is older, or a repeat, brings none."""
        given = {split: position for split, position in message.splits.items() if split not in self._given}
        for split, position in given.items():
            if position < self._known[split].begins:
                return [Fail(self._discarded(self._known[split], position))]
        self._given.update(given)
        self._hold({split: position for split, position in given.items() if split not in self.positions})
        self._answered = max(self._answered, message.answers)
        news = bool(given) or not (message.more or self._no_more_splits)
        self._no_more_splits = self._no_more_splits or not message.more
        taken = Report(
            Assigned(job=self.spec.job, attempt=self.spec.attempt, task=self.spec.task, serial=message.serial)
        )
        return [taken, PollAgain()] if news else [taken]

    def _hold(self, splits: Mapping[int, int]) -> None:
        self.positions.update(splits)
        self._logs = tuple(self._known[split] for split in self.positions)
