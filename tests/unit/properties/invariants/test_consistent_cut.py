"""consistent-cut: a mutation of each witness is seen, and no correct run is accused."""

from __future__ import annotations

import random

import pytest

from cutproof.properties.invariants.consistent_cut import Reads, check
from cutproof.properties.model.history import History, StoredState
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, joining, recovered, run
from unit.properties.mutated import completed, edit, mutated, runs_of, stored
from unit.properties.shapes import drawn
from unit.properties.toy import Toy

ASKED = Asked(check)
judged, difference = ASKED.judged, ASKED.difference


@pytest.fixture
def toy() -> Toy:
    """Checkpoint 1, a kill, a replay, checkpoint 2, more records, the final checkpoint 3."""
    made = recovered(counting(per_split=8))
    made.checkpoint_now()
    made.finish()
    assert [entry.checkpoint for entry in made.seen.completed] == [1, 2, 3]
    return made


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs(range(4)):
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


@pytest.mark.parametrize("sink", ["transactional", "idempotent", "plain"])
def test_no_correct_run_of_any_shape_is_accused(sink: str) -> None:
    held = 0
    for seed in range(100):
        verdict = check(Case(*drawn(seed), run(drawn(seed), seed=seed, steps=90, sink=sink)))
        assert not isinstance(verdict, Violated), (seed, verdict)
        held += isinstance(verdict, Holds)
    assert held > 20


def test_checkpoints_amid_records_are_exercise(toy: Toy) -> None:
    assert judged(toy) == Holds(exercised=2)


def test_counted_events_between_the_local_snapshots_decide_on_exercise(toy: Toy) -> None:
    def counted(history: History, spread: int) -> None:
        for one in history.runs:
            for number, mark in enumerate(one.marks):
                mark.events = 10 * number + (spread if one.operator == "sink" else 0)

    assert isinstance(judged(toy, mutated(toy.history(), lambda history: counted(history, 0))), Unknown)
    assert judged(toy, mutated(toy.history(), lambda history: counted(history, 3))) == Holds(exercised=3)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_recorded_position_that_differs_from_the_reads(toy: Toy, by: int) -> None:
    def shift(state: StoredState) -> None:
        state.positions[0] += by

    history = mutated(toy.history(), lambda history: edit(history, completed(history, 1), "numbers-0", shift))
    verdict = judged(toy, history)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "position differs from reads"
    assert (verdict.checkpoint, verdict.tasks) == (2, ("numbers-0",))
    assert verdict.message == (
        f"numbers-0 read 3 records of split 0 before the barrier of checkpoint 2 but recorded position {3 + by}"
    )
    assert [place.partition(" (")[0] for place in verdict.records] == [f"record {3 if by > 0 else 2} of split 0"]


def test_a_position_of_a_dead_attempts_checkpoint_is_judged_too() -> None:
    toy = recovered(counting(per_split=8))
    toy.checkpoint_now()
    toy.kill("count-0")
    toy.start(toy.seen.completed[0], cause="an older one, wrongly")
    toy.finish()

    def shift(state: StoredState) -> None:
        state.positions[0] += 1

    assert 2 not in Case(toy.workload, toy.topology, toy.history()).lineage.checkpoints
    assert isinstance(judged(toy), Holds)
    history = mutated(toy.history(), lambda history: edit(history, completed(history, 1), "numbers-0", shift))
    assert difference(toy, history) == "position differs from reads"


def test_a_record_read_twice_on_the_lineage(toy: Toy) -> None:
    def mutation(history: History) -> None:
        reader = runs_of(history, "numbers")[-1]
        reader.reads.append(reader.reads[0])

    assert difference(toy, mutated(toy.history(), mutation)) == "position differs from reads"


def _agrees_by_definition(offsets: list[int], before: int, position: int) -> bool:
    below, above = offsets[:before], offsets[before:]
    return below == list(range(position)) and not any(offset < position for offset in above)


def test_positions_are_compared_with_reads_at_once_as_one_by_one() -> None:
    draw = random.Random(14)
    for _ in range(3_000):
        whole = list(range(draw.randrange(6)))
        offsets = whole if draw.random() < 0.5 else [draw.randrange(-1, 5) for _ in range(draw.randrange(6))]
        before, position = draw.randrange(len(offsets) + 1), draw.randrange(-1, 7)
        agrees = Reads.of("t", offsets, [0] * len(offsets)).agrees(before, position)
        assert agrees == _agrees_by_definition(offsets, before, position), (offsets, before, position)


@pytest.mark.parametrize("second", [0, 3], ids=["one value", "two values"])
def test_a_state_that_is_not_the_cuts(toy: Toy, second: int) -> None:
    told: list[str] = []

    def more(state: StoredState) -> None:
        side, key, count, _ = state.entries[0]
        state.entries[0] = (side, key, (count or 0) + 1, second)
        told.append(
            f"key {key}: {(count or 0) + 1}{', 3' if second else ''} in checkpoint 3 instead of key {key}: {count}"
        )

    history = toy.history()
    task = next(
        one.task for one in runs_of(history, "count") if "[[0," in stored(history, completed(history), one.task).state
    )
    verdict = judged(toy, mutated(history, lambda history: edit(history, completed(history), task, more)))
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.checkpoint, verdict.tasks) == ("state differs", 3, (task,))
    assert verdict.message == f"count stored {told[0]}"


def test_a_join_side_that_was_lost() -> None:
    toy = recovered(joining())
    toy.finish()

    def less(state: StoredState) -> None:
        state.entries.clear()

    history = mutated(toy.history(), lambda history: edit(history, completed(history), "join-0", less))
    assert difference(toy, history) == "state differs"


@pytest.mark.parametrize(("by", "expected"), [(1, "sent after, applied before"), (-1, "sent before, applied after")])
def test_marks_that_disagree_along_a_channel(toy: Toy, by: int, expected: str) -> None:
    def mutation(history: History) -> None:
        for one in runs_of(history, "count"):
            for mark in one.marks:
                if mark.checkpoint == 2 and mark.received[0]:
                    mark.received[0] += by

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.checkpoint) == (expected, 2)
    assert any("the network saw the barrier after" in event for event in verdict.events)


def test_the_networks_word_counts_by_itself(toy: Toy) -> None:
    def mutation(history: History) -> None:
        channel = next(one for one in history.channels if any(number == 2 for number, _ in one.barriers))
        channel.barriers = [(number, before + 1) for number, before in channel.barriers]

    assert difference(toy, mutated(toy.history(), mutation)) == "sent before, applied after"


def test_a_record_applied_in_another_epoch_than_it_was_read_in(toy: Toy) -> None:
    """The marks agree with each other, the records that they divide do not."""

    def mutation(history: History) -> None:
        sink = next(one for one in runs_of(history, "sink") if one.attempt == 2 and one.marks[0].applies)
        inside, outside = sink.marks[0].applies - 1, len(sink.applies) - 1
        assert inside < outside
        sink.applies[inside], sink.applies[outside] = sink.applies[outside], sink.applies[inside]

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "sent after, applied before"
    assert "epoch of checkpoint" in verdict.message


def test_a_record_that_nobody_read(toy: Toy) -> None:
    def mutation(history: History) -> None:
        sink = next(one for one in reversed(runs_of(history, "sink")) if one.applies)
        channel, _ = sink.applies[-1]
        sink.applies[-1] = (channel, (7 << 40))

    assert difference(toy, mutated(toy.history(), mutation)) == "applied without a read"


def test_a_transaction_that_the_snapshot_does_not_name(toy: Toy) -> None:
    history = toy.history()
    entry = completed(history, 1)
    task = next(one.task for one in history.transactions if one.checkpoint == 2 and one.rows)

    def forget(state: StoredState) -> None:
        state.transactions.clear()

    verdict = judged(toy, mutated(history, lambda history: edit(history, completed(history, 1), task, forget)))
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.checkpoint, verdict.tasks) == ("transaction differs", entry.checkpoint, (task,))


def test_a_row_that_slipped_from_one_transaction_into_the_one_before(toy: Toy) -> None:
    def mutation(history: History) -> None:
        for task in ("sink-0", "sink-1"):
            own = [one for one in history.transactions if one.task == task and one.rows and one.attempt == 2]
            if len(own) > 1:
                own[0].rows.append(own[1].rows.pop(0))
                own[0].applied.append(own[1].applied.pop(0))
                return
        raise AssertionError("no sink wrote in two epochs")

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "transaction differs"
    assert "after the barrier" in verdict.message


def test_a_row_that_was_never_written(toy: Toy) -> None:
    def mutation(history: History) -> None:
        one = next(one for one in history.transactions if one.status == "committed" and one.rows)
        one.rows.pop()
        one.applied.pop()

    assert difference(toy, mutated(toy.history(), mutation)) == "transaction differs"


def test_a_row_written_wrong(toy: Toy) -> None:
    def mutation(history: History) -> None:
        one = next(one for one in history.transactions if one.status == "committed" and one.rows)
        key, value, tag, tag2 = one.rows[0]
        one.rows[0] = (key, (value or 0) + 50, tag, tag2)

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "wrong row"
    assert "the rows written in the epoch of checkpoint" in verdict.message


def test_a_checkpoint_without_a_tasks_snapshot(toy: Toy) -> None:
    def unnamed(history: History) -> None:
        del completed(history).handles["count-0"]

    def unstored(history: History) -> None:
        history.stored.remove(stored(history, completed(history), "count-0"))

    def torn(history: History) -> None:
        one = stored(history, completed(history), "count-0")
        one.state = one.state[: len(one.state) // 2]

    messages = []
    for mutation in (unnamed, unstored, torn):
        verdict = judged(toy, mutated(toy.history(), mutation))
        assert isinstance(verdict, Violated)
        assert (verdict.difference, verdict.checkpoint, verdict.tasks) == ("snapshot missing", 3, ("count-0",))
        messages.append(verdict.message)
    assert messages == [
        "checkpoint 3 was completed without a snapshot of count-0",
        f"checkpoint 3 points to {completed(toy.history()).handles['count-0']}, which was never stored",
        "the snapshot of count-0 in checkpoint 3 cannot be read",
    ]


def test_without_state_or_records_around_it_a_checkpoint_shows_nothing() -> None:
    toy = Toy(counting())
    toy.start()
    toy.checkpoint_now()
    toy.end("cancelled")
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not exercised"


def test_a_mode_that_does_not_align_promises_no_cut() -> None:
    toy = recovered(counting(), guarantee="at-least-once", sink="plain")
    toy.finish()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"
