"""The enumerator of a source: it discovers splits and gives each to one reader (OPS-3).

It is a machine beside the coordinator, and its state is part of every checkpoint:
which splits nobody has, from which position each is to be read, and who has the
others.  Control messages may be lost, late or doubled, so every assignment says
all that its reader was ever given, and is repeated until the reader has taken it.

A checkpoint cuts the enumerator first and its readers later.  What was given
before the enumerator's cut must be in the reader's, what is given after it must
not (FLIP-27; FLINK-28606).  So a checkpoint begins only when all that was given has
been taken, and from then on a reader is given nothing until it has acknowledged.

Whoever restores begins again: readers hand back what they had, and all of it is
given anew, with its position, to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from .config import Config
from .effects import Effect, SendToTask, SetTimer
from .errors import Refused
from .events import CompletedSnapshot, TimerFired
from .ids import AttemptId, TaskId, task_id
from .messages import Ask, Assign, SplitMessage
from .part import Part
from .state import EnumeratorState
from .topology import JobGraph, OperatorSpec

if TYPE_CHECKING:
    from .checkpoints import Pending
    from .parts import Parts

Cut = dict[str, EnumeratorState]
"""The state of every enumerator of a job, by source."""


class Enumerating(Part):
    """How splits are dealt out while a job runs, and given again after a failure (OPS-3)."""

    def holds_back(self, pending: Iterable[Pending], reader: TaskId) -> bool:
        """Whether a reader is given nothing now: from the enumerator's cut of a checkpoint to the reader's own."""
        return any(reader in one.started and reader not in one.acknowledged for one in pending)

    def awaits_taking(self) -> bool:
        """Whether a checkpoint begins only when all that was given has been taken: else nobody would hold it."""
        return True

    def recorded(self, at_trigger: Cut, now: Callable[[], Cut]) -> Cut:
        """What a checkpoint's record says of the enumerators: their state before any reader was told of it."""
        return at_trigger

    def lets_go(self, split: int) -> bool:
        """Whether a restored reader reads a split no more that it hands back: whoever asks is given it."""
        return True

    def taken_back(self, returned: Mapping[int, int]) -> dict[int, int]:
        """What restored readers hand back is to be given again, each split from the position it had."""
        return dict(returned)


class _Reader(msgspec.Struct):
    """What is known of one reader, in one attempt."""

    given: dict[int, int] = {}
    """the position from which each split was given to it"""
    asked: int = 0
    """its last question, by number"""
    waits: bool = False
    """that question has brought it nothing yet"""
    answered: bool = True
    """it knows that it was heard"""
    last: bool = False
    """it was told that no more comes"""
    serial: int = 0
    gave: int = 0
    """the serial with which it was last given a split"""
    taken: int = 0
    """the last serial that it confirmed"""


class Enumerator:
    """One source's, in one attempt."""

    def __init__(
        self, job: int, spec: OperatorSpec, readers: Mapping[TaskId, None], restored: EnumeratorState | None
    ) -> None:
        """`restored` is what the snapshot that the attempt restores says, None if it starts from nothing."""
        self._job = job
        self._readers = {reader: _Reader() for reader in readers}
        appears = dict(zip(spec.splits, spec.appears_us, strict=False))
        before = restored or EnumeratorState()
        self._pool = dict(before.unassigned)
        """the splits that nobody has, and where to begin each"""
        self._assigned_before = dict(before.assigned)
        """those that have not come back: their readers are about to hand them back, or had finished as a whole"""
        self._hidden: dict[int, int] = {}
        """how much later each of the others is discovered"""
        for split in spec.splits:
            if split in self._pool or split in before.assigned:
                continue
            if appears.get(split, 0):
                self._hidden[split] = appears[split]
            else:
                self._pool[split] = 0

    @property
    def is_settled(self) -> bool:
        """Nothing that was given is on its way, and nobody waits for what there is."""
        if self._pool and any(reader.waits for reader in self._readers.values()):
            return False
        return all(reader.taken >= reader.gave for reader in self._readers.values())

    def snapshot(self) -> EnumeratorState:
        given = {split: task for task, reader in self._readers.items() for split in reader.given}
        return EnumeratorState(unassigned=dict(self._pool), assigned={**self._assigned_before, **given})

    # -- splits --------------------------------------------------------------------

    def take_back(self, splits: Mapping[int, int]) -> None:
        self._pool.update(splits)

    def forget(self, splits: Collection[int]) -> None:
        """Whoever had these has handed them back."""
        for split in splits:
            self._assigned_before.pop(split, None)

    def still_hidden(self) -> dict[int, int]:
        return dict(self._hidden)

    def discover(self, split: int) -> None:
        if self._hidden.pop(split, None) is not None:
            self._pool[split] = 0

    # -- readers -------------------------------------------------------------------

    def has(self, reader: TaskId) -> bool:
        return reader in self._readers

    def ask(self, message: Ask) -> None:
        """Note a question; one that comes again was answered with what is lost, and is answered again."""
        reader = self._readers[message.task]
        reader.waits = reader.waits or message.number > reader.asked
        reader.asked = max(reader.asked, message.number)
        reader.answered = False

    def confirm(self, task: TaskId, serial: int) -> None:
        reader = self._readers[task]
        reader.taken = max(reader.taken, serial)

    def end(self, task: TaskId) -> None:
        """A reader's input has ended: it has heard all that there was to hear."""
        self.confirm(task, self._readers[task].serial)

    def distribute(self, attempt: AttemptId, holds_back: Callable[[TaskId], bool]) -> list[Effect]:
        """Give what there is to those who wait for it, in the order of the readers; answer who must still wait."""
        effects: list[Effect] = []
        for task, reader in self._readers.items():
            if reader.waits and self._pool and not holds_back(task):
                self._give(reader)
            if reader.waits and not self._pool and not self._hidden:
                reader.waits, reader.last = False, True
                reader.serial += 1
                reader.answered = False
            if not reader.answered:
                reader.answered = True
                effects.append(self._assign(attempt, task))
        return effects

    def _give(self, reader: _Reader) -> None:
        """A reader that asks gets half of its share of what nobody has, so that whoever is done first can go on."""
        share = -(-len(self._pool) // (2 * len(self._readers)))
        for split in sorted(self._pool)[:share]:
            reader.given[split] = self._pool.pop(split)
        reader.waits, reader.answered = False, False
        reader.serial += 1
        reader.gave = reader.serial

    def remind(self, attempt: AttemptId) -> list[Effect]:
        """Tell those again who have not said that they have taken what they were told."""
        return [self._assign(attempt, task) for task, reader in self._readers.items() if reader.taken < reader.serial]

    @property
    def is_confirmed(self) -> bool:
        return all(reader.taken >= reader.serial for reader in self._readers.values())

    def _assign(self, attempt: AttemptId, task: TaskId) -> Effect:
        reader = self._readers[task]
        order = Assign(
            job=self._job,
            attempt=attempt,
            serial=reader.serial,
            splits=dict(reader.given),
            answers=reader.asked,
            more=not reader.last,
        )
        return SendToTask(task, order)


class Enumerators:
    """All of a job's, in one attempt; false when it has none."""

    def __init__(
        self, job: int, graph: JobGraph, config: Config, parts: Parts, restores: CompletedSnapshot | None
    ) -> None:
        """Raises Refused where no checkpoint would keep what they know."""
        before = restores.enumerators if restores is not None else {}
        self._parts = parts
        self._retry_us = config.retry_us
        self._each: dict[str, Enumerator] = {}
        for spec in graph.operators:
            if spec.enumerated:
                readers = dict.fromkeys(task_id(spec.name, subtask) for subtask in range(spec.parallelism))
                self._each[spec.name] = Enumerator(job, spec, readers, before.get(spec.name))
        if self._each and not config.rewinds:
            raise Refused(f"{', '.join(self._each)} has an enumerator, and {config.guarantee} keeps no state of it")
        self._watches = False
        self._reminds = False

    def __bool__(self) -> bool:
        return bool(self._each)

    @property
    def is_settled(self) -> bool:
        """A checkpoint can begin."""
        return not self._parts.enumerating.awaits_taking() or all(each.is_settled for each in self._each.values())

    def snapshot(self) -> Cut:
        return {name: each.snapshot() for name, each in self._each.items()}

    def _of(self, reader: TaskId) -> Enumerator | None:
        return next((each for each in self._each.values() if each.has(reader)), None)

    # -- what they hear ------------------------------------------------------------

    def take_back(self, reader: TaskId, splits: Mapping[int, int]) -> None:
        each = self._of(reader)
        if each is not None and splits:
            each.forget(splits)
            each.take_back(self._parts.enumerating.taken_back(splits))

    def on_message(self, message: SplitMessage) -> None:
        each = self._of(message.task)
        if each is None:
            return
        if isinstance(message, Ask):
            each.ask(message)
        else:
            each.confirm(message.task, message.serial)

    def end(self, task: TaskId) -> None:
        each = self._of(task)
        if each is not None:
            each.end(task)

    def on_timer(self, event: TimerFired, attempt: AttemptId) -> list[Effect]:
        """A split is discovered, or somebody may have missed what was given."""
        name, _, number = event.name.partition(" ")
        if name == "discover":
            for each in self._each.values():
                each.discover(int(number))
            return []
        self._reminds = False
        return [effect for each in self._each.values() for effect in each.remind(attempt)]

    # -- what they say -------------------------------------------------------------

    def distribute(self, attempt: AttemptId, pending: Collection[Pending]) -> list[Effect]:
        """What is to be given now, while these checkpoints are under way."""
        effects: list[Effect] = []
        if not self._watches:
            self._watches = True
            hidden = [one for each in self._each.values() for one in each.still_hidden().items()]
            effects.extend(SetTimer(f"discover {split}", after_us) for split, after_us in hidden)
        for each in self._each.values():
            effects.extend(each.distribute(attempt, lambda reader: self._parts.enumerating.holds_back(pending, reader)))
        if not self._reminds and not all(each.is_confirmed for each in self._each.values()):
            self._reminds = True
            effects.append(SetTimer("assign", self._retry_us))
        return effects
