"""What a snapshot holds of one task.

`formats` has its bytes: JSON in UTF-8, in a documented layout.  So a snapshot can be
judged, and restored, without code of its writer.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .ids import CheckpointId, Handle, TaskId
from .transactions import pooled_id_in, writer_in
from .views import NOTHING, Entry, View

BEGINNING = -(1 << 62)
"""The watermark before the first was received."""

END_OF_TIME = 1 << 62
"""The watermark at which every window has ended and every timer is due."""

Timer = tuple[int, int | None, int]
"""(time, key, start of the window): due when the watermark, or the clock, has reached the time"""

Item = tuple[str, str]
"""(name, JSON text), of a list, a union or broadcast state"""

Passing = tuple[int | None, ...]
"""An element in flight: a record (key, value, tag, tag2, origin, event time), a watermark (time,), or an idle
mark ()."""


class Ref(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Elements of a persistent channel's log: the numbers from `first` up to before `end`."""

    log: str
    first: int
    end: int


Kept = tuple[str, int]
"""A sealed transaction as a snapshot holds it: its name, and the checkpoint that it was sealed for; 0 if for none."""


class Sealed(msgspec.Struct, frozen=True):
    """A transaction that was pre-committed for a checkpoint and waits for its commit."""

    name: str
    checkpoint: CheckpointId | None
    """None if its writer had not seen a barrier: with *commit-at-finish* (FIN-9)"""
    writer: TaskId
    """the task that began it"""
    pooled_id: str | None = None
    """its transactional id, if ids are used again"""


def as_kept(sealed: Sequence[Sealed]) -> list[Kept]:
    """Transactions as a snapshot holds them."""
    return [(one.name, 0 if one.checkpoint is None else one.checkpoint) for one in sealed]


def read_back(transactions: Sequence[Kept]) -> list[Sealed]:
    """The transactions that a snapshot holds; their names say the rest."""
    return [
        Sealed(name, CheckpointId(number) if number else None, writer_in(name), pooled_id_in(name))
        for name, number in transactions
    ]


class TaskState(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One task's part of a snapshot.  A field that is added, or means something else, is a new `formats.VERSION`.  An
    unknown one is refused, since it would be state that is lost.

    `positions` are next offsets by split (a source), `entries` keyed state,
    `transactions` sealed and uncommitted ones (a sink), `rotations` the next channel
    of each round-robin output, `turn` the split that a source reads next.
    Of event time: `watermark` is the task's own, `times` those of its input
    channels, `idle` the idle channels (of a source: its idle splits),
    `maxima` the greatest event time read by split, `timers` (time, key, start)
    of the open windows.
    """

    positions: dict[int, int] = {}
    entries: list[Entry] = []
    transactions: list[Kept] = []
    watermark: int = BEGINNING
    times: list[int] = []
    idle: list[int] = []
    maxima: dict[int, int] = {}
    timers: list[Timer] = []
    alarms: list[Timer] = []
    """timers in processing time: (time in µs, key, start)"""
    panes: list[tuple[int, int]] = []
    """(end, origin) of each window in `entries`, in their order"""
    held: list[tuple[int | None, str, str]] = []
    """(key, name, JSON) of the state of a user function; `declared` has the kind and type of each name"""
    declared: dict[str, str] = {}
    listed: list[Item] = []
    shared: list[Item] = []
    """(name, JSON) of the items of lists (`listed`) and of unions, which belong to no key"""
    broadcast: list[Item] = []
    """(name, JSON) of the items of broadcast state; each subtask has all of them"""
    queued: dict[int, list[Passing]] = {}
    unsent: dict[int, list[Passing]] = {}
    """in flight (FLIP-76): by output channel what the barrier overtook here; `queued`: by input channel what its
    barrier overtook there"""
    replays: dict[int, list[int]] = {}
    """by channel, for the first elements of `queued`: how many restores have put each back before; the others are
    new"""
    spilled: dict[int, list[Ref]] = {}
    """by input channel: in-flight data as references to its log, in place of `queued`"""
    rotations: list[int] = []
    turn: int = 0
    serial: int = 0
    """how many transactions a sink has begun"""
    ended: bool = False
    """the task had processed all its input"""


class EnumeratorState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An enumerator's part of a snapshot (OPS-3): the next offset of each unassigned split, and the reader of each
    assigned one.  A split in neither had not been discovered."""

    unassigned: dict[int, int] = {}
    assigned: dict[int, TaskId] = {}


EnumeratorStates = dict[str, EnumeratorState]
"""The state of every enumerator of a job, by source."""


def without_keyed_state(state: TaskState) -> Snapshot:
    """The snapshot of a task without working state by key."""
    return Snapshot(state, NOTHING)


class Snapshot:
    """A state that is yet to be written.  All of it is fixed but the working state by key, of which there is a view
    that becomes entries when the state is written."""

    __slots__ = ("_fixed", "view")

    def __init__(self, fixed: TaskState, view: View) -> None:
        self._fixed = fixed
        self.view = view

    @property
    def unkeyed(self) -> TaskState:
        """All of it but the working state by key."""
        return self._fixed

    @property
    def ended(self) -> bool:
        """Whether it was taken after its task had processed all its input and sent all output."""
        return self._fixed.ended and not self._fixed.unsent

    @property
    def logs(self) -> tuple[str, ...]:
        """The logs of persistent channels to which it refers."""
        spilled = self._fixed.spilled
        return tuple(dict.fromkeys(ref.log for refs in spilled.values() for ref in refs)) if spilled else ()

    @property
    def in_flight(self) -> bool:
        """Whether it holds elements that barriers overtook."""
        fixed = self._fixed
        return bool(fixed.queued or fixed.unsent or fixed.spilled)

    def holding(self, fixed: TaskState) -> Snapshot:
        """The same with this in place of all but the working state by key."""
        return self if fixed is self._fixed else Snapshot(fixed, self.view)

    def with_in_flight(
        self, queued: dict[int, list[Passing]], unsent: dict[int, list[Passing]], spilled: dict[int, list[Ref]]
    ) -> Snapshot:
        """The same with in-flight data: received by input channel, unsent by output channel."""
        fixed = msgspec.structs.replace(self._fixed, queued=queued, unsent=unsent, spilled=spilled)
        return Snapshot(fixed, self.view)

    def with_replays(self, replays: dict[int, list[int]]) -> Snapshot:
        """The same with how often each element of `queued` was put back before."""
        return Snapshot(msgspec.structs.replace(self._fixed, replays=replays), self.view)

    def materialise(self) -> TaskState:
        """The state as it is written."""
        view = self.view
        held = [*self._fixed.held, *view.held()] if self._fixed.declared else []
        return msgspec.structs.replace(self._fixed, entries=view.entries(), panes=view.panes(), held=held)


class LastStates(msgspec.Struct, frozen=True):
    """The last states of finished tasks: their handles, the states that are in the coordinator's memory, and the files
    that they need."""

    handles: dict[TaskId, Handle] = {}
    states: dict[TaskId, TaskState] = {}
    files: dict[TaskId, tuple[Handle, ...]] = {}
