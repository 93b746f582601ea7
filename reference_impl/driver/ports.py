"""What a driver needs from the world around it, in small protocols.

A world has the clock, the channels, the stores and the observer.  The simulated world
holds a whole job.  With processes there is one world for each node's tasks, and one for
the coordinator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..core.backends.stored import Loaded
from ..core.vocabulary.causes import AnyCause
from ..core.vocabulary.events import CompletedCheckpoint, Event, JobRecord
from ..core.vocabulary.formats import Filed
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..core.vocabulary.messages import Element, ToCoordinator, ToTask
from ..core.vocabulary.state import Ref, TaskState
from ..core.vocabulary.transactions import AnyRequest, Outcome
from ..observed import AnyStruck
from ..trace import Observer
from .inputs import HandOver
from .perturbations import Perturbations
from .points import Points
from .settings import Settings


class Loop(Protocol):
    """A clock in µs, and the actions scheduled on it."""

    @property
    def now(self) -> int: ...

    def at(self, time: int, action: Callable[[Any, Any], None], first: Any = None, second: Any = None) -> None: ...

    def after(self, delay: int, action: Callable[[Any, Any], None], first: Any = None, second: Any = None) -> None: ...


class Upstream(Protocol):
    """The sending end of a channel, as its receiver sees it."""

    @property
    def name(self) -> TaskId: ...

    def drain(self) -> None:
        """The receiver has taken an element: there is room for one more."""


class Inbound(Protocol):
    """The receiving end of a channel; `queue` holds (arrival time, element)."""

    name: str
    queue: deque[tuple[int, Element]]
    stalled_until: int
    taken: int
    timed_barriers: int
    """how many of its barriers may overtake"""

    @property
    def sender(self) -> Upstream | None: ...

    def position(self, place: int) -> int:
        """The number (from 0) of the element at this place of the queue, among all that entered.  Restored elements
        have negative numbers."""

    @property
    def last_position(self) -> int:
        """The number of the element that was taken last, in order."""

    def take_overtaking(self, place: int) -> None:
        """Take the barrier at this place of the queue out of order."""

    def refill(self, elements: Sequence[Element], handed_over: HandOver, replays: Sequence[int] = ()) -> None:
        """Put restored elements back; `handed_over` joins them with what the channel holds."""


class Outbound(Protocol):
    """The sending end of a channel."""

    name: str

    @property
    def is_full(self) -> bool: ...

    def push(self, element: Element) -> None: ...


class Draft(Protocol):
    """Bytes that are written, but not yet under their final name."""

    @property
    def handle(self) -> Handle: ...


class NotDeleted(Exception):
    """A store could not delete a record (`checkpoint`), and so no file, or some of the files."""

    def __init__(
        self, reason: str, files: tuple[Handle, ...], checkpoint: CheckpointId | None, deleted: list[Handle]
    ) -> None:
        super().__init__(reason)
        self.files = files
        self.checkpoint = checkpoint
        self.deleted = deleted


class Files(Protocol):
    """The store of snapshots: bytes by handle, and the records that make checkpoints complete."""

    def begin(self, handle: Handle, state: TaskState, filed: Filed | None = None) -> Draft:
        """Write the bytes; they are neither synced nor under their final name.  `filed`: the snapshot is not
        canonical."""

    def names(self, draft: Draft) -> tuple[Handle, ...]:
        """The names of the files of a draft, in the order in which they get them: the handle is last."""

    def link(self, draft: Draft, name: Handle | None = None) -> None:
        """Sync the files of a draft and give them their names, or that one its name; these are not durable yet."""

    def finish(self, draft: Draft) -> str:
        """Make the names of a linked draft durable; returns the text of the state that can be read under its handle
        from now on."""

    def unlink(self, draft: Draft) -> None:
        """The power fails before `finish`: the names are lost."""

    def drop(self, draft: Draft) -> None:
        """Delete a draft."""

    def tear(self, handle: Handle, state: TaskState, filed: Filed | None = None) -> Handle:
        """Leave half of the first file under its final name, as a store without atomic rename would; returns that
        name."""

    def read(self, handle: Handle) -> Loaded:
        """The snapshot under a handle; raises CorruptSnapshot, also if there is none, or if one of its files is missing
        or altered."""

    def store(self, snapshot: CompletedCheckpoint) -> None:
        """Make the record of a complete checkpoint durable."""

    def survey(self) -> tuple[tuple[CompletedCheckpoint, ...], tuple[CheckpointId, ...]]:
        """Every complete checkpoint, oldest first, and the ids of those whose records cannot be read."""

    def discard(self, handles: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Handle]:
        """Delete a checkpoint's record, and then files; returns the handles that existed.  Raises NotDeleted; if the
        record stays, no file is deleted."""

    def has(self, handle: Handle) -> bool:
        """Whether there is a file under this name."""

    def written_for(self, handle: Handle) -> list[Handle]:
        """The files that were written for a snapshot, besides that under its handle."""

    def handles(self) -> list[Handle]:
        """Every snapshot in the store."""

    # -- copies in a directory of the user --

    def copy(self, handle: Handle, change: Callable[[bytes], bytes] | None = None) -> None:
        """Copy a file durably, all of it or nothing, with a `change` to its bytes.  Raises CorruptSnapshot if it is
        missing, which names it."""

    def tear_copy(self, handle: Handle) -> None:
        """Leave half of a file under its name there."""

    def has_copy(self, handle: Handle) -> bool:
        """Whether the directory of the user has this file, whole."""

    def store_copy(self, snapshot: CompletedCheckpoint) -> None:
        """Make the record of a copied snapshot durable."""

    def copied(self) -> tuple[CompletedCheckpoint, ...]:
        """The snapshots that have a record there, oldest first."""

    def keep_copies(self, handles: Sequence[Handle]) -> None:
        """Delete every file there but these."""


class SpillStore(Protocol):
    """The logs of persistent channels: elements by number, durable only once they are flushed.

    Raises OSError if writing fails, CorruptSnapshot if something cannot be read.
    """

    def append(self, log: str, number: int, element: Element) -> None: ...

    def begin(self, log: str) -> int:
        """Begin to flush all that was appended; returns the mark for `finish`."""

    def finish(self, log: str, mark: int) -> None:
        """The flush with this mark is done: make durable what it covers."""

    def tear(self, log: str, mark: int) -> None:
        """Leave half of a flush, as a writer that dies in the middle of it does; no reader takes it for complete."""

    def lose(self, log: str) -> None:
        """The log's writer has ended, and its unflushed elements are lost."""

    def read(self, ref: Ref) -> list[tuple[int, Element]]:
        """The durable ones of the elements that a reference names, with their numbers, in order."""

    def trim(self, log: str, before: int) -> int:
        """Discard elements before a number, as far as the store can; returns the number below which none is left (0:
        nothing was discarded)."""

    def delete(self, log: str) -> None:
        """Delete a log; what its writer still writes is lost."""

    def names(self) -> list[str]: ...


class Jobs(Protocol):
    """The durable record of each job, and positions that at-most-once sources saved."""

    def save(self, record: JobRecord) -> None: ...

    def load(self, job: int) -> JobRecord | None: ...

    def save_position(self, split: int, position: int, attempt: int) -> bool:
        """Save a split's next position; False if a newer attempt has read it, and nothing is saved."""

    def trim(self, split: int, offset: int) -> None:
        """Discard what a split's log holds before an offset; a lower offset than before changes nothing."""

    def begins(self, split: int) -> int:
        """The first offset that a split's log still holds."""

    def load_positions(self, splits: tuple[int, ...], attempt: int) -> dict[int, int]:
        """The saved positions; from now on positions of older attempts are refused."""


class External(Protocol):
    """The external store of transactions and rows."""

    def handle(self, request: AnyRequest) -> Outcome: ...


class Reports(Protocol):
    """The control plane from the tasks to the coordinator; the order of messages is not fixed."""

    def to_coordinator(self, task: TaskId, message: ToCoordinator) -> None: ...


class Orders(Protocol):
    """The control plane from the coordinator to the tasks; the order of messages is not fixed."""

    def to_task(self, task: TaskId, message: ToTask) -> None: ...


class Actor(Protocol):
    """A task's attempt, or a coordinator, as stores see it: it asks, and takes the answer."""

    @property
    def name(self) -> TaskId: ...

    @property
    def attempt(self) -> AttemptId | None:
        """None: a coordinator."""

    @property
    def alive(self) -> bool: ...

    def deliver(self, event: Event, owed_to: int | None = None) -> None:
        """Take an answer: at once, or as soon as it does not stand still.  `owed_to`: the fault without which it would
        be another answer; if the actor fails of it, the failure is owed to that fault."""


class Attempt(Actor, Protocol):
    """A task's attempt, as stores see it: it can stand still, and it can fail."""

    @property
    def attempt(self) -> AttemptId: ...

    @property
    def paused(self) -> bool: ...

    def fail(self, cause: AnyCause) -> None:
        """It has failed by itself."""


class Site(Protocol):
    """Where a driver works: the clock, what has been chosen for the run, and who watches it."""

    settings: Settings
    perturbations: Perturbations
    detailed: bool
    """the observer also wants the time line"""
    points: Points

    @property
    def observer(self) -> Observer: ...

    @property
    def loop(self) -> Loop: ...


class Faults(Protocol):
    """What becomes of a fault that waited in a store or a channel, once it strikes."""

    def fired(self, fault: int, detail: str, attempt: int | None, struck: AnyStruck | None = None) -> None:
        """It has changed something live."""

    def kill(self, attempt: Any, cause: AnyCause, fault: int) -> bool:
        """It kills a task's attempt; returns whether that was alive."""

    def expire(self, fault: int, name: str, attempt: int | None) -> bool:
        """It has the external store abort a sealed transaction; returns whether there was one."""
