"""What the tests of stores share: a draft that is stored, and a sweep."""

from __future__ import annotations

from typing import cast

from cutproof.reference_impl.core.vocabulary.effects import Sweep
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.driver.arms import Arms
from cutproof.reference_impl.driver.durable.records import Records, RecordsWorld, RecordWriter
from cutproof.reference_impl.driver.ports import Draft, Files, Jobs
from cutproof.reference_impl.observed import SnapshotsDeleted


def settle(files: Files, draft: Draft) -> str:
    files.link(draft)
    return files.finish(draft)


class Seeing:
    """As much of a world as a sweep needs."""

    def __init__(self) -> None:
        self.deleted: list[Handle] = []
        self.observer = self

    def saw(self, seen: SnapshotsDeleted) -> None:
        self.deleted.extend(seen.handles)


def sweep(files: Files, *keep: str) -> list[Handle]:
    """What a coordinator that takes over deletes of a store, whose records refer to `keep`."""
    world = Seeing()
    records = Records(cast("RecordsWorld", world), files, cast("Jobs", None), Arms())
    records.sweep(cast("RecordWriter", None), Sweep(tuple(map(Handle, keep))))
    return world.deleted
