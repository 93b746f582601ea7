"""A source that asks for its splits: an enumerator assigns each split to one reader at a time (OPS-3).

A reader asks when it has read all its splits, and asks again until it is answered.
After a restore a reader first hands back the splits of its snapshot.  The enumerator
assigns them again, with their positions, to the readers that ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...decisions.enumerating import Enumerating
from ...job.split_log import SplitLog
from ...protocol.source import SourceTask
from ...vocabulary.effects import Effect, Fail, PollAgain, Report, SetTimer
from ...vocabulary.messages import Ask, Assign, Assigned
from ...vocabulary.timeouts import RetryAsk


class SplitReader:
    """How one source comes to its splits; each is one of `logs`."""

    def __init__(self, enumerating: Enumerating, logs: Sequence[SplitLog]) -> None:
        self._enumerating = enumerating
        self._known = {log.split: log for log in logs}
        self.returned: dict[int, int] = {}
        self.more_may_come = True
        self._given: dict[int, int] = {}
        self._asked = 0
        self._answered = 0

    def hand_back(self, positions: Mapping[int, int], source: SourceTask) -> None:
        """The source has restored these positions: it hands its splits back, and reads none until it gets some."""
        self.returned = dict(positions)
        source.take_splits(self._enumerating.read_on(positions, self.returned), self._known)

    def ask(self, source: SourceTask) -> list[Effect]:
        """Every split that the source has is read: ask for more, once."""
        if self._asked > self._answered:
            return []
        self._asked += 1
        return self._question(source)

    def ask_again(self, source: SourceTask) -> list[Effect]:
        """Repeat a question that is not answered."""
        return self._question(source) if self._asked > self._answered else []

    def _question(self, source: SourceTask) -> list[Effect]:
        spec = source.spec
        question = Ask(job=spec.job, attempt=spec.attempt, task=spec.task, number=self._asked)
        return [Report(question), SetTimer(RetryAsk(), source.config.retry_us)]

    def assigned(self, message: Assign, source: SourceTask) -> list[Effect]:
        """Take the new splits of an assignment; one that is older, or a repeat, brings none."""
        given = {split: position for split, position in message.splits.items() if split not in self._given}
        for split, position in given.items():
            if position < self._known[split].begins:
                return [Fail(source.discarded(self._known[split], position))]
        self._given.update(given)
        new = {split: position for split, position in given.items() if split not in source.positions}
        source.take_splits(new, self._known)
        self._answered = max(self._answered, message.answers)
        is_news = bool(given) or (self.more_may_come and not message.more)
        self.more_may_come = self.more_may_come and message.more
        spec = source.spec
        taken = Report(Assigned(job=spec.job, attempt=spec.attempt, task=spec.task, serial=message.serial))
        return [taken, PollAgain()] if is_news else [taken]
