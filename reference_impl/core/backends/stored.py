"""Stored snapshots read back, whatever their format and the backend that wrote their files."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..vocabulary.errors import CorruptSnapshot
from ..vocabulary.formats import SST, Keyed, KeyedEdit, Manifest, StateFile, read, read_file
from ..vocabulary.ids import Handle
from ..vocabulary.state import TaskState
from .layouts import LAYOUTS
from .lsm import Codec
from .sorted_runs import Pairs, Run, merged
from .sst_files import pairs_of

Content = Callable[[Handle], bytes | None]
"""The bytes under a name; None if there are none."""


class Loaded(msgspec.Struct, frozen=True):
    """A snapshot that was read: its whole state, the files that it needs besides, and what these hold."""

    state: TaskState
    files: tuple[StateFile, ...] = ()
    keyed: Keyed = Keyed()


def read_snapshot(handle: Handle, content: Content) -> Loaded:
    """The snapshot under a handle.  Raises CorruptSnapshot, which names the file that is missing or altered."""
    data = content(handle)
    if data is None:
        raise CorruptSnapshot(f"{handle} is not in the store")
    try:
        found = read(data)
    except CorruptSnapshot as error:
        raise CorruptSnapshot(f"{handle}: {error}") from None
    if isinstance(found, TaskState):
        return Loaded(found)
    keyed, runs = Keyed(), list[Pairs]()
    for file in found.files:
        data = content(file.name)
        if data is None:
            raise CorruptSnapshot(f"{file.name}, to which {handle} refers, is not in the store")
        try:
            held = read_file(file, data)
            if isinstance(held, KeyedEdit):
                keyed = held.apply(keyed)
            else:
                runs.append(pairs_of(held.data) if file.kind == SST else Run.of(held).pairs)
        except CorruptSnapshot as error:
            raise CorruptSnapshot(f"{file.name}, to which {handle} refers: {error}") from None
    if runs:
        keyed = _described(found, merged(runs), handle)
    state = msgspec.structs.replace(
        found.state, entries=keyed.entries, panes=keyed.panes, held=[*found.state.held, *keyed.held]
    )
    return Loaded(state, found.files, keyed)


def _described(manifest: Manifest, pairs: Pairs, handle: Handle) -> Keyed:
    """What sorted files hold, as a snapshot has it."""
    layout = LAYOUTS.get(manifest.layout) if manifest.layout is not None else None
    if layout is None:
        raise CorruptSnapshot(f"{handle}: it has an unknown layout {manifest.layout!r}")
    try:
        state = Codec(layout).state(pairs)
    except msgspec.DecodeError as error:
        raise CorruptSnapshot(f"{handle}: its files do not have the layout {manifest.layout}: {error}") from None
    return Keyed(layout.entries(state), layout.panes(state), layout.held(state))
