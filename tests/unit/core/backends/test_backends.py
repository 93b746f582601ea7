"""Both state backends against a dictionary, and the bytes of sorted files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.reference_impl.core.backends.keyed_state import KeyedState
from cutproof.reference_impl.core.backends.keys import as_bytes, from_bytes
from cutproof.reference_impl.core.backends.layouts import ROWS, SINGLE, Layout
from cutproof.reference_impl.core.backends.lsm import Codec, Limits, LsmState
from cutproof.reference_impl.core.backends.sorted_runs import Run, decoded, encoded, merged
from cutproof.reference_impl.core.decisions.snapshots.state_files import StateFiles
from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.core.vocabulary.views import SortedFile
from unit.core.backends.models import VALUES, assert_it_is_a_dictionary, changes, heap

FILES = StateFiles()
SMALL = Limits(3, 2)


def lsm(layout: Layout, limits: Limits = SMALL) -> LsmState:
    return LsmState(layout, "op-0-1", FILES, limits)


BACKENDS: dict[str, Callable[[Layout], KeyedState]] = {"heap": heap, "lsm": lsm}
parts = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=50)
@given(data=st.data())
def test_a_backend_is_a_dictionary_and_its_views_never_change(backend: str, name: str, data: st.DataObject) -> None:
    """A view of an LSM store restores what there was from its files too."""
    for view, then in assert_it_is_a_dictionary(BACKENDS[backend], name, data.draw(changes(name))):
        if backend == "lsm":
            files = [Run.of(file).pairs for file in view.files()]
            assert Codec(VALUES[name][0]).state(merged(files)) == then
        else:
            assert view.files() == ()


# -- an LSM store -----------------------------------------------------------------------------------------------


def test_a_value_that_changes_after_it_was_put_changes_the_state_on_the_heap_alone() -> None:
    for backend, expected in (("heap", [(5, 1), (6, 2)]), ("lsm", [(5, 1)])):
        state, rows = BACKENDS[backend](ROWS), [(5, 1)]
        state[0, 7] = rows
        rows.append((6, 2))
        assert state[0, 7] == expected


def test_a_full_memtable_becomes_a_file_and_so_does_what_a_view_finds_in_it() -> None:
    state = lsm(SINGLE)
    for key in range(4):
        state[key] = key
    assert state.take_flushes() == 1
    assert [file.name for file in state.snapshot().files()] == ["op-0-1-0", "op-0-1-1"]
    assert (state.take_flushes(), state.take_flushes()) == (1, 0)


def test_a_compaction_is_due_with_enough_files_and_takes_older_ones_that_are_not_larger() -> None:
    state = lsm(SINGLE, limits=Limits(8, 2))
    for sizes, inputs in (((3,), 0), ((1,), 2), ((6, 1, 1), 2)):
        for size in sizes:
            for key in range(size):
                state[key] = size
            state.flush()
        before = len(state.snapshot().files())
        assert state.begin_compaction() is bool(inputs)
        if inputs:
            assert not state.begin_compaction(), "one at a time"
            state.end_compaction()
            assert before - len(state.snapshot().files()) == inputs - 1


def test_a_tombstone_stays_for_as_long_as_an_older_file_may_have_its_key() -> None:
    state = lsm(SINGLE, limits=Limits(8, 2))
    state.update(dict.fromkeys(range(6), 1))
    state.flush()
    del state[0]
    state.flush()
    state[9] = 1
    state.flush()
    assert state.begin_compaction()
    state.end_compaction()
    assert 0 not in state
    _, new = state.snapshot().files()
    assert decoded(new) == {as_bytes(0): None, as_bytes(9): b"1"}
    for key in range(1, 6):
        del state[key]
    state.flush()
    assert state.begin_compaction()
    state.end_compaction()
    assert [decoded(file) for file in state.snapshot().files()] == [{as_bytes(9): b"1"}]
    del state[9]
    state.flush()
    assert state.begin_compaction()
    state.end_compaction()
    assert state.snapshot().files() == ()


def test_what_is_flushed_during_a_compaction_stays_newer_than_its_result() -> None:
    state = lsm(SINGLE, limits=Limits(1, 2))
    state[1] = 1
    state[2] = 1
    assert state.begin_compaction()
    state[1] = 2
    state.end_compaction()
    assert dict(state) == {1: 2, 2: 1}


# -- bytes ------------------------------------------------------------------------------------------------------


@given(st.lists(parts | st.tuples(parts, parts) | st.tuples(parts, st.text()), max_size=6))
def test_keys_as_bytes_are_read_back(some: list[Any]) -> None:
    assert [from_bytes(as_bytes(key)) for key in some] == some


@given(st.lists(st.tuples(parts, parts)))
def test_keys_as_bytes_sort_as_the_keys_do(some: list[Any]) -> None:
    def order(key: Any) -> Any:
        return [(part is not None, part or 0) for part in key]

    assert sorted(some, key=as_bytes) == sorted(some, key=order)


def test_the_bytes_of_a_sorted_file() -> None:
    """As documented: whoever reads a file needs no code of ours."""
    file = Run("a", {as_bytes(1): None, as_bytes(None): b"[1,2]"}).file
    assert file.data.hex(" ") == (
        "43 50 53 4f 52 54 31 0a 00 00 00 02 00 01 00 00 00 00 05 5b 31 2c 32 5d"
        " 00 09 01 80 00 00 00 00 00 00 01 ff ff ff ff " + file.data[-4:].hex(" ")
    )
    assert decoded(file) == {as_bytes(None): b"[1,2]", as_bytes(1): None}


@given(st.dictionaries(st.binary(max_size=9), st.none() | st.binary(max_size=9)), st.data())
def test_the_same_entries_give_the_same_bytes_and_torn_or_altered_ones_are_refused(
    pairs: dict[bytes, bytes | None], data: st.DataObject
) -> None:
    whole = encoded(pairs)
    assert encoded(dict(reversed(pairs.items()))) == whole
    assert decoded(SortedFile("a", whole)) == pairs
    at = data.draw(st.integers(0, len(whole) - 1))
    altered = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    for wrong in (whole[:at], altered):
        with pytest.raises(CorruptSnapshot, match="a: its checksum does not fit its content"):
            decoded(SortedFile("a", wrong))
