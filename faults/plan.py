"""Faults as data: what is hit, and what sets the fault off.

A plan is a tuple of faults.  Each has a kind, a target with a stable name, and one trigger.  A fault has *fired* only
if it changed something live: a message that was delayed or lost, a running attempt that was killed, a write that was
damaged.  The injector reports that; the plan cannot.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the frozen, keyword-only values of a plan."""


class Trigger(Value, kw_only=True, tag_field="when"):
    """Base of what can set a fault or a command off."""


class AtTime(Trigger, kw_only=True, tag="time"):
    """At a time after the run began, in µs."""

    at_us: int


class AtPoint(Trigger, kw_only=True, tag="point"):
    """At the n-th occurrence (from 1) of a protocol point, optionally of one task.

    `task` is a task's name ("count-1"), or None for any; `side` is `before` or
    `after` the point.  Occurrences are counted over all attempts.
    """

    point: str
    occurrence: int = 1
    task: str | None = None
    side: str = "after"


class InPhase(Trigger, kw_only=True, tag="phase"):
    """The n-th time (from 1) that the job enters a phase, and `after_us` later."""

    phase: str
    occurrence: int = 1
    after_us: int = 0


class AtAim(Trigger, kw_only=True, tag="aim"):
    """The n-th time (from 1) that an aim of a pipeline's file is met, and `after_us` later.

    An aim is a predicate on what can be seen of a pipeline from outside.
    """

    aim: str
    occurrence: int = 1
    after_us: int = 0


class AtRest(Trigger, kw_only=True, tag="rest"):
    """Once the run has come to rest: only a fork can begin then."""


AnyTrigger = AtTime | AtPoint | InPhase | AtAim | AtRest


class Fault(Value, kw_only=True, tag_field="kind"):
    """Base of the faults."""

    trigger: AnyTrigger


class KillTask(Fault, kw_only=True, tag="kill-task"):
    """The running attempt of a task dies at once."""

    task: str


class KillNode(Fault, kw_only=True, tag="kill-node"):
    """Every process of a node dies at once; what it had written is still synced."""

    node: int


class KillCoordinator(Fault, kw_only=True, tag="kill-coordinator"):
    """The coordinator dies; another one takes over `down_us` later, and knows only what is durable."""

    down_us: int = 5_000


class PauseTask(Fault, kw_only=True, tag="pause-task"):
    """A task's attempt stops for `for_us`, is declared lost, and goes on as a zombie."""

    task: str
    for_us: int


class ChannelFault(Fault, kw_only=True):
    """Base of the faults on one data channel, sender to receiver (task names)."""

    sender: str
    receiver: str


class DelayChannel(ChannelFault, kw_only=True, tag="delay-channel"):
    """Each message entering the channel within `for_us` takes `by_us` longer."""

    by_us: int
    for_us: int


class StallChannel(ChannelFault, kw_only=True, tag="stall-channel"):
    """Nothing leaves the channel for `for_us`; then everything does, and nothing is lost."""

    for_us: int


class CutChannel(ChannelFault, kw_only=True, tag="cut-channel"):
    """The connection breaks: the messages in it are lost, and its receiver notices and fails.

    Until `for_us` is over, new connections are refused; only the proxies of a pipeline do that.
    """

    for_us: int = 0


class MessageFault(Fault, kw_only=True):
    """Base of the faults on one control message: the next of its kind once the fault was set off.

    `message` is one of `points.CONTROL_MESSAGES`; `task` is the task that sends or receives it, None for any.
    """

    message: str
    task: str | None = None


class LoseMessage(MessageFault, kw_only=True, tag="lose-message"):
    """The message never arrives."""


class LateMessage(MessageFault, kw_only=True, tag="late-message"):
    """The message arrives `by_us` late, behind messages that were sent later."""

    by_us: int


class RepeatMessage(MessageFault, kw_only=True, tag="repeat-message"):
    """The message arrives again `after_us` later."""

    after_us: int = 1_000


class FailWrite(Fault, kw_only=True, tag="fail-write"):
    """The next snapshot write of a task (None: of the coordinator's record) ends in an error.

    `what` names another action of the coordinator that fails, once; `task` is None then.  Of a delete, of a file of a
    snapshot (`delete-file`) or of the record of a checkpoint (`delete-record`): it stays where it is.  Of a write into
    the directory of a user who has a snapshot copied or moved, of a file (`copy-file`) or the record (`copy-record`).
    """

    task: str | None
    what: str = "write"


class FailRead(Fault, kw_only=True, tag="fail-read"):
    """The next read of a snapshot by a task (None: of the coordinator's records) fails, once."""

    task: str | None


class TearWrite(Fault, kw_only=True, tag="tear-write"):
    """The next snapshot write of a task leaves half a file, and the task dies (None: the coordinator).

    The log entries to which the snapshot refers, and which are flushed for it, are part of that write.  With `how`
    `lost-link` the files of a task's snapshot are whole, and have their names; but the folder was not synced when the
    power failed, and their names are lost.  With `how` `copy` it is the next write into the directory of a user who has
    a snapshot copied or moved.
    """

    task: str | None
    how: str = "torn"


class LoseUnsynced(Fault, kw_only=True, tag="lose-unsynced"):
    """A node loses power: its tasks die, and every write that it had not synced is lost.

    That includes what the operating system held of writers that died before.
    """

    node: int


class FailCommit(Fault, kw_only=True, tag="fail-commit"):
    """The next commit request of a task goes wrong.

    `how` is `refused` (an error, nothing done), `unavailable` (no answer, nothing done) or `lost-response` (done, but
    no answer comes); it does so `times` times in a row.  Or the request comes too late (`expired`): the store has
    aborted the sealed transaction after its timeout, and denies every commit of it from then on.  No engine can save
    its rows; a correct one stops and reports it.
    """

    task: str | None = None
    how: str = "refused"
    times: int = 1


class RaiseInOperator(Fault, kw_only=True, tag="raise-in-operator"):
    """A user function raises on the next record of a task; with `always` it raises on that record whenever it comes."""

    task: str
    always: bool = False


class PauseNode(Fault, kw_only=True, tag="pause-node"):
    """Every process of a node stands still for `for_us`, then goes on where it was.

    If that is longer than the heartbeat timeout, its tasks are declared lost and go on as zombies.  It loses nothing:
    what was in memory or under way stays.
    """

    node: int
    for_us: int


class ResetChannel(ChannelFault, kw_only=True, tag="reset-channel"):
    """The connection is reset, and each new one too, until `for_us` is over.

    The messages under way are lost, and both ends notice it.
    """

    for_us: int


class SliceChannel(ChannelFault, kw_only=True, tag="slice-channel"):
    """For `for_us` the bytes come in pieces of about `size` (at least 1): all of them, in order."""

    size: int
    for_us: int


class LimitChannel(ChannelFault, kw_only=True, tag="limit-channel"):
    """After so many more bytes the connection closes, once; the bytes before are whole and in order.

    The last message may be cut in half; its receiver must not take it for a whole one.
    """

    bytes: int


class TimeoutChannel(ChannelFault, kw_only=True, tag="timeout-channel"):
    """Bytes that enter the channel from now on are dropped, and `after_us` later the connection closes.

    It closes for certain, so that no loss stays unnoticed; the next connection works.
    """

    after_us: int


class KillProxy(Fault, kw_only=True, tag="kill-proxy"):
    """The proxy through which data channels lead dies, with every connection through it; another one runs `down_us`
    later.

    Both ends of each channel notice it.  Control messages do not pass the proxy.
    """

    down_us: int = 5_000


class KillDatabase(Fault, kw_only=True, tag="kill-database"):
    """The external store dies at once and runs again `down_us` later, with everything that it had promised to keep:
    committed rows and prepared transactions."""

    down_us: int = 5_000


MachineFault = PauseNode | ResetChannel | SliceChannel | LimitChannel | TimeoutChannel | KillProxy | KillDatabase
"""The faults that need real processes, sockets or servers (`ports.Machines`)."""

AnyFault = (
    KillTask
    | KillNode
    | KillCoordinator
    | PauseTask
    | DelayChannel
    | StallChannel
    | CutChannel
    | LoseMessage
    | LateMessage
    | RepeatMessage
    | FailWrite
    | FailRead
    | TearWrite
    | LoseUnsynced
    | FailCommit
    | RaiseInOperator
    | MachineFault
)

KINDS: dict[str, type[Fault]] = {str(kind.__struct_config__.tag): kind for kind in AnyFault.__args__}
"""Every fault kind by its name."""

MACHINE_KINDS: tuple[str, ...] = tuple(str(kind.__struct_config__.tag) for kind in MachineFault.__args__)
COMMON_KINDS: tuple[str, ...] = tuple(kind for kind in KINDS if kind not in MACHINE_KINDS)
"""The kinds that a simulated world can have as well (`ports.Disturbable`)."""


def kind_of_class(fault: type[Fault]) -> str:
    """The name of a kind of faults, as in a scenario file."""
    return str(fault.__struct_config__.tag)


def kind_of(fault: Fault) -> str:
    """The fault's kind by name, as in a scenario file."""
    return kind_of_class(type(fault))
