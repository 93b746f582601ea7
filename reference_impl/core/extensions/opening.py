"""Which backend keeps an operator's working state, as the job's settings say."""

from __future__ import annotations

from collections.abc import Callable

from ..backends.heap import HeapState
from ..backends.keyed_state import KeyedState
from ..backends.layouts import UNLISTED, Layout
from ..backends.lsm import Limits, LsmState
from ..decisions.parts import Parts
from ..job.config import Config
from ..job.task_spec import TaskSpec

Opener = Callable[[TaskSpec, Layout, Config, Parts], KeyedState]
"""Opens the empty working state of an operator."""


def open_state(spec: TaskSpec, layout: Layout, config: Config, parts: Parts) -> KeyedState:
    """The empty working state of an operator.  What belongs to no key (OPS-2) is on the heap in any case."""
    if config.state_backend == "heap" or layout is UNLISTED:
        return HeapState(layout, parts.copying)
    return LsmState(layout, prefix_of(spec), parts.state_files, limits_of(config))


def prefix_of(spec: TaskSpec) -> str:
    """With what the names of an attempt's sorted files begin.  A state may begin with files of earlier attempts: no two
    files of a job have one name."""
    return f"{spec.task}-{spec.attempt}"


def limits_of(config: Config) -> Limits:
    return Limits(config.memtable_entries, config.compaction_files)
