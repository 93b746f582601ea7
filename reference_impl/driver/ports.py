"""What a driver needs from the world around it.

A world has the clock, the channels, the stores and the observer.  The simulated world
holds a whole job.  With processes there is one world for each node's tasks, and one for
the coordinator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..core.decisions.parts import Parts
from ..core.job.config import Config
from ..core.vocabulary.causes import AnyCause
from ..core.vocabulary.effects import EndJob, Return
from ..core.vocabulary.events import CompletedSnapshot, JobRecord
from ..core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, Tasks
from ..core.vocabulary.messages import Element, ToCoordinator, ToTask
from ..core.vocabulary.state import Ref, TaskState
from ..core.vocabulary.transactions import AnyRequest, Outcome
from ..trace import Observer
from .decisions import Decisions
from .inputs import HandOver
from .settings import Settings

if TYPE_CHECKING:
    from .coordination import CoordinatorRunner
    from .records import Records
    from .runner import TaskRunner
    from .sessions import Sessions
    from .spills import Spills
    from .stores import Stores


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
        """The number (from 0) of the element at this place of the queue, among all that entered; place -1: of the one
        taken last.  Restored elements have negative numbers."""

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


class Files(Protocol):
    """The store of snapshots: bytes by handle, and the records that make checkpoints complete."""

    def begin(self, handle: Handle, state: TaskState) -> Draft:
        """Write the bytes; they are neither synced nor under their final name."""

    def finish(self, draft: Draft) -> str:
        """Make a draft durable under its final name; returns the text that its bytes hold."""

    def drop(self, draft: Draft) -> None:
        """Delete a draft."""

    def tear(self, handle: Handle, state: TaskState) -> None:
        """Leave half of a file under the final name, as a store without atomic rename would."""

    def read(self, handle: Handle) -> TaskState:
        """The state under a handle; raises CorruptSnapshot, also if there is none."""

    def store(self, snapshot: CompletedSnapshot) -> None:
        """Make the record of a complete checkpoint durable."""

    def survey(self) -> tuple[tuple[CompletedSnapshot, ...], tuple[CheckpointId, ...]]:
        """Every complete checkpoint, oldest first, and the ids of those whose records cannot be read."""

    def discard(self, handles: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Handle]:
        """Delete files and a checkpoint's record; returns the handles that existed."""

    def sweep(self, keep: tuple[Handle, ...]) -> list[Handle]:
        """Delete every file except the named ones; returns the deleted handles."""

    def handles(self) -> list[Handle]:
        """Every snapshot in the store."""


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


class World(Protocol):
    """What the drivers of tasks and of the coordinator need."""

    config: Config
    settings: Settings
    parts: Parts
    decisions: Decisions
    observer: Observer
    detailed: bool
    stores: Stores
    records: Records
    sessions: Sessions
    spills: Spills

    @property
    def loop(self) -> Loop: ...

    @property
    def control(self) -> Control: ...

    def watches(self, point: str) -> bool:
        """Whether a fault or a command waits for a protocol point."""

    def point(self, point: str, task: TaskId | None, side: str, actor: TaskRunner | CoordinatorRunner | None) -> bool:
        """A protocol point is reached; returns whether the actor is alive afterwards."""

    def fired(self, fault: int, detail: str, attempt: int | None) -> None:
        """A fault that waited here has changed something live."""

    def read_sink(self) -> None:
        """A read-committed reader looks at the sink."""

    def expire(self, fault: int, name: str, attempt: int | None) -> bool:
        """A fault has the external store abort a sealed transaction; returns whether there was one."""

    # -- of tasks

    @property
    def job_number(self) -> int:
        """The number of the job that runs here, or ran last; jobs are counted from 1."""

    def attempt_of(self, task: TaskId) -> AttemptId:
        """The newest attempt of a task that lives here; 0 if none does."""

    def runner(self, task: TaskId, attempt: AttemptId) -> TaskRunner | None: ...

    def come_up(self, task: TaskId, attempt: AttemptId, channels_of: AttemptId | None = None) -> None:
        """Make room for an attempt; an older one of the task that still responds is cancelled.  `channels_of`: the
        attempt in whose channels it goes on (UNA-4); None: its own."""

    def task_failed(self, runner: TaskRunner, cause: AnyCause, fault: int | None) -> None:
        """A task's attempt has failed by itself."""

    def kill(self, runner: TaskRunner, cause: AnyCause, fault: int) -> bool:
        """A fault kills a task's attempt; returns whether it was alive."""

    # -- of the coordinator

    @property
    def freezing(self) -> bool:
        """The run is about to end: no checkpoint is triggered any more."""

    def lose_coordinator(self, fault: int | None, down_us: int) -> None:
        """The coordinator has died, by a fault or by itself."""

    def noted(
        self, what: str, checkpoint: int | None, attempt: int | None, job: int, detail: str, tasks: Tasks = ()
    ) -> None: ...

    def complete(self, snapshot: CompletedSnapshot) -> None:
        """A checkpoint's record is durable, so the checkpoint is complete."""

    def command_returned(self, effect: Return) -> None: ...

    def job_ended(self, effect: EndJob) -> None: ...


class Control(Protocol):
    """The control plane: messages between the coordinator and the tasks; their order is not fixed."""

    def to_task(self, task: TaskId, message: ToTask) -> None: ...

    def to_coordinator(self, task: TaskId, message: ToCoordinator) -> None: ...
