"""The port that an engine is driven through."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from ..properties.history import History
from .scenario import Scenario


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a subject can do; what it cannot is not asked of it and shown as not tried."""

    faults: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    guarantees: frozenset[str] = frozenset({"exactly-once"})
    alignments: frozenset[str] = frozenset({"aligned"})
    """what barriers can do in an exactly-once job, as in `scenario.Engine`"""
    spilling: frozenset[str] = frozenset({"at-once"})
    """when what they overtook in an input can be stored, as in `scenario.Engine`"""
    sinks: frozenset[str] = frozenset({"transactional"})
    committing: frozenset[str] = frozenset({"writer"})
    """who can commit what a transactional sink has sealed, as in `scenario.Engine`"""
    two_phase: bool = False
    """operators amid a job can commit what they pass on"""
    deviations: bool = False
    rescales: bool = False
    """a job is resumed at another parallelism"""
    refuses_unfit: bool = False
    """a job is resumed with operators that it had not, and refused where its snapshot does not fit it"""
    local_recovery: bool = False
    """a task that is lost can come up alone"""
    local_spilling: frozenset[str] = frozenset({"at-once", "continuous"})
    """with which ways of spilling it can"""
    enumerators: bool = False
    """an input's splits can be given to its subtasks as they ask"""
    real_time: bool = False
    """its times are the machine's: a scenario costs seconds, and no two runs are quite the same"""


class Subject(Protocol):
    """An engine that can be made to run a scenario and tell what happened.

    `run` returns whatever happened as a history; it raises `SubjectFailed` only
    when the engine could not be driven at all (never for what goes wrong inside
    it: that is a failure in the history).
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
    """The subject could not be driven; its text is one line for a person."""


class ScenarioRefused(SubjectFailed):
    """The scenario is at fault: the engine refuses it, or its run would take more than one may; in one line."""
