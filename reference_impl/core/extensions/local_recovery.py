"""Local recovery: a lost task, or all tasks of a lost node, recover while the others go on (UNA-4; see FLIP-76).

Channels are persistent: every element that entered a channel is in its log, under a number, until
no checkpoint that can be restored needs it.  A lost task restores its newest complete checkpoint.
It takes again the input that it had taken since, and sends its output again under the same numbers;
receivers drop the elements that they have.

That is right only if the task does the same again.  A task with one input takes its channel in
order.  A task with several inputs took them in an order that cannot be known afterwards, and the
surviving tasks may have processed the results.  So this order is logged as *determinants*: for each
element its channel and its number.  A determinant is durable before any output that depends on it
leaves the task (Elnozahy, Alvisi, Wang, Johnson, "A Survey of Rollback-Recovery Protocols in
Message-Passing Systems", 2002: always-no-orphans).

Barriers have no number.  No checkpoint is taken while a task replays: in such a checkpoint the
sender would be behind its receivers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ..decisions.local_recovery import Determinant, End
from ..job.config import Config
from ..job.topology import JobGraph, OperatorSpec
from ..vocabulary.errors import Refused
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Element, EndOfData, EndOfPartition
from .in_flight_data.persistent import IN_FLIGHT_KINDS

ENDS: Mapping[type, End] = {EndOfData: End.DATA, EndOfPartition: End.PARTITION}
"""The elements that are ends."""


class LogPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place in a task's program order at which it took a snapshot, or began."""

    determinants: int
    """how many the task had logged"""
    taken: tuple[int, ...]
    """by input channel, the number of the element to be taken next"""
    sent: tuple[int, ...]
    """by output channel, the number of the element to be sent next"""
    ended: tuple[tuple[int, End], ...] = ()
    """the ends that the task had taken"""


class DeterminantLog:
    """The order in which one task took its input.  Its durable part outlives the task's attempts.

    A restart of the whole dataflow begins an empty one.
    """

    def __init__(self) -> None:
        self._determinants: list[Determinant] = []
        self._trimmed = 0
        self.durable = 0
        """how many determinants are durable, of all since the log began"""
        self._places: dict[CheckpointId | None, LogPlace] = {}
        """by checkpoint, those of its snapshots; by None, where it began"""

    @property
    def end(self) -> int:
        return self._trimmed + len(self._determinants)

    def take_down(self, determinant: Determinant) -> None:
        self._determinants.append(determinant)

    def flushed(self, end: int) -> None:
        """All determinants before this are durable."""
        self.durable = max(self.durable, end)

    def mark(self, checkpoint: CheckpointId | None, place: LogPlace) -> None:
        """A snapshot was taken here, or (None) the task begins here.  The snapshot must not be acknowledged before
        `place.determinants` are durable."""
        self._places[checkpoint] = place

    def place(self, checkpoint: CheckpointId | None) -> LogPlace | None:
        """The place of the task's snapshot, or of its beginning; None where it took none, or the log was trimmed
        there."""
        return self._places.get(checkpoint)

    def taken_at(self, last: CheckpointId | None) -> dict[CheckpointId, tuple[int, ...]]:
        """For each checkpoint up to `last`, by channel: the number of the element to be taken next."""
        if last is None:
            return {}
        places = ((one, place) for one, place in self._places.items() if one is not None and one <= last)
        return {checkpoint: place.taken for checkpoint, place in places}

    @property
    def determinants(self) -> tuple[Determinant, ...]:
        """Those that are not trimmed."""
        return tuple(self._determinants)

    def before(self, place: LogPlace) -> int:
        """How many of these come before a place."""
        return place.determinants - self._trimmed

    def lose(self) -> None:
        """The task is lost, and with it the determinants that were not durable."""
        del self._determinants[self.durable - self._trimmed :]
        self._places = {one: place for one, place in self._places.items() if place.determinants <= self.durable}

    def trim(self, oldest: CheckpointId) -> LogPlace | None:
        """Forget the determinants before the oldest restorable checkpoint; returns its place, None if not known."""
        place = self._places.get(oldest)
        if place is not None:
            del self._determinants[: place.determinants - self._trimmed]
            self._trimmed = place.determinants
            self._places = {one: at for one, at in self._places.items() if one is not None and one >= oldest}
        return place


def is_numbered(element: Element) -> bool:
    """Barriers and ends have no number."""
    return isinstance(element, IN_FLIGHT_KINDS)


def element_of(end: End) -> Element:
    return EndOfData() if end is End.DATA else EndOfPartition()


def unsupported(graph: JobGraph, config: Config) -> str | None:
    """Why a job's tasks cannot recover alone, in words; None if they can, or if the settings do not want it."""
    if config.failover != "local":
        return None
    return next((f"failover local: {reason}" for reason in _reasons(graph, config)), None)


def check(graph: JobGraph, config: Config) -> None:
    """Raise Refused if the job's settings want local recovery and its tasks cannot recover alone."""
    reason = unsupported(graph, config)
    if reason is not None:
        raise Refused(reason)


def _reasons(graph: JobGraph, config: Config) -> Iterator[str]:
    if config.guarantee != "exactly-once" or config.finishing != "together":
        yield "it works only with exactly-once, and with tasks that finish together"
    if config.sink != "transactional" or config.committing != "writer":
        yield "rows written again would be visible twice: use a transactional sink that commits itself"
    if config.spilling == "buffer-timeout":
        yield "an element that is taken before its timeout is in no log, and cannot be taken again: spill continuously"
    for spec in graph.operators:
        yield from _reasons_of(spec)


def _reasons_of(spec: OperatorSpec) -> Iterator[str]:
    if spec.role == "two-phase":
        yield f"{spec.name} commits the rows that it passes on, and would commit them twice"
    if spec.enumerated:
        yield f"no log holds which splits {spec.name} was assigned, and when"
    if spec.event_time is not None and spec.event_time.idle_after_us:
        yield f"the clock decides when a split of {spec.name} is idle, and a replay may decide otherwise"
    if spec.build is not None and spec.build().clocked:
        yield f"{spec.name} uses processing time, which differs in a replay"
    for edge in spec.inputs:
        if edge.partitioning not in ("hash", "forward"):
            yield f"{edge.sender} to {spec.name} is a {edge.partitioning} edge; it can be hash or forward"
