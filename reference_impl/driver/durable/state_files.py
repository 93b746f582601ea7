"""Sorted files of a task's working state: a flush is a protocol point, and a compaction takes its time (ABS-10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ...core.vocabulary.effects import Compact, MemtableFlushed
from ...core.vocabulary.events import Compacted, Event
from ...core.vocabulary.ids import TaskId
from ..ports import Site


class Filing(Protocol):
    """An attempt of a task whose state is in files."""

    @property
    def world(self) -> Site: ...

    @property
    def name(self) -> TaskId: ...

    @property
    def alive(self) -> bool: ...

    @property
    def paused(self) -> bool: ...

    def deliver(self, event: Event) -> None: ...


def _flushed(runner: Filing, effect: MemtableFlushed) -> None:
    points = runner.world.points
    if points.reach("memtable-flushed", runner.name, "before", runner):
        points.reach("memtable-flushed", runner.name, "after", runner)


def _compact(runner: Filing, effect: Compact) -> None:
    world = runner.world
    late = world.perturbations.late(f"compaction {runner.name}")
    world.loop.after(world.settings.compaction_us + late, _compacted, runner)


def _compacted(runner: Filing, _: None) -> None:
    """The files are merged.  A stopped process does not go on merging either."""
    world = runner.world
    if not runner.alive:
        return
    if runner.paused:
        world.loop.after(world.settings.compaction_us, _compacted, runner)
    elif world.points.reach("files-compacted", runner.name, "before", runner):
        runner.deliver(Compacted())
        world.points.reach("files-compacted", runner.name, "after", runner)


STATE_FILES: Mapping[type, Callable[[Any, Any], None]] = {MemtableFlushed: _flushed, Compact: _compact}
"""The effects of state in files."""
