"""restored-state: what it sees, and that it accuses no correct run."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from cutproof.properties.invariants.restored_state import check
from cutproof.properties.model.history import (
    AttemptRunning,
    CommandIssued,
    CommandReturned,
    History,
    Loaded,
    StoredState,
    TaskRun,
)
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.quick_checker.case import Case
from unit.properties.asked import Asked
from unit.properties.histories import correct_runs, counting, recovered
from unit.properties.toy import Toy

ASKED = Asked(check)
judged, difference = ASKED.judged, ASKED.difference


def loaded(history: History, operator: str) -> tuple[TaskRun, Loaded]:
    """The last run of an operator that loaded entries or positions."""
    for run in reversed(history.runs):
        if run.operator == operator and run.loaded is not None:
            state = msgspec.json.decode(run.loaded.state, type=StoredState)
            if operator not in ("count", "sink") or state.entries or state.transactions:
                return run, run.loaded
    raise AssertionError("no such run")


def edit(held: Loaded, change: Callable[[StoredState], None]) -> None:
    state = msgspec.json.decode(held.state, type=StoredState)
    change(state)
    held.state = msgspec.json.encode(state).decode()


def test_no_correct_run_is_accused() -> None:
    kinds = set()
    for case, history in correct_runs():
        verdict = check(Case(*case, history))
        assert not isinstance(verdict, Violated), (case[0].name, verdict)
        kinds.add(type(verdict))
    assert kinds == {Holds, Unknown}


def test_tasks_that_restored_something_are_counted() -> None:
    toy = recovered()
    verdict = judged(toy)
    full = sum(
        run.loaded is not None and ('"positions":{"' in run.loaded.state or "[[" in run.loaded.state)
        for run in toy.history().runs
    )
    assert verdict == Holds(exercised=full)
    assert full >= 3


def test_a_run_without_failure_shows_nothing() -> None:
    toy = Toy(counting())
    toy.start()
    toy.finish()
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not exercised"


def test_at_most_once_does_not_rewind() -> None:
    toy = recovered(guarantee="at-most-once")
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not promised"


def test_an_entry_that_changed() -> None:
    toy = recovered()
    run, held = loaded(toy.history(), "count")

    def change(state: StoredState) -> None:
        side, key, n, tag = state.entries[0]
        state.entries[0] = (side, key, (n or 0) + 1, tag)

    edit(held, change)
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "loaded state differs"
    assert verdict.tasks == (run.task,)
    assert verdict.checkpoint == 1
    assert any("stored, not loaded" in words for words in verdict.records)
    assert any("loaded, not stored" in words for words in verdict.records)


def test_an_entry_loaded_twice_is_no_set_equality() -> None:
    toy = recovered()
    edit(loaded(toy.history(), "count")[1], lambda state: state.entries.append(state.entries[0]))
    assert difference(toy) == "loaded state differs"


def test_the_order_of_entries_does_not_matter() -> None:
    toy = recovered(counting(parallelism=1))
    edit(loaded(toy.history(), "count")[1], lambda state: state.entries.reverse())
    assert isinstance(judged(toy), Holds)


def test_a_transaction_that_was_forgotten() -> None:
    toy = recovered()
    edit(loaded(toy.history(), "sink")[1], lambda state: state.transactions.clear())
    assert difference(toy) == "loaded state differs"


def test_a_position_that_slipped() -> None:
    toy = recovered()
    edit(loaded(toy.history(), "numbers")[1], lambda state: state.positions.update({0: 0}))
    assert difference(toy) == "loaded state differs"


def test_text_that_is_no_snapshot() -> None:
    toy = recovered()
    loaded(toy.history(), "count")[1].state = '{"entries": 3}'
    assert difference(toy) == "loaded state differs"


def test_a_source_that_reads_on_from_elsewhere() -> None:
    toy = recovered()
    run, _ = loaded(toy.history(), "numbers")
    split, offset = run.reads[0]
    run.reads[0] = (split, offset + 1)
    assert difference(toy) == "read on from elsewhere"


def test_an_older_snapshot() -> None:
    toy = recovered()
    toy.checkpoint_now()
    toy.kill("count-0")
    toy.start(toy.seen.completed[0])
    assert difference(toy) == "another snapshot restored"


def test_a_snapshot_that_never_completed() -> None:
    toy = Toy(counting())
    toy.start()
    toy.kill("count-0")
    toy.restart()
    run = toy.tasks["count-0"].run
    run.loaded = Loaded(checkpoint=1, order=run.started, state="{}")
    assert difference(toy) == "another snapshot restored"


def test_a_task_that_restores_another_snapshot_than_the_rest() -> None:
    toy = recovered()
    toy.stop()
    toy.resume()
    held = next(run.loaded for run in toy.seen.runs if run.job == 2 and run.task == "count-0")
    assert held is not None
    held.checkpoint = toy.seen.completed[0].checkpoint
    first = next(one for one in toy.seen.stored if one.checkpoint == held.checkpoint and one.task == "count-0")
    held.state = first.state
    assert difference(toy) == "another snapshot restored"


def test_nothing_restored_though_something_was_complete() -> None:
    toy = recovered()
    toy.kill("count-0")
    toy.start(None)
    assert difference(toy) == "nothing restored"


def test_an_attempt_that_died_before_it_ran_is_not_blamed() -> None:
    toy = recovered()
    toy.kill("count-0")
    toy.start(None)
    toy.kill("count-0")
    toy.seen.journal = [entry for entry in toy.seen.journal if getattr(entry, "attempt", 0) != toy.attempt]
    assert isinstance(judged(toy), Holds)


def test_input_before_state() -> None:
    toy = recovered()
    loaded(toy.history(), "count")[1].applies_before = 1
    assert difference(toy) == "input before state"


def cancelled_behind_a_savepoint() -> tuple[Toy, int, int]:
    """A cancelled job, its savepoint, and the newer checkpoint."""
    toy = recovered()
    savepoint = toy.checkpoint_now(savepoint=True)
    toy.read("numbers-0")
    newest = toy.checkpoint_now()
    toy.cancel()
    return toy, savepoint, newest


def test_a_resumed_job_may_begin_with_the_snapshot_that_its_user_named() -> None:
    toy, savepoint, _ = cancelled_behind_a_savepoint()
    toy.resume(savepoint)
    assert isinstance(judged(toy), Holds)


def test_a_resumed_job_does_not_choose_an_older_savepoint_by_itself() -> None:
    toy, savepoint, newest = cancelled_behind_a_savepoint()
    toy.resume(savepoint)
    issued = next(one for one in toy.seen.journal if isinstance(one, CommandIssued) and one.kind == "resume")
    returned = next(one for one in toy.seen.journal[::-1] if isinstance(one, CommandReturned))
    issued.checkpoint = None
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "another snapshot named"
    assert verdict.message == f"the job was resumed from checkpoint {savepoint}, although its user asked for {newest}"
    returned.checkpoint = newest
    assert difference(toy) == "another snapshot restored"


def test_a_resumed_job_that_nobody_answered_for_begins_with_the_newest() -> None:
    toy, savepoint, newest = cancelled_behind_a_savepoint()
    toy.job += 1
    toy.start(next(entry for entry in toy.seen.completed if entry.checkpoint == savepoint))
    assert difference(toy) == "another snapshot restored"
    toy.kill("count-0")
    toy.start(next(entry for entry in toy.seen.completed if entry.checkpoint == newest))
    assert difference(toy) == "another snapshot restored"


def test_a_resumed_job_that_begins_afresh() -> None:
    toy, _, _ = cancelled_behind_a_savepoint()
    toy.resume()
    next(entry for entry in toy.seen.journal[::-1] if isinstance(entry, CommandReturned)).checkpoint = None
    assert difference(toy) == "another snapshot named"


def test_a_resume_that_was_refused_names_nothing() -> None:
    toy, _, _ = cancelled_behind_a_savepoint()
    toy.note(CommandIssued, command=7, kind="resume")
    toy.note(CommandReturned, command=7, error="no coordinator answers")
    toy.resume()
    assert isinstance(judged(toy), Holds)


@pytest.mark.parametrize("savepoint", [True, False])
def test_a_file_of_a_retained_snapshot_is_missing(savepoint: bool) -> None:
    toy = recovered()
    number = toy.checkpoint_now(savepoint=savepoint)
    if savepoint:
        toy.checkpoint_now()
    history = toy.history()
    if savepoint:  # a user's, whatever the job says of it
        history.residue.retained.remove(number)
    handle = toy.seen.completed[1].handles["count-0"]
    history.residue.files.remove(handle)
    verdict = check(Case(toy.workload, toy.topology, history))
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.checkpoint, verdict.tasks) == ("file missing", number, ("count-0",))
    assert handle in verdict.message


def test_snapshots_in_memory_have_no_files() -> None:
    toy = recovered()
    history = toy.history()
    history.residue.files.clear()
    assert isinstance(check(Case(toy.workload, toy.topology, history)), Violated)
    history.snapshots = "memory"
    assert isinstance(check(Case(toy.workload, toy.topology, history)), Holds)


def test_files_of_a_subsumed_snapshot_are_not_missed() -> None:
    toy = recovered()
    toy.checkpoint_now()
    history = toy.history()
    assert not set(toy.seen.completed[0].handles.values()) & set(history.residue.files)
    assert isinstance(check(Case(toy.workload, toy.topology, history)), Holds)


def test_a_savepoint_that_completed_out_of_order_is_not_the_newest() -> None:
    toy = recovered()
    savepoint = toy.trigger(savepoint=True)
    toy.settle()
    newest = toy.trigger()
    toy.settle()
    kept = toy.pending.pop(savepoint)
    toy.complete(newest)
    toy.pending[savepoint] = kept
    toy.complete(savepoint)
    toy.kill("count-0")
    toy.start(next(entry for entry in toy.seen.completed if entry.checkpoint == newest))
    assert isinstance(judged(toy), Holds)


def test_an_attempt_that_read_before_it_ran_is_blamed() -> None:
    toy = recovered()
    toy.kill("count-0")
    toy.start(None)
    toy.read("numbers-0")
    toy.kill("count-0")
    toy.seen.journal = [
        entry for entry in toy.seen.journal if not (isinstance(entry, AttemptRunning) and entry.attempt == toy.attempt)
    ]
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.tasks) == ("nothing restored", ("numbers-0",))


def test_the_witness_ends_with_the_restore() -> None:
    toy = recovered()
    run, held = loaded(toy.history(), "numbers")
    split, offset = run.reads[0]
    run.reads[0] = (split, offset + 1)
    toy.finish()
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert "attempt started" in verdict.events[-1]
    assert verdict.message == f"{run.task} restored position {offset} of split {split} and read on from {offset + 1}"
    assert verdict.checkpoint == held.checkpoint
