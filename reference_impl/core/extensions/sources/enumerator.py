"""The enumerator of a source: it discovers splits and gives each to one reader (OPS-3).

It belongs to the coordinator, and its state is part of every checkpoint: the splits
that no reader has, with their positions, and the readers of the other splits.  Control
messages may be lost, late or doubled.  So every assignment lists all splits that its
reader was ever given, and is sent again until the reader confirms it.

A checkpoint takes the enumerator's state first and its readers' later.  A split that
was assigned before must be in the reader's snapshot, one assigned afterwards must not
(FLIP-27; FLINK-28606).  So a checkpoint begins only when the readers have confirmed all
assignments, and a reader gets no other split until it has acknowledged.

After a restore the readers hand back the splits that they had.  The enumerator assigns
these again, with their positions, to the readers that ask.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from ...decisions.enumerating import Enumerating
from ...decisions.parts import Parts
from ...job.config import Config
from ...job.topology import JobGraph, OperatorSpec
from ...vocabulary.effects import Effect, SendToTask, SetTimer
from ...vocabulary.errors import Refused
from ...vocabulary.events import CompletedCheckpoint
from ...vocabulary.ids import AttemptId, CheckpointId, TaskId, task_id
from ...vocabulary.messages import Ask, Assign, SplitMessage
from ...vocabulary.state import EnumeratorState, EnumeratorStates
from ...vocabulary.timeouts import RetryAssignments, SplitAppears


class _Reader(msgspec.Struct):
    """The state of one reader, in one attempt."""

    given: dict[int, int] = {}
    """the splits assigned to it, each with the position at which it begins"""
    asked: int = 0
    """the number of its last request"""
    waits: bool = False
    """its last request has brought it no split yet"""
    answered: bool = True
    """its last request was answered"""
    last: bool = False
    """it was notified that no more splits will come"""
    serial: int = 0
    gave: int = 0
    """the serial of the last assignment that brought it a split"""
    taken: int = 0
    """the last serial that it confirmed"""


class Enumerator:
    """The enumerator of one source, in one attempt."""

    def __init__(
        self,
        job: int,
        spec: OperatorSpec,
        readers: Mapping[TaskId, None],
        restored: EnumeratorState | None,
        decisions: Enumerating,
    ) -> None:
        """`restored` is the enumerator's state in the snapshot that the attempt restores; None without a snapshot."""
        self._job = job
        self._decisions = decisions
        self._readers = {reader: _Reader() for reader in readers}
        appears = dict(zip(spec.splits, spec.appears_us, strict=False))
        before = restored or EnumeratorState()
        self._pool = dict(before.unassigned)
        """the unassigned splits, each with the position at which its reader begins"""
        self._assigned = dict(before.assigned)
        """the reader of each assigned split; one that was assigned at the snapshot will be handed back, unless all
        readers had finished"""
        self._hidden: dict[int, int] = {}
        """the splits that are not discovered yet: µs from the start to the discovery of each"""
        for split in spec.splits:
            if split in self._pool or split in before.assigned:
                continue
            if appears.get(split, 0):
                self._hidden[split] = appears[split]
            else:
                self._pool[split] = 0

    @property
    def is_settled(self) -> bool:
        """Every assignment is confirmed, and no reader waits while there are unassigned splits."""
        if self._pool and any(reader.waits for reader in self._readers.values()):
            return False
        return all(reader.taken >= reader.gave for reader in self._readers.values())

    def snapshot(self) -> EnumeratorState:
        return self._decisions.snapshot(self._pool, self._assigned)

    # -- splits --------------------------------------------------------------------

    def take_back(self, splits: Mapping[int, int]) -> None:
        self._pool = self._decisions.taken_back(self._pool, splits)

    def forget(self, splits: Collection[int]) -> None:
        """The readers of these splits have handed them back."""
        for split in splits:
            self._assigned.pop(split, None)

    def still_hidden(self) -> dict[int, int]:
        return dict(self._hidden)

    def discover(self, split: int) -> None:
        if self._hidden.pop(split, None) is not None:
            self._pool[split] = 0

    # -- readers -------------------------------------------------------------------

    def has(self, reader: TaskId) -> bool:
        return reader in self._readers

    def ask(self, message: Ask) -> None:
        """Take a request.  One that comes again is answered again, since the answer was lost."""
        reader = self._readers[message.task]
        reader.waits = reader.waits or message.number > reader.asked
        reader.asked = max(reader.asked, message.number)
        reader.answered = False

    def confirm(self, task: TaskId, serial: int) -> None:
        reader = self._readers[task]
        reader.taken = max(reader.taken, serial)

    def end(self, task: TaskId) -> None:
        """A reader's input has ended: it has received every assignment."""
        self.confirm(task, self._readers[task].serial)

    def distribute(self, attempt: AttemptId, holds_back: Callable[[TaskId], bool]) -> list[Effect]:
        """Assign the free splits to the readers that wait, in order, and answer the readers that must still wait."""
        effects: list[Effect] = []
        for task, reader in self._readers.items():
            if reader.waits and self._pool and not holds_back(task):
                self._give(task, reader)
            if reader.waits and not self._pool and not self._hidden:
                reader.waits, reader.last = False, True
                reader.serial += 1
                reader.answered = False
            if not reader.answered:
                reader.answered = True
                effects.append(self._assign(attempt, task))
        return effects

    def _give(self, task: TaskId, reader: _Reader) -> None:
        """Assign half of a reader's share of the free splits, so that the fastest reader can ask for more."""
        share = -(-len(self._pool) // (2 * len(self._readers)))
        for split in sorted(self._pool)[:share]:
            reader.given[split] = self._pool.pop(split)
            self._assigned[split] = task
        reader.waits, reader.answered = False, False
        reader.serial += 1
        reader.gave = reader.serial

    def remind(self, attempt: AttemptId) -> list[Effect]:
        """Send the assignment again to every reader that has not confirmed it."""
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


class SplitAssignment:
    """All enumerators of a job; false if it has none."""

    def __init__(self, job: int, graph: JobGraph, config: Config, parts: Parts) -> None:
        """Raises Refused for a guarantee without checkpoints, which would keep no state of an enumerator."""
        self._job = job
        self._specs = [spec for spec in graph.operators if spec.enumerated]
        self._parts = parts
        self._retry_us = config.retry_us
        if self._specs and not config.takes_checkpoints:
            names = ", ".join(spec.name for spec in self._specs)
            raise Refused(f"{names} has an enumerator, and {config.guarantee} keeps no state of it")
        self.begin(None)

    def begin(self, restores: CompletedCheckpoint | None) -> None:
        """An attempt begins, from a snapshot or from the beginning."""
        before = restores.enumerators if restores is not None else {}
        self._each: dict[str, Enumerator] = {}
        for spec in self._specs:
            readers = dict.fromkeys(task_id(spec.name, subtask) for subtask in range(spec.parallelism))
            self._each[spec.name] = Enumerator(self._job, spec, readers, before.get(spec.name), self._parts.enumerating)
        self._watches = False
        self._reminds = False
        self._put_off: list[CheckpointId] = []
        """checkpoints that are triggered when every reader has confirmed what was assigned to it"""

    def __bool__(self) -> bool:
        return bool(self._specs)

    def states(self) -> EnumeratorStates:
        """The state of every enumerator."""
        return {name: each.snapshot() for name, each in self._each.items()}

    def _of(self, reader: TaskId) -> Enumerator | None:
        return next((each for each in self._each.values() if each.has(reader)), None)

    # -- checkpoints ---------------------------------------------------------------

    def put_off(self, checkpoint: CheckpointId) -> None:
        """Let a checkpoint wait until every assignment is confirmed: else no snapshot would have these splits."""
        self._put_off.append(checkpoint)

    def next_due(self) -> CheckpointId | None:
        """The next checkpoint to trigger, if one can be triggered now."""
        is_settled = all(each.is_settled for each in self._each.values())
        return self._put_off.pop(0) if self._put_off and is_settled else None

    # -- messages ------------------------------------------------------------------

    def take_back(self, reader: TaskId, splits: Mapping[int, int]) -> None:
        each = self._of(reader)
        if each is not None and splits:
            each.forget(splits)
            each.take_back(splits)

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

    def discover(self, split: int) -> None:
        for each in self._each.values():
            each.discover(split)

    def remind(self, attempt: AttemptId) -> list[Effect]:
        """Send unconfirmed assignments again."""
        self._reminds = False
        return [effect for each in self._each.values() for effect in each.remind(attempt)]

    # -- assignments ---------------------------------------------------------------

    def distribute(self, attempt: AttemptId, in_checkpoint: Sequence[TaskId]) -> list[Effect]:
        """The assignments to be sent now; tasks `in_checkpoint` were triggered and have not acknowledged."""
        effects: list[Effect] = []
        if not self._watches:
            self._watches = True
            hidden = [one for each in self._each.values() for one in each.still_hidden().items()]
            effects.extend(SetTimer(SplitAppears(split), after_us) for split, after_us in hidden)
        holds_back = self._parts.enumerating.holds_back
        for each in self._each.values():
            effects.extend(each.distribute(attempt, lambda reader: holds_back(reader, in_checkpoint)))
        if not self._reminds and not all(each.is_confirmed for each in self._each.values()):
            self._reminds = True
            effects.append(SetTimer(RetryAssignments(), self._retry_us))
        return effects
