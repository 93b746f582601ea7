"""The determinants of a task on disk (UNA-4), and the fence around the files that its attempts write.

    logs/FOLDER/order/00000003          attempt 3 has taken the task's place
    logs/FOLDER/order/00000003.0001     its determinants, and the places of its snapshots among them, in frames as
                                        those of logs are

An attempt that starts creates its fence first, and only then reads the newest file of the attempts before it.  It
copies that into a file of its own, synced and renamed to its place, and goes on there.  After each sync an attempt
looks for fences of later attempts; if there is one, no output that depends on its newest determinants leaves.  An
attempt that finds its own fence does not start: it was ordered to start twice.

So no zombie escapes.  If a zombie looks before the fence is created, its determinants are on disk before the later
attempt reads them, and that attempt repeats its work.  If it looks afterwards, it sees the fence.  The logs of its
inputs use the same fence: elements that a zombie flushed afterwards are durable and right, but no sender is notified of
them, and no sender is admitted.

Sources take no input and write no determinants, so they send without looking for fences.  A zombie of a source does no
harm: the later attempt reads the same records from the same positions, and its receivers do not admit the zombie.

A long file is rewritten when a part of it is not needed any more.  When the folder has been deleted, nothing is
written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ...core.decisions.local_recovery import Determinant
from ...core.extensions.local_recovery import LogPlace
from ...core.vocabulary.errors import CorruptSnapshot
from ...core.vocabulary.ids import AttemptId, CheckpointId
from ...driver.numbered import DurableDeterminants
from .checked import framed, unframed
from .durable import NOT_THERE, TRIES, sync, sync_folders

ORDER = "order"
"""In the folder that holds the numbered logs of the task's inputs."""
REWRITTEN_BEHIND = 1 << 14
"""bytes of a file after which it is rewritten"""
_NAME = re.compile(r"(\d{8})(?:\.(\d{4}))?")


class Entry(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Base of what stands in a file."""


class Began(Entry, frozen=True):
    """Determinants below `trimmed` are not needed; `restored`: by input, how many elements were put back into it."""

    trimmed: int
    restored: dict[int, int]


class Took(Entry, frozen=True):
    """Determinants, behind those of the entries before."""

    determinants: tuple[Determinant, ...]


class Stood(Entry, frozen=True):
    """Where in the order a snapshot was taken, or (None) the task began."""

    checkpoint: CheckpointId | None
    place: LogPlace


_decoder = msgspec.msgpack.Decoder(list[Began | Took | Stood])


class DiskDeterminants(DurableDeterminants):
    """The determinants of a task: those that an attempt found, and those that it adds."""

    def __init__(self, folder: Path, top: Path, attempt: AttemptId, *, returns: bool) -> None:
        """Take the task's place: from now on no older attempt has it.  Raises OSError, and CorruptSnapshot.

        With `returns` (a local recovery) the folder must exist; if it does not, the attempt `is_fenced` from the
        beginning.  An attempt that has started before is fenced as well, since only its first process knows what it has
        sent.
        """
        super().__init__()
        self.restored: dict[int, int] = {}
        """by input, how many elements its first attempt put back"""
        self._folder = folder
        self._attempt = attempt
        self._file: int | None = None
        self._length = 0
        self._generation = 0
        self._unwritten: list[Determinant] = []
        self._is_superseded = False
        """the folder was deleted, or this attempt has started before in another process"""
        if not returns:
            folder.mkdir(parents=True, exist_ok=True)
        try:
            (folder / f"{attempt:08}").touch(exist_ok=False)
        except (*NOT_THERE, FileExistsError):
            self._is_superseded = True
            return
        sync_folders(folder, top)
        for entry in _newest(folder, attempt):
            self._take_up(entry)
        self.durable = self.end
        self._begin()

    def _take_up(self, entry: Began | Took | Stood) -> None:
        if isinstance(entry, Began):
            self._trimmed = entry.trimmed
            self.restored.update(entry.restored)
        elif isinstance(entry, Took):
            self._determinants.extend(entry.determinants)
        else:
            self._places[entry.checkpoint] = entry.place

    def _begin(self) -> None:
        """Go on in a new file, with everything that is still needed; then delete the older files."""
        self._generation += 1
        began = [Began(self._trimmed, self.restored), Took(tuple(self._determinants))]
        entries: list[Entry] = [*began, *(Stood(checkpoint, place) for checkpoint, place in self._places.items())]
        path = self._folder / f"{self._attempt:08}.{self._generation:04}"
        data = framed(entries)
        temporary = path.with_suffix(".new")
        try:
            temporary.write_bytes(data)
            sync(temporary)
            os.rename(temporary, path)
            sync(self._folder)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        except NOT_THERE:
            self._is_superseded = True
            return
        self.close()
        self._file, self._length, self._unwritten = descriptor, len(data), []
        for name, attempt, generation in _files(self._folder):
            if generation and (attempt, generation) < (self._attempt, self._generation):
                (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing more is written."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def is_fenced(self) -> bool:
        """Another attempt has taken the task's place, or the folder was deleted because nobody needs it; raises
        OSError."""
        return self._is_superseded or any(
            attempt > self._attempt for _, attempt, _ in _files(self._folder, superseded=1 << 62)
        )

    @property
    def surely_holds(self) -> bool:
        """Whether the attempt still has the task's place.  Where that cannot be read, the answer is no, and the next
        write fails."""
        try:
            return not self.is_fenced
        except OSError:
            return False

    # -- writing -----------------------------------------------------------------------

    def take_down(self, determinant: Determinant) -> None:
        super().take_down(determinant)
        self._unwritten.append(determinant)

    def write(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        self._append([Took(tuple(unwritten))] if unwritten else [])

    def settle(self, end: int) -> bool:
        self._sync()
        if self.is_fenced:
            return False
        self.flushed(end)
        return True

    def mark(self, checkpoint: CheckpointId | None, place: LogPlace) -> None:
        """Written at once: as soon as the snapshot is durable, an attempt may restore it."""
        super().mark(checkpoint, place)
        self.write()
        self._append([Stood(checkpoint, place)])
        self._sync()

    def began_with(self, channel: int, count: int) -> None:
        self.restored[channel] = count
        self._append([Began(self._trimmed, {channel: count})])
        self._sync()

    def trim(self, oldest: CheckpointId) -> LogPlace | None:
        place = super().trim(oldest)
        if place is not None and self._length > REWRITTEN_BEHIND and not self.is_fenced:
            self._begin()
        return place

    def _append(self, entries: Sequence[Entry]) -> None:
        if not entries or self._file is None or self._is_superseded:
            return
        remaining = memoryview(framed(entries))
        self._length += len(remaining)
        while remaining:
            remaining = remaining[os.write(self._file, remaining) :]

    def _sync(self) -> None:
        if self._file is not None:
            os.fdatasync(self._file)


def _files(folder: Path, superseded: int = 0) -> list[tuple[str, int, int]]:
    """(name, attempt, generation) of what is there, oldest first; the generation of a fence is 0.

    When the folder has been deleted, one fence of the attempt `superseded`.
    """
    try:
        found = [(name, _NAME.fullmatch(name)) for name in os.listdir(folder)]
    except NOT_THERE:
        return [("", superseded, 0)] if superseded else []
    return sorted(
        ((name, int(match[1]), int(match[2] or 0)) for name, match in found if match is not None),
        key=lambda one: one[1:],
    )


def _newest(folder: Path, before: int) -> list[Began | Took | Stood]:
    """What the newest file of an earlier attempt holds; raises CorruptSnapshot where the file is altered.

    The earlier attempt may be rewriting the file just then.  Then the newest one is looked for again; an attempt that
    looks for fences before it writes rewrites its file only a few times.
    """
    for _ in range(TRIES):
        names = [name for name, attempt, generation in _files(folder) if generation and attempt < before]
        if not names:
            return []
        with suppress(*NOT_THERE):
            sync(folder / names[-1])
            return unframed((folder / names[-1]).read_bytes(), _decoder, f"the determinant log {names[-1]}")
    raise CorruptSnapshot(f"the determinant log in {folder.name} is rewritten again and again")
