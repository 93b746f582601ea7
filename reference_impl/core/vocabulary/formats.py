"""The formats of a snapshot (SNAP-2, ABS-9), and their bytes.

*canonical*: one file for each task, with all its state.  *native*: a manifest for each task, and the files of its
working state by key, which the manifest names.  *incremental*: the same, but a file that an earlier complete checkpoint
has stored is named again and not written again.

Each file begins with a line: the word `cutproof-snapshot/2`, what the file is, and a CRC-32 of all its other bytes.  A
canonical file of version 1 had no such line; it is still read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from typing import Generic, TypeVar

import msgspec

from .errors import CorruptSnapshot
from .ids import CheckpointId, Handle
from .ordering import ordered
from .state import TaskState
from .views import Entry, Held, Pane, SortedFile, SstFile

T = TypeVar("T")

CANONICAL, NATIVE, INCREMENTAL = "canonical", "native", "incremental"
FORMATS = (CANONICAL, NATIVE, INCREMENTAL)

ENTRIES, SORTED, SST = "entries", "sorted", "sst"
"""What manifests call files of a state on the heap, those of an LSM store, and those of RocksDB.  The first two are
called so in their first lines too; a file of RocksDB is stored as RocksDB wrote it, and its CRC is in the manifest."""
VERSION = 2
_MAGIC = b"cutproof-snapshot/"
_VERSION = b"%d" % VERSION


class WriteStep(Enum):
    """The steps of the write of a snapshot after which something of it is in the store."""

    WRITTEN = "written"
    """its bytes are with the operating system, and may be torn or lost with the power"""
    LINKED = "linked"
    """its files are synced, and have their names"""
    LINK_SYNCED = "link-synced"
    """the folders are synced too, so no name can be lost any more"""


class Format(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A format other than the canonical one, as a checkpoint's barriers carry it.

    `base` is the complete checkpoint on whose files the snapshots may build; without it they write all their files.
    """

    name: str
    base: CheckpointId | None = None


class StateFile(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A file of a snapshot, as its manifest names it."""

    name: Handle
    kind: str
    size: int
    crc: int
    """as in its first line, or of all its bytes: a file of the same name with other content is found"""


class NewFile(msgspec.Struct, frozen=True, gc=False):
    """A file that is to be written."""

    file: StateFile
    data: bytes
    path: str | None = None
    """where this machine has the same bytes already, perhaps: a store on the same disk links them"""


class Filed(msgspec.Struct, frozen=True, kw_only=True):
    """How a snapshot that is not canonical is written: all its files in their order, of which `new` are written now."""

    format: str
    files: tuple[StateFile, ...] = ()
    new: tuple[NewFile, ...] = ()
    layout: str | None = None
    """of the keys and values in sorted files; None: it has files of entries"""


class Edit(msgspec.Struct, Generic[T], frozen=True, kw_only=True, omit_defaults=True):
    """How a list follows from an older one.

    First `removed` are left out: positions in the old list.  Then each of `added` is put at its position of `placed` in
    the new list; those without a position follow at the end.
    """

    added: list[T] = []
    removed: list[int] = []
    placed: list[int] = []

    def apply(self, before: Sequence[T]) -> list[T]:
        """The new list; raises CorruptSnapshot if the old one is not that for which the edit was made."""
        if any(not 0 <= position < len(before) for position in self.removed):
            raise CorruptSnapshot("it removes what is not there")
        gone = frozenset(self.removed)
        kept = [item for position, item in enumerate(before) if position not in gone] if gone else list(before)
        if not self.placed:
            return kept + self.added
        result: list[T] = []
        taken = 0
        for position, item in zip(self.placed, self.added, strict=False):
            between = position - len(result)
            if not 0 <= between <= len(kept) - taken:
                raise CorruptSnapshot("it puts something behind the end")
            result += kept[taken : taken + between]
            taken += between
            result.append(item)
        return [*result, *kept[taken:], *self.added[len(self.placed) :]]


class Keyed(msgspec.Struct, frozen=True):
    """Working state by key, as a snapshot has it."""

    entries: list[Entry] = []
    panes: list[Pane] = []
    held: list[Held] = []


class KeyedEdit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a file of entries: how the state by key follows from that which the files before it yield.  The
    first file edits the empty state."""

    entries: Edit[Entry] = Edit()
    panes: Edit[Pane] = Edit()
    held: Edit[Held] = Edit()

    @property
    def changes_nothing(self) -> bool:
        return self == KeyedEdit()

    def apply(self, before: Keyed) -> Keyed:
        """Raises CorruptSnapshot."""
        return Keyed(self.entries.apply(before.entries), self.panes.apply(before.panes), self.held.apply(before.held))


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A snapshot that is not canonical: its state but that by key, and the files that hold the rest.

    `layout`: how keys and values lie in sorted files; None for files of entries.
    """

    state: TaskState
    files: tuple[StateFile, ...]
    layout: str | None = None


_encoder = msgspec.json.Encoder()
_state_decoder = msgspec.json.Decoder(TaskState)
_manifest_decoder = msgspec.json.Decoder(Manifest)
_edit_decoder = msgspec.json.Decoder(KeyedEdit)


# -- bytes ---------------------------------------------------------------------------


@cache
def _front(kind: str) -> tuple[bytes, int]:
    """The first line of a file up to its CRC, and the CRC up to there."""
    front = b"%s%s %s " % (_MAGIC, _VERSION, kind.encode())
    return front, zlib.crc32(front)


def _framed(kind: str, body: bytes) -> tuple[bytes, int]:
    """The bytes of a file, and its CRC."""
    front, crc_of_front = _front(kind)
    crc = zlib.crc32(body, crc_of_front)
    return b"%s%08x\n%s" % (front, crc, body), crc


def _unframed(data: bytes) -> tuple[str, int, bytes]:
    """(what it is, CRC, body); raises CorruptSnapshot when the data is torn or altered."""
    if not data.startswith(_MAGIC):
        body = data[9:]  # version 1: eight hex digits of CRC-32, a space, and the state
        if data[:9] != b"%08x " % zlib.crc32(body):
            raise CorruptSnapshot("its checksum does not fit its content")
        return CANONICAL, zlib.crc32(body), body
    line, _, body = data.partition(b"\n")
    front, _, digits = line.rpartition(b" ")
    version, _, kind = front[len(_MAGIC) :].partition(b" ")
    if version != _VERSION and version.isdigit():
        raise CorruptSnapshot(f"it has version {version[:20].decode()} of the format, which is not known here")
    crc = zlib.crc32(body, zlib.crc32(front + b" "))
    if digits != b"%08x" % crc:
        raise CorruptSnapshot("its checksum does not fit its content")
    return kind.decode(errors="replace"), crc, body


def encode(state: TaskState) -> bytes:
    """The bytes of a state in the canonical format: the same for the same state, whichever backend had it."""
    return _framed(CANONICAL, _encoder.encode(ordered(state)))[0]


def encode_manifest(state: TaskState, filed: Filed) -> bytes:
    """The bytes of a manifest; `state` has nothing by key."""
    return _framed(filed.format, _encoder.encode(Manifest(state=state, files=filed.files, layout=filed.layout)))[0]


def text_of(data: bytes) -> str:
    """The text of a state in the canonical format, which `encode` has just written."""
    return data.partition(b"\n")[2].decode()


def text(state: TaskState) -> str:
    """The state as the JSON text that its bytes hold, without the line in front."""
    return _encoder.encode(state).decode()


def file_of(name: Handle, content: KeyedEdit | SortedFile | SstFile) -> NewFile:
    """A file that is to be written under this name."""
    if isinstance(content, KeyedEdit):
        return _framed_file(name, ENTRIES, _encoder.encode(content))
    if isinstance(content, SortedFile):
        return _framed_file(name, SORTED, content.data)
    data = content.data
    return NewFile(StateFile(name, SST, len(data), zlib.crc32(data)), data, content.path)


def _framed_file(name: Handle, kind: str, body: bytes) -> NewFile:
    data, crc = _framed(kind, body)
    return NewFile(StateFile(name, kind, len(data), crc), data)


def read(data: bytes) -> TaskState | Manifest:
    """What a handle's bytes hold; raises CorruptSnapshot when they are torn or altered."""
    kind, _, body = _unframed(data)
    try:
        if kind == CANONICAL:
            return _state_decoder.decode(body)
        if kind in FORMATS:
            return _manifest_decoder.decode(body)
    except msgspec.DecodeError as error:
        raise CorruptSnapshot(str(error)) from None
    raise CorruptSnapshot(f"it is no snapshot but {kind}")


def rewritten(data: bytes, change: Callable[[TaskState], TaskState]) -> bytes:
    """The bytes of a canonical snapshot or of a manifest with another state; raises CorruptSnapshot as `read`."""
    found = read(data)
    if isinstance(found, TaskState):
        return encode(change(found))
    manifest = msgspec.structs.replace(found, state=change(found.state))
    return _framed(_unframed(data)[0], _encoder.encode(manifest))[0]


def decode(data: bytes) -> TaskState:
    """The state in bytes of the canonical format; raises CorruptSnapshot when they are torn or altered."""
    found = read(data)
    if isinstance(found, Manifest):
        raise CorruptSnapshot("it is a manifest: its state is in other files too")
    return found


def read_file(file: StateFile, data: bytes) -> KeyedEdit | SortedFile:
    """What a file of a snapshot holds, of a sorted one or one of RocksDB its bytes; raises CorruptSnapshot if it is not
    the one that was stored under its name."""
    if file.kind == SST:
        if (zlib.crc32(data), len(data)) != (file.crc, file.size):
            raise CorruptSnapshot("its checksum does not fit its content")
        return SortedFile(file.name, data)
    kind, crc, body = _unframed(data)
    if (kind, crc, len(data)) != (file.kind, file.crc, file.size):
        raise CorruptSnapshot("it is not the file that was stored under this name")
    if kind == SORTED:
        return SortedFile(file.name, body)
    try:
        return _edit_decoder.decode(body)
    except msgspec.DecodeError as error:
        raise CorruptSnapshot(str(error)) from None


def first_file(handle: Handle, data: bytes, new: Sequence[NewFile]) -> tuple[Handle, bytes]:
    """The file of a snapshot that is written first, and its bytes: that under its handle comes last."""
    return (new[0].file.name, new[0].data) if new else (handle, data)
