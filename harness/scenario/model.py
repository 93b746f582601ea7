"""A scenario: one serialisable value that a run is a function of."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec

from ...faults.plan import AnyFault, AnyTrigger
from ...properties.model.upgrade import Upgrade
from ...properties.model.workload import Topology, Workload

FORMAT = "cutproof-scenario/1"


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the frozen, keyword-only values of a scenario file."""


class Engine(Value, kw_only=True, omit_defaults=True):
    """How the engine is set up; times in µs of its (virtual) clock."""

    guarantee: str = "exactly-once"
    """exactly-once, at-least-once or at-most-once"""
    sink: str = "transactional"
    """transactional, idempotent or plain"""
    committing: str = "writer"
    """who commits what a transactional sink has sealed: writer (the sink itself), committer (one behind each
    subtask) or global (committers, and behind them one that makes all transactions of a checkpoint visible in one
    step)"""
    pooled_ids: bool = False
    """a sink that commits by itself uses transactional ids again; an epoch distinguishes the transactions of one id"""
    alignment: str = "aligned"
    """aligned, unaligned (barriers overtake the elements in front of them, and the snapshots hold these), timeout
    (barriers overtake when they have waited too long) or in-turn (each checkpoint takes the next of these three)"""
    alignment_timeout_us: int = 2_000
    """how long a barrier waits before it overtakes"""
    spilling: str = "at-once"
    """when the elements that barriers overtook in an input are stored: at-once (with the snapshot), continuous (each
    element in the channel's log as it comes) or buffer-timeout (in the log once they have waited unprocessed for too
    long, or a checkpoint needs them)"""
    spill_after_us: int = 1_000
    """how long an element waits before it is spilled"""
    spill_store: str = "log"
    """log (appended to, flushed in groups, trimmed by element) or files (closed by a flush, deleted as a whole)"""
    spill_flush_us: int = 200
    """how long a flush of the store takes"""
    state_backend: str = "heap"
    """where operators keep their working state by key: heap (a dictionary), or lsm (a memtable and sorted files, which
    are merged; on processes RocksDB)"""
    memtable_entries: int = 8
    """how many keys a memtable takes before it becomes a sorted file"""
    compaction_files: int = 4
    """how many sorted files make a compaction due"""
    compaction_us: int = 400
    """how long a compaction takes"""
    snapshot_mode: str = "asynchronous"
    """asynchronous, or synchronous: the task does nothing else while its state is written"""
    snapshot_store: str = "files"
    """files, or memory: the coordinator's own, which is lost with it"""
    snapshot_format: str = "canonical"
    """of checkpoints, and of savepoints that name none: canonical (one file for each task, with all its state), native
    (the files of the working state apart) or incremental (as native, but what an earlier complete checkpoint has stored
    is referred to and not written again)"""
    full_every: int = 4
    """of incremental checkpoints, each how-manieth writes all its files"""
    checkpoint_interval_us: int = 10_000
    minimum_pause_us: int = 0
    checkpoint_timeout_us: int = 40_000
    concurrent_checkpoints: int = 1
    tolerated_failures: int = 8
    """checkpoint failures in a row before the job fails"""
    retained_checkpoints: int = 1
    restart_attempts: int = 8
    restart_delay_us: int = 1_000
    channel_capacity: int = 16
    """how many elements a channel holds before its sender waits"""
    trims_logs: bool = False
    """sources let their logs discard the records that no snapshot needs any more"""
    nodes: int = 2
    read_interval_us: int = 200
    """the time from one record that a source reads to the next"""
    apply_cost_us: int = 20
    channel_latency_us: int = 100
    local_channels: bool = False
    """channels between tasks of one node are local: an element arrives at once (on processes no channel is local)"""
    control_latency_us: int = 200
    snapshot_write_us: int = 800
    snapshot_byte_ns: int = 0
    """in ns: how much longer a snapshot's write takes for each of its bytes"""
    transaction_us: int = 150
    checkpoints_after_finish: bool = True
    """checkpoints go on once some input has ended; without, only the final one is taken"""
    finishing: str = "together"
    """together, or one of the ways that the documents reject: one-by-one, commit-at-finish, discard-at-finish,
    drain-after-savepoint"""
    savepoints: str = "snapshots"
    """snapshots (a savepoint commits, and recovery restores it if it is the newest), or one of the ways that FLIP-47
    rejects, for savepoints which do not end the job: never-restored (they commit, and recovery leaves them out) or
    without-side-effects (they do neither)"""
    failover: str = "full"
    """what the loss of a task restarts: full (everything), region (the tasks that data channels join with it), or
    local (only the task itself)"""
    two_phase: tuple[str, ...] = ()
    """nodes (maps that change nothing) that are two-phase operators: they commit the rows which they pass on"""


class Command(Value, kw_only=True, tag_field="command"):
    """Base of what a user requests of a job while it runs."""

    trigger: AnyTrigger


class Savepoint(Command, kw_only=True, tag="savepoint"):
    """Take a snapshot that the user owns."""

    name: str = ""
    """by which a resume or a fork can name the snapshot"""
    format: str | msgspec.UnsetType = msgspec.UNSET
    """as `snapshot_format`; left out for the job's own"""


class StopWithSavepoint(Command, kw_only=True, tag="stop-with-savepoint"):
    """Take a savepoint, then stop; with `drain`, end all input first."""

    drain: bool = False
    name: str = ""
    """as of a savepoint"""
    format: str | msgspec.UnsetType = msgspec.UNSET
    """as `snapshot_format`; left out for the job's own"""


class Cancel(Command, kw_only=True, tag="cancel"):
    """Stop at once."""


class DeleteSnapshot(Command, kw_only=True, tag="delete-snapshot"):
    """Delete a retained snapshot; refused if the job would restore it after a failure."""

    snapshot: str = "oldest"
    """the newest, the oldest, or a savepoint by its name"""


class CopySnapshot(Command, kw_only=True, tag="copy-snapshot"):
    """Copy a retained snapshot into a directory of the user's own, with all files that it needs."""

    snapshot: str = "newest"
    """the newest, the oldest, or a savepoint by its name"""


class MoveSnapshot(Command, kw_only=True, tag="move-snapshot"):
    """Copy a retained snapshot as above, and delete it; the one that the job would restore, once it has a newer one."""

    snapshot: str = "oldest"
    """the newest, the oldest, or a savepoint by its name"""


class Resume(Command, kw_only=True, tag="resume"):
    """Start the job again once it has ended, from one of its retained snapshots, whether a savepoint or not.

    A trigger that is a time counts from the job's end.
    """

    snapshot: str = "newest"
    """the newest, the oldest, or a savepoint by its name"""
    parallelism: dict[str, int] = {}
    """by operator: its new number of subtasks; the other operators keep theirs"""
    claim_mode: str = "by-kind"
    """whose the snapshot is from now on: claim (the job's, which deletes it once newer ones subsume it, and may build
    on its files), no-claim (not the job's, which never deletes it and refers to none of its files), or by-kind (a
    checkpoint is the job's and a savepoint its user's, unless an earlier resume said otherwise)"""
    inserted: dict[str, str] = {}
    """operators that this job has and the one before did not have: maps that change nothing.

    By their names, each with the node (or `sink`) in front of which it is, on the first of that node's inputs.  The
    snapshot holds no state of them, so the job has to be refused; the next one is resumed without them.
    """
    upgrade: Upgrade | msgspec.UnsetType = msgspec.UNSET
    """what this job and the following have other than the one before, and how the states of the snapshot find it; left
    out if nothing.  If the mapping lacks a state, or the snapshot is no savepoint, the job has to be refused"""


class Fork(Command, kw_only=True, tag="fork"):
    """Start another job beside this one, from a copy of all stores as they were at one retained snapshot.

    The job has its own sink, and nothing disturbs it.  Its trigger may be that the run is at rest.
    """

    snapshot: str = "each"
    """each: one job from every retained snapshot; or one of them, as in a resume"""
    parallelism: dict[str, int] = {}
    """by operator: the number of subtasks in the new job; the other operators have as many as in the job that took the
    snapshot"""
    by_reference: bool = False
    """the new job has no copies of the snapshots' files: it refers to the files of the other job, and its increments
    may build on them.  It owns its references, as a job that has claimed its snapshot: what one of the two jobs needs
    no more, the other keeps"""


OfASnapshot = DeleteSnapshot | CopySnapshot | MoveSnapshot
"""the commands about a snapshot of a running job"""
AnyCommand = Savepoint | StopWithSavepoint | Cancel | DeleteSnapshot | CopySnapshot | MoveSnapshot | Resume | Fork

COMMANDS: dict[str, type[Command]] = {str(kind.__struct_config__.tag): kind for kind in AnyCommand.__args__}
"""Every command kind by its name."""


class Perturbation(Value, kw_only=True):
    """One departure from the default schedule: what is late, and by how much.

    `what` addresses an event by a stable name: `message CHANNEL` (the n-th message through a data channel), `control
    KIND TASK` (the n-th control message of a kind from or to a task), `write TASK` (the n-th snapshot write; `write
    coordinator`: of a checkpoint's record), `read TASK` (the n-th snapshot read), `step TASK` (the n-th step of a
    task), `transaction TASK` (the n-th transaction request of a sink), `compaction TASK` (the end of the n-th
    compaction of a task's state).  Occurrences count from 1, over all attempts.
    """

    what: str
    occurrence: int
    by_us: int


class Scenario(Value, kw_only=True):
    """What is run: the workload, its layout, the engine, and everything that goes wrong."""

    format: str = FORMAT
    name: str = ""
    workload: Workload
    topology: Topology
    engine: Engine = Engine()
    faults: tuple[AnyFault, ...] = ()
    commands: tuple[AnyCommand, ...] = ()
    deviations: tuple[Perturbation, ...] = ()
    pipeline: str | msgspec.UnsetType = msgspec.UNSET
    """the name of the pipeline that is run from outside; left out if an engine runs the scenario"""
    defect: str = ""
    """the planted defect with which it was found, if any"""
    seed: str = ""
    """the seed and number from which it was drawn, if it was"""
    expects: str = ""
    """`holds`, or the name of the invariant that its defect violates: set in corpus files"""


def format_of(command: Command) -> str:
    """The format of the snapshot that a command asks for; "" for the job's own, and if it asks for none."""
    named = command.format if isinstance(command, Savepoint | StopWithSavepoint) else msgspec.UNSET
    return named if isinstance(named, str) else ""


def kind_of(command: Command) -> str:
    """The command's kind by name, as in a scenario file."""
    return str(type(command).__struct_config__.tag)
