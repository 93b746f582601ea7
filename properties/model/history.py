"""What a run let us see: the checkers' contract, version 1.

The world that drives an engine records the history; the engine's protocol code does
not.  A history has independent witnesses: each task's own program order (`TaskRun`),
the network's log (`Channel`), the stores' logs (`Stored`, `Completed`, `Transaction`)
and a reader of the sink (`committed`, `reads`).  Invariants compare the witnesses with
each other and with what the workload requires.  Nothing here is taken from the
engine's internals.

A history may name its witnesses (`WITNESSES`); one that does not has them all.  What no
witness saw is not observable: it neither happened nor did not happen.

`order` numbers every entry of one history in one sequence that is consistent with
causality; `at_us` is the entry's (virtual or wall) time in µs.  Per-record events are
integers: the n-th record sent into a channel is the n-th taken out of it, so an event
needs no message of its own.  Nothing of a history file is executed; it is JSON, read
with a schema.  So are the states in it: what a completed checkpoint holds of each task
(`StoredState`) and of the enumerators of inputs (`Enumerated`), in a layout of no engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import dataclass_transform

import msgspec

from .causes import AnyCause, Why
from .stored import Enumerated as Enumerated
from .stored import Passing as Passing
from .stored import StoredState as StoredState
from .struck import AnyStruck
from .upgrade import Upgrade
from .workload import Row


class Channel(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The network's log of one channel of one attempt: the origins of the records
    put into it, in order, and for each barrier how many records stood before it."""

    name: str
    attempt: int
    sent: list[int] = []
    barriers: list[tuple[int, int]] = []
    recovered: list[int] = []
    """of the records with which the receiver's attempt was restored; it took them before all that was sent"""
    recovered_watermarks: list[tuple[int | None, int]] = []
    """the same for watermarks, each with the number of restored records before it"""
    repeated: list[int] = []
    """of the records that its sender sent again after a local recovery and that its receiver had already: they come
    before all that is `sent`, and are not in it"""
    watermarks: list[tuple[int | None, int]] = []
    """(event time, number of records before it); an idle mark has no time"""
    # when (µs) each mark of being idle was, of a source whose splits can be
    idle_at: list[int] = []

    @property
    def content(self) -> list[int]:
        """The origins of all records that its receiver could take, in order."""
        return self.recovered + self.sent if self.recovered else self.sent

    @property
    def times(self) -> list[tuple[int | None, int]]:
        """The watermarks that its receiver could take, each with the number of records before it."""
        restored = len(self.recovered)
        return self.recovered_watermarks + [(time, restored + before) for time, before in self.watermarks]


FORMAT = "cutproof-history/1"
REMOVING = ("delete-snapshot", "move-snapshot")
"""the commands that take a snapshot away from a running job"""
COPYING = ("copy-snapshot", "move-snapshot")
"""the commands that copy it for a user"""
OF_A_SNAPSHOT = ("delete-snapshot", "copy-snapshot", "move-snapshot")


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of the entries of a history."""


class Mark(Entry, kw_only=True):
    """Where in its program order a task took its snapshot of a checkpoint.

    Counts of what came before: advances of its watermark, records read (a source), applied in all and by
    input channel, sent by output channel (both in the order of `TaskRun.inputs` and `TaskRun.outputs`).
    """

    checkpoint: int
    order: int
    at_us: int
    reads: int
    applies: int
    received: list[int]
    sent: list[int]
    watermarks: int = 0
    ticks: int = 0
    """how many processing times it had received"""
    events: int = -1
    """reads and applies of all tasks of the run together by then; -1 where they were not counted"""


class Loaded(Entry, kw_only=True):
    """What an attempt loaded before it took any input.

    `state` is the text of the snapshot (see `StoredState`), as the task decoded
    and re-encoded it: the task's own witness of what it now holds.
    """

    checkpoint: int
    order: int
    applies_before: int = 0
    """records that it had already taken by then: 0 in a correct engine"""
    state: str = ""


class TaskRun(Entry, kw_only=True):
    """One attempt of one task: its program order."""

    task: str
    operator: str
    subtask: int
    attempt: int
    job: int
    started: int  # order
    inputs: list[str]
    """names of the input channels ("source-0>count-1"), in the task's numbering"""
    outputs: list[str]
    reads: list[tuple[int, int]] = []
    """(split, offset) of each record read, sources only"""
    applies: list[tuple[int, int]] = []
    """(input channel index, origin) of each record taken, in order; the origin as in
    `workload.origin_of`"""
    marks: list[Mark] = []
    watermarks: list[tuple[int, int]] = []
    """(records read or applied before it, event time) of each advance of its watermark, in order"""
    ticks: list[tuple[int, int]] = []
    """(records applied before it, µs) of each processing time that it received, in order: the world's
    clock, or the end of time when all input had ended; only of an operator in processing time"""
    read_at: list[int] = []
    advanced_at: list[int] = []
    """when (µs) `reads` and `watermarks` were; only where splits can be idle"""
    assigned: list[tuple[int, int, int]] = []
    """(records read before it, split, position) of each split that was assigned to it, of an
    enumerated input"""
    loaded: Loaded | None = None
    end_of_data: bool = False
    """its input ended: the coordinator ended the source, or the operator received the end of data"""
    ended: int | None = None
    """order; None when it was alive at the end"""
    how: str = "alive"  # alive, finished, cancelled, failed, killed


class Stored(Entry, kw_only=True):
    """The snapshot store's log: one task's snapshot became durable."""

    checkpoint: int
    task: str
    attempt: int
    order: int
    at_us: int
    handle: str  # its name in the store
    state: str
    """what the store gives back for its handle, as UTF-8 JSON; the layout is `StoredState`"""
    files: list[tuple[str, int, bool]] = []
    """the other files that it needs: (name, size in bytes, whether it was written for this snapshot)"""


class Completed(Entry, kw_only=True):
    """The snapshot store's log: the record that makes a checkpoint complete is durable."""

    checkpoint: int
    job: int
    attempt: int
    order: int
    at_us: int
    handles: dict[str, str]
    """task: handle of its snapshot"""
    savepoint: bool = False
    finished: list[str] = []
    """tasks that had finished before it; the handle of such a task, if there is one, is that of its last snapshot"""
    enumerators: dict[str, Enumerated] = {}
    """by input"""


class PersistentLog(Entry, kw_only=True):
    """The spill store's log: one log of a persistent channel; the receiver appends each element that comes."""

    name: str
    task: str
    """its writer, the channel's receiver"""
    attempt: int
    opened: int  # order
    trims: list[tuple[int, int]] = []
    """(order, number) of each time that elements were discarded: those below the number"""
    cleared: int | None = None
    """order at which it was deleted"""


class Transaction(Entry, kw_only=True):
    """The external store's account of one transaction.

    `rows[i]` was written when its writer had taken `applied[i]` records.
    """

    name: str
    task: str
    attempt: int
    begun: int  # order
    rows: list[Row] = []
    applied: list[int] = []
    checkpoint: int | None = None
    """the checkpoint that it was sealed for; None if it was not, or before any (former engines wrote 0 then)"""
    prepared: int | None = None
    """order"""
    commit_requested: int | None = None
    """order of the first request"""
    committed: int | None = None
    aborted: int | None = None
    status: str = "open"
    """open, prepared, committed, aborted"""


class Written(Entry, kw_only=True):
    """A row that a plain or idempotent sink wrote: visible at once."""

    task: str
    attempt: int
    order: int
    applied: int
    row: Row


class Read(Entry, kw_only=True):
    """A read-committed reader's look at the sink: it saw `rows` rows, the first of `committed`."""

    began: int  # order
    ended: int
    rows: int
    seen: list[Row] | None = None
    """the rows themselves, where nobody knows in which order the rows of `committed` became visible"""


class Commit(Entry, kw_only=True):
    """A marker of an engine, seen from outside: the rows of all records below `positions` may be visible from `order`
    on, and no others."""

    commit: int
    order: int
    positions: dict[int, int]
    """split: the next offset; 0 for a split that is left out"""


class RowsBelow(Entry, kw_only=True):
    """The rows of all records below `positions`."""

    positions: dict[int, int]
    """split: the next offset; 0 for a split that is left out"""
    rows: list[Row]


class Computed(Entry, kw_only=True):
    """What PySpark computed, when the run was recorded, of a workload whose SQL text stands in a pipeline's file."""

    by_record: bool = False
    """each record yields its rows by itself, so that no row changes when more records come"""
    until: list[RowsBelow] = []
    """for the end of all input, each marker of a commit, and what a stopped job had processed"""


class Counted(Entry, kw_only=True):
    """What a counter of an engine's own showed from this time on, until the next of its values."""

    at_us: int
    value: int | float | str


class JournalEntry(Entry, kw_only=True, tag_field="event"):
    """Base of the rare, ordered events of a run."""

    order: int
    at_us: int


class AttemptStarted(JournalEntry, kw_only=True, tag="attempt-started"):
    """The coordinator deploys the dataflow (only `tasks`, if any are named); `restores` is the checkpoint that it
    chose.

    `in_place`: the tasks recover locally, in the channels that the other tasks go on using (UNA-4).
    """

    attempt: int
    job: int
    restores: int | None = None
    cause: str = ""
    tasks: list[str] = []
    in_place: bool = False


class AttemptRunning(JournalEntry, kw_only=True, tag="attempt-running"):
    """Every task of the attempt is restored and running."""

    attempt: int


class TaskFailed(JournalEntry, kw_only=True, tag="task-failed"):
    """An attempt of a task ended badly; `fault` is the index of the injected fault that explains it, if one does."""

    task: str
    attempt: int
    reason: str
    fault: int | None = None
    cause: AnyCause | None = None
    """None: only the sentence `reason` says it"""

    @property
    def why(self) -> Why:
        return Why(self.cause, self.reason)


class CoordinatorDown(JournalEntry, kw_only=True, tag="coordinator-down"):
    fault: int | None = None
    reason: str = ""
    """why it died without a fault, in words; empty if nobody knows"""


class CoordinatorUp(JournalEntry, kw_only=True, tag="coordinator-up"):
    pass


class CheckpointTriggered(JournalEntry, kw_only=True, tag="checkpoint-triggered"):
    checkpoint: int
    job: int
    attempt: int
    savepoint: bool = False


class CheckpointAborted(JournalEntry, kw_only=True, tag="checkpoint-aborted"):
    checkpoint: int
    reason: str
    failed: bool = True
    """false: a newer one was complete, or the newer one's barrier came in the place of this one's barrier at some task,
    or it was aborted because its attempt had failed or its job had ended"""


class SnapshotDeleted(JournalEntry, kw_only=True, tag="snapshot-deleted"):
    """Files of a checkpoint were deleted: it was subsumed or aborted, or its user wished it.  With the number of a
    complete checkpoint its record was deleted too, and before them."""

    checkpoint: int
    handles: list[str]


class FaultFired(JournalEntry, kw_only=True, tag="fault-fired"):
    """A fault of the plan changed something live."""

    fault: int
    kind: str
    phase: str
    detail: str = ""
    attempt: int | None = None
    struck: AnyStruck | None = None


class CommandIssued(JournalEntry, kw_only=True, tag="command-issued"):
    """`kind`: savepoint, stop-with-savepoint, cancel, resume, or one of `OF_A_SNAPSHOT`; of these `checkpoint` is the
    snapshot.  `format`: of the snapshot, empty for the job's own.

    For a resume: `checkpoint` is the snapshot that the user names, None for the newest; `parallelism` has the operators
    whose number of subtasks changes; `inserted` the new operators, each with the one in front of which it stands;
    `claimed`: whether the job claims the snapshot (True) or leaves it to its user (False), None if nothing was said;
    `upgrade`: how the job differs from the one before."""

    command: int
    kind: str
    drain: bool = False
    format: str = ""
    checkpoint: int | None = None
    parallelism: dict[str, int] = {}
    inserted: dict[str, str] = {}
    claimed: bool | None = None
    upgrade: Upgrade | msgspec.UnsetType = msgspec.UNSET


class CommandReturned(JournalEntry, kw_only=True, tag="command-returned"):
    """`checkpoint` is the snapshot that a command made, for a resume the one with which the job begins;
    `error` is empty if the command succeeded."""

    command: int
    checkpoint: int | None = None
    error: str = ""
    cause: AnyCause | None = None


class JobEnded(JournalEntry, kw_only=True, tag="job-ended"):
    """`status`: finished (all input ended), drained, stopped, cancelled, failed.
    `checkpoint` is the last snapshot that it rests on, `reason` why it failed.
    """

    job: int
    status: str
    checkpoint: int | None = None
    reason: str = ""
    covers: dict[int, int] | None = None
    """of a stopped or drained job that was seen from outside, by split: the next offset behind the records that it had
    processed; 0 for a split that is left out"""
    undisturbed: bool = False
    """of a failed job that was seen from outside: nothing that it needs was disturbed since its last attempt began"""
    cause: AnyCause | None = None
    """None: only the sentence `reason` says it"""

    @property
    def why(self) -> Why:
        return Why(self.cause, self.reason)


AnyJournalEntry = (
    AttemptStarted
    | AttemptRunning
    | TaskFailed
    | CoordinatorDown
    | CoordinatorUp
    | CheckpointTriggered
    | CheckpointAborted
    | SnapshotDeleted
    | FaultFired
    | CommandIssued
    | CommandReturned
    | JobEnded
)


class Listed(Entry, kw_only=True, omit_defaults=False):
    """One snapshot in the engine's own listing."""

    checkpoint: int
    files: list[str]
    """to which it refers"""
    own_bytes: int
    """of the files to which no other listed snapshot refers"""
    shared_bytes: int


class Residue(Entry, kw_only=True, omit_defaults=False):
    """The listings of the stores once the run has come to rest."""

    open_transactions: list[str] = []
    prepared_transactions: list[str] = []
    files: list[str] = []
    """handles in the snapshot store"""
    retained: list[int] = []
    """checkpoints that the job, or its user, still holds"""
    listing: list[Listed] | msgspec.UnsetType = msgspec.UNSET
    """what the engine answers to a user who asks for its snapshots"""
    sizes: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """in the snapshot store: the bytes of each file; with a listing"""
    copies: list[int] | msgspec.UnsetType = msgspec.UNSET
    """the snapshots that a record in their user's directory calls complete copies; absent if none was asked for"""
    copied: list[str] | msgspec.UnsetType = msgspec.UNSET
    """the files in that directory, each under the handle of the one that was copied"""
    logs: list[str] = []
    """of persistent channels"""
    live_sinks: int = 0  # sink subtasks alive at the end
    left: list[str] | msgspec.UnsetType = msgspec.UNSET
    """of an engine that is seen from outside: the names of what its owner says must not be there"""


class Timed(Entry, kw_only=True):
    """One event of the timeline, kept on request for stories and diagrams.

    `what` is a protocol point's name, or `record-sent`, `record-applied`, `barrier-sent`,
    `barrier-received`, `killed`, `ended`; `peer` the other task or "coordinator".

    Of a pipeline that is run from outside, `task` is a process, and `what` is
    `process-started`, `process-ready`, `process-killed`, `process-paused`, `process-continued`,
    `process-ended`, `work-stored` or `work-restored`.  An `aim-met` has its name in `detail`.
    `records-given` has in `position` how many were given by then, and `output-read`, whose order is
    that of the end of the read, how many rows it saw.
    """

    order: int
    at_us: int
    what: str
    task: str
    attempt: int = 0
    peer: str = ""
    detail: str = ""
    channel: str = ""
    position: int = -1
    """the number of the message in its channel, barriers counted"""
    checkpoint: int | None = None
    origin: int | None = None


WITNESSES: dict[str, tuple[str, ...]] = {
    "tasks": ("runs",),
    "network": ("channels",),
    "snapshots": ("stored", "completed", "logs"),
    "store": ("transactions", "passing", "written"),
    "reader": ("committed", "unreadable", "reads"),
    "journal": ("journal", "commits"),
    "listing": ("residue",),
}
"""The witnesses that a history may name, and the fields in which each reports."""


class Forked(Entry, kw_only=True):
    """A job that was started beside, from a copy of all stores as they were at one retained snapshot.

    `command` is the number of the command that requested it, `at_us` when the stores were copied, and `checkpoint` the
    snapshot; `retained` are all snapshots that were retained then.  `history` is that of the lineage up to the
    snapshot, and of the new job behind it, with a sink of its own.  `from_copy`: the snapshot was a user's copy, and no
    other snapshot was there.
    """

    command: int
    at_us: int
    checkpoint: int
    retained: list[int]
    history: History
    from_copy: bool = False


class History(Entry, kw_only=True, omit_defaults=False):
    """Everything that a run let us see."""

    format: str = FORMAT
    subject: str
    guarantee: str
    """exactly-once, at-least-once or at-most-once: what the engine promised"""
    sink: str
    """transactional, idempotent or plain"""
    witnesses: list[str] | msgspec.UnsetType = msgspec.UNSET
    """names of `WITNESSES`; a history without the field has all of them"""
    identity: str = "key"
    """by what an idempotent sink's rows replace each other: the key ("key"), or the whole row ("row")"""
    runs: list[TaskRun] = []
    channels: list[Channel] = []
    stored: list[Stored] = []
    completed: list[Completed] = []
    transactions: list[Transaction] = []
    passing: list[Transaction] = []
    """transactions of two-phase operators, amid the job"""
    logs: list[PersistentLog] = []
    """of persistent channels, where there are any"""
    written: list[Written] = []
    committed: list[Row] = []
    """what an independent reader sees at the end: in the order they became visible; of an idempotent sink the table"""
    unreadable: list[str] | msgspec.UnsetType = msgspec.UNSET
    """what the reader found at the end in the place of rows and could not read as such, each in words"""
    reads: list[Read] = []
    commits: list[Commit] | msgspec.UnsetType = msgspec.UNSET
    """of an engine that is seen from outside alone"""
    computed: Computed | msgspec.UnsetType = msgspec.UNSET
    """the expected rows of a workload with a query; no witness: it did not see the run"""
    counters: dict[str, list[Counted]] | msgspec.UnsetType = msgspec.UNSET
    """by name: what an engine that is seen from outside counts itself.  Nobody judges it"""
    columns: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """other names, in texts, of the rows' columns key, value, tag and tag2; "" for one that is not there"""
    journal: list[AnyJournalEntry] = []
    residue: Residue = msgspec.field(default_factory=Residue)
    restart_attempts: int = -1
    tolerated_failures: int = -1
    """the restarts of the job before it may fail, and the failed checkpoints in a row that it tolerates; -1: unknown"""
    short_timeout: bool | msgspec.UnsetType = msgspec.UNSET
    """a barrier may wait behind the run's records for longer than the job's timeout of checkpoints"""
    retained_checkpoints: int | msgspec.UnsetType = msgspec.UNSET
    """of the snapshots that are the engine's own, how many it keeps; absent: unknown"""
    snapshots: str = "files"
    """where they are kept: files, or memory: the coordinator's, lost with it"""
    savepoints: str | msgspec.UnsetType = msgspec.UNSET
    """what is not promised of a savepoint that does not end the job: `never-restored` (recovery leaves it out) or
    `without-side-effects` (and it commits nothing); absent if it is a snapshot like any other"""
    healed: int | None = None
    """order at which the last fault had undone itself; None while one lasts"""
    lasting: list[int] = []
    """faults that still acted when the run was cut off, by number"""
    quiet: bool = True
    """the run came to rest by itself within its bound of (virtual) time"""
    cut_short: bool = False
    """the harness ran out of time, though the run still made progress or had reason to wait"""
    one_clock: bool = False
    """one clock gives every `at_us` and the processing time that tasks receive"""
    starved: bool = False
    """the harness or its machine was too slow to judge by time"""
    unapplied: list[str] = []
    """faults, commands and deviations that never applied, in words"""
    foreign_connections: int = 0
    """connections to the ports of the run from outside it; each was closed before its data was read"""
    defect_reached: bool = False
    """the planted wrong code itself ran"""
    timeline: list[Timed] = []
    forks: list[Forked] | msgspec.UnsetType = msgspec.UNSET
    """of an engine whose snapshots were forked"""

    def lacks(self, witnesses: Iterable[str]) -> tuple[str, ...]:
        """Those of the given witnesses that the run did not have."""
        if isinstance(self.witnesses, msgspec.UnsetType):
            return ()
        return tuple(name for name in witnesses if name not in self.witnesses)
