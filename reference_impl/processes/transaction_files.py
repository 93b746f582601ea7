"""The external transaction store as files: a transaction becomes visible by an atomic rename.

    committed/NAME.jsonl                  a committed transaction, JSON lines
    aside/NAME.jsonl                      a committed one that is not part of the job's output
    final/, versions/                     what becomes visible together: see `transaction_versions`
    fences/WRITER/ATTEMPT                 older attempts of this writer are fenced
    live/WRITER/ATTEMPT.TOKEN/            one process's folder for one attempt; TOKEN makes it its own
        BEGUN-NAME.open                   an open transaction
        BEGUN-NAME@CHECKPOINT.sealed      a sealed one, synced
        appended.log, upserted.log        rows visible at once, each with the time of its writing
    retired/WRITER/ATTEMPT.TOKEN/         the folder of an attempt that was fenced

Why no zombie escapes a fence.  A fence makes its mark, then retires the folders of older
attempts by rename.  An attempt makes its folder first, looks for marks second, and does
everything else later.  So either its folder was there when the fence looked, and is
retired, or the attempt sees the mark.  Nobody makes a folder of that name again, so the
next path that the zombie uses does not exist.

One system call of the zombie can be under way, if it found the folder before the
retirement.  If the call renames or removes a transaction's file, it competes with the
fence, which takes each file over by a rename of that same file: one of the two wins.  The
fence looks again until it finds nothing twice in a row, because a file may move from a
folder that it has not read yet to one that it has read.  If the call makes a file, that is
an open transaction without rows, which nobody can seal.  If the call writes, it writes into
an open transaction, which the next attempt aborts, or into a log, whose length the fence
has noted: readers stop there.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..core.vocabulary.ids import AttemptId, TaskId
from ..core.vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    Append,
    Begin,
    Commit,
    Denied,
    Done,
    Fence,
    Finalise,
    Flush,
    NoAnswer,
    Outcome,
    PreCommit,
    Publish,
    Upsert,
    Write,
    writer_in,
)
from . import transaction_versions as versions
from .transaction_folders import (
    LIMIT,
    LOGS,
    Account,
    attempt_of,
    committed_path,
    create,
    encoded,
    folders_in,
    line,
    listed,
    make_folder,
    sync,
    transactions,
    write_all,
)
from .transaction_reader import FileReader

__all__ = ["FileReader", "TransactionFiles", "create"]


class Shut(Exception):
    """The writer's attempt has been fenced."""


class Held(msgspec.Struct, kw_only=True):
    """An open transaction of this process: its file and handle, and how many rows it has."""

    path: Path
    handle: int
    rows: int = 0


class WriterSession:
    """One attempt of one writer, in one process."""

    def __init__(self, root: Path, writer: TaskId, attempt: AttemptId, passes_on: bool = False) -> None:
        self.root, self.writer, self.attempt = root, writer, attempt
        self._passes_on = passes_on
        self.live = root / "live" / encoded(writer)
        self.retired = root / "retired" / encoded(writer)
        self.fences = root / "fences" / encoded(writer)
        self.folder = self.live / f"{attempt}.{secrets.token_hex(8)}"
        self.is_ready = False
        self.open: dict[str, Held] = {}
        self._logs: dict[str, int] = {}

    def get_ready(self) -> None:
        """Make the folder, then look for marks; later, check that the folder has not been retired.  Raises `Shut`."""
        if not self.is_ready:
            make_folder(self.live)
            make_folder(self.folder)
            if any(int(mark) > self.attempt for mark in listed(self.fences)):
                with suppress(FileNotFoundError):  # it may have been retired already
                    self.folder.rmdir()
                raise Shut
            self.is_ready = True
        elif not self.folder.exists():
            raise Shut

    def close(self) -> None:
        for held in self.open.values():
            os.close(held.handle)
        for handle in self._logs.values():
            os.close(handle)
        self.open.clear()
        self._logs.clear()

    # -- transactions ----------------------------------------------------------------

    def find(self, name: str) -> Account | None:
        """The newest unfinished transaction of that name, of this attempt or of an older one that was not retired."""
        folders = [folder for folder in folders_in(self.live) if attempt_of(folder) <= self.attempt]
        found = [account for account in transactions(*folders) if account.name == name]
        return found[-1] if found else None

    def _committed_path(self, name: str) -> Path:
        return committed_path(self.root, name, self._passes_on)

    def _is_committed(self, name: str) -> bool:
        """Whether it is committed or final; a final transaction cannot be undone either."""
        return self._committed_path(name).exists() or name in versions.finals(self.root)

    def _close_handle(self, name: str) -> Path | None:
        """Close an open transaction's handle; its file, if there is one."""
        held = self.open.pop(name, None)
        if held is None:
            return None
        os.close(held.handle)
        return held.path

    def begin(self, request: Begin) -> Outcome:
        """A name that was used before starts again, unless it is committed: then it stays what it is."""
        name = request.name
        if self._is_committed(name):
            return Done()
        self._drop(name)
        path = self.folder / f"{time.time_ns():020d}-{encoded(name)}.open"
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self.open[name] = Held(path=path, handle=handle)
        return Done()

    def write(self, request: Write) -> Outcome:
        held = self.open.get(request.name)
        if held is None:
            return self._not_open(request.name)
        try:
            write_all(held.handle, b"".join(line(row) for row in request.rows))
        except OSError:
            self._drop(request.name)  # nobody knows which rows it has
            raise
        held.rows += len(request.rows)
        return Done()

    def _not_open(self, name: str) -> Outcome:
        if self._is_committed(name):
            return Done()
        account = self.find(name)
        if account is None or account.checkpoint is None:
            return unknown(name)
        return Denied(reason=f"transaction {name} is sealed")

    def pre_commit(self, request: PreCommit) -> Outcome:
        """Forgets a transaction without rows, as the simulator's store does."""
        name = request.name
        held = self.open.get(name)
        if held is None:
            account = self.find(name)
            is_sealed = account is not None and account.checkpoint is not None
            return Done() if is_sealed or self._is_committed(name) else unknown(name)
        if not held.rows:
            self._drop(name)
            return Done()
        os.fsync(held.handle)
        held.path.rename(held.path.with_name(f"{held.path.stem}@{request.checkpoint}.sealed"))
        self._close_handle(name)
        sync(self.folder)
        return Done()

    def commit(self, request: Commit) -> Outcome:
        """Only the process that opened a transaction commits it while it is open: the rows may not all be there."""
        name, held = request.name, self.open.get(request.name)
        if request.by_id:
            return self._commit_newest(name)
        if held is not None:
            os.fsync(held.handle)
            self._show(held.path, name)
            return Done()
        if self._is_committed(name):
            return Done()
        if writer_in(name) not in ("", self.writer):
            moved = versions.move_sealed(self.root, name, self.writer, self._committed_path(name))
            return Done() if moved or self._is_committed(name) else unknown(name)
        account = self.find(name)
        if account is None or account.checkpoint is None:
            return unknown(name)
        self._show(account.path, name)
        return Done()

    def _commit_newest(self, name: str) -> Outcome:
        """Commit the transaction that was begun last under the same transactional id, with the rows that it has."""
        account = versions.newest_of_id(self.root, name, self.writer)
        if account is None:
            return Done() if self._is_committed(name) else unknown(name)
        self._show(account.path, account.name)
        return Done()

    def _show(self, path: Path, name: str) -> None:
        path.rename(self._committed_path(name))
        self._close_handle(name)
        sync(self._committed_path(name).parent)

    def finalise(self, request: Finalise) -> Outcome:
        name = request.name
        if self._is_committed(name) or versions.finalise(self.root, name, self.writer):
            return Done()
        return unknown(name)

    def publish(self, request: Publish) -> Outcome:
        missing = versions.not_final(self.root, request.names)
        for name in missing:
            if not self._committed_path(name).exists():
                return Denied(reason=f"transaction {name} is not final")
        versions.publish(self.root, versions.Version(checkpoint=request.checkpoint, names=request.names))
        return Done()

    def abort(self, request: AbortTransaction) -> Outcome:
        self._drop(request.name)
        return Done()

    def _drop(self, name: str) -> None:
        self._close_handle(name)
        while (account := self.find(name)) is not None:
            account.path.unlink(missing_ok=True)

    # -- rows that are visible at once -------------------------------------------------

    def append(self, request: Append) -> Outcome:
        self._log("appended.log", line(request.row, at=time.time_ns()))
        return Done()

    def upsert(self, request: Upsert) -> Outcome:
        self._log("upserted.log", line(request.row, at=time.time_ns(), identity=request.identity))
        return Done()

    def _log(self, name: str, entry: bytes) -> None:
        if name not in self._logs:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._logs[name] = os.open(self.folder / name, flags, 0o644)
            self.get_ready()  # the folder may have been retired while the log was made
        write_all(self._logs[name], entry)

    def flush(self, request: Flush) -> Outcome:
        for handle in self._logs.values():
            os.fsync(handle)
        return Done()

    # -- fences ------------------------------------------------------------------------

    def fence(self, request: Fence) -> Outcome:
        make_folder(self.fences)
        make_folder(self.fences / str(self.attempt))
        if any(int(mark) > self.attempt for mark in listed(self.fences)):
            raise Shut
        make_folder(self.retired)
        for folder in folders_in(self.live):
            if attempt_of(folder) < self.attempt:
                _rename(folder, self.retired / folder.name)
        empty_passes = 0
        while empty_passes < 2:
            empty_passes = 0 if self._take_over() else empty_passes + 1
        for folder in folders_in(self.retired):
            _note_lengths(folder)
        for folder in (self.live, self.retired, self.folder):
            sync(folder)
        accounts = transactions(*folders_in(self.live))
        return Done(unfinished=tuple((account.name, account.checkpoint) for account in accounts))

    def _take_over(self) -> int:
        """Move what fenced attempts left unfinished into this attempt's folder; returns how much there was."""
        accounts = transactions(*folders_in(self.retired))
        for account in accounts:
            _rename(account.path, self.folder / account.path.name)
        return len(accounts)


def _rename(path: Path, to: Path) -> None:
    """Rename, unless another process was first."""
    try:
        path.rename(to)
    except FileNotFoundError:
        if not to.parent.exists():
            raise Shut from None


def _note_lengths(folder: Path) -> None:
    """Note once how long the logs of a shut-out attempt are."""
    for name in LOGS:
        note = folder / (name + LIMIT)
        if (folder / name).exists() and not note.exists():
            draft = folder / f"{name}.{secrets.token_hex(8)}"
            draft.write_text(str((folder / name).stat().st_size))
            _rename(draft, note)
    sync(folder)


def unknown(name: str) -> Denied:
    return Denied(reason=f"it knows no sealed transaction {name}")


ACTIONS: dict[type, Callable[[WriterSession, Any], Outcome]] = {
    Fence: WriterSession.fence,
    Begin: WriterSession.begin,
    Write: WriterSession.write,
    PreCommit: WriterSession.pre_commit,
    Commit: WriterSession.commit,
    Finalise: WriterSession.finalise,
    Publish: WriterSession.publish,
    AbortTransaction: WriterSession.abort,
    Append: WriterSession.append,
    Upsert: WriterSession.upsert,
    Flush: WriterSession.flush,
}


class TransactionFiles:
    """The access of one process to the store in a folder; `create` makes the store.  Not for several threads."""

    def __init__(self, root: Path, passing: Collection[TaskId] = ()) -> None:
        """`passing` are the writers whose transactions are not part of the job's output."""
        self._root = root
        self._passing = passing
        self._sessions: dict[tuple[TaskId, AttemptId], WriterSession] = {}

    def handle(self, request: AnyRequest) -> Outcome:
        """Do what is requested, or deny it; `NoAnswer` when the disk reports an error."""
        key = (request.writer, request.attempt)
        if key not in self._sessions:
            if isinstance(request, Flush):
                return Done()
            self._sessions[key] = WriterSession(self._root, *key, passes_on=key[0] in self._passing)
        session = self._sessions[key]
        try:
            session.get_ready()
            outcome = ACTIONS[type(request)](session, request)
        except Shut:
            return self._shut(key)
        except FileNotFoundError as error:
            # A fence has retired its folder meanwhile; or another process of the same attempt was first.
            if not self._root.exists():
                self._sessions.pop(key).close()
                return Denied(reason=f"the store in {self._root} has been removed")
            return self._shut(key) if not session.folder.exists() else NoAnswer(reason=str(error))
        except OSError as error:
            return NoAnswer(reason=str(error))
        if isinstance(request, Fence):
            self._forget_older(request)
        return outcome

    def _shut(self, key: tuple[TaskId, AttemptId]) -> Outcome:
        self._sessions.pop(key).close()
        return Denied(reason=f"{key[0]} has been fenced by a newer attempt")

    def _forget_older(self, fence: Fence) -> None:
        for key in [key for key in self._sessions if key[0] == fence.writer and key[1] < fence.attempt]:
            self._sessions.pop(key).close()

    def close(self) -> None:
        """Close the files.  Open transactions stay until the writer's next attempt aborts them."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
