"""How one job is run; times in µs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..vocabulary.errors import Refused
from ..vocabulary.formats import CANONICAL, FORMATS
from ..vocabulary.messages import AT_ONCE

FINISHING = ("together", "one-by-one", "commit-at-finish", "discard-at-finish", "drain-after-savepoint")
"""How the last data is committed: `together` is right (FIN-3), the others are ways that FLIP-147 rejects."""

SAVEPOINTS = ("snapshots", "never-restored", "without-side-effects")
"""What a savepoint is for the job that takes it.  `snapshots`: as a checkpoint, it commits and is restored (SNAP-1).
The others are ways that FLIP-47 rejects, for savepoints that do not end the job (SNAP-6).  `never-restored`: they
commit, and recovery leaves them out.  `without-side-effects`: they do neither."""

FAILOVERS = ("full", "region", "local")
"""What the loss of a task restarts: all tasks, its region, or only the task itself."""


ALIGNMENTS = ("aligned", "unaligned", "timeout", "in-turn")
"""What a barrier does behind other elements: wait for its turn, overtake them at once (FLIP-76), or overtake them when
the alignment timeout is over.  `in-turn`: each checkpoint uses the next of these three."""

SPILLING = ("at-once", "continuous", "buffer-timeout")
"""When the input elements that a barrier overtakes are stored (FLIP-76).  `at-once`: with the snapshot.  `continuous`:
each in its channel's log, as it comes.  `buffer-timeout`: in the log when it has lain unprocessed too long, else when a
checkpoint needs it."""

SPILL_STORES = ("log", "files")
"""What a channel's log is.  `log`: it is appended to, flushed in groups, and trimmed element by element.  `files`: each
file is closed by a flush and deleted as a whole."""

COMMITTING = ("writer", "committer", "global")
"""Who commits the transactions that a transactional sink has sealed: the sink (`writer`), a committer behind each
writer, or these and then one global committer, which publishes them together."""

BACKENDS = ("heap", "lsm")
"""Where operators keep their working state by key: in a dictionary, or in a log-structured merge tree (ABS-10)."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's settings for a job.  `check` refuses what would weaken a promise unsaid; `finishing` and
    `savepoints` have values that are known to weaken one."""

    guarantee: str = "exactly-once"
    sink: str = "transactional"
    committing: str = "writer"
    """one of COMMITTING"""
    pooled_ids: bool = False
    """a sink reuses transactional ids, and an epoch distinguishes the transactions; possible only where the sink itself
    commits, since only then it knows which ids are free"""
    alignment: str = "aligned"
    """one of ALIGNMENTS"""
    alignment_timeout_us: int = 2_000
    """how long a barrier waits, in an input queue or for the other channels, before it overtakes"""
    spilling: str = "at-once"
    """one of SPILLING"""
    spill_after_us: int = 1_000
    """with `buffer-timeout`: how long an element may lie unprocessed"""
    spill_store: str = "log"
    """one of SPILL_STORES"""
    synchronous: bool = False
    snapshot_format: str = CANONICAL
    """one of FORMATS, of the job's checkpoints, and of savepoints for which the user names none"""
    full_every: int = 4
    """how many incremental checkpoints form a chain: the first of them writes all its files"""
    snapshots_in_memory: bool = False
    """of the coordinator; they die with it"""
    checkpoint_interval_us: int = 10_000
    minimum_pause_us: int = 0
    checkpoint_timeout_us: int = 40_000
    concurrent_checkpoints: int = 1
    tolerated_failures: int = 8
    retained_checkpoints: int = 1
    restart_attempts: int = 8
    restart_delay_us: int = 1_000
    deploy_timeout_us: int = 100_000
    retry_us: int = 3_000
    """between two tries of a commit, of listing the snapshots, of a last notification; from the first to the second try
    of a delete, with twice as long a pause before each further one"""
    trims_logs: bool = False
    """sources let their logs discard the records that no snapshot can need any more (ABS-15)"""
    write_batch: int = 4
    """rows a transactional sink gathers before it sends them to the store"""
    checkpoints_after_finish: bool = True
    """checkpoints go on after some task's input has ended; if not, only the final one follows (FIN-7)"""
    finishing: str = "together"
    """one of FINISHING; only `together` keeps what is promised (FIN-9)"""
    savepoints: str = "snapshots"
    """one of SAVEPOINTS; with `never-restored` a failure repeats what a savepoint has committed"""
    state_backend: str = "heap"
    """one of BACKENDS"""
    memtable_entries: int = 8
    """with `lsm`: how many keys the memtable takes before it is flushed"""
    compaction_files: int = 4
    """with `lsm`: how many sorted files make a compaction due, which merges at least as many"""
    failover: str = "full"
    """one of FAILOVERS: the loss of a task restarts all tasks, its region (FLIP-1), or the task alone (UNA-4)"""

    @property
    def blocking(self) -> bool:
        """Barriers block channels: with exactly-once alone (ABS-7)."""
        return self.guarantee == "exactly-once"

    @property
    def takes_checkpoints(self) -> bool:
        """With at-most-once the job takes none, and after a failure it does not go back (ABS-7)."""
        return self.guarantee != "at-most-once"

    @property
    def by_region(self) -> bool:
        """Partial failover is possible: the job takes checkpoints, and no task finishes before the last one."""
        return self.failover != "full" and self.takes_checkpoints and self.finishing == "together"

    @property
    def has_final_checkpoint(self) -> bool:
        """When all input has ended, one more checkpoint commits the last data (FIN-3).

        Without it, transactional sinks commit or discard their last data when their input ends (FIN-9).
        """
        return self.takes_checkpoints and self.finishing not in ("commit-at-finish", "discard-at-finish")

    @property
    def drains_after_savepoint(self) -> bool:
        """A drain takes its savepoint before it ends the input: rows that the end yields are in no snapshot."""
        return self.finishing == "drain-after-savepoint"

    @property
    def separate_savepoints(self) -> bool:
        """Savepoints have a timeline of their own, apart from that of checkpoints, unless they end the job."""
        return self.savepoints == "without-side-effects"

    @property
    def triggers_after_finish(self) -> bool:
        """Checkpoints are triggered after some task's input has ended (FIN-1), and not only the final one."""
        return self.checkpoints_after_finish and self.has_final_checkpoint

    @property
    def keeps_logs(self) -> bool:
        """The channels in which barriers may overtake are persistent; with local recovery all channels are."""
        return self.spilling != "at-once" and (self.alignment != "aligned" or self.recovers_from_logs)

    @property
    def recovers_from_logs(self) -> bool:
        """A lost task takes its input again from the logs of continuous spilling (UNA-4)."""
        return self.failover == "local" and self.spilling == "continuous"

    def barrier_timeout_us(self, checkpoint: int) -> int | None:
        """The alignment timeout of the barriers of a checkpoint; None: they never overtake.

        Not asked for savepoints: they are always aligned, since the user may resume from them at another parallelism.
        """
        kind = ALIGNMENTS[checkpoint % 3] if self.alignment == "in-turn" else self.alignment
        return {"unaligned": AT_ONCE, "timeout": self.alignment_timeout_us}.get(kind)

    def check(self, forgetful: Sequence[str] = ()) -> None:
        """Raise Refused for settings that cannot keep what they promise; `forgetful` names
        the sources that cannot rewind (ABS-16)."""
        if forgetful and self.takes_checkpoints:
            raise Refused(
                f"{', '.join(forgetful)} cannot rewind, so {self.guarantee} cannot be kept: "
                "use a source that can, or lower the guarantee to at-most-once"
            )
        if self.guarantee not in ("exactly-once", "at-least-once", "at-most-once"):
            raise Refused(f"unknown guarantee {self.guarantee!r}")
        if self.sink not in ("transactional", "idempotent", "plain"):
            raise Refused(f"unknown sink {self.sink!r}")
        if self.failover not in FAILOVERS:
            raise Refused(f"unknown failover {self.failover!r}")
        if self.alignment not in ALIGNMENTS:
            raise Refused(f"unknown alignment {self.alignment!r}")
        if self.alignment != "aligned" and not self.blocking:
            raise Refused(f"{self.guarantee} blocks no channel, so barriers need not overtake anything")
        if self.spilling not in SPILLING:
            raise Refused(f"unknown way of spilling {self.spilling!r}")
        if self.spill_store not in SPILL_STORES:
            raise Refused(f"unknown spill store {self.spill_store!r}")
        if self.finishing not in FINISHING:
            raise Refused(f"unknown way of finishing {self.finishing!r}")
        if self.savepoints not in SAVEPOINTS:
            raise Refused(f"unknown kind of savepoints {self.savepoints!r}")
        if self.savepoints != "snapshots" and self.failover != "full":
            raise Refused("tasks that recover in part go on from the newest snapshot, savepoint or not")
        if self.committing not in COMMITTING:
            raise Refused(f"unknown way of committing {self.committing!r}")
        if self.committing != "writer" and (self.sink != "transactional" or self.finishing != "together"):
            raise Refused("committers take what a transactional sink seals for a checkpoint, up to the final one")
        if self.pooled_ids and (self.sink != "transactional" or self.committing != "writer"):
            raise Refused("only a transactional sink that commits itself knows which transactional ids are free")
        if self.finishing == "one-by-one" and not self.checkpoints_after_finish:
            raise Refused("tasks that finish one by one each wait for a checkpoint after the one before has finished")
        if not self.takes_checkpoints and self.sink != "plain":
            raise Refused("at-most-once takes no checkpoints, so nothing would ever commit: it needs a plain sink")
        if self.state_backend not in BACKENDS:
            raise Refused(f"unknown state backend {self.state_backend!r}")
        if self.memtable_entries < 1 or self.compaction_files < 2:
            raise Refused("a memtable takes at least one key, and a compaction merges at least two files")
        if self.snapshot_format not in FORMATS:
            raise Refused(f"unknown snapshot format {self.snapshot_format!r}")
        if self.snapshot_format != CANONICAL and self.snapshots_in_memory:
            raise Refused(f"snapshots in the coordinator's memory have no files for the format {self.snapshot_format}")
        if self.full_every < 1:
            raise Refused("a chain of checkpoints begins with a full one, so it has at least one")
        if self.retained_checkpoints < 1 or self.concurrent_checkpoints < 1:
            raise Refused("at least one checkpoint must be retained, and at least one allowed in progress")
