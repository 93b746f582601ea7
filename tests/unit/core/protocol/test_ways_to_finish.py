"""Ways to finish: two-phase commits amid a job, one by one, settled at the finish, and without checkpoints after."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import OperatorSpec
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import SaveJob, SetTimer
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.events import TimerFired
from cutproof.reference_impl.core.vocabulary.messages import Complete, EndOfPartition, Terminate, Trigger
from cutproof.reference_impl.core.vocabulary.state import as_kept, read_back
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval, RetryRequest
from cutproof.reference_impl.core.vocabulary.transactions import AbortTransaction, Commit, PreCommit, Write
from unit.core.coordinator_rig import (
    OP,
    SINK,
    SOURCE,
    TASKS,
    CoordinatorRig,
    addressed,
    answer,
    end,
    of,
    sent_to_tasks,
    stored,
)
from unit.core.machines import (
    END,
    ONE_OUT,
    RETRY_US,
    answered,
    barrier,
    build,
    complete,
    deliver,
    finished,
    operator,
    row,
    sent,
    spec,
    take,
    terminate,
    transactional,
    up,
)
from unit.core.sinks import FIRST, SECOND, SILENCE, asked, commit, drop, give, number, pre_commit, sealed_for, write

ENDED = EndOfPartition()


def two_phase(**config: str) -> InputTask:
    """Called as the sinks of these tests are."""
    return build(write_batch=1, **config).two_phase(spec("sink-0", gates=(0,), outputs=ONE_OUT))


# -- a two-phase operator amid a job -----------------------------------------------------------------------------


def test_it_writes_what_it_passes_on() -> None:
    task = up(two_phase())
    effects = take(task, row(1, 7))
    assert asked(effects) == [write(FIRST, 7)]
    assert sent(effects) == [(0, row(1, 7))]


def test_it_seals_at_the_barrier_and_sends_it_on_and_commits_when_that_is_complete() -> None:
    task = up(two_phase())
    give(task, 7)
    effects = take(task, barrier(1))
    assert pre_commit(FIRST, 1) in asked(effects)
    assert sent(effects) == [(0, barrier(1))]
    answered(task, number(effects, PreCommit))
    assert asked(deliver(task, complete(1))) == [commit(FIRST)]


def test_together_the_end_of_data_goes_on_at_once() -> None:
    assert sent(take(up(two_phase()), END)) == [(0, END)]


def test_one_by_one_it_goes_on_when_the_task_has_committed_and_finishes() -> None:
    task = up(two_phase(finishing="one-by-one"))
    give(task, 7)
    assert sent(take(task, END)) == []
    effects = take(task, barrier(1))
    assert sent(effects) == [(0, barrier(1))]
    answered(task, number(effects, PreCommit))
    effects = deliver(task, terminate(1))
    assert asked(effects) == [commit(FIRST)]
    assert sent(effects) == []
    dropped = answered(task, number(effects, Commit))
    assert sent(dropped) == []
    (last,) = [at for at, _ in [(effect.number, effect) for effect in dropped]]
    assert sent(answered(task, last)) == [(0, END), (0, ENDED)]


def test_other_tasks_hold_no_end_back() -> None:
    assert sent(take(up(operator(finishing="one-by-one")), END)) == [(0, END)]


def test_one_that_had_finished_sends_both_ends_once() -> None:
    for how in ("together", "one-by-one"):
        assert sent(two_phase(finishing=how).stay_finished()) == [(0, END), (0, ENDED)]


@pytest.mark.parametrize(
    ("role", "commits"), [("source", False), ("operator", False), ("two-phase", True), ("sink", True)]
)
def test_who_commits(role: str, commits: bool) -> None:
    assert OperatorSpec(name="it", parallelism=1, role=role).commits is commits


# -- settled at the finish ---------------------------------------------------------------------------------------


def settling(how: str) -> InputTask:
    return up(transactional(write_batch=4, finishing=how))


def test_commit_at_finish_commits_the_last_data_when_its_input_ends() -> None:
    sink = settling("commit-at-finish")
    give(sink, 7)
    assert asked(take(sink, END)) == [write(FIRST, 7), pre_commit(FIRST, None), commit(FIRST)]


def test_what_commit_at_finish_sealed_before_any_barrier_is_kept_as_of_checkpoint_0_and_read_back_as_of_none() -> None:
    sink = settling("commit-at-finish")
    give(sink, 7)
    take(sink, END)
    state = sink.unkeyed_state()
    assert state.transactions == [(FIRST, 0)], "as former engines wrote it"
    assert [one.checkpoint for one in read_back(state.transactions)] == [None]
    assert as_kept(read_back(state.transactions)) == state.transactions


def test_commit_at_finish_seals_the_last_data_as_of_the_newest_checkpoint() -> None:
    """Not of an older one: by that number a restored sink tells what it still has to commit."""
    sink = settling("commit-at-finish")
    sealed_for(sink, 1, 7)
    give(sink, 8)
    assert asked(take(sink, END)) == [write(SECOND, 8), pre_commit(SECOND, 1), commit(SECOND)]


def test_discard_at_finish_drops_it() -> None:
    sink = settling("discard-at-finish")
    give(sink, 7, 8, 9, 10, 11)
    effects = take(sink, END)
    assert asked(effects) == [drop(FIRST)]
    assert deliver(sink, terminate(None)) == [], "not before the store has said so"
    assert answered(sink, number(effects, AbortTransaction)) == finished("sink-0")


def test_what_discard_at_finish_dropped_is_not_written_later_either() -> None:
    sink = settling("discard-at-finish")
    give(sink, 7)
    take(sink, END)
    later = [request for checkpoint in (1, 2) for request in asked(take(sink, barrier(checkpoint)))]
    assert [request for request in later if isinstance(request, Write)] == []


def test_together_nothing_is_settled_then() -> None:
    sink = settling("together")
    give(sink, 7)
    assert asked(take(sink, END)) == []


@pytest.mark.parametrize(("how", "settled"), [("commit-at-finish", commit), ("discard-at-finish", drop)])
def test_what_no_complete_checkpoint_committed_by_the_end_is_settled_then(how: str, settled: type) -> None:
    sink = settling(how)
    sealed_for(sink, 1, 7)
    assert commit(FIRST) not in asked(take(sink, END))
    assert asked(deliver(sink, terminate(None)))[0] == settled(FIRST)


def test_discard_at_finish_asks_again_for_a_sealed_one_that_a_dead_store_did_not_drop() -> None:
    sink = settling("discard-at-finish")
    sealed_for(sink, 1, 7)
    answered(sink, number(take(sink, END), AbortTransaction))
    dropping = deliver(sink, terminate(None))
    asking = number(dropping, AbortTransaction)
    assert asked(dropping) == [drop(FIRST)]
    assert answered(sink, asking, SILENCE) == [SetTimer(RetryRequest(asking), RETRY_US)]
    assert deliver(sink, terminate(None)) == [], "told again while it waits"
    assert asked(sink.step(TimerFired(RetryRequest(asking)))) == [drop(FIRST)]
    assert answered(sink, asking) == finished("sink-0")


@pytest.mark.parametrize("how", ["commit-at-finish", "discard-at-finish"])
def test_there_is_no_final_checkpoint(how: str) -> None:
    job = CoordinatorRig(finishing=how).up()
    effects = job.ended()
    assert sent_to_tasks(Terminate, effects) == [(task, Terminate(job=1, attempt=1, checkpoint=None)) for task in TASKS]
    assert end(job.finished()) == ("finished", None, "")


# -- no checkpoints after a finish -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"checkpoints_after_finish": False}, {"finishing": "commit-at-finish"}])
def test_nothing_is_triggered_once_some_input_has_ended(settings: dict[str, object]) -> None:
    job = CoordinatorRig(**settings).up()
    job.checkpoint(1)
    job.ended(SOURCE)
    assert of(SaveJob, job.timer(CheckpointInterval())) == []
    assert "no snapshots after that" in answer(job.command("savepoint"))[2]
    job.lose()
    job.again()
    job.running()
    assert addressed(Trigger, job.trigger()) == [SOURCE]


def test_but_the_final_one() -> None:
    job = CoordinatorRig(checkpoints_after_finish=False).up()
    job.ended(SOURCE, OP)
    job.ended(SINK)
    assert addressed(Trigger, job.saved()) == [SOURCE]
    assert stored(job.ack(1))[0].ending is JobEnd.FINISH


def test_otherwise_they_go_on() -> None:
    job = CoordinatorRig().up()
    job.ended(SOURCE)
    assert addressed(Trigger, job.trigger()) == [SOURCE]
    job.ack(1)
    assert addressed(Complete, job.stored(1)) == list(TASKS)


# -- what is refused ---------------------------------------------------------------------------------------------


def test_refused() -> None:
    with pytest.raises(Refused, match="unknown way of finishing 'somehow'"):
        Config(finishing="somehow").check()
    with pytest.raises(Refused, match="each wait for a checkpoint"):
        Config(finishing="one-by-one", checkpoints_after_finish=False).check()
    for how in ("together", "one-by-one", "commit-at-finish", "discard-at-finish"):
        Config(finishing=how).check()
