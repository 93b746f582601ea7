"""Working state in RocksDB."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.harness.reference_engine.services import rocksdb
from cutproof.reference_impl.core.backends.heap import HeapState
from cutproof.reference_impl.core.backends.layouts import ROWS, SINGLE, UNLISTED, Layout
from cutproof.reference_impl.core.backends.lsm import Codec, Limits
from cutproof.reference_impl.core.backends.sorted_runs import merged
from cutproof.reference_impl.core.backends.sst_files import pairs_of
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.snapshots.state_files import StateFiles
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.processes.disk import rocks
from cutproof.reference_impl.processes.disk.rocks import RocksState, WorkingStates
from unit.core.backends.models import VALUES, Change, assert_it_is_a_dictionary, changes

pytestmark = pytest.mark.skipif(not rocksdb.is_there(), reason=rocksdb.ADVICE)

LSM = Config(state_backend="lsm", memtable_entries=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Each time another folder that is not there yet."""
    root = tmp_path_factory.mktemp("rocks")
    return (root / str(number) for number in range(1_000_000))


def rocks_state(folder: Path, layout: Layout, limits: Limits, decisions: StateFiles | None = None) -> RocksState:
    return RocksState(folder, layout, limits, "count-0-1", decisions or StateFiles())


def spec(attempt: int = 1) -> TaskSpec:
    return TaskSpec(task=TaskId("count-0"), job=1, attempt=AttemptId(attempt))


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_it_is_a_dictionary_and_its_views_never_change(folders: Iterator[Path], name: str, data: st.DataObject) -> None:
    opened: list[RocksState] = []

    def new(layout: Layout) -> RocksState:
        opened.append(rocks_state(next(folders), layout, Limits(3, 2)))
        return opened[-1]

    some: list[Change] = data.draw(changes(name))
    try:
        assert_it_is_a_dictionary(new, name, some)
    finally:
        for state in opened:
            state.close()


def test_a_view_outlives_changes_compactions_and_its_store(
    folders: Iterator[Path],
) -> None:
    """The iterators of rocksdict's own snapshots are."""
    state = rocks_state(next(folders), SINGLE, Limits(2, 2))
    state.update({1: 1, 2: 1, 3: 1})
    view = state.snapshot()
    state.update({1: 2, 4: 2})
    del state[2]
    assert state.take_flushes() == 3
    assert state.begin_compaction()
    assert not state.begin_compaction()
    state.end_compaction()
    state.close()
    assert view.entries() == [(0, 1, 1, 0), (0, 2, 1, 0), (0, 3, 1, 0)]


@pytest.mark.parametrize("keys", [1, 12])
def test_files_are_merged_when_it_is_asked_and_not_before(folders: Iterator[Path], keys: int) -> None:
    """Also files that have no key in common, which RocksDB would move instead of merging them."""
    state = rocks_state(next(folders), ROWS, Limits(1, 12))
    for number in range(11):
        state[0, number % keys] = [(1, number)]
    assert not state.begin_compaction()
    state[0, 11 % keys] = [(1, 11)]
    assert [file["level"] for file in state._database.live_files()] == [0] * 12
    assert state.begin_compaction()
    state.end_compaction()
    (merged_file,) = state._database.live_files()
    assert merged_file["level"] > 0
    assert not state.begin_compaction()
    assert state[0, 11 % keys] == [(1, 11)]
    state.close()


@given(
    steps=st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(), st.booleans()), max_size=40),
    memtable=st.sampled_from([1, 3, 100]),
)
@settings(max_examples=25, deadline=None)
def test_its_files_hold_the_state_whatever_is_changed_flushed_and_merged_later(
    folders: Iterator[Path], steps: list[tuple[int, int | None, bool]], memtable: int
) -> None:
    """A value of None deletes the key."""
    state = rocks_state(next(folders), SINGLE, Limits(memtable, 2))
    views = []
    for key, value, merges in steps:
        if value is not None:
            state[key] = value
        else:
            state.pop(key, None)
        if merges and state.begin_compaction():
            state.end_compaction()
        views.append((state.snapshot(), dict(state.items())))
    for view, then in views:
        assert Codec(SINGLE).state(merged(pairs_of(file.data) for file in view.files())) == then
    state.close()


def test_a_file_keeps_its_name_in_all_snapshots_and_none_gets_it_again(folders: Iterator[Path]) -> None:
    state = rocks_state(next(folders), SINGLE, Limits(1, 3))
    names = []
    for value in range(4):
        state[1] = value
        if value == 2:
            assert state.begin_compaction()
            state.end_compaction()
        names.append([file.name for file in state.snapshot().files()])
    assert names == [
        ["count-0-1-0"],
        ["count-0-1-0", "count-0-1-1"],
        ["count-0-1-2"],
        ["count-0-1-2", "count-0-1-3"],
    ]
    state.close()


def test_the_state_of_an_attempt_is_deleted_with_it(tmp_path: Path) -> None:
    states = WorkingStates(tmp_path / "state" / "node-1.1")
    first, second = (states.open(spec(attempt), SINGLE, LSM, Parts()) for attempt in (1, 2))
    first[1] = second[1] = 5
    names = ["count-0-1", "count-0-2"]
    assert sorted(path.name for path in (tmp_path / "state" / "node-1.1").iterdir()) == names
    states.close(TaskId("count-0"), AttemptId(1))
    states.close(TaskId("count-0"), AttemptId(1))
    assert [path.name for path in (tmp_path / "state" / "node-1.1").iterdir()] == names[1:]
    assert second[1] == 5
    states.close(TaskId("count-0"), AttemptId(2))


def test_state_on_the_heap_and_state_that_belongs_to_no_key_make_no_folder(tmp_path: Path) -> None:
    states = WorkingStates(tmp_path / "state")
    assert isinstance(states.open(spec(), SINGLE, Config(), Parts()), HeapState)
    assert isinstance(states.open(spec(), UNLISTED, LSM, Parts()), HeapState)
    assert not (tmp_path / "state").exists()


def test_the_module_is_named_once() -> None:
    assert rocks.MODULE == rocksdb.MODULE
    assert importlib.util.find_spec(rocks.MODULE) is not None
