"""Logs of persistent channels on disk: one process appends, others read and delete.

    logs/FOLDER/CHANNEL/00000001    frames, each with the elements that were appended between two flushes

A frame is one of the wire's, with a CRC-32: numbers and elements as MessagePack.  Appended
elements wait in the process until a flush, which writes one frame for each log and then syncs,
so that many elements cost one sync.  With the store *log* a channel's log goes on in one file
until the file is long, and then begins another.  With the store *files* each flush makes a file.
Files are deleted as a whole, except the one that is being written.

A log's folder is made with its first element, and removed when the log is deleted.  A process that
still writes the log then writes into a deleted file, and does not make the folder again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...core.vocabulary.messages import Element
from ...core.vocabulary.state import Ref
from .checked import framed, unframed
from .durable import NOT_THERE, sync, sync_folders

LONG = 1 << 12
"""bytes of a log's file after which another is begun"""
Numbered = tuple[int, Element]


_decoder = msgspec.msgpack.Decoder(list[Numbered])


class _File:
    """One file of a log that this process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        self.synced = 0
        """how many of its bytes survive"""
        self.end = 0
        """every number in the file is below"""


class _Written:
    """A log that this process writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting: list[Numbered] = []
        self.on_durable: Callable[[int], None] = lambda end: None
        """is called with the number below which everything is durable"""
        self.is_fenced: Callable[[], bool] = lambda: False
        self.is_made = False
        self.files: list[_File] = []
        self.descriptor: int | None = None
        """of the last file"""
        self.begun = 0
        """files so far"""
        self.flushing: dict[int, tuple[_File, int]] = {}
        """by mark: which file is to be synced, and up to which byte"""
        self.is_closed = False
        """another process has deleted the log"""


class DiskLogs:
    """All logs below a folder, which several processes share; `driver.ports.SpillStore`."""

    def __init__(self, root: Path, *, whole_files: bool) -> None:
        self.root = root / "logs"
        self._whole_files = whole_files
        self._own: dict[str, _Written] = {}
        self._marks = 0

    def take_over(
        self, log: str, on_durable: Callable[[int], None], is_fenced: Callable[[], bool]
    ) -> dict[int, Element]:
        """Write a log from now on that another attempt of the task may have written before (UNA-4); returns its durable
        elements, by number.

        `on_durable` is called after every flush.  The elements that are found are synced, and trimmed with the rest.
        What a zombie still writes into those files is correct, and nobody reads it.  If the attempt is fenced when its
        first element comes, it makes no folder: the folder may have been deleted.
        """
        self.lose(log)
        own = self._own[log] = _Written(self.root / log)
        own.on_durable, own.is_fenced = on_durable, is_fenced
        found: dict[int, Element] = {}
        for path in _files(own.folder):
            sync(path)
            file = _File(path)
            file.length = file.synced = path.stat().st_size
            elements = _content(path, file.length)
            file.end = 1 + max((number for number, _ in elements), default=-1)
            own.files.append(file)
            found.update(elements)
        own.begun = max((int(file.path.name) for file in own.files), default=0)
        return found

    # -- writing -----------------------------------------------------------------------

    def append(self, log: str, number: int, element: Element) -> None:
        own = self._own.get(log)
        if own is None:
            own = self._own[log] = _Written(self.root / log)
        if not own.is_made:
            own.is_made, own.is_closed = True, own.is_fenced()
            if not own.is_closed:
                own.folder.mkdir(parents=True, exist_ok=True)
        own.waiting.append((number, element))

    def begin(self, log: str) -> int:
        """Write what was appended; returns the mark with which to sync it."""
        self._marks += 1
        own = self._own.get(log)
        if own is None or not own.waiting:
            return self._marks
        waiting, own.waiting = own.waiting, []
        self._make_room(own)
        if own.descriptor is None:
            return self._marks
        remaining = memoryview(framed(waiting))
        file = own.files[-1]
        file.length += len(remaining)
        file.end = max(file.end, *(number + 1 for number, _ in waiting))
        while remaining:
            remaining = remaining[os.write(own.descriptor, remaining) :]
        own.flushing[self._marks] = (file, file.length)
        return self._marks

    def _make_room(self, own: _Written) -> None:
        """Have a file to write into; none if the log was deleted."""
        if own.descriptor is not None and (self._whole_files or own.files[-1].length >= LONG):
            self._close(own)
        if own.descriptor is not None or own.is_closed:
            return
        while own.descriptor is None:
            own.begun += 1
            path = own.folder / f"{own.begun:08}"
            try:
                own.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:  # of an attempt that was given up, and does not know that
                continue
            except NOT_THERE:
                own.is_closed = True
                return
            own.files.append(_File(path))

    def _close(self, own: _Written) -> None:
        """Write no more into the last file; its last writes are synced first."""
        if own.descriptor is not None:
            self._sync(own, own.files[-1], own.files[-1].length)
            os.close(own.descriptor)
            own.descriptor = None

    def finish(self, log: str, mark: int) -> None:
        """The flush with this mark is durable."""
        own = self._own.get(log)
        if own is not None and mark in own.flushing:
            file, length = own.flushing.pop(mark)
            end = file.end
            self._sync(own, file, length)
            own.on_durable(end)

    def _sync(self, own: _Written, file: _File, length: int) -> None:
        if file.synced >= length:
            return
        if own.descriptor is not None and file is own.files[-1]:
            if not file.synced:
                sync_folders(own.folder, self.root.parent)
            os.fdatasync(own.descriptor)
            file.synced = file.length
        else:  # it was closed, and so it was synced
            file.synced = length

    def tear(self, log: str, mark: int) -> None:
        """Leave half of what is flushed: a frame that no reader finds whole."""
        own = self._own.get(log)
        if own is None or mark not in own.flushing or own.descriptor is None:
            return
        file, length = own.flushing.pop(mark)
        file.length = file.synced + (length - file.synced) // 2
        os.ftruncate(own.descriptor, file.length)

    def lose(self, log: str) -> None:
        """Its writer has died, and with it what was not written."""
        own = self._own.pop(log, None)
        if own is not None and own.descriptor is not None:
            os.close(own.descriptor)

    # -- reading -----------------------------------------------------------------------

    def read(self, ref: Ref) -> list[Numbered]:
        """The elements that a reference names, as far as they are there, in order; of a log that this process
        writes, the synced ones."""
        found: dict[int, Element] = {}
        own = self._own.get(ref.log)
        synced = {file.path: file.synced for file in own.files} if own is not None else {}
        for path in _files(self.root / ref.log):
            for number, element in _content(path, synced.get(path)):
                if ref.first <= number < ref.end:
                    found[number] = element
        return sorted(found.items(), key=lambda one: one[0])

    # -- trimming --------------------------------------------------------------------

    def trim(self, log: str, before: int) -> int:
        """Delete the files that hold nothing from a number on.

        Returns the number below which nothing remains (0: nothing was deleted).
        """
        own = self._own.get(log)
        if own is None:
            return 0
        kept = [file for file in own.files if file.end > before or (file is own.files[-1] and not self._whole_files)]
        deleted = [file for file in own.files if file not in kept and file.synced]
        for file in deleted:
            file.path.unlink(missing_ok=True)
        own.files = [file for file in own.files if file not in deleted]
        if deleted and not own.files and own.descriptor is not None:
            os.close(own.descriptor)
            own.descriptor = None
        return max((file.end for file in deleted), default=0)

    def delete(self, log: str) -> None:
        shutil.rmtree(self.root / log, ignore_errors=True)
        if (self.root / log).exists():  # its writer made a file while the log was deleted
            shutil.rmtree(self.root / log, ignore_errors=True)

    def names(self) -> list[str]:
        """In the order of their names: JOB/log/TASK/CHANNEL each."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob("*/*/*/*") if path.is_dir())


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except NOT_THERE:
        return []


def _content(path: Path, length: int | None) -> list[Numbered]:
    """The elements of a file's whole frames, up to a length; raises CorruptSnapshot where a frame is altered."""
    try:
        data = path.read_bytes()
    except NOT_THERE:
        return []
    return unframed(data if length is None else data[:length], _decoder, f"{path.name} of a log")
