"""The coordinator and the logs of persistent channels: which are kept, and up to where."""

from __future__ import annotations

from cutproof.reference_impl.core.vocabulary.effects import ClearLogs, Effect
from cutproof.reference_impl.core.vocabulary.messages import Complete
from cutproof.reference_impl.core.vocabulary.timeouts import RestartDelay
from unit.core.coordinator_rig import OP, SINK, SOURCE, TASKS, CoordinatorRig, of, sent_to_tasks


def persistent(**more: object) -> CoordinatorRig:
    return CoordinatorRig(alignment="unaligned", spilling="continuous", **more).up()


def logs_from(effects: list[Effect]) -> list[int | None]:
    return [news.logs_from for _, news in sent_to_tasks(Complete, effects)]


def test_tasks_are_notified_which_checkpoint_may_still_ask_for_what_is_in_their_logs() -> None:
    job = persistent(retained_checkpoints=2)
    for checkpoint, oldest in ((1, 1), (2, 1), (3, 2)):
        job.trigger()
        job.ack(checkpoint)
        assert set(logs_from(job.stored(checkpoint))) == {oldest}


def test_an_older_checkpoint_whose_record_is_still_being_stored_may_ask_too() -> None:
    job = persistent(concurrent_checkpoints=2)
    job.trigger()
    job.trigger()
    job.ack(1)
    job.ack(2)
    news = [each for _, each in sent_to_tasks(Complete, job.stored(2))]
    assert {(each.logs_from, each.oldest) for each in news} == {(1, 1)}


def test_logs_are_kept_for_snapshots_that_refer_to_them_and_for_the_attempts_that_run() -> None:
    job = persistent()
    job.trigger()
    job.ack(1, logs=("job-1/log/op-0-1/0",))
    (cleared,) = of(ClearLogs, job.stored(1))
    assert cleared.keep == ("job-1/log/op-0-1/0",)
    assert cleared.living == tuple(f"job-1/log/{task}-1" for task in TASKS)
    job.trigger()
    job.ack(2)
    (cleared,) = of(ClearLogs, job.stored(2))
    assert cleared.keep == ()


def test_whoever_goes_on_alone_from_a_savepoint_finds_what_came_since() -> None:
    """It refers to nothing: while the record of the next checkpoint is being stored, nobody else needs a log."""
    for failover, oldest in (("full", 2), ("local", 1)):
        job = CoordinatorRig(
            spilling="continuous", alignment="unaligned", failover=failover, concurrent_checkpoints=2
        ).up()
        job.savepoint(1)
        assert job.machine.completed.logs_from == 1
        job.trigger()
        job.ack(2)
        assert job.machine.completed.logs_from == oldest, failover


def test_the_logs_of_one_that_recovered_locally_are_those_of_the_attempt_of_all() -> None:
    job = CoordinatorRig(spilling="continuous", failover="local").up()
    job.checkpoint(1)
    job.lose(OP)
    job.timer(RestartDelay())
    job.saved()
    job.running(OP)
    assert job.machine.attempt_of(OP) == 2
    job.trigger()
    job.ack(2, OP, attempt=2)
    job.ack(2, SOURCE, SINK, attempt=1)
    (cleared,) = of(ClearLogs, job.stored(2))
    assert cleared.living == tuple(f"job-1/log/{task}-1" for task in TASKS)


def test_nobody_speaks_of_logs_where_there_are_none() -> None:
    job = CoordinatorRig().up()
    job.trigger()
    job.ack(1)
    effects = job.stored(1)
    assert set(logs_from(effects)) == {None}
    assert of(ClearLogs, effects) == []
