"""One meaning, three stores: the simulator's, PostgreSQL and SQLite."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    Append,
    BeginTransaction,
    Commit,
    Done,
    Fence,
    Finalise,
    Flush,
    NoCheckpoint,
    PreCommit,
    Publish,
    Upsert,
    Write,
)
from unit.processes.stores import ROWS, WITHIN_S, Asker, Processes, RunningServer, denied, done

ATTEMPTS = 8
"""How often one attempt is fenced by the next, amid its work."""


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    running = RunningServer()
    yield running
    running.close()


@pytest.fixture(params=["simulated", "database", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Processes]:
    kind = request.param
    dsn = request.getfixturevalue("server").dsn if kind == "database" else ""
    processes = Processes(kind, tmp_path / "store", dsn)
    yield processes
    processes.close()


@pytest.fixture
def sink(world: Processes) -> Asker:
    return world.process()


def test_rows_show_when_their_transaction_commits_and_not_before(world: Processes, sink: Asker) -> None:
    sink.written("job-1/sink-0/1-1")
    assert (world.rows(), world.unfinished()) == ([], [("job-1/sink-0/1-1", "open", None)])
    done(sink(PreCommit, "job-1/sink-0/1-1", checkpoint=7))
    assert (world.rows(), world.unfinished()) == ([], [("job-1/sink-0/1-1", "prepared", 7)])
    done(sink(Commit, "job-1/sink-0/1-1"))
    assert (Counter(world.rows()), world.unfinished()) == (Counter(ROWS), [])


def test_what_is_sealed_for_no_checkpoint_is_listed_and_committed_like_the_rest(world: Processes, sink: Asker) -> None:
    sink.written("a")
    done(sink(PreCommit, "a", checkpoint=None))
    assert world.unfinished() == [("a", "prepared", None)]
    assert sink.fenced(1) == (("a", NoCheckpoint.SEALED_FOR_NONE),)
    done(sink(Commit, "a"))
    assert (Counter(world.rows()), world.unfinished()) == (Counter(ROWS), [])


def test_several_writes_add_up(world: Processes, sink: Asker) -> None:
    sink.written("a", (1, 1, 1, 1))
    done(sink(Write, "a", rows=()))
    done(sink(Write, "a", rows=((2, 2, 2, 2), (2, 2, 2, 2))))
    done(sink(PreCommit, "a", checkpoint=1))
    done(sink(Commit, "a"))
    assert Counter(world.rows()) == Counter([(1, 1, 1, 1), (2, 2, 2, 2), (2, 2, 2, 2)])


def test_a_second_commit_changes_nothing(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    done(sink(Commit, "a"))
    done(sink(Commit, "a"))
    done(world.process()(Commit, "a", attempt=2))
    done(sink(AbortTransaction, "a"))
    assert Counter(world.rows()) == Counter(ROWS)


def test_an_aborted_transaction_never_shows(world: Processes, sink: Asker) -> None:
    sink.written("open")
    done(sink(AbortTransaction, "open"))
    denied(sink(Write, "open", rows=ROWS))
    denied(sink(PreCommit, "open", checkpoint=1))
    sink.sealed("sealed")
    done(sink(AbortTransaction, "sealed"))
    done(sink(AbortTransaction, "sealed"))
    denied(sink(Commit, "sealed"))
    assert (world.rows(), world.unfinished()) == ([], [])


def test_what_was_never_begun_is_denied_but_for_its_abort(sink: Asker) -> None:
    assert "knows no" in denied(sink(Write, "a", rows=ROWS))
    assert "knows no" in denied(sink(PreCommit, "a", checkpoint=1))
    assert "knows no" in denied(sink(Commit, "a"))
    done(sink(AbortTransaction, "a"))


def test_nothing_is_added_to_a_sealed_transaction(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    assert denied(sink(Write, "a", rows=ROWS)) == "transaction a is sealed"
    done(sink(PreCommit, "a", checkpoint=1))
    done(sink(Commit, "a"))
    assert len(world.rows()) == len(ROWS)


def test_a_sealed_transaction_without_rows_is_forgotten(world: Processes, sink: Asker) -> None:
    done(sink(BeginTransaction, "a"))
    done(sink(PreCommit, "a", checkpoint=1))
    assert world.unfinished() == []
    denied(sink(Commit, "a"))


def test_under_the_name_of_a_committed_transaction_nothing_new_shows(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    done(sink(Commit, "a"))
    sink.sealed("a", (9, 9, 9, 9))
    done(sink(Commit, "a"))
    assert Counter(world.rows()) == Counter(ROWS)


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_name_begun_again_drops_what_it_held(world: Processes, sink: Asker, is_sealed: bool) -> None:
    (sink.sealed if is_sealed else sink.written)("a")
    sink.sealed("a", (9, 9, 9, 9))
    done(sink(Commit, "a"))
    assert (world.rows(), world.unfinished()) == ([(9, 9, 9, 9)], [])


def test_a_committed_one_may_have_been_open(world: Processes, sink: Asker) -> None:
    sink.written("a")
    done(sink(Commit, "a"))
    assert Counter(world.rows()) == Counter(ROWS)


def test_a_fence_reports_what_is_sealed_in_the_order_begun(world: Processes, sink: Asker) -> None:
    done(sink(Fence))
    for number, name in enumerate(("c", "a", "b"), 1):
        sink.sealed(name, checkpoint=number)
    sink.sealed("another", writer="sink-1")
    assert world.process().fenced(2) == (("c", 1), ("a", 2), ("b", 3))


def test_the_next_attempt_commits_and_aborts_what_it_inherits(world: Processes, sink: Asker) -> None:
    sink.sealed("kept")
    sink.sealed("dropped", (9, 9, 9, 9), checkpoint=2)
    successor = world.process()
    successor.fenced(2)
    done(successor(Commit, "kept", attempt=2))
    done(successor(AbortTransaction, "dropped", attempt=2))
    assert (Counter(world.rows()), world.unfinished()) == (Counter(ROWS), [])
    assert successor.fenced(2) == ()


@pytest.mark.parametrize("is_same_process", [False, True])
def test_every_request_of_a_fenced_attempt_is_denied(world: Processes, sink: Asker, is_same_process: bool) -> None:
    sink.sealed("sealed")
    sink.written("open")
    done(sink(Append, row=(5, 5, 5, 5)))
    successor = sink if is_same_process else world.process()
    successor.fenced(2)
    refused = [
        sink(Write, "open", rows=ROWS),
        sink(PreCommit, "open", checkpoint=2),
        sink(Commit, "sealed"),
        sink(AbortTransaction, "sealed"),
        sink(BeginTransaction, "new"),
        sink(Append, row=(6, 6, 6, 6)),
        sink(Upsert, identity=(1,), row=(6, 6, 6, 6)),
        sink(Fence),
    ]
    assert {denied(outcome) for outcome in refused} == {"sink-0 has been fenced by a newer attempt"}
    assert world.rows() == [(5, 5, 5, 5)]
    done(successor(Commit, "sealed", attempt=2))
    assert Counter(world.rows()) == Counter([(5, 5, 5, 5), *ROWS])


def test_a_zombie_that_comes_late_is_denied(world: Processes) -> None:
    world.process().fenced(3)
    assert "fenced" in denied(world.process()(BeginTransaction, "a", attempt=2))
    assert "fenced" in denied(world.process()(Fence, attempt=2))
    done(world.process()(BeginTransaction, "b", attempt=3))


def test_a_newer_attempt_that_does_not_fence_shuts_nobody_out(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    successor = world.process()
    successor.sealed("b", (3, 3, 3, 3), attempt=2)
    done(sink(Commit, "a"))
    done(successor(Commit, "b", attempt=2))
    assert Counter(world.rows()) == Counter([*ROWS, (3, 3, 3, 3)])


def test_a_fence_is_one_writers_own(world: Processes, sink: Asker) -> None:
    sink.sealed("a", writer="sink-1")
    sink.sealed("b", writer="sink-10")
    world.process().fenced(2, writer="sink-1")
    assert "fenced" in denied(sink(Commit, "a", writer="sink-1"))
    done(sink(Commit, "b", writer="sink-10"))


def test_plain_rows_show_at_once(world: Processes, sink: Asker) -> None:
    for row in (*ROWS, *ROWS):
        done(sink(Append, row=row))
    assert world.rows() == [*ROWS, *ROWS]
    done(sink(Flush))


def test_rows_of_one_identity_replace_each_other(world: Processes, sink: Asker) -> None:
    done(sink(Upsert, identity=(1,), row=(1, 1, 1, 1)))
    done(sink(Upsert, identity=(None,), row=(None, 1, 1, 1)))
    done(sink(Upsert, identity=(1,), row=(1, 2, 2, 2)))
    done(world.process()(Upsert, identity=(None,), row=(None, 3, 3, 3), writer="sink-1"))
    done(sink(Flush))
    assert list(world.table().items()) == [((1,), (1, 2, 2, 2)), ((None,), (None, 3, 3, 3))]


# -- committed by others, together, and given up ---------------------------------------------------------------------

COMMITTER = {"writer": "committer-0"}


def test_a_committer_commits_what_another_task_sealed(world: Processes, sink: Asker) -> None:
    sink.sealed("job-1/sink-0/1-1")
    committer = world.process()
    done(committer(Commit, "job-1/sink-0/1-1", **COMMITTER))
    done(committer(Commit, "job-1/sink-0/1-1", **COMMITTER))
    assert "knows no" in denied(committer(Commit, "job-1/sink-0/1-2", **COMMITTER))
    assert (Counter(world.rows()), world.unfinished()) == (Counter(ROWS), [])


def test_a_committer_finds_it_in_whoever_has_taken_it_over(world: Processes, sink: Asker) -> None:
    sink.sealed("job-1/sink-0/1-1")
    world.process().fenced(2)
    done(world.process()(Commit, "job-1/sink-0/1-1", **COMMITTER))
    assert world.process().fenced(3) == ()
    assert Counter(world.rows()) == Counter(ROWS)


@pytest.mark.parametrize("world", ["database", "sqlite"], indirect=True)
def test_a_committer_commits_nothing_that_is_open(world: Processes, sink: Asker) -> None:
    """The simulator's store does what it is asked for, and the judge sees that nothing was sealed."""
    sink.written("job-1/sink-0/1-1")
    denied(world.process()(Commit, "job-1/sink-0/1-1", **COMMITTER))
    assert world.rows() == []


def test_what_is_final_shows_when_a_version_names_it_and_all_of_that_at_once(world: Processes, sink: Asker) -> None:
    names = ("job-1/sink-0/1-1", "job-1/sink-1/1-1")
    sink.sealed(names[0])
    sink.sealed(names[1], (3, 3, 3, 3), writer="sink-1")
    committer, last = world.process(), world.process()
    for name in names:
        done(committer(Finalise, name, **COMMITTER))
        done(committer(Finalise, name, **COMMITTER))
    assert world.rows() == []
    assert sorted(world.unfinished()) == [(name, "prepared", 1) for name in names]
    done(last(Publish, writer="global-committer-0", checkpoint=1, names=names))
    done(last(Publish, writer="global-committer-0", checkpoint=1, names=names))
    assert (Counter(world.rows()), world.unfinished()) == (Counter([*ROWS, (3, 3, 3, 3)]), [])
    done(committer(Finalise, names[0], **COMMITTER))
    assert len(world.rows()) == 3


def test_a_version_shows_all_that_it_names_or_nothing(world: Processes, sink: Asker) -> None:
    sink.sealed("a")
    sink.sealed("b")
    done(sink(Finalise, "a"))
    assert denied(sink(Publish, checkpoint=1, names=("a", "b"))) == "transaction b is not final"
    assert world.rows() == []


def test_what_is_final_outlives_its_writers_next_attempt(world: Processes, sink: Asker) -> None:
    sink.sealed("job-1/sink-0/1-1")
    done(world.process()(Finalise, "job-1/sink-0/1-1", **COMMITTER))
    assert world.process().fenced(2) == ()
    done(world.process()(AbortTransaction, "job-1/sink-0/1-1", attempt=2))
    done(world.process()(Publish, writer="global-committer-0", checkpoint=1, names=("job-1/sink-0/1-1",)))
    assert Counter(world.rows()) == Counter(ROWS)


def test_by_its_id_alone_the_newest_transaction_is_meant(world: Processes, sink: Asker) -> None:
    """A store that knows ids and no epochs commits whatever was begun under the id last."""
    sink.sealed("job-1/sink-0/id-0#1-1")
    done(sink(Commit, "job-1/sink-0/id-0#1-1"))
    sink.sealed("job-1/sink-0/id-0#1-2", (9, 9, 9, 9), checkpoint=2)
    sink.sealed("job-1/sink-0/id-1#1-3", (8, 8, 8, 8), checkpoint=3)
    done(sink(Commit, "job-1/sink-0/id-0#1-1"))
    assert Counter(world.rows()) == Counter(ROWS)
    done(sink(Commit, "job-1/sink-0/id-0#1-1", by_id=True))
    assert Counter(world.rows()) == Counter([*ROWS, (9, 9, 9, 9)])
    done(sink(Commit, "job-1/sink-0/id-0#1-1", by_id=True))
    assert [name for name, _, _ in world.unfinished()] == ["job-1/sink-0/id-1#1-3"]


def test_what_operators_commit_is_none_of_the_jobs_output(world: Processes, sink: Asker) -> None:
    sink.sealed("job-1/operator-0/1-1", writer="operator-0")
    done(sink(Commit, "job-1/operator-0/1-1", writer="operator-0"))
    done(sink(Commit, "job-1/operator-0/1-1", writer="operator-0"))
    sink.sealed("job-1/sink-0/1-1", (7, 7, 7, 7))
    done(sink(Commit, "job-1/sink-0/1-1"))
    assert (world.rows(), world.unfinished()) == ([(7, 7, 7, 7)], [])
    if world.reader is not None:
        assert world.reader.passing() == ["job-1/operator-0/1-1"]
        assert world.reader.seen() == ["job-1/sink-0/1-1"]


def test_a_store_gives_up_what_is_sealed_and_nothing_else(world: Processes, sink: Asker) -> None:
    for number, name in enumerate(("sealed", "final", "committed"), 1):
        sink.sealed(f"job-1/sink-0/{name}", checkpoint=number)
    sink.written("job-1/sink-0/open")
    done(sink(Finalise, "job-1/sink-0/final"))
    done(sink(Commit, "job-1/sink-0/committed"))
    names = ("sealed", "final", "committed", "open", "unknown", "sealed")
    assert [world.expire(f"job-1/sink-0/{name}") for name in names] == [True, *[False] * 5]
    for request in (Commit, Finalise):
        assert "job-1/sink-0/sealed" in denied(world.process()(request, "job-1/sink-0/sealed", **COMMITTER))
    assert len(world.rows()) == len(ROWS)


@pytest.mark.parametrize("world", ["database", "sqlite"], indirect=True)
def test_after_a_fence_nothing_changes_by_a_zombies_hand(world: Processes) -> None:
    """Each attempt seals and commits as fast as it can until it is denied; the next one fences it amid that."""

    def work(asker: Asker, attempt: int, sealed: list[str], at_work: threading.Event) -> None:
        for number in itertools.count(1):
            name = f"{attempt}-{number}"
            for request, more in ((BeginTransaction, {}), (Write, {"rows": ROWS}), (PreCommit, {"checkpoint": number})):
                if not isinstance(asker(request, name, attempt=attempt, **more), Done):
                    return
            sealed.append(name)
            at_work.set()
            if number % 2 and not isinstance(asker(Commit, name, attempt=attempt), Done):
                return

    for attempt in range(1, ATTEMPTS + 1):
        sealed: list[str] = []
        at_work = threading.Event()
        zombie = threading.Thread(target=work, args=(world.process(), attempt, sealed, at_work), daemon=True)
        zombie.start()
        assert at_work.wait(WITHIN_S)
        successor = world.process()
        unfinished = [name for name, checkpoint in successor.fenced(attempt + 1) if checkpoint is not None]
        seen = world.reader.seen()
        zombie.join(WITHIN_S)
        assert not zombie.is_alive()
        assert world.reader.seen() == seen
        assert not set(unfinished) & set(seen)
        assert set(sealed) <= {*unfinished, *seen}
        for name, _, _ in world.unfinished():
            done(successor(AbortTransaction, name, attempt=attempt + 1))
        assert world.unfinished() == []
