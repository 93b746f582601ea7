"""Incremental snapshots (ABS-9): what one builds on, what it writes, and which files may be deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ...vocabulary.events import Claims, CompletedCheckpoint
from ...vocabulary.formats import Edit, Filed, Keyed, StateFile
from ...vocabulary.ids import CheckpointId, Handle
from ..part import Part

T = TypeVar("T", bound=tuple[Any, ...])


class Taken(msgspec.Struct, frozen=True):
    """A snapshot as its task remembers it: the files that it needs, and the state by key that they hold."""

    files: tuple[StateFile, ...]
    keyed: Keyed = Keyed()
    """of a state on the heap"""
    runs: Mapping[str, StateFile] = {}
    """of an LSM store: each of its sorted files, by the store's name"""


class Holder(msgspec.Struct, frozen=True):
    """Something that needs files: a record, an acknowledged snapshot of a pending checkpoint, or the base of one."""

    checkpoint: CheckpointId
    job: int
    files: tuple[Handle, ...]


class Increments(Part):
    """What an incremental snapshot builds on, what it writes, and which files may be deleted."""

    # -- at a task -----------------------------------------------------------------

    def base(self, named: CheckpointId, taken: Mapping[CheckpointId, Taken]) -> Taken | None:
        """The snapshot of this task on which an increment builds: that of the complete checkpoint which the barrier
        names.  None if the task has not taken or restored it: then it writes all its files."""
        return taken.get(named)

    def edit(self, before: Sequence[T], now: list[T]) -> Edit[T]:
        """What has changed since the base.  An item that is changed is removed, and added with its new content."""
        if not before:
            return Edit(added=now)
        places: dict[T, int] | None = None
        removed: list[int] = []
        placed: list[int] = []
        added: list[T] = []
        old = 0
        for position, item in enumerate(now):
            if old < len(before):
                was = before[old]
                if was == item:
                    old += 1
                    continue
                if was[:2] == item[:2]:  # the same key, which has another value now
                    removed.append(old)
                    old += 1
                else:
                    if places is None:
                        places = {one: place for place, one in enumerate(before)}
                    place = places.get(item)
                    if place is not None and place >= old:
                        removed.extend(range(old, place))
                        old = place + 1
                        continue
            placed.append(position)
            added.append(item)
        removed.extend(range(old, len(before)))
        return Edit(added=added, removed=removed, placed=placed)

    def files(self, before: Sequence[StateFile], written: Sequence[StateFile]) -> tuple[StateFile, ...]:
        """The files that an increment needs: those of its base, also if nothing has changed since, and then those that
        are written for it."""
        return (*before, *written)

    def acknowledged(self, filed: Filed) -> tuple[Handle, ...]:
        """The files that a task names to the coordinator: all that its snapshot needs, whoever wrote them."""
        return tuple(file.name for file in filed.files)

    # -- at the coordinator -----------------------------------------------------------

    def may_build_on(
        self, snapshot: CompletedCheckpoint, job: int, begun_from: CheckpointId | None, claims: Claims
    ) -> bool:
        """Whether the files of a job's checkpoint may be needed by a later one: a checkpoint of this job, or the
        snapshot from which it was begun if it claimed that.  A savepoint is its user's."""
        if snapshot.job == job:
            return not snapshot.savepoint
        return snapshot.checkpoint == begun_from and claims.get(begun_from, False)

    def counts(self, holders: Sequence[Holder]) -> dict[Handle, int]:
        """How many need each file."""
        counted: dict[Handle, int] = {}
        for holder in holders:
            for file in dict.fromkeys(holder.files):
                counted[file] = counted.get(file, 0) + 1
        return counted

    def freed(self, files: Sequence[Handle], counted: Mapping[Handle, int]) -> tuple[Handle, ...]:
        """The files of a checkpoint that is aborted which are deleted with it: those that nobody else needs."""
        return tuple(file for file in dict.fromkeys(files) if not counted.get(file))

    def deletable(self, let_go: Sequence[Handle], counted: Mapping[Handle, int]) -> tuple[Handle, ...]:
        """The files, of those that a subsumed or aborted checkpoint has let go, which nobody needs any more."""
        return tuple(file for file in let_go if not counted.get(file))
