"""Sinks: two-phase commit, recovery and the end, stepped by hand; direct sinks; repeated messages."""

from __future__ import annotations

import pytest
from machines import (
    ATTEMPT,
    END,
    RETRY_US,
    abort,
    ack,
    answered,
    barrier,
    complete,
    deploy,
    direct,
    finished,
    only,
    reason,
    requests,
    row,
    running,
    take,
    terminate,
    told,
    transactional,
    up,
)

from cutproof.reference_impl.core.effects import Effect, Persist, Restored, SetTimer, Taken
from cutproof.reference_impl.core.events import TimerFired
from cutproof.reference_impl.core.ids import CheckpointId, TaskId
from cutproof.reference_impl.core.sink import SinkTask, TransactionalSink
from cutproof.reference_impl.core.state import Sealed, TaskState
from cutproof.reference_impl.core.transactions import (
    AbortTransaction,
    AnyRequest,
    Append,
    Begin,
    Commit,
    Denied,
    Done,
    Fence,
    Flush,
    NoAnswer,
    PreCommit,
    Upsert,
    Write,
)

SINK = TaskId("sink-0")
BY = {"writer": SINK, "attempt": ATTEMPT}
FIRST, SECOND, THIRD = (f"job-1/sink-0/3-{serial}" for serial in (1, 2, 3))
SILENCE = NoAnswer(reason="silence")
OLD = "job-1/sink-0/2-9"


def asked(effects: list[Effect]) -> list[AnyRequest]:
    return [request for _, request in requests(effects)]


def number(effects: list[Effect], kind: type) -> int:
    """The number of the one request of a kind."""
    (found,) = [number for number, request in requests(effects) if isinstance(request, kind)]
    return found


def write(name: str, *values: int) -> Write:
    return Write(**BY, name=name, rows=tuple((1, value, 0, 0) for value in values))


def pre_commit(name: str, checkpoint: int) -> PreCommit:
    return PreCommit(**BY, name=name, checkpoint=CheckpointId(checkpoint))


def commit(name: str) -> Commit:
    return Commit(**BY, name=name)


def drop(name: str) -> AbortTransaction:
    return AbortTransaction(**BY, name=name)


def give(sink: SinkTask, *values: int) -> list[Effect]:
    return [effect for value in values for effect in take(sink, row(1, value))]


def sealed_for(sink: TransactionalSink, checkpoint: int, *values: int) -> None:
    """Rows, a barrier, and the store's word that they are sealed."""
    give(sink, *values)
    effects = take(sink, barrier(checkpoint))
    answered(sink, number(effects, PreCommit))


# -- rows and pre-commit -----------------------------------------------------------------------------------------


def test_a_sink_shuts_out_older_attempts_before_it_opens() -> None:
    sink = transactional()
    fence = told(sink, deploy())
    assert asked(fence) == [Fence(**BY)]
    assert not sink.running
    effects = answered(sink, 1)
    assert asked(effects) == [Begin(**BY, name=FIRST)]
    assert effects[1:] == running("sink-0")


def test_rows_go_out_in_batches() -> None:
    sink = up(transactional(write_batch=3))
    assert give(sink, 1, 2) == []
    assert asked(give(sink, 3)) == [write(FIRST, 1, 2, 3)]
    assert give(sink, 4) == []


def test_a_row_keeps_all_its_columns() -> None:
    sink = up(transactional(write_batch=1))
    (wrote,) = asked(take(sink, row(None, 2, tag=3, tag2=4)))
    assert wrote == Write(**BY, name=FIRST, rows=((None, 2, 3, 4),))


def test_a_barrier_flushes_seals_and_opens_the_next() -> None:
    sink = up(transactional())
    give(sink, 1)
    effects = take(sink, barrier(5))
    assert effects[0] == Taken(5)
    assert asked(effects) == [write(FIRST, 1), pre_commit(FIRST, 5), Begin(**BY, name=SECOND)]
    assert len(effects) == 4, "nothing is written or acknowledged yet"


def test_what_was_flushed_before_counts_for_the_seal() -> None:
    sink = up(transactional(write_batch=1))
    give(sink, 1)
    assert asked(take(sink, barrier(5))) == [pre_commit(FIRST, 5), Begin(**BY, name=SECOND)]


def test_the_snapshot_is_written_only_when_the_seal_is_answered_and_acknowledged_only_when_written() -> None:
    sink = up(transactional())
    give(sink, 1)
    effects = take(sink, barrier(5))
    give(sink, 2)
    (persist,) = answered(sink, number(effects, PreCommit))
    assert isinstance(persist, Persist)
    assert persist.checkpoint == 5
    assert persist.snapshot.materialise() == TaskState(transactions=[Sealed(FIRST, 5)], serial=2)
    assert persist.then == (ack("sink-0", 5),)
    assert answered(sink, number(effects, PreCommit)) == [], "the answer repeated"


def test_an_empty_transaction_is_not_sealed() -> None:
    sink = up(transactional())
    taken, persist = take(sink, barrier(5))
    assert taken == Taken(5)
    assert persist.snapshot.materialise() == TaskState(serial=1)
    assert asked(give(sink, 1, 2, 3, 4)) == [write(FIRST, 1, 2, 3, 4)], "it goes on"


def test_an_empty_epoch_waits_for_the_seal_before_it() -> None:
    """Its snapshot names a transaction that the store has not answered for yet."""
    sink = up(transactional())
    give(sink, 1)
    seal = number(take(sink, barrier(5)), PreCommit)
    effects = take(sink, barrier(6))
    assert asked(effects) == [Flush(**BY)]
    assert len(effects) == 2
    assert only(Persist, answered(sink, seal)).checkpoint == 5
    persist = only(Persist, answered(sink, number(effects, Flush)))
    assert (persist.checkpoint, persist.snapshot.materialise().transactions) == (6, [Sealed(FIRST, 5)])


def test_two_seals_under_way_each_hold_back_their_own_snapshot() -> None:
    sink = up(transactional())
    give(sink, 1)
    first = number(take(sink, barrier(5)), PreCommit)
    give(sink, 2)
    second = number(take(sink, barrier(6)), PreCommit)
    assert only(Persist, answered(sink, first)).checkpoint == 5
    state = only(Persist, answered(sink, second)).snapshot.materialise()
    assert state.transactions == [Sealed(FIRST, 5), Sealed(SECOND, 6)]


def test_an_unanswered_seal_is_asked_again() -> None:
    sink = up(transactional())
    give(sink, 1)
    seal = number(take(sink, barrier(5)), PreCommit)
    assert answered(sink, seal, SILENCE) == [SetTimer(f"retry {seal}", RETRY_US)]
    assert requests(sink.step(TimerFired(f"retry {seal}"))) == [(seal, pre_commit(FIRST, 5))]
    assert only(Persist, answered(sink, seal)).checkpoint == 5
    assert sink.step(TimerFired(f"retry {seal}")) == [], "answered by now"


def test_a_denied_seal_fails_the_task() -> None:
    sink = up(transactional())
    give(sink, 1)
    seal = number(take(sink, barrier(5)), PreCommit)
    assert reason(answered(sink, seal, Denied(reason="gone"))) == "sink-0: the external store refused: gone"


def test_a_refused_write_fails_the_task_and_its_success_is_silent() -> None:
    sink = up(transactional(write_batch=1))
    wrote = number(give(sink, 1), Write)
    assert answered(sink, wrote) == []
    assert answered(sink, wrote, SILENCE) == []
    assert reason(answered(sink, wrote, Denied(reason="fenced"))) == "sink-0: the external store refused: fenced"


# -- commit ------------------------------------------------------------------------------------------------------


def test_a_complete_checkpoint_commits_everything_up_to_it() -> None:
    sink = up(transactional())
    for checkpoint in (5, 6, 7):
        sealed_for(sink, checkpoint, checkpoint)
    assert asked(told(sink, complete(6))) == [commit(FIRST), commit(SECOND)]
    assert [sealed.name for sealed in sink.sealed] == [FIRST, SECOND, THIRD], "until the store has answered"


def test_a_commit_is_asked_for_once_at_a_time() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    asking = number(told(sink, complete(5)), Commit)
    assert told(sink, complete(5)) == []
    answered(sink, asking)
    assert sink.sealed == []
    assert told(sink, complete(5)) == []


def test_an_unanswered_commit_is_asked_again_until_the_answer_is_definite() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    asking = number(told(sink, complete(5)), Commit)
    for _ in range(3):
        assert answered(sink, asking, SILENCE) == [SetTimer(f"retry {asking}", RETRY_US)]
        assert requests(sink.step(TimerFired(f"retry {asking}"))) == [(asking, commit(FIRST))]
    assert sink.sealed
    answered(sink, asking)
    assert sink.sealed == []


def test_a_denied_commit_fails_loudly() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    said = reason(answered(sink, number(told(sink, complete(5)), Commit), Denied(reason="it has been aborted")))
    assert said == "sink-0: the external store refused: it has been aborted"


def test_a_snapshot_remembers_what_is_being_committed() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    told(sink, complete(5))
    state = only(Persist, take(sink, barrier(6))).snapshot.materialise()
    assert state.transactions == [Sealed(FIRST, 5)]


def test_a_checkpoint_that_was_aborted_leaves_its_transaction_sealed_for_the_next() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    assert told(sink, abort(5)) == []
    sealed_for(sink, 6, 2)
    assert asked(told(sink, complete(6))) == [commit(FIRST), commit(SECOND)]


# -- recovery ----------------------------------------------------------------------------------------------------


def restored(
    *sealed: Sealed, unfinished: tuple[tuple[str, int | None], ...] = ()
) -> tuple[TransactionalSink, list[Effect]]:
    """A sink with these in its snapshot, once the fence has told it what is unfinished."""
    sink = transactional()
    state = TaskState(transactions=list(sealed), serial=4)
    loaded, fence = told(sink, deploy(checkpoint=5, state=state))
    assert loaded == Restored(5, state)
    assert asked([fence]) == [Fence(**BY)]
    return sink, answered(sink, 1, Done(unfinished=unfinished))


def test_recovery_commits_what_the_snapshot_holds_aborts_the_rest_and_then_opens() -> None:
    sink, effects = restored(
        Sealed(f"{OLD}1", 4),
        Sealed(f"{OLD}2", 5),
        unfinished=((f"{OLD}1", 4), (f"{OLD}2", 5), (f"{OLD}3", 6), (OLD, None)),
    )
    assert asked(effects) == [commit(f"{OLD}1"), commit(f"{OLD}2"), drop(f"{OLD}3"), drop(OLD)]
    first, second, *_ = (number for number, _ in requests(effects))
    assert answered(sink, first) == [], "not open before every commit is answered"
    effects = answered(sink, second)
    assert asked(effects) == [Begin(**BY, name="job-1/sink-0/3-5")]
    assert effects[1:] == running("sink-0")
    assert sink.sealed == []


def test_recovery_without_anything_to_commit_opens_at_once() -> None:
    _, effects = restored(unfinished=((OLD, None),))
    assert asked(effects) == [drop(OLD), Begin(**BY, name="job-1/sink-0/3-5")]
    assert effects[2:] == running("sink-0")


def test_recovery_asks_again_for_a_commit_without_an_answer() -> None:
    sink, effects = restored(Sealed(OLD, 5))
    asking = number(effects, Commit)
    assert answered(sink, asking, SILENCE) == [SetTimer(f"retry {asking}", RETRY_US)]
    assert not sink.running
    sink.step(TimerFired(f"retry {asking}"))
    assert running("sink-0")[0] in answered(sink, asking)


def test_recovery_fails_when_what_it_must_commit_is_gone() -> None:
    sink, effects = restored(Sealed(OLD, 5))
    assert "refused: gone" in reason(answered(sink, number(effects, Commit), Denied(reason="gone")))


def test_a_fence_that_is_denied_fails_the_task() -> None:
    sink = transactional()
    told(sink, deploy())
    assert "fenced" in reason(answered(sink, 1, Denied(reason="fenced")))


def test_a_sink_that_went_through_recovery_works_on_as_any_other() -> None:
    sink, effects = restored(Sealed(OLD, 5))
    answered(sink, number(effects, Commit))
    give(sink, 1)
    assert asked(take(sink, barrier(6)))[1] == pre_commit("job-1/sink-0/3-5", 6)


# -- the end -----------------------------------------------------------------------------------------------------


def test_terminate_commits_what_is_due_drops_the_open_one_and_finishes() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    take(sink, END)
    asking = told(sink, terminate(5))
    assert asked(asking) == [commit(FIRST)]
    dropping = answered(sink, number(asking, Commit))
    assert asked(dropping) == [drop(SECOND)]
    assert answered(sink, number(dropping, AbortTransaction)) == finished("sink-0")
    assert sink.finished


def test_terminate_leaves_what_a_newer_checkpoint_sealed() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    sealed_for(sink, 6, 2)
    assert asked(told(sink, terminate(5))) == [commit(FIRST)]


def test_terminate_with_nothing_due_only_drops_the_open_one() -> None:
    sink = up(transactional())
    dropping = told(sink, terminate(5))
    assert asked(dropping) == [drop(FIRST)]
    assert told(sink, terminate(5)) == [], "told again while it waits"
    assert answered(sink, number(dropping, AbortTransaction), SILENCE)[0] == SetTimer("retry 3", RETRY_US)
    assert answered(sink, number(dropping, AbortTransaction)) == finished("sink-0")
    assert told(sink, terminate(5)) == finished("sink-0"), "told again when its answer was lost"


def test_terminate_waits_for_a_commit_that_is_under_way() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    asking = told(sink, complete(5))
    assert told(sink, terminate(5)) == []
    assert asked(answered(sink, number(asking, Commit))) == [drop(SECOND)]


# -- direct sinks ------------------------------------------------------------------------------------------------


def test_a_plain_sink_appends() -> None:
    sink = direct()
    assert asked(told(sink, deploy())) == [Fence(**BY)]
    assert answered(sink, 1) == running("sink-0")
    assert asked(take(sink, row(1, 2, tag=3, tag2=4))) == [Append(**BY, row=(1, 2, 3, 4))]


@pytest.mark.parametrize(("identity", "wanted"), [("key", (1,)), ("row", (1, 2, 3, 4))])
def test_an_idempotent_sink_replaces_by_identity(identity: str, wanted: tuple[int, ...]) -> None:
    effects = take(up(direct(identity)), row(1, 2, tag=3, tag2=4))
    assert asked(effects) == [Upsert(**BY, identity=wanted, row=(1, 2, 3, 4))]


def test_a_direct_sink_acknowledges_once_all_its_rows_are_in() -> None:
    sink = up(direct())
    give(sink, 1)
    effects = take(sink, barrier(5))
    assert effects[0] == Taken(5)
    assert asked(effects) == [Flush(**BY)]
    assert len(effects) == 2
    persist = only(Persist, answered(sink, number(effects, Flush)))
    assert persist.then == (ack("sink-0", 5),)
    assert persist.snapshot.materialise() == TaskState()


def test_a_direct_sink_has_nothing_to_commit() -> None:
    assert told(up(direct()), complete(5)) == []


def test_a_direct_sink_finishes_when_its_rows_are_in() -> None:
    sink = up(direct())
    give(sink, 1)
    flush = told(sink, terminate(5))
    assert asked(flush) == [Flush(**BY)]
    assert told(sink, terminate(5)) == []
    assert answered(sink, number(flush, Flush)) == finished("sink-0")
    assert told(sink, terminate(5)) == finished("sink-0")


def test_a_direct_sink_asked_to_finish_amid_a_snapshot_does_both() -> None:
    sink = up(direct())
    snapshot = take(sink, barrier(5))
    last = told(sink, terminate(5))
    assert [type(effect) for effect in answered(sink, number(snapshot, Flush))] == [Persist]
    assert answered(sink, number(last, Flush)) == finished("sink-0")


def test_a_direct_sinks_refused_row_fails_it() -> None:
    sink = up(direct())
    assert "fenced" in reason(answered(sink, number(give(sink, 1), Append), Denied(reason="fenced")))


# -- repeated messages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sink", [transactional(), direct()], ids=["transactional", "plain"])
def test_messages_repeated_change_nothing(sink: SinkTask) -> None:
    up(sink)
    give(sink, 1)
    before = sink.snapshot_now().materialise()
    for message in (deploy(), deploy(), complete(1), complete(1), abort(1), abort(1)):
        assert told(sink, message) == []
    assert sink.snapshot_now().materialise() == before
