"""The history of a run whose snapshots were converted since, under the names that their files have now.

A conversion gives every file of a snapshot another name.  Whoever judges a job that begins there looks for the retained
snapshots of the run before, and finds them in the store only under these names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ....properties.model.history import Completed, History, Stored
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint
from ....reference_impl.core.vocabulary.ids import Handle, TaskId


def renamed(history: History, records: Sequence[CompletedCheckpoint], size: Callable[[Handle], int | None]) -> History:
    """The history with the handles and files of the records.  `size`: of a file, in bytes.

    Two snapshots may have the last state of a finished task in one file.  If only one of them was converted, the state
    is stored under both names.
    """
    now = {int(one.checkpoint): one for one in records}
    completed: list[Completed] = []
    under: dict[str, list[Stored]] = {}
    """by handle in the history: the entries that it has become"""
    stored = {one.handle: one for one in history.stored}
    for entry in history.completed:
        record, handles = now.get(entry.checkpoint), dict(entry.handles)
        for task, former in entry.handles.items():
            handle = record.handles.get(TaskId(task)) if record is not None else None
            if record is not None and handle is not None and handle != former:
                handles[task] = handle
                if former in stored:
                    files = [(str(name), size(name) or 0, True) for name in record.files.get(TaskId(task), ())]
                    moved = msgspec.structs.replace(stored[former], handle=str(handle), files=files)
                    under.setdefault(former, []).append(moved)
            elif former in stored:
                under.setdefault(former, []).insert(0, stored[former])
        completed.append(msgspec.structs.replace(entry, handles=handles))
    return msgspec.structs.replace(
        history,
        completed=completed,
        stored=[one for entry in history.stored for one in _distinct(under.get(entry.handle, [entry]))],
    )


def _distinct(entries: list[Stored]) -> list[Stored]:
    return list({one.handle: one for one in entries}.values())
