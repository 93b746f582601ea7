"""How many checkpoints may fail in a row before the attempt fails (ABS-3)."""

from __future__ import annotations

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.checkpoint_failure_manager import CheckpointFailureManager
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.protocol.checkpoints import UnderWay
from cutproof.reference_impl.core.vocabulary.causes import TimedOut
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from unit.core.coordinator_rig import GRAPH, complete_snapshot


class Failures:
    """Of a job that has completed these checkpoints."""

    def __init__(self, *complete: int, tolerated: int) -> None:
        self.completed = CompletedCheckpointStore(GRAPH, Config(), Parts(), 1, UnderWay(), named=None)
        self.completed.take_over([complete_snapshot(number) for number in complete])
        self.manager = CheckpointFailureManager(Parts().tolerance, tolerated, self.completed)

    def failed(self, *checkpoints: int) -> list[bool]:
        """Of each, whether more have failed with it than the job tolerates."""
        return [self.manager.failed(CheckpointId(one), TimedOut()) for one in checkpoints]


def test_as_many_in_a_row_as_are_tolerated_may_fail_and_the_next_is_too_many() -> None:
    assert Failures(tolerated=2).failed(1, 2, 3) == [False, False, True]
    assert Failures(tolerated=0).failed(1) == [True]


def test_a_complete_checkpoint_begins_the_row_anew() -> None:
    failures = Failures(tolerated=1)
    failures.failed(1)
    failures.manager.completed()
    assert failures.failed(3, 4) == [False, True]


def test_a_new_attempt_begins_the_row_anew() -> None:
    failures = Failures(tolerated=1)
    failures.failed(1)
    failures.manager.attempt_over()
    assert failures.failed(2, 3) == [False, True]


def test_one_that_fails_behind_a_newer_complete_one_does_not_count() -> None:
    failures = Failures(5, tolerated=0)
    assert failures.failed(4, 5, 6) == [False, False, True]


def test_it_is_the_newest_complete_one_at_the_time_that_counts() -> None:
    failures = Failures(tolerated=1)
    assert failures.failed(1) == [False]
    failures.completed.add(complete_snapshot(5))
    assert failures.failed(4, 3, 6) == [False, False, True]
