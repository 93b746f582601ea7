"""How one job is run; times in µs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .errors import Refused

FINISHING = ("together", "one-by-one", "commit-at-finish", "discard-at-finish", "drain-after-savepoint")
"""How the last data is committed: `together` is how it should be (FIN-3), the others are what FLIP-147 rejects."""

FAILOVERS = ("full", "region", "local")
"""What the loss of a task restarts: everything, what data channels join it with, or it alone."""


ALIGNMENTS = ("aligned", "unaligned", "timeout", "in-turn")
"""What barriers do in line: wait for their turn, overtake what is in front of them (FLIP-76), overtake it when they
have waited too long, or of each checkpoint the next of these three."""

SPILLING = ("at-once", "continuous", "buffer-timeout")
"""When what a barrier overtook in an input is stored: with the snapshot; each element in its channel's log as it comes;
or there once it has lain unprocessed too long, and the rest when a checkpoint needs it (FLIP-76)."""

SPILL_STORES = ("log", "files")
"""What those logs are: one to append to, flushed in groups and trimmed element by element, or files, each closed by a
flush and deleted as a whole."""

COMMITTING = ("writer", "committer", "global")
"""Who commits what a transactional sink has sealed: itself, a committer behind it, or each committer its part
and then a global committer the whole."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's settings for a job.  `check` refuses what would weaken a promise."""

    guarantee: str = "exactly-once"
    sink: str = "transactional"
    committing: str = "writer"
    """one of COMMITTING"""
    pooled_ids: bool = False
    """a sink's transactions use transactional ids again, an epoch telling them apart; only where the sink itself
    commits, and so knows which are free"""
    alignment: str = "aligned"
    """one of ALIGNMENTS"""
    alignment_timeout_us: int = 2_000
    """how long a barrier waits, in an input queue or for the others, before it overtakes"""
    spilling: str = "at-once"
    """one of SPILLING"""
    spill_after_us: int = 1_000
    """with a buffer time-out: how long"""
    spill_store: str = "log"
    """one of SPILL_STORES"""
    synchronous: bool = False
    memory: bool = False
    """snapshots live in the coordinator's memory, and die with it"""
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
    """between two tries of a commit, of a listing, of a last notification"""
    trims_logs: bool = False
    """sources let their logs discard what no snapshot can ask for any more (ABS-15)"""
    write_batch: int = 4
    """rows a transactional sink gathers before it sends them to the store"""
    checkpoints_after_finish: bool = True
    """checkpoints go on once some task's input has ended; without, there is the final one alone (FIN-7)"""
    finishing: str = "together"
    """one of FINISHING; only `together` keeps what is promised (FIN-9)"""
    failover: str = "full"
    """one of FAILOVERS: what the loss of a task restarts, everything, its region (FLIP-1) or it alone (UNA-4)"""

    @property
    def blocking(self) -> bool:
        """Barriers set channels aside: exactly-once alone (ABS-7)."""
        return self.guarantee == "exactly-once"

    @property
    def rewinds(self) -> bool:
        """Failures go back to a checkpoint; at-most-once takes none and goes on."""
        return self.guarantee != "at-most-once"

    @property
    def by_region(self) -> bool:
        """A part may restart alone: it goes back to a checkpoint, and no task is gone before its time."""
        return self.failover != "full" and self.rewinds and self.finishing == "together"

    @property
    def settles_at_finish(self) -> bool:
        """Sinks commit or drop their last data when their input ends; there is no final checkpoint."""
        return self.finishing in ("commit-at-finish", "discard-at-finish")

    @property
    def drains_late(self) -> bool:
        """A drain takes its savepoint first, and ends the input behind it: what that brings out is in no snapshot."""
        return self.finishing == "drain-after-savepoint"

    @property
    def goes_on(self) -> bool:
        """Checkpoints are triggered after some task's input has ended."""
        return self.checkpoints_after_finish and not self.settles_at_finish

    @property
    def keeps_logs(self) -> bool:
        """Channels in which barriers may overtake something are persistent; all are where tasks recover alone."""
        return self.spilling != "at-once" and (self.alignment != "aligned" or self.recovers_from_logs)

    @property
    def recovers_from_logs(self) -> bool:
        """A task that is lost takes again what the logs of continuous spilling hold (UNA-4)."""
        return self.failover == "local" and self.spilling == "continuous"

    def barrier_timeout_us(self, checkpoint: int) -> int | None:
        """How long the barriers of a checkpoint of the engine's own wait for their turn; None: for ever.

        A savepoint is aligned: it belongs to a user, who may lay the job out anew.
        """
        kind = ALIGNMENTS[checkpoint % 3] if self.alignment == "in-turn" else self.alignment
        return {"unaligned": 0, "timeout": self.alignment_timeout_us}.get(kind)

    def check(self, forgetful: Sequence[str] = ()) -> None:
        """Raise Refused for settings that cannot keep what they promise; `forgetful` names
        the sources that cannot rewind (ABS-16)."""
        if forgetful and self.rewinds:
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
            raise Refused(f"{self.guarantee} sets no channel aside, so barriers need not overtake anything")
        if self.spilling not in SPILLING:
            raise Refused(f"unknown way of spilling {self.spilling!r}")
        if self.spill_store not in SPILL_STORES:
            raise Refused(f"unknown spill store {self.spill_store!r}")
        if self.finishing not in FINISHING:
            raise Refused(f"unknown way of finishing {self.finishing!r}")
        if self.committing not in COMMITTING:
            raise Refused(f"nobody is called {self.committing!r} who could commit")
        if self.committing != "writer" and (self.sink != "transactional" or self.finishing != "together"):
            raise Refused("committers take what a transactional sink seals for a checkpoint, up to the final one")
        if self.pooled_ids and (self.sink != "transactional" or self.committing != "writer"):
            raise Refused("only a transactional sink that commits itself knows which transactional ids are free")
        if self.finishing == "one-by-one" and not self.goes_on:
            raise Refused("tasks that finish one by one each wait for a checkpoint after the one before has finished")
        if not self.rewinds and self.sink != "plain":
            raise Refused("at-most-once takes no checkpoints, so nothing would ever commit: it needs a plain sink")
        if self.retained_checkpoints < 1 or self.concurrent_checkpoints < 1:
            raise Refused("at least one checkpoint must be retained, and one may be under way")
