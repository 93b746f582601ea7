"""visibility: what it sees, and that it accuses no correct run."""

from __future__ import annotations

import time

import msgspec
import pytest

from cutproof.properties.invariants.visibility import check
from cutproof.properties.model.history import (
    AttemptStarted,
    Completed,
    History,
    Mark,
    Read,
    Stored,
    TaskRun,
    Transaction,
)
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.model.workload import SINK, Edge, Input, Topology, Workload, origin_of
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, joining, recovered
from unit.properties.toy import Toy

ASKED = Asked(check)
judged, difference = ASKED.judged, ASKED.difference


def with_rows(toy: Toy, status: str) -> Transaction:
    return next(one for one in toy.seen.transactions if one.rows and one.status == status)


def finished() -> Toy:
    toy = recovered(counting(per_split=8))
    toy.finish()
    return toy


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs():
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


def test_attempts_that_died_with_rows_are_exercise() -> None:
    toy = finished()
    died = sum(bool(one.rows) and one.attempt == 1 and one.status == "aborted" for one in toy.seen.transactions)
    assert died
    assert judged(toy) == Holds(exercised=died)


def test_a_read_between_seal_and_completion_is_exercise() -> None:
    toy = Toy(counting(splits=1, parallelism=1))
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    number = toy.trigger()
    toy.settle()
    toy.look()
    toy.complete(number)
    toy.look()
    assert judged(toy) == Holds(exercised=1)


def test_a_read_after_completion_shows_nothing() -> None:
    toy = Toy(counting(splits=1, parallelism=1))
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    toy.checkpoint_now()
    toy.look()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not exercised"


@pytest.mark.parametrize(("sink", "guarantee"), [("plain", "exactly-once"), ("transactional", "at-least-once")])
def test_not_promised(sink: str, guarantee: str) -> None:
    toy = recovered(sink=sink, guarantee=guarantee)
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"


def test_rows_from_both_sides_of_a_snapshot() -> None:
    toy = finished()
    early = with_rows(toy, "committed")
    late = next(
        one
        for one in toy.seen.transactions
        if one.rows and one.task == early.task and one.attempt == early.attempt and one is not early
    )
    late.rows.insert(0, early.rows[-1])
    late.applied.insert(0, early.applied[-1])
    assert difference(toy) == "rows of two epochs"


def test_a_transaction_sealed_for_a_snapshot_before_its_rows() -> None:
    toy = finished()
    late = next(one for one in toy.seen.transactions if one.rows and one.attempt == 2)
    task = next(run for run in toy.seen.runs if (run.task, run.attempt) == (late.task, late.attempt))
    mark = task.marks[0]
    late.checkpoint = mark.checkpoint
    late.applied = [taken + mark.applies for taken in late.applied]
    assert difference(toy) == "rows of two epochs"


def test_rows_around_a_snapshot_that_was_aborted_are_one_epoch() -> None:
    """A sink that does not seal for a checkpoint which comes to nothing wrongs nobody."""
    toy = recovered(counting(per_split=8))
    toy.abort(toy.trigger())
    toy.read("numbers-0")
    toy.settle()
    toy.finish()
    assert isinstance(judged(toy), Holds)


def test_commit_before_completion() -> None:
    toy = finished()
    transaction = with_rows(toy, "committed")
    completed = next(entry for entry in toy.seen.completed if entry.checkpoint == transaction.checkpoint)
    transaction.commit_requested = completed.order - 1
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "commit before completion"
    assert verdict.checkpoint == transaction.checkpoint
    assert verdict.records


def test_commit_after_the_completion_of_an_older_snapshot_only() -> None:
    """Completed is not enough: it must be the snapshot that covers the rows."""
    toy = finished()
    transaction = [one for one in toy.seen.transactions if one.rows and one.attempt == 2][-1]
    transaction.commit_requested = toy.seen.completed[0].order + 1
    assert difference(toy) == "commit before completion"


def test_a_dead_attempts_sealed_rows_are_committed() -> None:
    toy = recovered()
    toy.trigger()
    toy.settle()
    toy.kill("count-0")
    toy.restart()
    left = [one for one in toy.seen.transactions if one.rows and one.prepared and one.status == "aborted"][-1]
    left.status, left.aborted, left.commit_requested, left.committed = "committed", None, toy.tick(), toy.tick()
    assert difference(toy) == "commit without a snapshot"


def test_a_dead_attempts_open_rows_are_committed() -> None:
    toy = finished()
    left = next(one for one in toy.seen.transactions if one.rows and one.prepared is None and one.status == "aborted")
    left.status, left.committed = "committed", toy.tick()
    assert difference(toy) == "unsealed rows committed"


def test_a_reader_that_sees_rows_before_anything_is_complete() -> None:
    toy = finished()
    order = toy.seen.completed[0].order - 1
    toy.seen.reads.append(Read(began=order, ended=order, rows=1))
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "rows seen too early"
    assert len(verdict.records) == 1
    assert verdict.message.endswith("no checkpoint was complete")
    assert verdict.checkpoint is None


def test_a_reader_that_sees_more_than_the_newest_snapshot_covers() -> None:
    toy = finished()
    first = toy.seen.completed[0]
    covered = sum(len(one.rows) for one in toy.seen.transactions if one.checkpoint == first.checkpoint)
    toy.seen.reads.append(Read(began=first.order + 1, ended=first.order + 1, rows=covered))
    assert isinstance(judged(toy), Holds)
    toy.seen.reads.append(Read(began=first.order + 1, ended=first.order + 1, rows=covered + 1))
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "rows seen too early"
    assert verdict.message == "a reader saw 1 row that no snapshot covered: checkpoint 1 was the newest complete"
    assert verdict.checkpoint == 1


def test_a_read_off_the_lineage_is_not_judged() -> None:
    """A job resumed from an older savepoint promises nothing of what its predecessor showed."""
    toy = Toy(joining())
    toy.start()
    toy.checkpoint_now(savepoint=True)
    toy.read_all()
    toy.checkpoint_now()
    toy.look()
    toy.cancel()
    toy.resume(toy.seen.completed[0].checkpoint)
    toy.checkpoint_now()
    assert not isinstance(judged(toy), Violated)


def test_a_writer_that_nobody_observed_is_not_judged() -> None:
    toy = finished()
    toy.history().runs = [run for run in toy.seen.runs if run.operator != "sink"]
    assert not isinstance(judged(toy), Violated)


def long_run(checkpoints: int) -> Case:
    """One source and one sink, a record and a read between every two checkpoints."""
    source = Input(name="numbers", splits=(tuple((1, at, at + 1) for at in range(checkpoints)),))
    topology = Topology(
        parallelism={"numbers": 1, SINK: 1},
        edges=(Edge(sender="numbers", receiver=SINK, partitioning="forward"),),
    )
    history = History(subject="toy", guarantee="exactly-once", sink="transactional")
    history.journal = [AttemptStarted(order=0, at_us=0, attempt=1, job=1)]
    common = {"subtask": 0, "attempt": 1, "job": 1, "started": 0}
    reader = TaskRun(task="numbers-0", operator="numbers", inputs=[], outputs=["numbers-0>sink-0"], **common)
    writer = TaskRun(task="sink-0", operator=SINK, inputs=["numbers-0>sink-0"], outputs=[], **common)
    history.runs = [reader, writer]
    for at in range(checkpoints):
        order, number = at * 10, at + 1
        reader.reads.append((0, at))
        writer.applies.append((0, origin_of(0, at)))
        marked = {"checkpoint": number, "order": order, "at_us": order}
        reader.marks.append(Mark(**marked, reads=number, applies=0, received=[], sent=[number]))
        writer.marks.append(Mark(**marked, reads=0, applies=number, received=[number], sent=[]))
        state = f'{{"positions": {{"0": {number}}}}}'
        handles = {}
        for task, text in (("numbers-0", state), ("sink-0", "")):
            handles[task] = f"{number}/{task}"
            history.stored.append(
                Stored(checkpoint=number, task=task, attempt=1, order=order, at_us=0, handle=handles[task], state=text)
            )
        history.reads.append(Read(began=order + 2, ended=order + 3, rows=at))
        history.completed.append(
            Completed(checkpoint=number, job=1, attempt=1, order=order + 4, at_us=0, handles=handles)
        )
        sealed = Transaction(name=str(number), task="sink-0", attempt=1, begun=order, rows=[(1, at, at + 1, 0)])
        sealed.applied, sealed.checkpoint, sealed.prepared = [number], number, order + 1
        sealed.commit_requested, sealed.committed, sealed.status = order + 5, order + 6, "committed"
        history.transactions.append(sealed)
        history.committed += sealed.rows
    return Case(Workload(name="long", inputs=(source,)), topology, history)


def test_thousands_of_checkpoints_are_judged_in_moments() -> None:
    case = long_run(4_000)
    began = time.process_time()
    assert check(case) == Holds(exercised=4_000)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("at", [0, 1_500, 3_998])
def test_one_early_row_in_a_long_run(at: int) -> None:
    case = long_run(4_000)
    case.history.reads[at].rows += 1
    verdict = check(case)
    assert isinstance(verdict, Violated)
    assert verdict.records == (f"key 1, value {at}, tag {at + 1}",)


def test_a_reader_that_goes_back_sees_no_more_than_before() -> None:
    case = long_run(10)
    case.history.reads.append(Read(began=5, ended=6, rows=1))
    case.history.reads.append(Read(began=95, ended=96, rows=10))
    assert isinstance(check(case), Holds)
    case.history.reads.append(Read(began=5, ended=6, rows=2))
    verdict = check(case)
    assert isinstance(verdict, Violated)
    assert verdict.message == "a reader saw 1 row that no snapshot covered: checkpoint 1 was the newest complete"


# -- a global committer publishes all of a checkpoint in one step ----------------------------------------------------


def published(publisher: str = "global-committer") -> tuple[Toy, Transaction, Transaction]:
    """A run with a publisher, and the two transactions of its first checkpoint: each has rows."""
    toy = finished()
    run = next(run for run in toy.seen.runs if run.operator == SINK)
    toy.seen.runs.append(msgspec.structs.replace(run, task=f"{publisher}-0", operator=publisher, subtask=0, applies=[]))
    one, other = (one for one in toy.seen.transactions if one.checkpoint == 1)
    other.rows, one.rows = one.rows[-1:], one.rows[:-1]
    other.applied, one.applied = [0], one.applied[:-1]
    return toy, one, other


def look_after(toy: Toy, *shown: Transaction, by: int = 1) -> None:
    """A reader looks, for `by` of the history's ticks, once these are committed."""
    began = max(one.committed or 0 for one in shown) + 1
    toy.seen.reads = [Read(began=began, ended=began + by, rows=0)]


def test_a_reader_that_sees_half_a_checkpoint() -> None:
    toy, one, other = published()
    one.committed = other.committed
    look_after(toy, one)
    assert not isinstance(judged(toy), Violated), "both are there"
    other.committed = (other.committed or 0) + 9
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.checkpoint) == ("half a checkpoint seen", one.checkpoint)
    assert other.name in verdict.message


def test_what_came_while_a_reader_looked_it_may_have_seen() -> None:
    toy, one, other = published()
    one.committed = other.committed
    look_after(toy, one, by=5)
    other.committed = toy.seen.reads[0].ended
    assert not isinstance(judged(toy), Violated)
    other.committed += 1
    assert difference(toy) == "half a checkpoint seen"


def test_rows_of_a_later_checkpoint_are_not_missed() -> None:
    toy, one, other = published()
    one.committed = other.committed
    look_after(toy, one)
    other.committed = (other.committed or 0) + 9
    other.checkpoint = (other.checkpoint or 0) + 1
    assert not isinstance(judged(toy), Violated)


def test_committers_without_a_global_one_publish_one_by_one() -> None:
    toy, one, other = published("committer")
    one.committed = other.committed
    look_after(toy, one)
    other.committed = (other.committed or 0) + 9
    assert not isinstance(judged(toy), Violated)
