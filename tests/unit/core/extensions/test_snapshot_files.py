"""The files of a task's snapshots: which it writes, and which it has stored before (SNAP-2, ABS-9)."""

from __future__ import annotations

import msgspec

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.snapshots.snapshot_files import SnapshotFiles
from cutproof.reference_impl.core.vocabulary.formats import (
    Edit,
    Filed,
    Format,
    Keyed,
    KeyedEdit,
    StateFile,
    file_of,
    read_file,
)
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, Handle
from cutproof.reference_impl.core.vocabulary.views import Entry, Held, Pane, SortedFile


class View(msgspec.Struct, frozen=True):
    """A state of one moment: on the heap, or (`runs`) in sorted files."""

    keyed: Keyed = Keyed()
    runs: tuple[SortedFile, ...] = ()
    layout: str = "lsm/1"

    def entries(self) -> list[Entry]:
        return self.keyed.entries

    def panes(self) -> list[Pane]:
        return self.keyed.panes

    def held(self) -> list[Held]:
        return self.keyed.held

    def files(self) -> tuple[SortedFile, ...]:
        return self.runs


def entries(*keys: int) -> list[Entry]:
    return [(0, key, 1, 0) for key in keys]


def heap(*keys: int) -> View:
    return View(Keyed(entries(*keys)))


def lsm(*names: str) -> View:
    return View(runs=tuple(SortedFile(one, one.encode()) for one in names))


def task() -> SnapshotFiles:
    return SnapshotFiles(Parts().naming, Parts().increments)


def handle(checkpoint: int) -> Handle:
    return Handle(f"chk-{checkpoint}")


def write(
    files: SnapshotFiles, checkpoint: int, view: View, base: int | None = None, name: str = "incremental"
) -> Filed:
    files.ask(CheckpointId(checkpoint), Format(name, CheckpointId(base) if base is not None else None))
    filed = files.write(CheckpointId(checkpoint), handle(checkpoint), view)
    assert filed is not None
    return filed


def names(filed: Filed) -> tuple[list[str], list[str]]:
    """All files of a snapshot, and those that are written for it."""
    return [file.name for file in filed.files], [new.file.name for new in filed.new]


# -- asked for ---------------------------------------------------------------------------


def test_a_canonical_snapshot_has_no_files() -> None:
    files = task()
    files.ask(CheckpointId(1), None)
    assert files.format_of(CheckpointId(1)) is None
    assert files.write(CheckpointId(1), handle(1), heap(1)) is None


def test_each_checkpoint_has_the_format_that_was_asked_for_it() -> None:
    files = task()
    files.ask(CheckpointId(1), Format("native"))
    files.ask(CheckpointId(2), Format("incremental", CheckpointId(1)))
    assert [files.format_of(CheckpointId(one)) for one in (1, 2, 3)] == [
        Format("native"),
        Format("incremental", CheckpointId(1)),
        None,
    ]
    assert write(files, 1, heap(1), name="native").format == "native"


# -- a state on the heap -----------------------------------------------------------------------


def test_without_a_base_one_file_holds_all_entries_panes_and_states_of_user_functions() -> None:
    keyed = Keyed(entries(1, 2), [(10, 1)], [(1, "own", "5")])
    filed = write(task(), 1, View(keyed))
    assert names(filed) == (["chk-1.entries-0"], ["chk-1.entries-0"])
    assert filed.layout is None, "a layout is of sorted files"
    (new,) = filed.new
    content = read_file(new.file, new.data)
    assert isinstance(content, KeyedEdit)
    assert content.apply(Keyed()) == keyed


def test_on_a_base_a_new_file_holds_what_has_changed_behind_those_of_the_base() -> None:
    files = task()
    write(files, 1, heap(1, 2))
    filed = write(files, 2, heap(1, 3), base=1)
    assert names(filed) == (["chk-1.entries-0", "chk-2.entries-1"], ["chk-2.entries-1"])
    (new,) = filed.new
    assert read_file(new.file, new.data) == KeyedEdit(entries=Edit(added=entries(3), removed=[1], placed=[1]))


def test_when_nothing_has_changed_the_files_of_the_base_are_named_and_none_is_written() -> None:
    files = task()
    write(files, 1, heap(1))
    assert names(write(files, 2, heap(1), base=1)) == (["chk-1.entries-0"], [])


def test_a_task_that_has_not_taken_its_part_of_the_base_writes_all() -> None:
    files = task()
    write(files, 1, heap(1))
    assert names(write(files, 3, heap(1), base=2)) == (["chk-3.entries-0"], ["chk-3.entries-0"])


def test_the_task_names_all_files_of_a_snapshot_to_the_coordinator() -> None:
    files = task()
    write(files, 1, heap(1))
    assert files.acknowledged(write(files, 2, heap(2), base=1)) == ("chk-1.entries-0", "chk-2.entries-1")


# -- a state in sorted files ---------------------------------------------------------------------


def test_of_sorted_files_those_are_written_that_the_base_does_not_have() -> None:
    files = task()
    first = write(files, 1, lsm("s1", "s2"))
    assert names(first) == (["chk-1.s1", "chk-1.s2"], ["chk-1.s1", "chk-1.s2"])
    assert first.layout == "lsm/1"
    second = write(files, 2, lsm("s2", "s3"), base=1)
    assert names(second) == (["chk-1.s2", "chk-2.s3"], ["chk-2.s3"])
    third = write(files, 3, lsm("s2", "s3"), base=2)
    assert names(third) == (["chk-1.s2", "chk-2.s3"], []), "the base's base wrote the one of them"


def test_a_sorted_file_is_written_as_it_is() -> None:
    (new,) = write(task(), 1, lsm("s1")).new
    assert read_file(new.file, new.data) == SortedFile("chk-1.s1", b"s1")


def test_without_a_base_all_sorted_files_are_written_again() -> None:
    files = task()
    write(files, 1, lsm("s1"))
    assert names(write(files, 2, lsm("s1"), name="native")) == (["chk-2.s1"], ["chk-2.s1"])


def test_a_store_that_has_become_empty_refers_to_no_file_that_it_had() -> None:
    """Its snapshot would hold what was deleted."""
    files = task()
    write(files, 1, lsm("s1"))
    empty = write(files, 2, lsm(), base=1)
    assert (names(empty), empty.layout) == (([], []), None)
    assert names(write(files, 3, lsm("s2"), base=2)) == (["chk-3.s2"], ["chk-3.s2"])


# -- restored ----------------------------------------------------------------------------------------


def restored(file: StateFile) -> SnapshotFiles:
    files = task()
    files.restored(CheckpointId(1), (file,), Keyed(entries(1)))
    return files


def test_a_state_on_the_heap_goes_on_from_the_files_that_it_restored() -> None:
    files = restored(file_of(Handle("old"), KeyedEdit(entries=Edit(added=entries(1)))).file)
    assert names(write(files, 2, heap(1), base=1)) == (["old"], [])


def test_sorted_files_that_were_restored_are_built_on_by_none() -> None:
    """The store has filled files of its own."""
    files = restored(file_of(Handle("old"), SortedFile("s1", b"")).file)
    assert names(write(files, 2, heap(1), base=1)) == (["chk-2.entries-0"], ["chk-2.entries-0"])


# -- complete, or aborted --------------------------------------------------------------------------------


def test_when_one_is_complete_the_formats_up_to_it_are_over() -> None:
    files = task()
    for number in (1, 2, 3):
        files.ask(CheckpointId(number), Format("native"))
    files.complete(CheckpointId(2))
    assert [files.format_of(CheckpointId(one)) for one in (1, 2, 3)] == [None, None, Format("native")]


def test_the_newest_complete_one_and_the_one_before_may_be_built_on_and_none_before_that() -> None:
    files = task()
    for number in (1, 2, 3):
        write(files, number, heap(number))
    for number in (1, 2, 3):
        files.complete(CheckpointId(number))
    built_on = {base: names(write(files, 4, heap(9), base=base))[0] for base in (1, 2, 3)}
    assert built_on == {
        1: ["chk-4.entries-0"],
        2: ["chk-2.entries-0", "chk-4.entries-1"],
        3: ["chk-3.entries-0", "chk-4.entries-1"],
    }


def test_a_checkpoint_that_was_aborted_is_forgotten() -> None:
    files = task()
    write(files, 1, heap(1))
    files.aborted(CheckpointId(1))
    assert files.format_of(CheckpointId(1)) is None
    assert names(write(files, 2, heap(1), base=1))[1] == ["chk-2.entries-0"]
    files.aborted(CheckpointId(7))  # the task took no part in it
