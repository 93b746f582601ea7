"""The ledger of persistent channels: numbers, logs, references, what is durable and what is let go."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.persisting import Persisting
from cutproof.reference_impl.core.extensions.in_flight_data.persistent import DURABLE, DurableAfter, Ledger, LedgerEntry
from cutproof.reference_impl.core.vocabulary.effects import AppendToLog, SetTimer, Sync, TrimLog
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import (
    Barrier,
    CancelBarrier,
    Complete,
    EndOfData,
    Record,
    Watermark,
)
from cutproof.reference_impl.core.vocabulary.state import Ref
from cutproof.reference_impl.core.vocabulary.timeouts import BufferTimeout

ONE, TWO = CheckpointId(1), CheckpointId(2)


def record(origin: int) -> Record:
    return Record(0, origin, 0, 0, origin)


def ledger(after_us: int = 0, channels: int = 1) -> Ledger:
    return Ledger([f"log/{channel}" for channel in range(channels)], Persisting(), after_us)


def complete(logs_from: int | None) -> Complete:
    oldest = CheckpointId(logs_from) if logs_from is not None else None
    return Complete(job=1, attempt=AttemptId(1), checkpoint=TWO, logs_from=oldest)


def taken(book: Ledger, *elements: Record) -> list[LedgerEntry]:
    """What came and was taken at once."""
    found = []
    for element in elements:
        book.came(0, element)
        found.append(book.took(0, element))
    return [one for one in found if one is not None]


def test_what_comes_is_numbered_and_appended_and_neither_a_barrier_nor_an_end_is() -> None:
    book = ledger()
    assert book.came(0, record(7)) == [AppendToLog("log/0", 0, record(7))]
    assert book.came(0, Barrier(ONE)) == []
    assert book.came(0, CancelBarrier(ONE)) == []
    assert book.came(0, Watermark(3)) == [AppendToLog("log/0", 1, Watermark(3))]
    assert book.came(0, EndOfData()) == []
    assert book.took(0, Barrier(ONE)) is None
    assert book.first(0) == 0
    assert [one.number for one in (book.took(0, record(7)), book.took(0, Watermark(3))) if one is not None] == [0, 1]
    assert book.first(0) == 2


def test_what_a_barrier_overtook_is_found_in_the_ledger() -> None:
    book = ledger()
    queue = (record(1), Barrier(ONE), record(2))
    for element in (*queue, record(3)):
        book.came(0, element)
    assert [one.number if one is not None else None for one in book.passed(0, queue)] == [0, None, 1]


def test_with_a_time_out_what_waits_from_one_look_to_the_next_is_spilled() -> None:
    book = ledger(after_us=500)
    assert book.came(0, record(1)) == [SetTimer(BufferTimeout(), 500)]
    assert book.came(0, record(2)) == []
    book.took(0, record(1))
    assert book.timer() == [SetTimer(BufferTimeout(), 500)]  # 2 came after the timer was set
    assert book.came(0, record(3)) == []
    assert book.timer() == [AppendToLog("log/0", 1, record(2)), SetTimer(BufferTimeout(), 500)]
    book.took(0, record(2))
    book.took(0, record(3))
    assert book.timer() == []
    assert book.came(0, record(4)) == [SetTimer(BufferTimeout(), 500)]


def test_a_snapshot_has_spilled_what_it_needs_of_the_rest() -> None:
    book = ledger(after_us=500)
    entries = taken(book, record(1), record(2))
    appended = [AppendToLog("log/0", 0, record(1)), AppendToLog("log/0", 1, record(2))]
    assert book.secure({0: entries}) == (DurableAfter(1), [*appended, Sync(1)])


def test_references_are_runs_of_numbers() -> None:
    book = ledger()
    entries = taken(book, *(record(n) for n in range(5)))
    assert book.refs({0: [entries[0], entries[1], entries[3], entries[4]]}) == {
        0: [Ref("log/0", 0, 2), Ref("log/0", 3, 5)]
    }
    assert book.refs({0: []}) == {}


def test_what_is_referred_to_is_safe_once_the_sync_behind_it_is_done() -> None:
    book = ledger()
    first = taken(book, record(1))
    assert book.secure({0: first}) == (DurableAfter(1), [Sync(1)])
    assert not book.is_safe(DurableAfter(1))
    assert book.secure({0: first}) == (DurableAfter(1), []), "it is asked for already"
    assert book.secure({0: [*first, *taken(book, record(2))]}) == (DurableAfter(2), [Sync(2)])
    book.synced(1)
    assert book.is_safe(DurableAfter(1))
    assert not book.is_safe(DurableAfter(2))
    assert book.secure({}) == (DURABLE, [])
    assert book.is_safe(DURABLE), "there is nothing to wait for"


def test_what_the_log_held_before_this_attempt_waits_for_no_sync() -> None:
    book = ledger()
    book.resume(0, 4, 6)
    entries = taken(book, record(4), record(5))
    assert [(one.number, one.logged) for one in entries] == [(4, DURABLE), (5, DURABLE)]
    assert book.secure({0: entries}) == (DURABLE, [])
    (new,) = taken(book, record(6))
    assert book.secure({0: [*entries, new]}) == (DurableAfter(1), [Sync(1)])
    assert new.logged == DurableAfter(1)


def test_what_no_checkpoint_asks_for_is_trimmed_up_to_the_oldest_that_may() -> None:
    book = ledger(channels=2)
    taken(book, record(1), record(2))
    book.mark(ONE)
    taken(book, record(3))
    book.came(0, record(4))
    book.mark(TWO)
    assert book.trim(complete(None)) == []
    assert book.trim(complete(1)) == [TrimLog("log/0", 2)]
    assert book.trim(complete(1)) == []
    assert book.trim(complete(2)) == [TrimLog("log/0", 3)]


def test_of_a_checkpoint_of_an_earlier_attempt_the_first_of_this_one_decides() -> None:
    book = ledger()
    taken(book, record(1))
    book.mark(TWO)
    assert book.trim(complete(1)) == [TrimLog("log/0", 1)]


@pytest.mark.parametrize("logged", [5, 6])
def test_a_log_that_is_there_is_written_on(logged: int) -> None:
    book = ledger()
    book.resume(0, 5, logged)
    appended = book.came(0, record(1)) + book.came(0, record(2))
    assert [one.number for one in appended if isinstance(one, AppendToLog)] == list(range(logged, 7))


def test_where_an_attempt_before_stood_at_its_snapshots_is_trimmed_by_as_well() -> None:
    book = ledger()
    book.resume(0, 4, 9)
    book.remember({ONE: (2,), TWO: (4,)})
    assert book.trim(complete(1)) == [TrimLog("log/0", 2)]
    assert book.trim(complete(2)) == [TrimLog("log/0", 4)]
