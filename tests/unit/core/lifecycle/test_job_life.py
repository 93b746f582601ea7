"""A job's life goes from stage to stage as its table says, and in no other way (ABS-6, FIN-4)."""

from __future__ import annotations

from itertools import product

import pytest

from cutproof.reference_impl.core.lifecycle.job_life import MAY_FOLLOW, JobLife, place_of
from cutproof.reference_impl.core.vocabulary.causes import CancelledByUser, HeartbeatMissed
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import Closure
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.core.vocabulary.stages import (
    AwaitingRecord,
    AwaitingRecords,
    Closing,
    Deciding,
    Delayed,
    Deploying,
    Ended,
    Listing,
    NothingCovered,
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
from unit.docs.stage_tables import places

LOST = (TaskId("source-0"),)
STAGES: tuple[Stage, ...] = (
    Listing(),
    Saving(None),
    Deploying(None, LOST),
    Working(),
    Restarting(HeartbeatMissed()),
    *(
        PartialFailover(LOST, HeartbeatMissed(), step)
        for step in (Delayed(), AwaitingRecord(), Renumbered(None), Starting(None, LOST))
    ),
    Terminating(None, JobEnd.FINISH, LOST),
    *(
        Closing(Closure(Status.CANCELLED, CancelledByUser()), AttemptId(2), step)
        for step in (Deciding(), AwaitingRecords(), Settling(NothingCovered(), LOST))
    ),
    Ended(),
)
BY_PLACE = {place_of(stage): stage for stage in STAGES}


def ways() -> dict[type, tuple[type, ...]]:
    """To each place that can be reached, a shortest way from the beginning."""
    found: dict[type, tuple[type, ...]] = {Listing: ()}
    for place in (reached := [Listing]):
        for after in MAY_FOLLOW[place]:
            if after not in found:
                found[after] = (*found[place], after)
                reached.append(after)
    return found


def life_at(place: type) -> JobLife:
    life = JobLife()
    for one in ways()[place]:
        life.enter(BY_PLACE[one])
    return life


def test_a_job_begins_by_reading_what_is_durable() -> None:
    assert JobLife().stage == Listing()


def test_the_table_has_every_stage_and_every_step() -> None:
    assert list(MAY_FOLLOW) == list(BY_PLACE)
    assert set(MAY_FOLLOW) == set(places())


def test_every_place_is_reached_and_only_the_end_is_left_for_nothing() -> None:
    assert set(ways()) == set(MAY_FOLLOW)
    assert [place for place, after in MAY_FOLLOW.items() if not after] == [Ended]


@pytest.mark.parametrize(("before", "after"), list(product(MAY_FOLLOW, repeat=2)))
def test_what_may_follow_is_entered_and_nothing_else(before: type, after: type) -> None:
    life, stage = life_at(before), BY_PLACE[after]
    if after in MAY_FOLLOW[before]:
        life.enter(stage)
        assert life.stage is stage
        return
    with pytest.raises(ProtocolViolated, match=f"from {before.__name__} to {after.__name__}, which may not follow"):
        life.enter(stage)
    assert life.stage == BY_PLACE[before]


def test_no_step_of_a_life_is_left_out() -> None:
    """Some that are wrong, written out, so that the table is not only compared with itself."""
    for before, after in ((Listing, Deploying), (Saving, Working), (Restarting, Deploying), (Deciding, Ended)):
        assert after not in MAY_FOLLOW[before]


def test_no_job_ends_while_a_part_of_it_restarts() -> None:
    """Its tasks are told to finish when all of them work, or not at all."""
    for step in (Delayed, AwaitingRecord, Renumbered, Starting):
        assert not {Terminating, Ended} & {*MAY_FOLLOW[step]}


def test_until_its_tasks_finish_or_it_is_closed_a_job_can_be_cancelled() -> None:
    """All but Listing, where commands wait, and where the job can fail."""
    before_the_end = [place for place in MAY_FOLLOW if place not in (Deciding, AwaitingRecords, Settling, Ended)]
    assert [place for place in before_the_end if Deciding not in MAY_FOLLOW[place]] == []
