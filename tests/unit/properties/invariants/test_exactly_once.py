"""exactly-once: what it sees, what it leaves open, and that it accuses no correct run."""

from __future__ import annotations

import pytest

from cutproof.properties.invariants.exactly_once import check
from cutproof.properties.model.history import FaultFired, History, JobEnded, Written
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, joining, recovered, run
from unit.properties.mutated import mutated, with_rows
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


@pytest.mark.parametrize("sink", ["transactional", "idempotent"])
def test_no_correct_run_of_any_shape_is_accused(sink: str) -> None:
    held = 0
    for seed in range(120):
        verdict = check(Case(*drawn(seed), run(drawn(seed), seed=seed, steps=60, sink=sink)))
        assert not isinstance(verdict, Violated), (seed, verdict)
        held += isinstance(verdict, Holds)
    assert held > 50


def test_a_restore_amid_records_is_exercise() -> None:
    assert judged(finished()) == Holds(exercised=1)


def test_a_lost_row() -> None:
    toy = finished()
    dropped = toy.history().committed[-1]
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.remove(dropped)))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"
    assert f"key {dropped[0]}, value {dropped[1]}, tag 0" in verdict.records
    assert verdict.tasks


def test_a_repeated_row() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.append(history.committed[0])))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "repeated row"
    assert any("sealed for checkpoint" in event for event in verdict.events)


def test_a_row_equal_but_for_its_tag() -> None:
    toy = recovered(joining())
    toy.finish()

    def mutation(history: History) -> None:
        key, value, tag, tag2 = history.committed[0]
        history.committed[0] = (key, value, tag + 1, tag2)

    verdict = judged(toy, mutated(toy.history(), mutation))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "wrong row"
    assert len(verdict.records) == 2


def test_a_row_that_nobody_expected() -> None:
    toy = finished()
    verdict = judged(toy, mutated(toy.history(), lambda history: history.committed.append((99, 1, 0, 0))))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "unexpected row"


def test_a_tail_that_was_never_read_is_lost_where_the_job_states_it_finished() -> None:
    toy = recovered(counting(per_split=8))
    toy.end("finished", checkpoint=toy.checkpoint_now())
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"


def test_of_a_cancelled_job_only_the_newest_checkpoint_is_expected() -> None:
    toy = recovered(counting(per_split=8))
    toy.end("cancelled")
    assert isinstance(judged(toy), Holds)


def test_prepared_rows_of_a_completed_checkpoint_count() -> None:
    toy = recovered(counting(per_split=8))
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    history = toy.history()
    assert with_rows(history, "prepared").checkpoint == number
    assert isinstance(judged(toy, history), Holds)
    for one in history.transactions:
        if one.status == "prepared":
            one.status = "aborted"
    verdict = judged(toy, history)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "lost row"


def test_prepared_rows_that_no_snapshot_names_do_not_count() -> None:
    toy = recovered(counting(per_split=8))
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    history = toy.history()
    for one in history.stored:
        one.state = one.state.replace('"transactions":[["sink', '"ignored":[["sink')
    assert isinstance(judged(toy, history), Violated)


def test_rows_of_an_uncompleted_checkpoint_are_too_many() -> None:
    toy = recovered(counting(per_split=8))
    toy.trigger()
    toy.settle()
    history = toy.history()
    toy.commit(with_rows(history, "prepared"))
    verdict = judged(toy, toy.history())
    assert isinstance(verdict, Violated)
    assert verdict.difference in ("repeated row", "unexpected row")


def test_rows_sealed_for_an_aborted_checkpoint_come_with_the_next() -> None:
    toy = Toy(counting(per_split=8))
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    toy.trigger()
    toy.settle()
    toy.abort(1)
    toy.read("numbers-1")
    toy.settle()
    assert toy.checkpoint_now() == 2
    toy.kill("count-0")
    toy.restart()
    toy.finish()
    assert isinstance(judged(toy), Holds)


def test_without_a_hazard_nothing_was_shown() -> None:
    toy = Toy(counting())
    toy.start()
    toy.finish()
    assert judged(toy) == Unknown(
        reason=Reason.NOT_EXERCISED, detail="no restore amid records, no disturbed commit of a row"
    )


def test_a_disturbed_commit_of_a_row_is_a_hazard() -> None:
    toy = Toy(counting())
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    number = toy.trigger()
    toy.settle()
    toy.note(FaultFired, fault=0, kind="fail-commit", phase="committing")
    toy.complete(number)
    toy.finish()
    assert judged(toy) == Holds(exercised=1)


def test_no_committed_row_shows_nothing() -> None:
    toy = recovered(counting(per_split=8, bounded=False))
    history = toy.history()
    history.committed.clear()
    history.completed.clear()
    assert judged(toy, history) == Unknown(reason=Reason.NOT_EXERCISED, detail="no row was committed")


def test_a_transaction_that_its_store_gave_up_breaks_the_assumption_only_if_the_job_reports_it() -> None:
    toy = recovered(counting(per_split=8))
    number = toy.trigger()
    toy.settle()
    toy.complete(number, notify=False)
    for one in toy.seen.transactions:
        if one.status == "prepared":
            one.status, one.aborted = "aborted", toy.tick()
    silent = mutated(toy.history(), lambda history: None)
    assert isinstance(judged(toy, silent), Violated)
    toy.note(JobEnded, job=1, status="failed", reason="Transaction sink-0/3 has expired")
    verdict = judged(toy, toy.history())
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "assumption broken"


def test_a_plain_sink_promises_less() -> None:
    verdict = judged(finished(sink="plain"))
    assert verdict == Unknown(reason=Reason.NOT_PROMISED, detail="exactly-once mode with a plain sink")


def test_resuming_an_older_snapshot_promises_nothing() -> None:
    toy = Toy(counting(per_split=8))
    toy.start()
    toy.read("numbers-0")
    toy.settle()
    older = toy.checkpoint_now(savepoint=True)
    toy.read("numbers-0")
    toy.settle()
    toy.checkpoint_now()
    toy.end("cancelled")
    toy.resume(older)
    toy.finish()
    assert judged(toy) == Unknown(reason=Reason.NOT_PROMISED, detail="resumed from an older snapshot")


def test_an_idempotent_table_holds_the_last_row_of_each_key() -> None:
    toy = finished(sink="idempotent")
    assert isinstance(judged(toy), Holds)
    history = toy.history()
    key, value, tag, tag2 = history.committed[0]
    assert value is not None

    def older(false: History) -> None:
        false.committed[0] = (key, value - 1, tag, tag2)

    def foreign(false: History) -> None:
        false.written.append(Written(task="sink-0", attempt=1, order=1, applied=1, row=(key, 999, 0, 0)))

    def missing(false: History) -> None:
        del false.committed[0]

    def twice(false: History) -> None:
        false.committed.append(false.committed[0])

    found = {
        mutation.__name__: judged(toy, mutated(history, mutation)) for mutation in (older, foreign, missing, twice)
    }
    assert {name: verdict.difference for name, verdict in found.items() if isinstance(verdict, Violated)} == {
        "older": "wrong row",
        "foreign": "unexpected row",
        "missing": "lost row",
        "twice": "repeated row",
    }


def test_in_class_h_each_record_is_applied_once_at_each_operator() -> None:
    seeds = [seed for seed in range(60) if Case(*drawn(seed), run(drawn(seed), seed=seed)).class_ == "H"]
    turned = 0
    for seed in seeds:
        history = run(drawn(seed), seed=seed, steps=60)
        if not isinstance(check(Case(*drawn(seed), history)), Holds):
            continue
        sink = next((one for one in reversed(history.runs) if one.operator == "sink" and one.applies), None)
        if sink is None:
            continue
        sink.applies.append(sink.applies[0])
        turned += isinstance(check(Case(*drawn(seed), history)), Violated)
    assert turned > 3
