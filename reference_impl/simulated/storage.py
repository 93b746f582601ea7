"""Stores of the engine: snapshots of tasks, records of complete checkpoints, the job's record.

Durable and volatile data are kept apart: a write in progress belongs to its writer and is lost with it; a durable file
survives every failure.  A torn write leaves half a file under its final name, as a store without atomic rename would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..core.backends.stored import Loaded, read_snapshot
from ..core.vocabulary.errors import CorruptSnapshot, expect
from ..core.vocabulary.events import CompletedCheckpoint, JobRecord
from ..core.vocabulary.formats import (
    Filed,
    NewFile,
    encode,
    encode_manifest,
    first_file,
    text,
    text_of,
)
from ..core.vocabulary.ids import CheckpointId, Handle
from ..core.vocabulary.state import TaskState
from ..driver import ports
from .sharing import Sharing


class Draft(msgspec.Struct, frozen=True):
    """Bytes that are not durable yet: the files of a snapshot, that under its handle last."""

    handle: Handle
    data: bytes
    files: tuple[NewFile, ...] = ()
    is_canonical: bool = True


class SnapshotFiles:
    """The durable snapshots: bytes by handle, and records by checkpoint."""

    def __init__(self) -> None:
        self.files: dict[Handle, bytes] = {}
        self.records: dict[CheckpointId, bytes] = {}
        self.written = 0
        """how many files tasks have written, torn and deleted ones included"""
        self.copies: dict[Handle, bytes] = {}
        self.copied_records: dict[CheckpointId, bytes] = {}
        self.sharing: Sharing | None = None
        """with jobs that were forked by reference"""

    def begin(self, handle: Handle, state: TaskState, filed: Filed | None = None) -> Draft:
        if filed is None:
            return Draft(handle, encode(state))
        return Draft(handle, encode_manifest(state, filed), filed.new, False)

    def names(self, draft: ports.Draft) -> tuple[Handle, ...]:
        draft = expect(draft, Draft)
        return (*(new.file.name for new in draft.files), draft.handle)

    def link(self, draft: ports.Draft, name: Handle | None = None) -> None:
        draft = expect(draft, Draft)
        data = {new.file.name: new.data for new in draft.files} | {draft.handle: draft.data}
        for one in data if name is None else (name,):
            self.files[one] = data[one]
            self.written += 1

    def unlink(self, draft: ports.Draft) -> None:
        for name in self.names(draft):
            if name in self.files:
                self._let_go(name)

    def finish(self, draft: ports.Draft) -> str:
        """The text of what can be read under its handle, all its files included."""
        draft = expect(draft, Draft)
        return text_of(draft.data) if draft.is_canonical else text(self.read(draft.handle).state)

    def drop(self, draft: ports.Draft) -> None:
        """The draft was in memory only: nothing of it remains."""

    def tear(self, handle: Handle, state: TaskState, filed: Filed | None = None) -> Handle:
        draft = self.begin(handle, state, filed)
        name, data = first_file(draft.handle, draft.data, draft.files)
        self.files[name] = data[: len(data) // 2]
        self.written += 1
        return name

    def read(self, handle: Handle) -> Loaded:
        """The snapshot under a handle; raises CorruptSnapshot, also when there is none."""
        return read_snapshot(handle, self.files.get)

    def store(self, snapshot: CompletedCheckpoint) -> None:
        self.records[snapshot.checkpoint] = msgspec.json.encode(snapshot.stored())

    def listed(self) -> tuple[CompletedCheckpoint, ...]:
        """Every complete checkpoint, oldest first."""
        return tuple(
            msgspec.json.decode(self.records[checkpoint], type=CompletedCheckpoint)
            for checkpoint in sorted(self.records)
        )

    def survey(self) -> tuple[tuple[CompletedCheckpoint, ...], tuple[CheckpointId, ...]]:
        """As `listed`; in memory every record can be read."""
        return self.listed(), ()

    def discard(self, handles: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Handle]:
        """Delete files and a checkpoint's record; returns the handles that were there."""
        if checkpoint is not None:
            self.records.pop(checkpoint, None)
        deleted = [handle for handle in dict.fromkeys(handles) if handle in self.files]
        for handle in deleted:
            self._let_go(handle)
        return deleted

    def _let_go(self, name: Handle) -> None:
        if self.sharing is None:
            del self.files[name]
        else:
            self.sharing.let_go(self.files, name)

    def has(self, handle: Handle) -> bool:
        return handle in self.files

    def written_for(self, handle: Handle) -> list[Handle]:
        prefix = f"{handle}."
        return [name for name in self.files if name.startswith(prefix)]

    def handles(self) -> list[Handle]:
        return list(self.files)

    # -- copies in a directory of the user --

    def copy(self, handle: Handle, change: Callable[[bytes], bytes] | None = None) -> None:
        if handle not in self.files:
            raise CorruptSnapshot(f"{handle} is not in the store")
        data = self.files[handle]
        self.copies[handle] = data if change is None else change(data)

    def tear_copy(self, handle: Handle) -> None:
        data = self.files.get(handle, b"")
        self.copies[handle] = data[: len(data) // 2]

    def has_copy(self, handle: Handle) -> bool:
        return handle in self.copies and self.copies[handle] == self.files.get(handle, self.copies[handle])

    def store_copy(self, snapshot: CompletedCheckpoint) -> None:
        self.copied_records[snapshot.checkpoint] = msgspec.json.encode(snapshot.stored())

    def copied(self) -> tuple[CompletedCheckpoint, ...]:
        records = (self.copied_records[checkpoint] for checkpoint in sorted(self.copied_records))
        return tuple(msgspec.json.decode(record, type=CompletedCheckpoint) for record in records)

    def keep_copies(self, handles: Sequence[Handle]) -> None:
        kept = frozenset(handles)
        self.copies = {name: data for name, data in self.copies.items() if name in kept}


class JobStore:
    """The durable record of each job, and positions that at-most-once sources saved."""

    def __init__(self) -> None:
        self.records: dict[int, JobRecord] = {}
        self.positions: dict[int, int] = {}
        self.fences: dict[int, int] = {}
        self.trimmed: dict[int, int] = {}

    def save(self, record: JobRecord) -> None:
        self.records[record.job] = record

    def load(self, job: int) -> JobRecord | None:
        return self.records.get(job)

    def save_position(self, split: int, position: int, attempt: int) -> bool:
        """Save a split's next position, unless a newer attempt has read it: then refuse."""
        if self.fences.get(split, 0) > attempt:
            return False
        self.fences[split] = attempt
        self.positions[split] = position
        return True

    def trim(self, split: int, offset: int) -> None:
        self.trimmed[split] = max(offset, self.begins(split))

    def begins(self, split: int) -> int:
        return self.trimmed.get(split, 0)

    def load_positions(self, splits: tuple[int, ...], attempt: int) -> dict[int, int]:
        """The saved positions; from now on older attempts are refused."""
        for split in splits:
            self.fences[split] = max(attempt, self.fences.get(split, 0))
        return {split: self.positions.get(split, 0) for split in splits}
