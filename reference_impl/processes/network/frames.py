"""The frames that processes send each other: on data channels, on the control plane, in supervision.

Every frame carries the clock of its sender (`stamp`, a hybrid logical clock in µs, see `clock`).  So what the processes
recorded can be put in one order that is consistent with causality.  Each of the three kinds of connection has a union
of its own frames; a frame of one is not understood on another.
"""

from __future__ import annotations

import msgspec

from ...core.vocabulary.causes import AnyCause
from ...core.vocabulary.ends import Status
from ...core.vocabulary.events import CommandKind, CompletedCheckpoint
from ...core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from ...core.vocabulary.messages import ToCoordinator, ToTask
from ...core.vocabulary.stages import StageName
from ...observed import AnyStruck
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
    """A node has connected; `attempts` are the live attempts of its tasks in `job` (0: it knows of none)."""

    process: str
    incarnation: int
    attempts: dict[TaskId, AttemptId | None]
    job: int


class ForTask(Frame):
    task: TaskId
    message: ToTask


class FromTask(Frame):
    task: TaskId
    message: ToCoordinator


class Heartbeat(Frame):
    """The node is alive."""


class Failed(Frame):
    """An attempt of a task has failed by itself."""

    task: TaskId
    attempt: AttemptId
    cause: AnyCause


class GivenUp(Frame):
    """To a node that has been replaced: end what runs, and then the process."""


class JobOver(Frame):
    """The job has ended: end its tasks."""

    job: int


class Moved(Frame):
    """To all nodes: a task recovers locally in its channels, in whichever process it lived before (UNA-4)."""

    task: TaskId
    attempt: AttemptId


ControlFrame = Hello | ForTask | FromTask | Heartbeat | Failed | GivenUp | JobOver | Moved


# -- supervision: one connection from each process to the harness ----------------------------------


class Ready(Frame):
    """A process has started."""

    process: str
    incarnation: int


class Reached(Frame):
    """The process has reached a watched protocol point, and stands still until `Go`.  `side`: before or after."""

    point: str
    task: str | None
    side: str


class Expiring(Frame):
    """The process is about to request the commit of a transaction, and a fault is to have the store abort it before
    that.  The process stands still until `Go`, which says whether the store did."""

    fault: int
    name: str
    attempt: int | None


class Go(Frame):
    """Go on; `done`: the harness has done what the process waited for."""

    done: bool = True


class Fired(Frame):
    """A fault that waited in the process has changed something live."""

    fault: int
    detail: str
    attempt: int | None
    struck: AnyStruck | None = None


class Felt(Frame):
    """What a channel's receiver noticed of a fault on its connection: `transit_us` is the longest time that an
    element was under way, `pieces` how many reads brought less than one whole frame."""

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
    """An attempt of a task runs in this process."""

    task: TaskId
    attempt: AttemptId


class Down(Frame):
    """The attempt has ended."""

    task: TaskId
    attempt: AttemptId


class TaskFacts(Frame):
    """What the phase of the job depends on; sent again whenever it changes."""

    task: TaskId
    aligning: bool
    """the task has blocked a channel"""
    unsettled: CheckpointId | None
    """the oldest checkpoint for which the task has a sealed transaction that is neither committed nor aborted"""
    is_handed: bool
    """a part of a complete checkpoint is on its way to the task, which is to commit it"""


class JobFacts(Frame):
    """What the phase of the job depends on, in the coordinator, and what it holds; sent again whenever it changes."""

    job: int
    attempt: AttemptId | None
    """the newest; None: none has begun"""
    stage: StageName
    has_begun: bool
    """an attempt of the job was deployed"""
    is_ending: bool
    under_way: bool
    """some checkpoint is pending or being stored, or files of snapshots are being deleted"""
    newest: CheckpointId | None
    """the newest complete checkpoint"""
    retained: tuple[int, ...]
    """the checkpoints that the job, or its user, still holds"""


class Completed(Frame):
    """A checkpoint is complete."""

    checkpoint: CheckpointId


class Returned(Frame):
    """A command was answered, with the snapshot that it took, if it took one."""

    command: int
    checkpoint: CheckpointId | None


class Ended(Frame):
    """A job has ended; `retained` are the checkpoints that it, or its user, still holds."""

    job: int
    status: Status
    retained: tuple[int, ...]


class Lost(Frame):
    """The coordinator has given up a node that does not answer, and expects another in its place."""

    process: str
    incarnation: int


class Happened(Frame):
    """An event that a schedule perturbation waits for has occurred once more (see `driver.perturbations`)."""

    what: str


class Foreign(Frame):
    """Connections were closed because the other end is not of the run; `count` of them since the last report."""

    count: int


class Count(Frame):
    """The answer to `Ask`.

    It has what the task had done when it took its snapshot of the checkpoint (records read and applied), what it has
    done until now, and by channel what it sent and received.
    """

    task: TaskId
    attempt: AttemptId
    at_mark: int | None
    """None: it took no snapshot of that checkpoint"""
    now: int
    is_idle: bool
    """the task reads nothing, buffers nothing, and has nothing left to send"""
    sent: dict[str, int]
    received: dict[str, int]


class Arm(Frame):
    """A fault waits for the next event of its kind (`driver.arms`); `target` as there."""

    kind: str
    target: str | None
    fault: int
    times: int


class Disarm(Frame):
    """The fault has fired in another process: wait for it no more."""

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
    """A user requests something of the coordinator, for the job that the user knows of."""

    job: int
    command: int
    kind: CommandKind
    drain: bool
    format: str | None = None
    """of the snapshot that it asks for; None: the job's own, or it asks for none"""
    snapshot: CheckpointId | None = None
    """the one that is to be deleted"""


class Submit(Frame):
    """To the coordinator: begin a job, with these snapshots to take over, and with these numbers as the first.

    With `recall` it takes over the snapshots that the coordinator holds in its own memory.  A coordinator that holds
    none has replaced the one that held them: they are lost (ABS-14).
    """

    job: int
    attempt: AttemptId
    checkpoint: int
    initial: tuple[CompletedCheckpoint, ...]
    recall: bool
    named: CheckpointId | None = None
    """the snapshot of these from which the job begins; None: the newest"""
    claims: dict[CheckpointId, bool] = msgspec.field(default_factory=dict)
    """as in `Claims`"""


class TakeOver(Frame):
    """To a new coordinator: go on with a job, from what is durable; the job began as in `Submit`."""

    job: int
    attempt: AttemptId
    checkpoint: int
    initial: tuple[CompletedCheckpoint, ...]
    recall: bool
    named: CheckpointId | None = None
    claims: dict[CheckpointId, bool] = msgspec.field(default_factory=dict)
    """as in `Claims`"""


class Ask(Frame):
    """To a node: what has each task done, now and, if a checkpoint is named, when it took its snapshot?  Answered by
    `Count`s."""

    checkpoint: CheckpointId | None


class Freeze(Frame):
    """The run is about to end: trigger no more checkpoints of the job (or, with `off`, trigger them again)."""

    job: int
    off: bool


class Echo(Frame):
    """Sent back once the process has read everything that was sent to it before."""

    number: int


class Close(Frame):
    """End in order: everything that was observed is written first."""


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
    | Ended
    | Returned
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
