"""A transactional sink: rows, pre-commit and commit, stepped by hand (ABS-11)."""

from __future__ import annotations

from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Persist, SetTimer, SnapshotTaken
from cutproof.reference_impl.core.vocabulary.events import TimerFired
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.timeouts import RetryRequest
from cutproof.reference_impl.core.vocabulary.transactions import (
    BeginTransaction,
    Commit,
    Denied,
    Fence,
    PreCommit,
    Write,
)
from unit.core.machines import (
    RETRY_US,
    abort,
    ack,
    answered,
    barrier,
    complete,
    deliver,
    deploy,
    only,
    reason,
    requests,
    row,
    running,
    take,
    transactional,
    up,
    work,
)
from unit.core.sinks import (
    BY,
    FIRST,
    SECOND,
    SILENCE,
    THIRD,
    asked,
    commit,
    give,
    number,
    pre_commit,
    sealed_for,
    write,
)

# -- rows and pre-commit -----------------------------------------------------------------------------------------


def test_a_sink_shuts_out_older_attempts_before_it_opens() -> None:
    sink = transactional()
    fence = deliver(sink, deploy())
    assert asked(fence) == [Fence(**BY)]
    assert not sink.has_started
    effects = answered(sink, 1)
    assert asked(effects) == [BeginTransaction(**BY, name=FIRST)]
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
    assert effects[0] == SnapshotTaken(5)
    assert asked(effects) == [write(FIRST, 1), pre_commit(FIRST, 5), BeginTransaction(**BY, name=SECOND)]
    assert len(effects) == 4, "nothing is written or acknowledged yet"


def test_what_was_flushed_before_counts_for_the_seal() -> None:
    sink = up(transactional(write_batch=1))
    give(sink, 1)
    assert asked(take(sink, barrier(5))) == [pre_commit(FIRST, 5), BeginTransaction(**BY, name=SECOND)]


def test_the_snapshot_is_written_only_when_the_seal_is_answered_and_acknowledged_only_when_written() -> None:
    sink = up(transactional())
    give(sink, 1)
    effects = take(sink, barrier(5))
    give(sink, 2)
    (persist,) = answered(sink, number(effects, PreCommit))
    assert isinstance(persist, Persist)
    assert persist.checkpoint == 5
    assert persist.snapshot.materialise() == TaskState(transactions=[(FIRST, 5)], serial=2)
    assert persist.then == (ack("sink-0", 5),)
    assert answered(sink, number(effects, PreCommit)) == [], "the answer repeated"


def test_an_empty_transaction_is_not_sealed() -> None:
    sink = up(transactional())
    taken, persist = take(sink, barrier(5))
    assert taken == SnapshotTaken(5)
    assert persist.snapshot.materialise() == TaskState(serial=1)
    assert asked(give(sink, 1, 2, 3, 4)) == [write(FIRST, 1, 2, 3, 4)], "it goes on"


def test_an_empty_epoch_waits_for_the_seal_before_it() -> None:
    """Its snapshot names a transaction that the store has not answered for yet."""
    sink = up(transactional())
    give(sink, 1)
    seal = number(take(sink, barrier(5)), PreCommit)
    assert take(sink, barrier(6)) == [SnapshotTaken(6)]
    first, second = answered(sink, seal)
    assert (first.checkpoint, second.checkpoint) == (5, 6)
    assert second.snapshot.materialise().transactions == [(FIRST, 5)]


def two_seals() -> tuple[InputTask, int, int]:
    """A sink with two pre-commits on their way, and their numbers."""
    sink = up(transactional())
    give(sink, 1)
    first = number(take(sink, barrier(5)), PreCommit)
    give(sink, 2)
    return sink, first, number(take(sink, barrier(6)), PreCommit)


def test_two_seals_under_way_each_hold_back_their_own_snapshot() -> None:
    sink, first, second = two_seals()
    assert only(Persist, answered(sink, first)).checkpoint == 5
    state = only(Persist, answered(sink, second)).snapshot.materialise()
    assert state.transactions == [(FIRST, 5), (SECOND, 6)]


def test_a_snapshot_waits_for_every_seal_that_it_names() -> None:
    """The newer seal is answered first, and the older one only when it is asked again."""
    sink, first, second = two_seals()
    assert answered(sink, first, SILENCE) == [SetTimer(RetryRequest(first), RETRY_US)]
    assert answered(sink, second) == [], "the first transaction may be lost yet"
    older, newer = answered(sink, first)
    assert (older.checkpoint, newer.checkpoint) == (5, 6)


def test_an_unanswered_seal_is_asked_again() -> None:
    sink = up(transactional())
    give(sink, 1)
    seal = number(take(sink, barrier(5)), PreCommit)
    assert answered(sink, seal, SILENCE) == [SetTimer(RetryRequest(seal), RETRY_US)]
    assert requests(sink.step(TimerFired(RetryRequest(seal)))) == [(seal, pre_commit(FIRST, 5))]
    assert only(Persist, answered(sink, seal)).checkpoint == 5
    assert sink.step(TimerFired(RetryRequest(seal))) == [], "answered by now"


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
    assert asked(deliver(sink, complete(6))) == [commit(FIRST), commit(SECOND)]
    assert [sealed.name for sealed in work(sink).sealed] == [FIRST, SECOND, THIRD], "until the store has answered"


def test_a_commit_is_asked_for_once_at_a_time() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    asking = number(deliver(sink, complete(5)), Commit)
    assert deliver(sink, complete(5)) == []
    answered(sink, asking)
    assert work(sink).sealed == []
    assert deliver(sink, complete(5)) == []


def test_an_unanswered_commit_is_asked_again_until_the_answer_is_definite() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    asking = number(deliver(sink, complete(5)), Commit)
    for _ in range(3):
        assert answered(sink, asking, SILENCE) == [SetTimer(RetryRequest(asking), RETRY_US)]
        assert requests(sink.step(TimerFired(RetryRequest(asking)))) == [(asking, commit(FIRST))]
    assert work(sink).sealed
    answered(sink, asking)
    assert work(sink).sealed == []


def test_a_denied_commit_fails_loudly() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    reason_text = reason(
        answered(sink, number(deliver(sink, complete(5)), Commit), Denied(reason="it has been aborted"))
    )
    assert reason_text == "sink-0: the external store refused: it has been aborted"


def test_a_snapshot_remembers_what_is_being_committed() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    deliver(sink, complete(5))
    state = only(Persist, take(sink, barrier(6))).snapshot.materialise()
    assert state.transactions == [(FIRST, 5)]


def test_a_checkpoint_that_was_aborted_leaves_its_transaction_sealed_for_the_next() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    assert deliver(sink, abort(5)) == []
    sealed_for(sink, 6, 2)
    assert asked(deliver(sink, complete(6))) == [commit(FIRST), commit(SECOND)]
