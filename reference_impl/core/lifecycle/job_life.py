"""The stage of a job's life (`vocabulary.stages`), which is one, although several machines lead the job through it.

`MAY_FOLLOW` holds all transitions.  A partial failover and the closing of a job are stages of several steps: there the
place in the table is the step.  A transition that is not in the table is a bug, and raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..vocabulary.errors import ProtocolViolated
from ..vocabulary.stages import (
    AwaitingRecord,
    AwaitingRecords,
    Closing,
    Deciding,
    Delayed,
    Deploying,
    Ended,
    Listing,
    PartialFailover,
    Renumbered,
    Restarting,
    Saving,
    Settling,
    Stage,
    Starting,
    Terminating,
    Working,
)

MAY_FOLLOW: Mapping[type, tuple[type, ...]] = {
    # all tasks start
    Listing: (Listing, Saving, Deciding),
    Saving: (Deploying, Restarting, Deciding),
    Deploying: (Deploying, Working, Terminating, Restarting, Deciding),
    Working: (Restarting, Delayed, Terminating, Deciding),
    Restarting: (Restarting, Saving, Deciding),
    # a region starts again
    Delayed: (Delayed, AwaitingRecord, Restarting, Deciding),
    AwaitingRecord: (AwaitingRecord, Renumbered, Restarting, Deciding),
    Renumbered: (Starting, Delayed, Restarting, Deciding),
    Starting: (Starting, Working, Delayed, Restarting, Deciding),
    # the job ends: its tasks finish, or it is closed
    Terminating: (Terminating, Ended, Delayed, Restarting, Deciding),
    Deciding: (Deciding, AwaitingRecords, Settling),
    AwaitingRecords: (AwaitingRecords, Settling),
    Settling: (Settling, Ended),
    Ended: (),
}
"""What may follow each place; what may follow itself goes on there.  Two transitions are decisions that the correct
engine does not take (`decisions.failover_strategy`): a loss restarts nothing in Saving, and never a region alone in
Terminating."""


def place_of(stage: Stage) -> type:
    """Where the job is: at the step of its stage, if that has steps."""
    return type(stage.step if isinstance(stage, (PartialFailover, Closing)) else stage)


class JobLife:
    """The life of one job.  The machine that begins a stage enters it, and the stage before is over."""

    __slots__ = ("_stage",)

    def __init__(self) -> None:
        self._stage: Stage = Listing()

    @property
    def stage(self) -> Stage:
        return self._stage

    @property
    def all_tasks_run(self) -> bool:
        return type(self._stage) is Working

    @property
    def runs_at_least_in_part(self) -> bool:
        """All tasks run, or all but those of a partial failover."""
        return type(self._stage) in (Working, PartialFailover)

    def enter(self, stage: Stage) -> None:
        """Begin a stage, or go on in the present one; raises ProtocolViolated if it may not follow."""
        before, after = place_of(self._stage), place_of(stage)
        if after not in MAY_FOLLOW[before]:
            raise ProtocolViolated(f"a job goes from {before.__name__} to {after.__name__}, which may not follow")
        self._stage = stage
