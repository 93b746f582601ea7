"""The lineage of a run: chains of attempts, cuts and epochs, on histories written by hand."""

from __future__ import annotations

import msgspec

from cutproof.properties.model.history import AttemptStarted, Completed, History, Loaded, Mark, Stored, TaskRun
from cutproof.properties.reconstruct.lineage import INFINITE, mark_of
from cutproof.properties.reconstruct.lineages import Lineages
from cutproof.properties.reconstruct.snapshots import decode_state


def mark(checkpoint: int, *, reads: int = 0, applies: int = 0) -> Mark:
    return Mark(
        checkpoint=checkpoint,
        order=checkpoint * 10,
        at_us=0,
        reads=reads,
        applies=applies,
        received=[applies] if applies else [],
        sent=[reads],
    )


def run(attempt: int, reads: int, *marks: Mark, loaded: int | None = None, task: str = "in-0") -> TaskRun:
    return TaskRun(
        task=task,
        operator=task.partition("-")[0],
        subtask=0,
        attempt=attempt,
        job=1,
        started=attempt * 100,
        inputs=[],
        outputs=["in-0>sink-0"],
        reads=[(0, offset) for offset in range(reads)],
        marks=list(marks),
        loaded=None if loaded is None else Loaded(checkpoint=loaded, order=attempt * 100 + 1),
    )


def history(
    runs: list[TaskRun], completed: dict[int, int], restores: dict[int, int | None] | None = None, state: str = "{}"
) -> History:
    """`completed` is the attempt that took each completed checkpoint, `restores` what each attempt chose."""
    tasks = sorted({one.task for one in runs})
    return History(
        subject="hand",
        guarantee="exactly-once",
        sink="transactional",
        runs=runs,
        stored=[
            Stored(
                checkpoint=number, task=task, attempt=attempt, order=0, at_us=0, handle=f"{number}/{task}", state=state
            )
            for number, attempt in completed.items()
            for task in tasks
        ],
        completed=[
            Completed(
                checkpoint=number,
                job=1,
                attempt=attempt,
                order=number * 10 + 5,
                at_us=0,
                handles={task: f"{number}/{task}" for task in tasks},
            )
            for number, attempt in completed.items()
        ],
        journal=[
            AttemptStarted(order=attempt * 100, at_us=0, attempt=attempt, job=1, restores=chosen)
            for attempt, chosen in (restores or {}).items()
        ],
    )


def test_epochs_are_the_first_completed_mark_after_the_event() -> None:
    lineage = Lineages(history([run(1, 7, mark(1, reads=2), mark(2, reads=3), mark(3, reads=6))], {1: 1, 3: 1})).end
    assert lineage.checkpoints == (1, 3)
    (segment,) = lineage.segments["in-0"]
    assert segment.read_epochs() == [1, 1, 3, 3, 3, 3, INFINITE]


def test_a_failed_attempt_is_cut_at_what_the_next_restored() -> None:
    runs = [run(1, 7, mark(1, reads=2), mark(2, reads=5)), run(2, 4, mark(3, reads=1), loaded=1)]
    lineage = Lineages(history(runs, {1: 1, 3: 2}, {1: None, 2: 1})).end
    first, second = lineage.segments["in-0"]
    assert (first.cut, first.reads, first.read_epochs(), first.sent) == (1, 2, [1, 1], (2,))
    assert (second.cut, second.read_epochs()) == (None, [3, INFINITE, INFINITE, INFINITE])
    assert (lineage.attempts, lineage.checkpoints) == ((1, 2), (1, 3))


def test_an_attempt_that_nobody_built_on_is_off_the_lineage() -> None:
    runs = [
        run(1, 7, mark(1, reads=2)),
        run(2, 3, mark(2, reads=3), loaded=1),
        run(3, 4, mark(3, reads=4), loaded=1),
    ]
    lineages = Lineages(history(runs, {1: 1, 2: 2, 3: 3}, {1: None, 2: 1, 3: 1}))
    assert (lineages.end.attempts, lineages.end.checkpoints) == ((1, 3), (1, 3))
    assert lineages.of_checkpoint(3) is lineages.end
    assert lineages.of_checkpoint(2).attempts == (1, 2)
    assert lineages.of_checkpoint(2).checkpoints == (1, 2)


def test_an_attempt_from_nothing_begins_a_lineage_of_its_own() -> None:
    lineage = Lineages(history([run(1, 7, mark(1, reads=2)), run(2, 3)], {1: 1}, {1: None, 2: None})).end
    assert (lineage.attempts, lineage.checkpoints) == ((2,), ())
    assert [segment.read_epochs() for segment in lineage.segments["in-0"]] == [[INFINITE] * 3]


def test_an_attempt_that_died_before_it_loaded_hangs_on_what_was_chosen_for_it() -> None:
    runs = [run(1, 7, mark(1, reads=2)), run(2, 0)]
    lineages = Lineages(history(runs, {1: 1}, {1: None, 2: 1, 3: 1}))
    assert lineages.last_attempt == 3
    assert [segment.run.attempt for segment in lineages.end.segments["in-0"]] == [1]
    assert lineages.end.checkpoints == (1,)
    assert lineages.of_attempt(2).checkpoints == (1,)


def test_what_no_completed_checkpoint_holds_cannot_be_continued_from() -> None:
    lineages = Lineages(history([run(1, 7, mark(1, reads=2)), run(2, 3, loaded=1)], {}, {1: None, 2: 1}))
    assert lineages.parent("in-0", 2) is None
    assert lineages.end.attempts == (2,)


def test_no_attempt_goes_on_from_its_own_snapshot() -> None:
    lineages = Lineages(history([run(1, 7, mark(1, reads=2), loaded=1)], {1: 1}))
    assert lineages.parent("in-0", 1) is None
    assert lineages.end.attempts == (1,)


def test_a_checkpoint_completed_after_the_restore_point_is_off_the_lineage() -> None:
    runs = [run(1, 7, mark(1, reads=2), mark(2, reads=5)), run(2, 4, loaded=1)]
    lineages = Lineages(history(runs, {1: 1, 2: 1}, {1: None, 2: 1}))
    assert lineages.end.checkpoints == (1,)
    assert lineages.of_checkpoint(2).tip == 1


def test_events_up_to_an_epoch() -> None:
    runs = [run(1, 7, mark(1, reads=2), mark(2, reads=5)), run(2, 4, mark(3, reads=3), loaded=2)]
    lineage = Lineages(history(runs, {1: 1, 2: 1, 3: 2}, {1: None, 2: 2})).end
    first, second = lineage.segments["in-0"]
    assert [first.reads_up_to(epoch) for epoch in (0, 1, 2, 3, INFINITE)] == [0, 2, 5, 5, 5]
    assert [second.reads_up_to(epoch) for epoch in (2, 3, INFINITE)] == [0, 3, 4]


def test_applied_records_carry_origin_and_epoch() -> None:
    sink = run(1, 0, mark(1, applies=1), task="sink-0")
    sink.inputs = ["in-0>sink-0"]
    sink.applies = [(0, 256), (0, 512)]
    lineages = Lineages(history([run(1, 2, mark(1, reads=1)), sink], {1: 1}))
    changed = [
        (event.subtask, event.segment, event.sequence, event.origin, event.epoch)
        for event in lineages.end.applied("sink")
    ]
    assert changed == [(0, 1, 0, 256, 1), (0, 1, 1, 512, INFINITE)]
    assert lineages.end.epochs_of("sink-0", 1, [1, 2, 3]) == [1, INFINITE, None]
    assert lineages.end.epochs_of("sink-0", 9, [1]) == [None]
    assert [segment.applies_up_to(1) for segment in lineages.end.of_operator("sink")] == [1]


def test_positions_come_from_the_stored_bytes_and_unknown_fields_are_left_alone() -> None:
    lineages = Lineages(
        history([run(1, 2, mark(1, reads=2))], {1: 1}, state='{"positions": {"0": 2}, "mine": [1, {}]}')
    )
    assert lineages.snapshots.positions(1) == {0: 2}
    assert decode_state("") is not None
    assert decode_state("{half a") is None
    assert decode_state('{"positions": {"zero": 1}}') is None


def test_a_pointer_to_nothing_is_left_out() -> None:
    seen = history([run(1, 2, mark(1, reads=2))], {1: 1})
    seen.stored.clear()
    lineages = Lineages(seen)
    assert (lineages.snapshots.stored(1), lineages.snapshots.states(1), lineages.snapshots.positions(1)) == ({}, {}, {})


def test_mark_of() -> None:
    one = run(1, 2, mark(4, reads=2))
    assert mark_of(one, 4) is one.marks[0]
    assert mark_of(one, 5) is None


# -- a part that restarted alone -----------------------------------------------------------------------------------


def partial() -> Lineages:
    """Attempt 2 restarts b-0 alone, attempt 3 everything; a-0 goes on in attempt 1 meanwhile."""
    runs = [
        run(1, 9, mark(1, reads=2), mark(2, reads=5), mark(3, reads=7), task="a-0"),
        run(1, 6, mark(1, reads=3), task="b-0"),
        run(2, 5, mark(2, reads=1), mark(3, reads=4), loaded=1, task="b-0"),
        run(3, 1, loaded=3, task="a-0"),
        run(3, 2, loaded=3, task="b-0"),
    ]
    changed = history(runs, {1: 1, 2: 2, 3: 2}, {1: None, 2: 1, 3: 3})
    for entry in changed.stored:
        if entry.task == "a-0":
            entry.attempt = 1
    assert isinstance(changed.journal[1], AttemptStarted)
    changed.journal[1].tasks = ["b-0"]
    return Lineages(changed)


def test_a_task_that_goes_on_is_served_by_its_older_attempt() -> None:
    lineages = partial()
    assert [lineages.serving("a-0", attempt) for attempt in (1, 2, 3)] == [1, 1, 3]
    assert [lineages.serving("b-0", attempt) for attempt in (1, 2, 3)] == [1, 2, 3]


def test_a_checkpoint_is_taken_by_each_task_in_the_attempt_it_is_in() -> None:
    lineages = partial()
    assert [entry.checkpoint for entry in lineages.taken_by("a-0", 1)] == [1, 2, 3]
    assert [entry.checkpoint for entry in lineages.taken_by("b-0", 1)] == [1]
    assert [entry.checkpoint for entry in lineages.taken_by("b-0", 2)] == [2, 3]
    assert lineages.taken_by("a-0", 2) == []


def test_the_lineage_of_a_task_that_goes_on_is_cut_only_where_it_restarts_itself() -> None:
    lineages = partial()
    going_on, restarted = lineages.end.segments["a-0"], lineages.end.segments["b-0"]
    assert [(one.run.attempt, one.cut, one.reads) for one in going_on] == [(1, 3, 7), (3, None, 1)]
    assert [(one.run.attempt, one.cut, one.reads) for one in restarted] == [(1, 1, 3), (2, 3, 4), (3, None, 2)]
    assert lineages.end.checkpoints == (1, 2, 3)
    assert going_on[0].read_epochs() == [1, 1, 2, 2, 2, 3, 3]


def test_the_lineage_of_the_partial_attempt_itself_has_all_that_the_others_did() -> None:
    lineage = partial().of_attempt(2)
    assert [(one.run.attempt, one.cut) for one in lineage.segments["a-0"]] == [(1, None)]
    assert lineage.checkpoints == (1, 2, 3)


def test_a_checkpoint_of_the_attempt_that_restores_it_is_restored_once() -> None:
    """As of an engine that gives a checkpoint's number away again after it has restored it."""
    runs = [run(1, 3, mark(1, reads=2)), run(2, 4, mark(1, reads=1), mark(4, reads=2), loaded=1)]
    changed = history(runs, {1: 2, 4: 2}, {1: None, 2: 1})
    finished = [msgspec.structs.replace(one, finished=["other-0"]) for one in changed.completed]
    lineages = Lineages(msgspec.structs.replace(changed, completed=finished))
    assert sorted(lineages.snapshots.stored(4)) == ["in-0"]
    assert lineages.end.attempts == (2,)
