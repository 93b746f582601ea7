"""A task's state in the files of another format (SNAP-4): the same state, and files that only this snapshot needs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....reference_impl.core.decisions.snapshots.naming import Naming
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint
from ....reference_impl.core.vocabulary.formats import (
    CANONICAL,
    ENTRIES,
    Edit,
    Filed,
    Keyed,
    KeyedEdit,
    NewFile,
    encode,
    encode_manifest,
    file_of,
)
from ....reference_impl.core.vocabulary.ids import Handle, TaskId
from ....reference_impl.core.vocabulary.state import TaskState
from ....reference_impl.core.vocabulary.views import OWN

_NAMING = Naming()


def handles_for(record: CompletedCheckpoint, to: str) -> dict[TaskId, Handle]:
    """The handles of a converted snapshot: other names than those of the snapshot as its job took it."""
    folder = f"job-{record.job}/chk-{record.checkpoint}/{to}"
    return {task: Handle(f"{folder}/{task}-{record.attempt}") for task in record.handles}


def entries_file(handle: Handle) -> Handle:
    """The file of the working state by key, if the snapshot has one besides that under its handle."""
    return _NAMING.file(handle, ENTRIES)


def refiled(state: TaskState, handle: Handle, to: str) -> Iterator[tuple[Handle, bytes]]:
    """The files of a state in a format, that under its handle last."""
    if to == CANONICAL:
        yield handle, encode(state)
        return
    unkeyed, keyed = _parted(state)
    edit = KeyedEdit(entries=Edit(added=keyed.entries), panes=Edit(added=keyed.panes), held=Edit(added=keyed.held))
    new: tuple[NewFile, ...] = () if edit.changes_nothing else (file_of(entries_file(handle), edit),)
    for one in new:
        yield one.file.name, one.data
    yield handle, encode_manifest(unkeyed, Filed(format=to, files=tuple(one.file for one in new)))


def _parted(state: TaskState) -> tuple[TaskState, Keyed]:
    """What a manifest holds, and what is in the file of entries.  What a function has of its own comes first, as in
    `state.Snapshot.materialise`; it stays in the manifest."""
    keyed_from = next((at for at, (_, name, _) in enumerate(state.held) if name != OWN), len(state.held))
    unkeyed = msgspec.structs.replace(state, entries=[], panes=[], held=state.held[:keyed_from])
    return unkeyed, Keyed(state.entries, state.panes, state.held[keyed_from:])
