"""The port through which the harness drives an engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from ...properties.model.history import History
from ..runtime.exit_codes import UsageError
from ..runtime.progress import Progress
from ..scenario.model import Scenario


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a subject can do.  What it cannot do is not drawn for it, and is reported as not tried.

    A field that is left out means that the subject cannot do it, except for the defaults below.
    Every name is one of `abilities.VOCABULARIES`, but for those of `transitions`; any collection of names is accepted.
    """

    faults: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    """the kinds of operators, and the flags that they can have: `count` and `count:signed`"""
    edges: frozenset[str] = frozenset({"forward", "hash", "rebalance", "broadcast"})
    """how rows go from one operator to the next; those with state by key take hash, rules take broadcast"""
    sources: frozenset[str] = frozenset({"bounded", "unbounded"})
    """idle: no task waits for a split from which nothing is read for a while; not-rewindable: a record is read once"""
    guarantees: frozenset[str] = frozenset({"exactly-once"})
    alignments: frozenset[str] = frozenset({"aligned"})
    """the alignments of barriers in an exactly-once job, as in `scenario.model.Engine`"""
    spilling: frozenset[str] = frozenset({"at-once"})
    """when overtaken elements of an input can be stored, as in `scenario.model.Engine`"""
    spill_stores: frozenset[str] = frozenset({"log"})
    """where these elements are stored, unless they are stored at once"""
    sinks: frozenset[str] = frozenset({"transactional"})
    committing: frozenset[str] = frozenset({"writer"})
    """the stages that can commit the transactions of a sink, as in `scenario.model.Engine`"""
    pooled_ids: bool = False
    """a transactional sink can reuse transactional ids"""
    two_phase: bool = False
    """operators in the middle of a job can be two-phase operators"""
    state_backends: frozenset[str] = frozenset({"heap"})
    """where operators can keep their working state by key, as in `scenario.model.Engine`"""
    snapshot_modes: frozenset[str] = frozenset({"asynchronous"})
    snapshot_stores: frozenset[str] = frozenset({"files"})
    snapshot_formats: frozenset[str] = frozenset({"canonical"})
    """the formats of snapshots, as in `scenario.model.Engine`; no engine needs a name for its usual one"""
    concurrent_checkpoints: bool = False
    """several checkpoints can be in progress at a time"""
    final_checkpoint_alone: bool = False
    """once some input has ended, there can be no checkpoint but the final one"""
    trims_logs: bool = False
    """sources let their logs discard records that no snapshot can request any more"""
    file_faults: bool = False
    """snapshots are files whose names can be lost with the power, and whose deletes can fail"""
    local_channels: bool = False
    """channels between tasks of one node can be local"""
    deviations: bool = False
    """the schedule perturbations of a scenario can be applied"""
    rescales: bool = False
    """a job can be resumed with another parallelism"""
    resumes_older: bool = False
    """a job can be resumed from any retained snapshot, not from the newest alone"""
    claims_snapshots: bool = False
    """a job that is resumed can claim the snapshot, or leave it to its user: `claim_mode` of a resume"""
    forks_memory: bool = False
    """a job can be forked also if the coordinator's memory has its snapshots"""
    forks_by_reference: bool = False
    """a forked job can refer to the files of the other job's snapshots: `by_reference` of a fork"""
    upgrades: bool = False
    """a job can be resumed with an `upgrade`: other uids and types of state, and the mapping by which states are found
    and converted; it is refused if the mapping lacks one"""
    changes_operators: bool = False
    """an upgrade can add operators to the job, which begin empty, and remove some, whose state is dropped if the user
    allows it; else the job is refused"""
    refuses_incompatible: bool = False
    """a job can be resumed with new operators (maps), and is refused if its snapshot is incompatible with them"""
    regional_recovery: bool = False
    """the loss of a task can restart only its region: the tasks that data channels join to it"""
    local_recovery: bool = False
    """a lost task can be restarted alone"""
    local_spilling: frozenset[str] = frozenset({"at-once", "continuous"})
    """the ways of spilling with which local recovery is possible"""
    enumerators: bool = False
    """an enumerator can assign an input's splits to its subtasks on request"""
    transitions: frozenset[str] = frozenset()
    """the transitions of its protocol's tables that it counts (`CountingTransitions`), by names of its own"""
    real_time: bool = False
    """the subject's times are the machine's: a scenario takes seconds, and no two runs are quite the same"""
    refuses_unfit: bool = False
    """the earlier name of `refuses_incompatible`, which it sets"""

    def __post_init__(self) -> None:
        """Convert any collection of names to a set; raises UsageError for any other value."""
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, (bool, frozenset)):
                continue
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise UsageError(f"Capabilities({field}={value!r}): it takes a set of names, such as {{'name'}}")
            msgspec.structs.force_setattr(self, field, frozenset(value))
        if self.refuses_unfit:
            msgspec.structs.force_setattr(self, "refuses_incompatible", True)
            msgspec.structs.force_setattr(self, "refuses_unfit", False)


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
    """A subject with resources that outlive its runs (servers, processes); its creator closes it."""

    def close(self) -> None: ...


def close(subject: Subject) -> None:
    """Close a subject, if it can be closed."""
    if isinstance(subject, Closable):
        subject.close()


@contextlib.contextmanager
def closing(subject: Subject) -> Iterator[Subject]:
    """A context manager that closes the subject at the end, also after an exception."""
    try:
        yield subject
    finally:
        close(subject)


@runtime_checkable
class DrawingItself(Protocol):
    """A subject whose job is given: it draws its scenarios itself."""

    def draw(self, seed: int, index: int, *, max_records: int, max_faults: int) -> Scenario:
        """Scenario i of a seed, a function of its arguments alone."""


@runtime_checkable
class AskingPySpark(Protocol):
    """A subject whose expected rows only PySpark can compute.  It is run in the process that has the Spark session."""

    @property
    def asks_pyspark(self) -> bool: ...


def asks_pyspark(subject: Subject) -> bool:
    """Whether a subject's runs need PySpark's rows."""
    return isinstance(subject, AskingPySpark) and subject.asks_pyspark


@runtime_checkable
class Needing(Protocol):
    """A subject that needs other programs, such as servers."""

    def check(self) -> None:
        """Raise a CutproofError if something is missing.  This is quick, and leaves no process running."""


@runtime_checkable
class Preparing(Protocol):
    """A subject that fetches, once, what it needs and the machine lacks."""

    def prepare(self, progress: Progress) -> None:
        """Raise a CutproofError if something cannot be had."""


def prepare(subject: Subject, progress: Progress) -> None:
    """Fetch what a subject needs, if it can be fetched."""
    if isinstance(subject, Preparing):
        subject.prepare(progress)


def check(subject: Subject) -> None:
    """Raise a CutproofError, in one line, if something that a subject needs is missing."""
    if isinstance(subject, Needing):
        subject.check()


@runtime_checkable
class Saving(Protocol):
    """A subject that saves each run in a permanent folder before it returns the history: a run that cannot be repeated
    must not be lost if its judge fails."""

    @property
    def saved(self) -> Path | None:
        """The folder of the latest run; None if there was none, or it was forgotten."""

    def forget(self) -> None:
        """Delete the folder of the latest run."""


def forget(subject: Subject) -> None:
    """Delete the latest saved run, which has been judged and is not needed any more."""
    if isinstance(subject, Saving):
        subject.forget()


def saved_by(subject: Subject) -> Path | None:
    """The folder from which the latest run can be judged again; None if it is not saved."""
    return subject.saved if isinstance(subject, Saving) else None


@runtime_checkable
class Continuing(Protocol):
    """A subject whose runs can begin from a snapshot of another run, and leave their own snapshots in a directory."""

    def begin_from(self, folder: Path, snapshot: str, scenario: Scenario) -> Scenario:
        """From now on a run is one of this scenario that begins from a snapshot (its number, or `newest`) in a
        directory.

        Returns the scenario by which such a run is judged, and with which `run` is called: its history goes back to
        the run that took the snapshot.  Raises UsageError if the snapshot cannot be restored or does not fit.
        """

    def leave_in(self, folder: Path) -> None:
        """From now on a run leaves its snapshots in this new directory.  Raises UsageError if it cannot be made."""


@runtime_checkable
class CountingEvents(Protocol):
    """A subject in virtual time that counts the events of a run, and can end a run after so many."""

    @property
    def events(self) -> int:
        """Of the latest run."""

    def within(self, events: int) -> Subject:
        """The same subject, which raises ScenarioRefused if a run needs that many."""


@runtime_checkable
class CountingTransitions(Protocol):
    """A subject that counts the transitions which its capabilities declare."""

    @property
    def transitions(self) -> Mapping[str, int]:
        """By name: how often the latest run took each; one that is left out was not taken."""


def transitions_of(subject: Subject) -> dict[str, int]:
    """The transitions that a subject's latest run took, in the order of their names; raises SubjectFailed if the
    subject reports anything that it has not declared."""
    declared = subject.capabilities.transitions
    if not declared or not isinstance(subject, CountingTransitions):
        return {}
    taken: object = subject.transitions
    if not isinstance(taken, Mapping) or not all(isinstance(count, int) for count in taken.values()):
        raise SubjectFailed("its transitions have to be how often each was taken, by name")
    unknown = sorted(str(name) for name in taken if name not in declared)
    if unknown:
        raise SubjectFailed(f"it reports the transition {unknown[0]!r}, which its capabilities do not declare")
    return {name: taken[name] for name in sorted(taken) if taken[name] > 0}


class SubjectFailed(Exception):
    """The subject could not run a scenario; the message is one line for a person."""


class ScenarioRefused(SubjectFailed):
    """The scenario is at fault: the engine refuses it, or its run would be too large; the message is one line."""
