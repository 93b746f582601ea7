"""The examples of snapshots and their life can fail: beside other runs, on other runs, or on altered histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from cutproof.faults.plan import DelayChannel, Fault, KillTask
from cutproof.harness.examples import EXAMPLES
from cutproof.harness.examples.snapshots.savepoints import forked, savepoint, taken_as
from cutproof.harness.examples.snapshots.shared_files import referring
from cutproof.harness.examples.snapshots.stopping import FORMATS, KEYS, stop_us, stopped
from cutproof.harness.examples.snapshots.two_histories import committed_behind, follow_from, taken
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.model.history import AttemptStarted, History, JobEnded, SnapshotDeleted
from unit.harness.example_runs import not_shown, run


@pytest.mark.parametrize(("name", "claims"), [("failure-after-savepoint", {1, 4, 5}), ("ab-test", {2, 3, 4})])
def test_beside_a_run_in_which_savepoints_are_snapshots(name: str, claims: set[int]) -> None:
    """What a claim sets its run beside does not differ from it."""
    assert not_shown(name, run(EXAMPLES[name].scenario), lambda one: taken_as(one, "snapshots")) == claims


@pytest.mark.parametrize(
    ("name", "savepoints", "claims"),
    [
        ("failure-after-savepoint", "never-restored", {2, 3}),
        ("failure-after-savepoint", "without-side-effects", {0, 2, 3}),
        ("ab-test", "without-side-effects", {5}),
    ],
)
def test_on_a_run_with_other_savepoints(name: str, savepoints: str, claims: set[int]) -> None:
    assert claims <= not_shown(name, run(taken_as(EXAMPLES[name].scenario, savepoints)))


def test_the_ab_test_without_its_trouble_shows_no_second_history() -> None:
    """If all records come in the same order as before the failure, A meets the state in the savepoint again."""

    def in_order(scenario: Scenario) -> Scenario:
        faults = tuple(one for one in scenario.faults if not isinstance(one, DelayChannel))
        return msgspec.structs.replace(scenario, faults=faults)

    scenario = EXAMPLES["ab-test"].scenario
    assert {3, 4} <= not_shown("ab-test", run(scenario), in_order)


@pytest.mark.parametrize(("kind", "claims"), [(DelayChannel, {2, 3}), (KillTask, {4, 5})])
def test_two_histories_without_what_parts_them(kind: type[Fault], claims: set[int]) -> None:
    """Undisturbed, A takes all in the order of B; and if it never fails, it never falls back."""
    scenario = EXAMPLES["two-histories-after-fork"].scenario
    faults = tuple(one for one in scenario.faults if not isinstance(one, kind))
    assert not_shown("two-histories-after-fork", run(msgspec.structs.replace(scenario, faults=faults))) == claims


def test_the_rows_of_both_are_computed_from_the_records_that_each_took() -> None:
    scenario = EXAMPLES["two-histories-after-fork"].scenario
    history = run(scenario)
    other = forked(history).history
    (before, of_a), (before_b, of_b) = taken(history), taken(other)
    assert before == before_b
    assert len(before) + len(of_a) == scenario.workload.records()
    assert sorted(of_a) == sorted(of_b)
    assert of_a != of_b
    for job in (history, other):
        rows, behind = follow_from(scenario, job)
        assert rows == Counter(job.committed)
        assert behind == committed_behind(job) != rows


def test_without_a_job_that_begins_from_it_nothing_shows_that_the_savepoint_is_whole() -> None:
    scenario = EXAMPLES["retained-incremental"].scenario
    assert not_shown("retained-incremental", run(scenario), _without_forks) == {4}


def _of_another_format(scenario: Scenario, name: str) -> Scenario:
    engine = msgspec.structs.replace(scenario.engine, snapshot_format=name)
    return msgspec.structs.replace(scenario, engine=engine)


@pytest.mark.parametrize("name", ["retained-incremental", "incremental-stop-and-upgrade"])
@pytest.mark.parametrize("format_name", ["canonical", "native"])
def test_with_checkpoints_of_another_format(name: str, format_name: str) -> None:
    found = not_shown(name, run(_of_another_format(EXAMPLES[name].scenario, format_name)))
    assert {0, 1} <= found


def _keep_all(history: History) -> None:
    history.journal = [one for one in history.journal if not isinstance(one, SnapshotDeleted)]


def _delete_first(history: History) -> None:
    """The files are deleted as soon as the first of those who refer to them is gone."""
    for entry in history.journal:
        if isinstance(entry, SnapshotDeleted):
            entry.handles += [name for name, by in referring(history).items() if by[0].checkpoint == entry.checkpoint]


def _leave_a_file(history: History) -> None:
    history.residue.files.append("job-1/chk-1/count-0-1")


def _never_restored(history: History) -> None:
    for entry in history.journal:
        if isinstance(entry, AttemptStarted):
            entry.restores = None


def _row_of_b_in_a(history: History) -> None:
    """A commits a row that follows from the order of B alone, in the place of one of its own."""
    of_a, of_b = committed_behind(history), committed_behind(forked(history).history)
    (own, *_), (others, *_) = list(of_a - of_b), list(of_b - of_a)
    history.committed = [others if row == own else row for row in history.committed]


def _row_of_a_in_b(history: History) -> None:
    """B has a row that A committed behind the savepoint."""
    other = forked(history).history
    others = committed_behind(history) - committed_behind(other)
    other.committed = [*other.committed, next(iter(others))]


def _past_row_lost_in_b(history: History) -> None:
    other = forked(history).history
    other.committed = other.committed[1:]


def _sealed_again_in_b(history: History) -> None:
    """B commits a transaction of A that was sealed behind the savepoint."""
    last = savepoint(history).checkpoint
    behind = [one for one in history.transactions if one.status == "committed" and (one.checkpoint or 0) > last]
    forked(history).history.transactions += behind[:1]


def _not_forked(history: History) -> None:
    history.forks = msgspec.UNSET


def _without_forks(scenario: Scenario) -> Scenario:
    return msgspec.structs.replace(scenario, commands=scenario.commands[:1])


def _never_stopped(history: History) -> None:
    history.journal = [one for one in history.journal if not isinstance(one, JobEnded)]


@pytest.mark.parametrize(
    ("name", "alter", "claims"),
    [
        ("retained-incremental", _keep_all, {2}),
        ("retained-incremental", _delete_first, {2, 3, 4}),
        ("retained-incremental", _leave_a_file, {3}),
        ("retained-incremental", _never_restored, {0, 1, 2}),
        ("failure-after-savepoint", _never_restored, {2, 3}),
        ("ab-test", _not_forked, {1, 5}),
        ("two-histories-after-fork", _not_forked, {0, 1, 2, 3, 4, 5}),
        ("two-histories-after-fork", _never_restored, {2, 3, 4, 5}),
        ("two-histories-after-fork", _row_of_b_in_a, {3, 5}),
        ("two-histories-after-fork", _row_of_a_in_b, {3, 5}),
        ("two-histories-after-fork", _past_row_lost_in_b, {1, 5}),
        ("two-histories-after-fork", _sealed_again_in_b, {3}),
        ("incremental-stop-and-upgrade", _never_stopped, {3, 4}),
        ("incremental-stop-and-upgrade", _never_restored, {4}),
    ],
)
def test_on_a_history_that_was_altered(name: str, alter: Callable[[History], None], claims: set[int]) -> None:
    history = run(EXAMPLES[name].scenario)
    alter(history)
    assert claims <= not_shown(name, history)


def test_only_the_stop_with_an_incremental_savepoint_takes_as_long_with_a_large_state() -> None:
    took = {name: [stop_us(run(stopped(keys, name))) for keys in (KEYS[0], KEYS[-1])] for name in FORMATS}
    assert took["incremental"][1] < 1.2 * took["incremental"][0]
    for name in ("canonical", "native"):
        assert took[name][1] > 4 * took[name][0]
