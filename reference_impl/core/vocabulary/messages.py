"""What is sent: data channels carry elements, the control plane carries messages.

`Record` and the events and effects around it are positional and exempt from
garbage collection (gc=False): one of each exists for every record and step, and
they form no cycles.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec

from .causes import WhyDeclined
from .ends import JobEnd
from .formats import Format
from .ids import AttemptId, CheckpointId, Handle, TaskId
from .state import TaskState


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """A row (key, value, tag, tag2) and its origin: which input record it stems from."""

    key: int | None
    value: int | None
    tag: int
    tag2: int
    origin: int
    ts: int = 0
    """its event time; 0 if the input has none"""


AT_ONCE = 0
"""The alignment timeout of barriers that overtake at once: it is over when they come."""


class Barrier(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Separates the records that belong to a checkpoint from those behind it (ABS-1).

    `alignment_timeout_us`: how long it waits in an input queue before it overtakes the elements in front of it
    (FLIP-76), `AT_ONCE` or later; None: it never does.  On a never unaligned edge it does not overtake.
    """

    checkpoint: CheckpointId
    alignment_timeout_us: int | None = None
    format: Format | None = None
    """of the snapshots; None: canonical"""


class CancelBarrier(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Sent instead of a barrier by a task at which the checkpoint was aborted (ABS-4)."""

    checkpoint: CheckpointId


class Watermark(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """No record with an event time up to this one follows in this channel."""

    time: int


class Idle(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The receiver must not wait for this channel's watermark until the next watermark or record comes."""


class EndOfData(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """No record follows in this channel; barriers still may, until the final checkpoint."""


class EndOfPartition(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Nothing follows in this channel, not even a barrier: its sender has finished (FIN-3)."""


class Committable(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """The handle that a writer sends to its committer: a transaction's name, sealed for this checkpoint (ABS-11).
    It is sent before the checkpoint's barrier, so that its receiver has it in that checkpoint."""

    name: str
    checkpoint: CheckpointId
    writer: TaskId


class Settled(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=True):
    """All committables of a committer up to this complete checkpoint are final, and were sent before this mark."""

    checkpoint: CheckpointId


Element = Record | Barrier | CancelBarrier | Watermark | Idle | EndOfData | EndOfPartition | Committable | Settled


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Control(msgspec.Struct, frozen=True, kw_only=True, tag_field="message"):
    """Base of the control messages.  Each is for one attempt of one job, and reaches no other (see `fencing`)."""

    job: int
    """counted from 1; a resumed job has the next number (see `fencing`)"""
    attempt: AttemptId


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one old subtask of an operator: under `handle`, or here as `state`.

    `gates` gives the operator's input by channel, as that subtask had them; `finished`: it had finished.
    """

    handle: Handle | None = None
    state: TaskState | None = None
    gates: tuple[int, ...] = ()
    finished: bool = False


class Deploy(Control, kw_only=True, tag="deploy"):
    """Start an attempt: restore `handle` or, with snapshots in the coordinator's memory, `state`.

    `suspended` sources read nothing: the job only finishes its commits.
    `finished`: all subtasks of the operator had finished; the task only reports that again.
    `pieces`: the states of all old subtasks of the operator, of which the task takes its share (OPS-2).  With
    `handle` or `state` besides, the parallelism is unchanged, and the task takes only items of unions from them.
    `senders`: by input of the operator, the states of the old sending subtasks; data in flight between the two
    operators is redistributed (`in_flight_redistribution`).
    `channels_of`: the task recovers locally, in the channels of that attempt, in which the others go on (UNA-4);
    every checkpoint up to `aborted_up_to` that is not complete has been aborted.
    """

    checkpoint: CheckpointId | None = None
    handle: Handle | None = None
    state: TaskState | None = None
    suspended: bool = False
    finished: bool = False
    pieces: tuple[Piece, ...] = ()
    senders: tuple[tuple[Piece, ...], ...] = ()
    channels_of: AttemptId | None = None
    aborted_up_to: CheckpointId | None = None


class Trigger(Control, kw_only=True, tag="trigger"):
    """To a source, or to a task whose senders have all finished: start a checkpoint.  `ending` is
    how the job ends with it (None: it does not): stop (read no further) or drain (end the input first)."""

    checkpoint: CheckpointId
    ending: JobEnd | None = None
    alignment_timeout_us: int | None = None
    """of its barriers"""
    format: Format | None = None
    """of its snapshots; None: canonical"""


class Complete(Control, kw_only=True, tag="complete"):
    """The checkpoint is complete: commit what was sealed for it or an older one.

    `oldest` is the oldest snapshot that may still be restored, now or once it is complete: nothing before it is needed.
    """

    checkpoint: CheckpointId
    oldest: CheckpointId | None = None
    logs_from: CheckpointId | None = None
    """the oldest checkpoint whose in-flight data may be read from logs; a savepoint only with local recovery"""


class Abort(Control, kw_only=True, tag="abort"):
    """The coordinator aborted the checkpoint."""

    checkpoint: CheckpointId


class Cancel(Control, kw_only=True, tag="cancel"):
    """Stop at once."""


class Terminate(Control, kw_only=True, tag="terminate"):
    """This checkpoint covers all that the task did: commit, then finish (None: nothing to commit)."""

    checkpoint: CheckpointId | None


class Running(Control, kw_only=True, tag="running"):
    """A task is restored and running.

    `returned` are the splits of a reader's snapshot, with their positions, that it hands back to
    its enumerator (OPS-3).
    """

    task: TaskId
    returned: dict[int, int] = {}


class Ask(Control, kw_only=True, tag="ask"):
    """A reader has nothing more to read and asks its enumerator for splits, for the `number`-th time (OPS-3)."""

    task: TaskId
    number: int


class Assign(Control, kw_only=True, tag="assign"):
    """To a reader: all splits that were assigned to it in this attempt, each with the position at which it begins.

    It answers the reader's request number `answers`; if it has no new split, the reader waits.  Without `more` no
    other split will come.  `serial` counts the changes.
    """

    serial: int
    splits: dict[int, int]
    answers: int
    more: bool


class Assigned(Control, kw_only=True, tag="assigned"):
    """A reader has taken what an assignment brought it."""

    task: TaskId
    serial: int


class Ack(Control, kw_only=True, tag="ack"):
    """A task's part of a checkpoint is durable: under `handle`, or here as `state`.

    `ended`: the task had processed all its input before, so that it may finish once the checkpoint is complete.
    """

    task: TaskId
    checkpoint: CheckpointId
    handle: Handle
    state: TaskState | None = None
    ended: bool = False
    logs: tuple[str, ...] = ()
    """the logs of persistent channels to which it refers"""
    files: tuple[Handle, ...] = ()
    """the files that it needs besides, whoever wrote them"""
    in_flight: bool = False
    """it holds elements that barriers overtook"""


class Decline(Control, kw_only=True, tag="decline"):
    """A task cannot take part in a checkpoint."""

    task: TaskId
    checkpoint: CheckpointId
    cause: WhyDeclined


class InputEnded(Control, kw_only=True, tag="ended"):
    """All input of a task has ended and is processed; it waits for the final checkpoint."""

    task: TaskId


class Finished(Control, kw_only=True, tag="finished"):
    """A task has committed everything and has finished."""

    task: TaskId


ToTask = Deploy | Trigger | Complete | Abort | Cancel | Terminate | Assign
ToCoordinator = Running | Ack | Decline | InputEnded | Finished | Ask | Assigned
AnyControl = ToTask | ToCoordinator
SplitMessage = Ask | Assigned
"""What readers send to their enumerators."""


def kind_of(message: Control) -> str:
    """The message's kind by name, as faults address it."""
    return str(type(message).__struct_config__.tag)
