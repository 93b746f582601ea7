"""no-data-loss: what it sees, what it leaves open, and that it accuses no correct run."""

from __future__ import annotations

from cutproof.properties.invariants.no_data_loss import check
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.model.workload import Edge, Filter, Input, Node, Topology, Workload
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered, run
from unit.properties.mutated import mutated, runs_of, with_rows
from unit.properties.shapes import drawn
from unit.properties.toy import Toy

judged = Asked(check).judged


def finished(**options: str) -> Toy:
    toy = recovered(counting(per_split=8), **options)
    toy.finish()
    return toy


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs(range(4)):
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


def test_no_correct_run_of_any_shape_is_accused() -> None:
    for seed in range(100):
        for guarantee in ("exactly-once", "at-least-once"):
            verdict = check(Case(*drawn(seed), run(drawn(seed), seed=seed, steps=60, guarantee=guarantee)))
            assert not isinstance(verdict, Violated), (seed, verdict)


def test_a_lost_row_and_nothing_of_a_repeated_one() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.pop()))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"
    more = mutated(toy.history(), lambda history: history.committed.append(history.committed[0]))
    assert isinstance(judged(toy, more), Holds)


def test_an_unread_tail_shows_even_where_no_row_comes_of_it() -> None:
    source = Input(name="in", splits=(((1, 2, 11), (1, 3, 12), (1, 2, 13)),))
    workload = Workload(
        name="even", inputs=(source,), nodes=(Node(name="odd", operator=Filter(modulus=2, drop=0), inputs=("in",)),)
    )
    edges = (
        Edge(sender="in", receiver="odd", partitioning="hash"),
        Edge(sender="odd", receiver="sink", partitioning="hash"),
    )
    toy = Toy((workload, Topology(parallelism={"in": 1, "odd": 1, "sink": 1}, edges=edges)))
    toy.start()
    toy.read("in-0")
    toy.read("in-0")
    toy.settle()
    toy.end("finished", checkpoint=toy.checkpoint_now())
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "record never read"
    assert verdict.records == ("record 2 of split 0 (tag 13)",)


def test_a_message_that_its_receiver_never_took() -> None:
    toy = finished()

    def mutation(history: History) -> None:
        count = next(one for one in reversed(runs_of(history, "count")) if one.applies)
        channel, _ = count.applies.pop()
        for mark in count.marks:
            if mark.applies > len(count.applies):
                mark.applies -= 1
                mark.received[channel] -= 1

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "message never applied"
    assert verdict.tasks[0].startswith("numbers-")


def test_a_message_in_flight_when_the_job_reported_its_end() -> None:
    toy = recovered(counting(per_split=8))
    toy.read_all()
    toy.checkpoint_now()
    last = next(one for one in toy.tasks.values() if one.run.operator == "count" and one.run.applies)
    channel = next(one for one in toy.seen.channels if one.name == last.run.inputs[0] and one.attempt == 2)
    channel.sent.append(channel.sent[-1])
    toy.end("finished", checkpoint=2)
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "message never applied"
    assert verdict.tasks == (channel.name.partition(">")[0], last.run.task)


def test_a_tail_that_was_taken_and_never_committed_is_lost_as_rows() -> None:
    toy = recovered(counting(per_split=8))
    toy.checkpoint_now()
    toy.read_all()
    toy.end("finished", checkpoint=2)
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"


def test_rows_bound_to_be_committed_are_not_lost() -> None:
    toy = recovered(counting(per_split=8))
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    history = toy.history()
    assert isinstance(judged(toy, history), Holds)
    pending = with_rows(history, "prepared")
    pending.status = "aborted"
    assert isinstance(judged(toy, history), Violated)


def test_a_key_missing_from_an_idempotent_table() -> None:
    toy = finished(sink="idempotent")
    assert isinstance(judged(toy), Holds)
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.pop()))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"


def test_exercise_is_what_was_in_doubt_at_the_restore_and_at_the_end() -> None:
    toy = finished()
    read_again = 4
    tail = sum(len(one.reads) for one in runs_of(toy.history(), "numbers") if one.attempt == 2)
    died = sum(len(one.rows) for one in toy.seen.transactions if one.attempt == 1 and one.status == "aborted")
    assert judged(toy) == Holds(exercised=read_again + died + tail)


def test_a_quiet_run_with_everything_committed_shows_nothing() -> None:
    toy = Toy(counting(bounded=False))
    toy.start()
    toy.read_all()
    toy.checkpoint_now()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not exercised"


def test_the_weakest_mode_may_lose() -> None:
    toy = finished(sink="plain", guarantee="at-most-once")
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"
