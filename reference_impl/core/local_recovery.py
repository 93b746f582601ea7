"""How a task recovers alone, or all tasks of a node, while the others go on (UNA-4; the discussion of FLIP-76).

Channels are persistent: what entered one is in its log, under its number, and stays there until no
checkpoint that can be restored needs it.  A task that is lost begins with its newest complete
checkpoint, takes again what it had taken since, and sends again what it had sent, under the same
numbers; whoever has that already drops it.

That is right only if it does the same again.  A task with one input takes its channel in order.
One with several took them in an order that nobody can know afterwards, and survivors may have
worked on what came of it; so that order is durable before anything that depends on it leaves
(Elnozahy, Alvisi, Wang, Johnson, "A Survey of Rollback-Recovery Protocols in Message-Passing
Systems", 2002: always-no-orphans).

Barriers have no number.  No checkpoint is taken while somebody replays: it would hold a sender that
is behind what its receivers have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from .config import Config
from .errors import PlaceUnknown, Refused
from .ids import CheckpointId
from .messages import CancelBarrier, Deploy, Element, EndOfData, EndOfPartition
from .part import Part
from .persistent import KEPT
from .topology import JobGraph, OperatorSpec

DATA_ENDED = -1
PARTITION_ENDED = -2
"""In a number's stead: ends come once in a channel, and whoever comes up again says them again."""

Determinant = tuple[int, int]
"""(input channel, number of the element in it) of something that a task took"""


class LocalRecovery(Part):
    """What makes a replay the same again."""

    def is_awaited(self) -> bool:
        """Whether what a task sends waits until the order in which it took its input so far is durable."""
        return True

    def replayed(self, determinants: Sequence[Determinant]) -> Sequence[Determinant]:
        """In which order a task takes again what it took since its checkpoint: in that of old."""
        return determinants

    def begins_at(self, taken: int) -> int:
        """The number of the first element of a channel that is taken again; at the checkpoint the task had taken so
        many."""
        return taken

    def is_repeat(self, number: int, entered: int) -> bool:
        """Whether an element that is sent under a number has come before, `entered` having come."""
        return number < entered

    def may_forget(self, number: int, durable: int, received: int) -> bool:
        """Whether a sender lets go of what it sent under a number: the receiver has received so many, and so many are
        durable in the channel's log.  What was not is gone with the receiver."""
        return number < durable


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where in its work a task took a snapshot, or began."""

    determinants: int
    """how many it had taken down"""
    taken: tuple[int, ...]
    """by input channel, the number of the element to be taken next"""
    sent: tuple[int, ...]
    """by output channel, the number of the element to be sent next"""
    ended: tuple[Determinant, ...] = ()
    """the ends that had come"""


class DeterminantLog:
    """In which order one task took its input; it outlives the task's attempts, as far as it is durable.

    It begins anew with every restart of the whole dataflow.
    """

    def __init__(self) -> None:
        self._determinants: list[Determinant] = []
        self._trimmed = 0
        self.durable = 0
        """how many receipts are, of all that there were"""
        self._places: dict[CheckpointId, Place] = {}

    @property
    def end(self) -> int:
        return self._trimmed + len(self._determinants)

    def take_down(self, determinant: Determinant) -> None:
        self._determinants.append(determinant)

    def flushed(self, end: int) -> None:
        """All receipts before this are durable."""
        self.durable = max(self.durable, end)

    def mark(self, checkpoint: CheckpointId, place: Place) -> None:
        """A snapshot was taken here; what is behind it must not be acknowledged before `place.receipts` are durable."""
        self._places[checkpoint] = place

    def place(self, checkpoint: CheckpointId) -> Place:
        """Raises PlaceUnknown where no snapshot of that checkpoint was taken, or what lies there was trimmed."""
        if checkpoint not in self._places:
            where = f"its snapshot of checkpoint {checkpoint} was taken" if checkpoint else "it began"
            raise PlaceUnknown(f"the place in its order of receipt at which {where} is not known")
        return self._places[checkpoint]

    def taken_at(self, last: CheckpointId) -> dict[CheckpointId, tuple[int, ...]]:
        """By checkpoint up to the last one that counts, the numbers of the elements that were to be taken next."""
        return {checkpoint: place.taken for checkpoint, place in self._places.items() if checkpoint <= last}

    def since(self, place: Place) -> tuple[Determinant, ...]:
        return tuple(self._determinants[place.determinants - self._trimmed :])

    def lose(self) -> None:
        """The task is gone, and with it what was not durable."""
        del self._determinants[self.durable - self._trimmed :]
        self._places = {one: place for one, place in self._places.items() if place.determinants <= self.durable}

    def trim(self, oldest: CheckpointId) -> Place | None:
        """Forget what lies before the oldest checkpoint that can be restored; its place, if it is known."""
        place = self._places.get(oldest)
        if place is not None:
            del self._determinants[: place.determinants - self._trimmed]
            self._trimmed = place.determinants
            self._places = {one: at for one, at in self._places.items() if one >= oldest}
        return place


def is_numbered(element: Element) -> bool:
    """Barriers, and the ends of data, are not."""
    return isinstance(element, KEPT)


def end_code(element: Element) -> int:
    """What stands for an end in a receipt; 0 for anything else."""
    return DATA_ENDED if isinstance(element, EndOfData) else PARTITION_ENDED * isinstance(element, EndOfPartition)


def end_of(code: int) -> Element:
    return EndOfData() if code == DATA_ENDED else EndOfPartition()


def called_off(deploy: Deploy) -> list[CancelBarrier]:
    """What a task that comes up alone owes those downstream: of each checkpoint that was given up they may wait for the
    barrier, which its attempt before this one has sent into the void (ABS-4)."""
    since = (deploy.checkpoint or 0) + 1
    return [CancelBarrier(CheckpointId(number)) for number in range(since, (deploy.given_up or 0) + 1)]


def unsupported(graph: JobGraph, config: Config) -> str:
    """Why a job's tasks cannot recover alone, in words; "" when they can."""
    if config.failover != "local":
        return ""
    return next((f"failover local: {reason}" for reason in _reasons(graph, config)), "")


def check(graph: JobGraph, config: Config) -> None:
    """Raise Refused where a job's tasks are to recover alone, and cannot."""
    if reason := unsupported(graph, config):
        raise Refused(reason)


def _reasons(graph: JobGraph, config: Config) -> Iterator[str]:
    if config.guarantee != "exactly-once" or config.finishing != "together":
        yield "it is for exactly-once, and for tasks that finish together"
    if config.sink != "transactional" or config.committing != "writer":
        yield "rows that were written again would be seen twice: it needs a transactional sink that commits itself"
    if config.spilling == "buffer-timeout":
        yield "what is taken before its time is out is in no log, and cannot be taken again: spill continuously"
    for spec in graph.operators:
        yield from _reasons_of(spec)


def _reasons_of(spec: OperatorSpec) -> Iterator[str]:
    if spec.role == "two-phase":
        yield f"{spec.name} commits what it passes on, and would commit it twice"
    if spec.enumerated:
        yield f"which splits {spec.name} is given, and when, is not in any log"
    if spec.event_time is not None and spec.event_time.idle_after_us:
        yield f"when a split of {spec.name} is idle the clock says, and it says something else in a replay"
    if spec.build is not None and spec.build().clocked:
        yield f"{spec.name} goes by the clock, which says something else in a replay"
    for edge in spec.inputs:
        if edge.partitioning not in ("hash", "forward"):
            yield f"{edge.sender} to {spec.name} is a {edge.partitioning} edge; it can be hash or forward"
