"""The external transaction store: idempotent, fenced, and unforgiving where it must be."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    Append,
    BeginTransaction,
    Commit,
    Denied,
    Done,
    Fence,
    Flush,
    NoCheckpoint,
    Outcome,
    PreCommit,
    Request,
    Row,
    Standing,
    Unfinished,
    Upsert,
    Write,
)
from cutproof.reference_impl.simulated.external import TransactionStore

ROWS: tuple[Row, ...] = ((1, 10, 100, 0), (2, 20, 200, 0))


class Store:
    """The store, with requests as calls."""

    def __init__(self) -> None:
        self.store = TransactionStore()

    def __call__(self, kind: type[Request], name: str | None = None, attempt: int = 1, **more: Any) -> Outcome:
        request = {"writer": "sink-0", "attempt": attempt, **({"name": name} if name else {}), **more}
        return self.store.handle(kind(**request))

    def written(self, name: str, *rows: Row) -> None:
        assert isinstance(self(BeginTransaction, name), Done)
        assert isinstance(self(Write, name, rows=rows), Done)

    def sealed(self, name: str, *rows: Row, checkpoint: int = 1) -> None:
        self.written(name, *rows)
        assert isinstance(self(PreCommit, name, checkpoint=checkpoint), Done)

    def unfinished(self, attempt: int = 1) -> tuple[Unfinished, ...]:
        answer = self(Fence, attempt=attempt)
        assert isinstance(answer, Done)
        return answer.unfinished


@pytest.fixture
def store() -> Store:
    return Store()


def denied(outcome: Outcome) -> str:
    assert isinstance(outcome, Denied)
    return outcome.reason


def test_rows_are_seen_once_they_are_committed(store: Store) -> None:
    store.sealed("t", *ROWS)
    assert store.store.rows() == []
    store(Commit, "t")
    assert store.store.rows() == list(ROWS)


def test_committing_again_changes_nothing(store: Store) -> None:
    store.sealed("t", *ROWS)
    for _ in range(3):
        assert isinstance(store(Commit, "t"), Done)
    assert store.store.rows() == list(ROWS)


def test_a_sealed_transaction_takes_no_rows(store: Store) -> None:
    store.sealed("t", ROWS[0])
    assert "sealed" in denied(store(Write, "t", rows=(ROWS[1],)))
    store(Commit, "t")
    assert store.store.rows() == [ROWS[0]]


def test_what_was_aborted_cannot_be_committed(store: Store) -> None:
    store.sealed("t", *ROWS)
    for _ in range(2):
        assert isinstance(store(AbortTransaction, "t"), Done)
    assert "aborted" in denied(store(Commit, "t"))
    assert store.store.rows() == []


def test_what_was_committed_cannot_be_aborted(store: Store) -> None:
    store.sealed("t", *ROWS)
    store(Commit, "t")
    assert isinstance(store(AbortTransaction, "t"), Done)
    assert isinstance(store(Commit, "t"), Done)
    assert store.store.accounts["t"].standing is Standing.COMMITTED


def test_aborting_what_it_does_not_know_changes_nothing(store: Store) -> None:
    assert isinstance(store(AbortTransaction, "t"), Done)
    assert store.store.accounts == {}


@pytest.mark.parametrize(("kind", "more"), [(Commit, {}), (Write, {"rows": ROWS}), (PreCommit, {"checkpoint": 1})])
def test_what_it_does_not_know_it_denies(store: Store, kind: type[Request], more: dict[str, Any]) -> None:
    assert denied(store(kind, "t", **more)) == "it knows no transaction t"


def test_an_empty_sealed_transaction_is_forgotten(store: Store) -> None:
    store.sealed("t")
    assert "knows no transaction" in denied(store(Commit, "t"))


def test_an_older_attempt_is_shut_out(store: Store) -> None:
    store.written("t", *ROWS)
    store(Fence, attempt=3)
    for kind, more in ((Write, {"rows": ROWS}), (Commit, {}), (BeginTransaction, {}), (AbortTransaction, {})):
        assert "fenced" in denied(store(kind, "t", attempt=2, **more))
    assert "fenced" in denied(store(Append, attempt=2, row=ROWS[0]))
    assert "fenced" in denied(store(Fence, attempt=2))
    assert isinstance(store(Flush, attempt=2), Done)
    assert isinstance(store(Write, "t", attempt=3, rows=ROWS), Done)


def test_a_fence_is_one_writers_own(store: Store) -> None:
    store(Fence, attempt=3)
    assert isinstance(store(BeginTransaction, "u", attempt=1, writer="sink-1"), Done)


def test_a_fence_reports_what_its_writer_left_unfinished(store: Store) -> None:
    store.sealed("sealed", *ROWS, checkpoint=4)
    store.written("open", *ROWS)
    store.sealed("done", *ROWS)
    store(Commit, "done")
    store.written("dropped")
    store(AbortTransaction, "dropped")
    store(BeginTransaction, "another's", writer="sink-1")
    assert store.unfinished(attempt=2) == (("sealed", 4), ("open", None))


def test_a_name_used_again_starts_over_unless_it_is_committed(store: Store) -> None:
    store.sealed("t", ROWS[0])
    store.sealed("t", ROWS[1])
    store(Commit, "t")
    store(BeginTransaction, "t")
    assert isinstance(store(Write, "t", rows=ROWS), Done)
    store(Commit, "t")
    assert store.store.rows() == [ROWS[1]], "what is committed under a name stays the only thing"


def test_appended_rows_are_seen_at_once_and_every_time(store: Store) -> None:
    store(Append, row=ROWS[0])
    store(Append, row=ROWS[0])
    assert store.store.rows() == [ROWS[0], ROWS[0]]


def test_an_upsert_replaces_by_identity(store: Store) -> None:
    store(Upsert, identity=(1,), row=(1, 10, 0, 0))
    store(Upsert, identity=(2,), row=(2, 20, 0, 0))
    store(Upsert, identity=(1,), row=(1, 11, 0, 0))
    assert store.store.rows() == [(1, 11, 0, 0), (2, 20, 0, 0)]


def test_what_is_committed_elsewhere_is_not_seen_by_the_reader_of_the_output() -> None:
    passed_on = Store()
    passed_on.store = TransactionStore([TaskId("sink-0")])
    passed_on.sealed("t", *ROWS)
    assert isinstance(passed_on(Commit, "t"), Done)
    assert passed_on.store.accounts["t"].standing is Standing.COMMITTED
    assert passed_on.store.rows() == []


def test_a_copy_has_what_was_sealed_up_to_its_checkpoint_or_before_any_and_not_what_is_open() -> None:
    before = Store()
    for name, checkpoint in (("none", None), ("one", 1), ("two", 2)):
        before(BeginTransaction, name)
        before(Write, name, rows=ROWS)
        before(PreCommit, name, checkpoint=checkpoint)
    before(BeginTransaction, "open")
    assert before.unfinished() == (("none", NoCheckpoint.SEALED_FOR_NONE), ("one", 1), ("two", 2), ("open", None))
    assert list(before.store.up_to(CheckpointId(1), []).accounts) == ["none", "one"]


def test_a_job_that_begins_with_a_copy_may_have_more_writers_whose_rows_pass() -> None:
    before = Store()
    before.store = TransactionStore([TaskId("map-0")])
    copy = Store()
    copy.store = before.store.up_to(CheckpointId(1), []).also_passing([TaskId("sink-0")])
    copy.sealed("t", *ROWS)
    assert isinstance(copy(Commit, "t"), Done)
    assert copy.store.rows() == []
