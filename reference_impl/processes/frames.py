"""What processes say to each other: data channels, the control plane, supervision.

Every frame carries the clock of its sender (`stamp`, a hybrid logical clock in
µs, see `clock`), so that what the processes wrote down can be put in one order
that is consistent with causality.  Each of the three conversations has a union
of its own; nothing of one is understood in another.
"""

from __future__ import annotations

from ..core.events import CompletedSnapshot
from ..core.ids import AttemptId, CheckpointId, TaskId
from ..core.messages import ToCoordinator, ToTask
from .data_frames import Accepted as Accepted
from .data_frames import Bye as Bye
from .data_frames import Credit as Credit
from .data_frames import Data as Data
from .data_frames import DataFrame as DataFrame
from .data_frames import Durable as Durable
from .data_frames import Numbered as Numbered
from .data_frames import Open as Open
from .data_frames import Refused as Refused
from .data_frames import Taken as Taken
from .data_frames import Welcome as Welcome
from .frame import Frame as Frame

# -- the control plane: one connection from a node to the coordinator -----------------------------


class Hello(Frame):
    """A node is there; `attempts` are the live attempts of its tasks (0: none), of `job` (0: it knows of none)."""

    process: str
    incarnation: int
    attempts: dict[TaskId, AttemptId]
    job: int


class ForTask(Frame):
    task: TaskId
    message: ToTask


class FromTask(Frame):
    task: TaskId
    message: ToCoordinator


class Heartbeat(Frame):
    """A node lives."""


class Failed(Frame):
    """An attempt of a task has ended badly by itself."""

    task: TaskId
    attempt: AttemptId
    reason: str


class GivenUp(Frame):
    """To a node that has been replaced: end what runs, and go."""


class JobOver(Frame):
    """The job has ended: end what runs of it."""

    job: int


class Moved(Frame):
    """To all nodes: a task recovers locally in its channels, in whatever process it lived before (UNA-4)."""

    task: TaskId
    attempt: AttemptId


ControlFrame = Hello | ForTask | FromTask | Heartbeat | Failed | GivenUp | JobOver | Moved


# -- supervision: one connection from each process to the harness ----------------------------------


class Ready(Frame):
    """A process is up."""

    process: str
    incarnation: int


class Reached(Frame):
    """A watched protocol point; the process stands still until `Go`.  `side`: before or after."""

    point: str
    task: str | None
    side: str


class Expiring(Frame):
    """The process is about to ask for the commit of a transaction that a fault would have the store give up
    before; it stands still until `Go`, which says whether that was done."""

    fault: int
    name: str
    attempt: int | None


class Go(Frame):
    """Go on; `done`: what stood still for it was done."""

    done: bool = True


class Fired(Frame):
    """A fault that waited in the process has changed something live."""

    fault: int
    detail: str
    attempt: int | None


class Felt(Frame):
    """A channel's receiver felt what was done to its connection: `transit_us` is the longest that
    an element was under way, `pieces` how many reads brought less than one whole frame."""

    channel: str
    attempt: AttemptId
    transit_us: int
    pieces: int


class Broke(Frame):
    """A connection of a channel ended without a `Bye`, as the receiver saw it."""

    channel: str
    attempt: AttemptId
    reason: str


class Up(Frame):
    """An attempt of a task lives in this process."""

    task: TaskId
    attempt: AttemptId


class Down(Frame):
    """It has ended; `how`: finished, cancelled, failed."""

    task: TaskId
    attempt: AttemptId
    how: str


class TaskFacts(Frame):
    """What the phase of the job depends on, said again when it changes."""

    task: TaskId
    aligning: bool
    """it has blocked a channel"""
    unsettled: CheckpointId | None
    """the oldest checkpoint with a sealed transaction that it has not settled"""
    is_handed: bool
    """something of a complete checkpoint is on its way to it, for it to commit"""


class JobFacts(Frame):
    """The coordinator's: `stage` is the name of its stage's type, in lower case (listing,
    deploying, working, restarting, terminating, closing, ended)."""

    job: int
    attempt: AttemptId
    stage: str
    is_ending: bool
    under_way: bool
    """some checkpoint is pending or being stored"""
    newest: int
    """the newest complete checkpoint; 0: none"""


class Completed(Frame):
    """A checkpoint is complete."""

    checkpoint: int


class Returned(Frame):
    """A command was answered."""

    command: int


class Ended(Frame):
    """A job has ended; `retained` are the checkpoints that it, or its user, still holds."""

    job: int
    status: str
    retained: tuple[int, ...]


class Lost(Frame):
    """The coordinator has given a node up that does not answer: it wants another in its place."""

    process: str
    incarnation: int


class Happened(Frame):
    """A happening that a schedule perturbation waits for has happened once more (see `driver.decisions`)."""

    what: str


class Foreign(Frame):
    """Connections were closed, `count` since this was said last, because whoever made them is not of the run."""

    count: int


class Count(Frame):
    """The answer to `Ask`: what the task had done when it took its snapshot of the checkpoint
    (records read and applied), what it has done now, and by channel what it sent and received."""

    task: TaskId
    attempt: AttemptId
    at_mark: int
    now: int
    is_idle: bool
    """it reads nothing, holds nothing back, and has nothing left to send"""
    sent: dict[str, int]
    received: dict[str, int]


class Arm(Frame):
    """A fault waits for the next happening of its kind (`driver.arms`); `target` as there."""

    kind: str
    target: str | None
    fault: int
    times: int


class Disarm(Frame):
    """Another process has met the fault."""

    fault: int


class Meddle(Frame):
    """To the coordinator: a fault waits for the next control message of a kind."""

    how: str
    message: str
    task: str | None
    fault: int
    by_us: int


class RaiseException(Frame):
    """A user function is to raise (`driver.injected_exceptions`)."""

    task: TaskId
    fault: int
    always: bool


class Issue(Frame):
    """A user asks the coordinator for something, of the job that he knows of."""

    job: int
    command: int
    kind: str
    drain: bool


class Submit(Frame):
    """To the coordinator: begin a job, with these snapshots to take over, from these numbers on.
    With `recall` it takes over what the coordinator itself holds (snapshots in its memory)."""

    job: int
    attempt: AttemptId
    checkpoint: int
    initial: tuple[CompletedSnapshot, ...]
    recall: bool


class TakeOver(Frame):
    """To a new coordinator: go on with a job, from what is durable."""

    job: int
    attempt: AttemptId
    checkpoint: int
    initial: tuple[CompletedSnapshot, ...]


class Ask(Frame):
    """What has each task done since its snapshot of this checkpoint?  Answered by `Count`s."""

    checkpoint: int


class Freeze(Frame):
    """The run is about to end: trigger no checkpoint of the job any more (or, with `off`, do so again)."""

    job: int
    off: bool


class Echo(Frame):
    """Said back, once everything that was there to be heard before it has been heard."""

    number: int


class Close(Frame):
    """End in order: everything that was observed is written."""


SupervisionFrame = (
    Ready
    | Reached
    | Expiring
    | Go
    | Fired
    | Felt
    | Broke
    | Up
    | Down
    | TaskFacts
    | JobFacts
    | Completed
    | Returned
    | Ended
    | Lost
    | Happened
    | Foreign
    | Count
    | Arm
    | Disarm
    | Meddle
    | RaiseException
    | Issue
    | Submit
    | TakeOver
    | Ask
    | Freeze
    | Echo
    | Close
)
