"""A transactional sink that comes up with a past, and one that ends."""

from __future__ import annotations

from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Effect, Restored, SetTimer
from cutproof.reference_impl.core.vocabulary.events import TimerFired
from cutproof.reference_impl.core.vocabulary.state import Kept, TaskState
from cutproof.reference_impl.core.vocabulary.timeouts import RetryRequest
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    BeginTransaction,
    Commit,
    Denied,
    Done,
    Fence,
)
from unit.core.machines import (
    END,
    RETRY_US,
    answered,
    barrier,
    complete,
    deliver,
    deploy,
    finished,
    reason,
    requests,
    running,
    take,
    terminate,
    transactional,
    up,
    work,
)
from unit.core.sinks import (
    BY,
    FIRST,
    OLD,
    SECOND,
    SILENCE,
    asked,
    commit,
    drop,
    give,
    number,
    pre_commit,
    sealed_for,
)

# -- recovery ----------------------------------------------------------------------------------------------------


def restored(*sealed: Kept, unfinished: tuple[tuple[str, int | None], ...] = ()) -> tuple[InputTask, list[Effect]]:
    """A sink with these in its snapshot, once the fence has told it what is unfinished."""
    sink = transactional()
    state = TaskState(transactions=list(sealed), serial=4)
    loaded, fence = deliver(sink, deploy(checkpoint=5, state=state))
    assert loaded == Restored(5, state)
    assert asked([fence]) == [Fence(**BY)]
    return sink, answered(sink, 1, Done(unfinished=unfinished))


def test_recovery_commits_what_the_snapshot_holds_aborts_the_rest_and_then_opens() -> None:
    sink, effects = restored(
        (f"{OLD}1", 4),
        (f"{OLD}2", 5),
        unfinished=((f"{OLD}1", 4), (f"{OLD}2", 5), (f"{OLD}3", 6), (OLD, None)),
    )
    assert asked(effects) == [commit(f"{OLD}1"), commit(f"{OLD}2"), drop(f"{OLD}3"), drop(OLD)]
    first, second, *_ = (number for number, _ in requests(effects))
    assert answered(sink, first) == [], "not open before every commit is answered"
    effects = answered(sink, second)
    assert asked(effects) == [BeginTransaction(**BY, name="job-1/sink-0/3-5")]
    assert effects[1:] == running("sink-0")
    assert work(sink).sealed == []


def test_recovery_without_anything_to_commit_opens_at_once() -> None:
    _, effects = restored(unfinished=((OLD, None),))
    assert asked(effects) == [drop(OLD), BeginTransaction(**BY, name="job-1/sink-0/3-5")]
    assert effects[2:] == running("sink-0")


def test_recovery_asks_again_for_a_commit_without_an_answer() -> None:
    sink, effects = restored((OLD, 5))
    asking = number(effects, Commit)
    assert answered(sink, asking, SILENCE) == [SetTimer(RetryRequest(asking), RETRY_US)]
    assert not sink.has_started
    sink.step(TimerFired(RetryRequest(asking)))
    assert running("sink-0")[0] in answered(sink, asking)


def test_recovery_asks_again_for_an_abort_that_died_with_the_store() -> None:
    """The store came back with what was sealed; the checkpoint it was sealed for was aborted, so nobody else asks."""
    left = f"{OLD}6"
    sink, effects = restored((OLD, 5), unfinished=((OLD, 5), (left, 6)))
    committing, aborting = number(effects, Commit), number(effects, AbortTransaction)
    assert answered(sink, committing, SILENCE) == [SetTimer(RetryRequest(committing), RETRY_US)]
    assert answered(sink, aborting, SILENCE) == [SetTimer(RetryRequest(aborting), RETRY_US)]
    assert asked(sink.step(TimerFired(RetryRequest(committing)))) == [commit(OLD)]
    assert running("sink-0")[0] in answered(sink, committing), "it works meanwhile"
    assert asked(sink.step(TimerFired(RetryRequest(aborting)))) == [drop(left)]
    assert answered(sink, aborting) == []
    assert sink.step(TimerFired(RetryRequest(aborting))) == []


def test_an_abort_that_is_answered_first_does_not_open_a_sink_that_still_commits() -> None:
    sink, effects = restored((OLD, 5), unfinished=((OLD, 5), (f"{OLD}6", 6)))
    assert answered(sink, number(effects, AbortTransaction)) == []
    assert not sink.has_started
    assert running("sink-0")[0] in answered(sink, number(effects, Commit))


def test_what_recovery_aborts_is_deleted_before_the_sink_finishes() -> None:
    left = f"{OLD}6"
    sink, effects = restored(unfinished=((left, 6),))
    aborting = number(effects, AbortTransaction)
    take(sink, END)
    assert deliver(sink, terminate(5)) == []
    assert answered(sink, aborting, SILENCE) == [SetTimer(RetryRequest(aborting), RETRY_US)]
    assert asked(sink.step(TimerFired(RetryRequest(aborting)))) == [drop(left)]
    dropping = answered(sink, aborting)
    assert asked(dropping) == [drop("job-1/sink-0/3-5")]
    assert answered(sink, number(dropping, AbortTransaction)) == finished("sink-0")


def test_recovery_fails_when_what_it_must_commit_is_lost() -> None:
    sink, effects = restored((OLD, 5))
    assert "refused: gone" in reason(answered(sink, number(effects, Commit), Denied(reason="gone")))


def test_a_fence_that_is_denied_fails_the_task() -> None:
    sink = transactional()
    deliver(sink, deploy())
    assert "fenced" in reason(answered(sink, 1, Denied(reason="fenced")))


def test_a_sink_that_went_through_recovery_works_on_as_any_other() -> None:
    sink, effects = restored((OLD, 5))
    answered(sink, number(effects, Commit))
    give(sink, 1)
    assert asked(take(sink, barrier(6)))[1] == pre_commit("job-1/sink-0/3-5", 6)


# -- the end -----------------------------------------------------------------------------------------------------


def test_terminate_commits_what_is_due_drops_the_open_one_and_finishes() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    take(sink, END)
    asking = deliver(sink, terminate(5))
    assert asked(asking) == [commit(FIRST)]
    dropping = answered(sink, number(asking, Commit))
    assert asked(dropping) == [drop(SECOND)]
    assert answered(sink, number(dropping, AbortTransaction)) == finished("sink-0")
    assert sink.finished


def test_terminate_leaves_what_a_newer_checkpoint_sealed() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    sealed_for(sink, 6, 2)
    assert asked(deliver(sink, terminate(5))) == [commit(FIRST)]


def test_terminate_with_nothing_due_only_drops_the_open_one() -> None:
    sink = up(transactional())
    dropping = deliver(sink, terminate(5))
    assert asked(dropping) == [drop(FIRST)]
    assert deliver(sink, terminate(5)) == [], "told again while it waits"
    assert answered(sink, number(dropping, AbortTransaction), SILENCE)[0] == SetTimer(RetryRequest(3), RETRY_US)
    assert answered(sink, number(dropping, AbortTransaction)) == finished("sink-0")
    assert deliver(sink, terminate(5)) == finished("sink-0"), "told again when its answer was lost"


def test_terminate_waits_for_a_commit_that_is_under_way() -> None:
    sink = up(transactional())
    sealed_for(sink, 5, 1)
    asking = deliver(sink, complete(5))
    assert deliver(sink, terminate(5)) == []
    assert asked(answered(sink, number(asking, Commit))) == [drop(SECOND)]
