"""Group G, and P14 to P16: what incremental snapshots build on, and which of their files are deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ...core.decisions.checkpointing import Cleanup
from ...core.decisions.snapshots.increments import Holder, Increments, Taken
from ...core.decisions.snapshots.naming import Naming
from ...core.vocabulary.effects import Discard, Effect
from ...core.vocabulary.formats import Edit, Filed, StateFile
from ...core.vocabulary.ids import CheckpointId, Handle
from ..registry import Defect

T = TypeVar("T", bound=tuple[Any, ...])


class StillOrdered(Increments):
    """G02: the files that one coordinator has let go and could not delete yet are known to the deletion of the next."""

    def __init__(self) -> None:
        self.ordered: dict[Handle, None] = {}

    def deletable(self, let_go: Sequence[Handle], counted: Mapping[Handle, int]) -> tuple[Handle, ...]:
        self.ordered = {file: None for file in let_go if counted.get(file)}
        return super().deletable(let_go, counted)


class DeletesForTheLost(Cleanup):
    """G02: a deletion that the lost coordinator had begun decrements the counts that its successor has made anew, so
    that a file to which a snapshot still refers has none left."""

    def __init__(self, increments: StillOrdered) -> None:
        self._increments = increments

    def on_takeover(self, referred_to: tuple[Handle, ...] | None) -> list[Effect]:
        ordered = tuple(self._increments.ordered)
        if referred_to is None or not ordered:
            return super().on_takeover(referred_to)
        self.reached = self.reached or any(file in referred_to for file in ordered)
        return [*super().on_takeover(referred_to), Discard(ordered)]


def g02() -> dict[str, Increments | Cleanup]:
    increments = StillOrdered()
    return {"increments": increments, "cleanup": DeletesForTheLost(increments)}


class DiscardsWhatIsShared(Increments):
    """G03: with a checkpoint that is aborted the coordinator deletes all its files, also those of others."""

    def freed(self, files: Sequence[Handle], counted: Mapping[Handle, int]) -> tuple[Handle, ...]:
        self.reached = self.reached or any(counted.get(file) for file in files)
        return tuple(files)


class NamedByPlace(Naming):
    """G05: a file is named after its place in the chain, and two checkpoints at a time write the same place."""

    def file(self, handle: Handle, name: str) -> Handle:
        self.reached = True
        job, _, task = handle.split("/")
        return Handle(f"{job}/shared/{task}.{name}")


class CountsItsOwn(Increments):
    """G07: a job counts the references of its own snapshots, and forgets those that it has taken over."""

    def counts(self, holders: Sequence[Holder]) -> dict[Handle, int]:
        newest = max((holder.job for holder in holders), default=0)
        own = [holder for holder in holders if holder.job == newest]
        self.reached = self.reached or any(holder.files for holder in holders if holder.job != newest)
        return super().counts(own)


class UnseenInPlace(Increments):
    """G11: a value that is changed in place keeps its version, and no increment holds the change."""

    def edit(self, before: Sequence[T], now: list[T]) -> Edit[T]:
        old = {_key(item): item for item in before}
        seen = [old.get(_key(item), item) for item in now]
        self.reached = self.reached or seen != now
        return super().edit(before, seen)


def _key(item: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of an entry or of what a user function holds; a pane has none."""
    return item[:2] if len(item) > 2 else item


class BuildsOnTheLast(Increments):
    """G13: the files are told of another checkpoint than the one that is complete: an increment builds on the snapshot
    that the task took last."""

    def base(self, named: CheckpointId, taken: Mapping[CheckpointId, Taken]) -> Taken | None:
        last = max(taken, default=named)
        self.reached = self.reached or last != named
        return taken.get(last)


class NothingNewIsNothing(Increments):
    """G16: a task that has written no bytes for a checkpoint counts as one that has no state."""

    def files(self, before: Sequence[StateFile], written: Sequence[StateFile]) -> tuple[StateFile, ...]:
        self.reached = self.reached or bool(before and not written)
        return super().files(before, written) if written else ()


class NamesItsOwn(Increments):
    """P14: a task acknowledges the files that it wrote, and not those to which its snapshot refers: the chain is cut
    where the older ones are deleted."""

    def acknowledged(self, filed: Filed) -> tuple[Handle, ...]:
        own = tuple(new.file.name for new in filed.new)
        self.reached = self.reached or len(own) < len(filed.files)
        return own


class CountsOneForTwo(Increments):
    """P15: a file that two snapshots need is counted once; the first that is gone takes it along."""

    def deletable(self, let_go: Sequence[Handle], counted: Mapping[Handle, int]) -> tuple[Handle, ...]:
        self.reached = self.reached or any(counted.get(file) == 1 for file in let_go)
        return tuple(file for file in let_go if counted.get(file, 0) <= 1)


class DeletesByAge(Increments):
    """P16: a file that was written two checkpoints before another one counts as old, and is deleted."""

    def deletable(self, let_go: Sequence[Handle], counted: Mapping[Handle, int]) -> tuple[Handle, ...]:
        ages = {file: int(found[1]) for file in (*let_go, *counted) if (found := re.search(r"/chk-(\d+)/", file))}
        old = [file for file in let_go if file in ages and ages[file] + 2 <= max(ages.values())]
        self.reached = self.reached or any(counted.get(file) for file in old)
        return tuple(dict.fromkeys((*super().deletable(let_go, counted), *old)))


DEFECTS = (
    Defect(
        id="G02",
        upstream="FLINK-7268",
        title="async deletion decrements a fresh registry",
        invariant="restored-state",
        replacements=g02,
    ),
    Defect(
        id="G03",
        upstream="FLINK-24611",
        title="coordinator discards shared state of an aborted checkpoint",
        invariant="restored-state",
        replacements=lambda: {"increments": DiscardsWhatIsShared()},
    ),
    Defect(
        id="G05",
        upstream="FLINK-29913",
        title="placeholder resolved to the wrong file with concurrent checkpoints",
        invariant="progress",
        replacements=lambda: {"naming": NamedByPlace()},
    ),
    Defect(
        id="G07",
        upstream="FLINK-26985",
        title="restored-from checkpoint's files are garbage collected",
        invariant="restored-state",
        replacements=lambda: {"increments": CountsItsOwn()},
    ),
    Defect(
        id="G11",
        upstream="FLINK-26968",
        title="in-place update does not bump the version",
        invariant="consistent-cut",
        replacements=lambda: {"increments": UnseenInPlace()},
    ),
    Defect(
        id="G13",
        upstream="FLINK-25524",
        title="nested backend notified with the wrong id",
        invariant="restored-state",
        replacements=lambda: {"increments": BuildsOnTheLast()},
    ),
    Defect(
        id="G16",
        upstream="ARROYO 7f844b05",
        title="'has state' derived from bytes written this epoch",
        invariant="consistent-cut",
        replacements=lambda: {"increments": NothingNewIsNothing()},
    ),
    Defect(
        id="P14",
        upstream="FLIP-47 (incremental)",
        title="an increment does not say to which older files it refers",
        invariant="restorable",
        replacements=lambda: {"increments": NamesItsOwn()},
    ),
    Defect(
        id="P15",
        upstream="FLIP-47 (incremental)",
        title="a reference is counted once for two",
        invariant="restorable",
        replacements=lambda: {"increments": CountsOneForTwo()},
    ),
    Defect(
        id="P16",
        upstream="FLIP-47 (incremental)",
        title="shared files are deleted by age",
        invariant="restorable",
        replacements=lambda: {"increments": DeletesByAge()},
    ),
)
