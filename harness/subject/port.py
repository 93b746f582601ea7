"""The port that an engine is driven through."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from ...properties.model.history import History
from ..runtime.exit_codes import UsageError
from ..scenario.model import Scenario


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a subject can do; what it cannot is not asked of it and shown as not tried.

    What is left out is asked of no subject, but for the few defaults below.
    Every name is one of `abilities.VOCABULARIES`; any collection of names will do.
    """

    faults: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    """their kinds, and beside them the flags that they can have: `count` and `count:signed`"""
    edges: frozenset[str] = frozenset({"forward", "hash", "rebalance", "broadcast"})
    """how rows go from one operator to the next; those with state by key take hash, rules take broadcast"""
    sources: frozenset[str] = frozenset({"bounded", "unbounded"})
    """idle: a split of which nothing is read for a while is not waited for; not-rewindable: what was read is gone"""
    guarantees: frozenset[str] = frozenset({"exactly-once"})
    alignments: frozenset[str] = frozenset({"aligned"})
    """what barriers can do in an exactly-once job, as in `scenario.model.Engine`"""
    spilling: frozenset[str] = frozenset({"at-once"})
    """when what they overtook in an input can be stored, as in `scenario.model.Engine`"""
    spill_stores: frozenset[str] = frozenset({"log"})
    """where it is, unless it is stored at once"""
    sinks: frozenset[str] = frozenset({"transactional"})
    committing: frozenset[str] = frozenset({"writer"})
    """who can commit what a transactional sink has sealed, as in `scenario.model.Engine`"""
    pooled_ids: bool = False
    """a transactional sink can use ids again"""
    two_phase: bool = False
    """operators amid a job can commit what they pass on"""
    snapshot_modes: frozenset[str] = frozenset({"asynchronous"})
    snapshot_stores: frozenset[str] = frozenset({"files"})
    concurrent_checkpoints: bool = False
    """several checkpoints can be under way at a time"""
    final_checkpoint_alone: bool = False
    """checkpoints can cease once some input has ended, but for the final one"""
    trims_logs: bool = False
    """sources let their logs discard what no snapshot can ask for any more"""
    local_channels: bool = False
    """channels between tasks of one node can be local"""
    deviations: bool = False
    rescales: bool = False
    """a job is resumed at another parallelism"""
    refuses_unfit: bool = False
    """a job is resumed with operators that it had not (maps), and refused where its snapshot does not fit it"""
    regional_recovery: bool = False
    """a task that is lost can take down the region that data channels join it with, and no more"""
    local_recovery: bool = False
    """a task that is lost can come up alone"""
    local_spilling: frozenset[str] = frozenset({"at-once", "continuous"})
    """with which ways of spilling it can"""
    enumerators: bool = False
    """an input's splits can be given to its subtasks as they ask"""
    real_time: bool = False
    """its times are the machine's: a scenario costs seconds, and no two runs are quite the same"""

    def __post_init__(self) -> None:
        """Take any collection of names for a set of them; raises UsageError for what is none."""
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, (bool, frozenset)):
                continue
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise UsageError(f"Capabilities({field}={value!r}): it takes a set of names, such as {{'name'}}")
            msgspec.structs.force_setattr(self, field, frozenset(value))


class Subject(Protocol):
    """An engine that can be made to run a scenario and report what happened.

    `run` returns everything that happened as a history.  It raises `SubjectFailed` only if the engine could not run the
    scenario (an error inside the engine is a failure in the history), and a `CutproofError` if the environment failed,
    so that any other scenario would fail in the same way.
    """

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History: ...


@runtime_checkable
class Closable(Protocol):
    """A subject that holds something beyond its runs (servers, processes): whoever made it closes it."""

    def close(self) -> None: ...


def close(subject: Subject) -> None:
    """Have a subject let go of what it holds, if it holds anything."""
    if isinstance(subject, Closable):
        subject.close()


@contextlib.contextmanager
def closing(subject: Subject) -> Iterator[Subject]:
    """The subject, closed at the end, however that comes."""
    try:
        yield subject
    finally:
        close(subject)


@runtime_checkable
class Needing(Protocol):
    """A subject that needs more than itself: servers, say."""

    def check(self) -> None:
        """Raise a CutproofError for what is missing; quick, and starts nothing that stays."""


def check(subject: Subject) -> None:
    """Raise a CutproofError, in one line, when something that a subject needs is missing."""
    if isinstance(subject, Needing):
        subject.check()


@runtime_checkable
class Saving(Protocol):
    """A subject that saves what a run has left, in a place that stays, before it gives the history back: a run that
    cannot be had again must not be lost by whoever judges it."""

    @property
    def saved(self) -> Path | None:
        """Where the latest run is; None when there was none, or it has been forgotten."""

    def forget(self) -> None:
        """Remove what the latest run has saved."""


def forget(subject: Subject) -> None:
    """The latest run has been judged and is not to be kept."""
    if isinstance(subject, Saving):
        subject.forget()


def saved_by(subject: Subject) -> Path | None:
    """Where the latest run can be judged again, if it is anywhere."""
    return subject.saved if isinstance(subject, Saving) else None


class SubjectFailed(Exception):
    """The subject could not be driven through a scenario; its text is one line for a person."""


class ScenarioRefused(SubjectFailed):
    """The scenario is at fault: the engine refuses it, or its run would take more than one may; in one line."""
