"""The files of a task's snapshots (SNAP-2, ABS-9): which it writes, and which it has stored before.

A snapshot that is not canonical has a manifest, under its handle, and files of its entries.  With the incremental
format a barrier names a base: a complete checkpoint that the coordinator retains while the snapshot is pending.  A task
that has taken its part of the base, or has restored it, writes only what has changed since.  Its manifest names the
base's files and the new one.  Any other task writes all its entries.  So no task builds on a checkpoint that may still
be aborted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...decisions.snapshots.increments import Increments, Taken
from ...decisions.snapshots.naming import Naming
from ...vocabulary.formats import ENTRIES, Filed, Format, Keyed, KeyedEdit, NewFile, StateFile, file_of
from ...vocabulary.ids import CheckpointId, Handle
from ...vocabulary.views import SortedFile, SstFile, View


class SnapshotFiles:
    """What one attempt of a task knows of the files of its snapshots."""

    def __init__(self, naming: Naming, increments: Increments) -> None:
        self._naming = naming
        self._increments = increments
        self._formats: dict[CheckpointId, Format] = {}
        """by checkpoint that is not over for this task: the format in which it is written"""
        self._taken: dict[CheckpointId, Taken] = {}
        """by checkpoint on which a later one may build"""
        self._complete: CheckpointId | None = None

    def ask(self, checkpoint: CheckpointId, wanted: Format | None) -> None:
        """A barrier, or a trigger, asks for a snapshot in this format."""
        if wanted is not None:
            self._formats[checkpoint] = wanted

    def format_of(self, checkpoint: CheckpointId) -> Format | None:
        """None: canonical."""
        return self._formats.get(checkpoint)

    def write(self, checkpoint: CheckpointId, handle: Handle, view: View) -> Filed | None:
        """The files of the snapshot.  None: it is canonical, and has none."""
        wanted = self._formats.get(checkpoint)
        return self._write(checkpoint, wanted, handle, view) if wanted is not None else None

    def _write(self, checkpoint: CheckpointId, wanted: Format, handle: Handle, view: View) -> Filed:
        base = self._increments.base(wanted.base, self._taken) if wanted.base is not None else None
        runs = view.files()
        if runs:
            taken, new = self._linked(runs, handle, base.runs if base is not None else {})
        else:
            # An LSM store that has become empty has no files: it builds on none of those that it had.
            before = base if base is not None and not base.runs else None
            taken, new = self._edited(Keyed(view.entries(), view.panes(), view.held()), handle, before)
        if taken.files:
            self._taken[checkpoint] = taken
        return Filed(format=wanted.name, files=taken.files, new=new, layout=view.layout if runs else None)

    def _edited(self, now: Keyed, handle: Handle, base: Taken | None) -> tuple[Taken, tuple[NewFile, ...]]:
        """A state on the heap: a file of what has changed since the base, if anything has."""
        before = base.keyed if base is not None else Keyed()
        edit = self._increments.edit
        changes = KeyedEdit(
            entries=edit(before.entries, now.entries),
            panes=edit(before.panes, now.panes),
            held=edit(before.held, now.held),
        )
        older = base.files if base is not None else ()
        name = self._naming.file(handle, f"entries-{len(older)}")
        new = () if changes.changes_nothing else (file_of(name, changes),)
        files = self._increments.files(older, [one.file for one in new])
        return Taken(files, keyed=now), new

    def _linked(
        self, runs: Sequence[SortedFile | SstFile], handle: Handle, stored: Mapping[str, StateFile]
    ) -> tuple[Taken, tuple[NewFile, ...]]:
        """An LSM store: its sorted files, of which those are written that the base does not have.  Such a file never
        changes, and no two have one name."""
        new: list[NewFile] = []
        by_name: dict[str, StateFile] = {}
        for run in runs:
            file = stored.get(run.name)
            if file is None:
                new.append(file_of(self._naming.file(handle, run.name), run))
                file = new[-1].file
            by_name[run.name] = file
        return Taken(tuple(by_name.values()), runs=by_name), tuple(new)

    def acknowledged(self, filed: Filed) -> tuple[Handle, ...]:
        """The files that the task names to the coordinator."""
        return self._increments.acknowledged(filed)

    def restored(self, checkpoint: CheckpointId, files: Sequence[StateFile], keyed: Keyed) -> None:
        """The task has restored its part of a checkpoint.  An LSM store has filled files of its own with it, and writes
        them all at first."""
        if all(file.kind == ENTRIES for file in files):
            self._taken[checkpoint] = Taken(tuple(files), keyed)

    def complete(self, checkpoint: CheckpointId) -> None:
        """A checkpoint is complete.  A pending one may still name the complete one before it as its base."""
        oldest = self._complete if self._complete is not None else checkpoint
        self._complete = checkpoint
        if not self._formats and not self._taken:  # all are canonical
            return
        self._formats = {one: wanted for one, wanted in self._formats.items() if one > checkpoint}
        self._taken = {one: taken for one, taken in self._taken.items() if one >= oldest}

    def aborted(self, checkpoint: CheckpointId) -> None:
        self._formats.pop(checkpoint, None)
        self._taken.pop(checkpoint, None)
