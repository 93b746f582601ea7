"""Journals written by hand, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cutproof.harness.reference_engine.merging.former_sentences import cause_of
from cutproof.harness.reference_engine.merging.merging import journals_in, merged
from cutproof.properties.model import history as h
from cutproof.properties.model.workload import Row
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import transactions as t
from cutproof.reference_impl.core.vocabulary.causes import AnyCause, EngineRaised, Submitted
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptStarted, RegionRestarted
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.disk.journal import Journal, RunJournal

ROW: Row = (1, 10, 100, 0)
OTHER: Row = (2, 20, 200, 0)
KINDS = ["kill-task", "pause-task", "cut-channel", "kill-proxy", "kill-database", "kill-coordinator"]
KILL, PAUSE, CUT, PROXY, DATABASE, COORDINATOR = range(6)
E = TypeVar("E", bound=h.JournalEntry)


class Script:
    """A run as its processes wrote it down; `now` is everybody's clock, in µs."""

    def __init__(self, folder: Path) -> None:
        self.now = 0
        self.residue = h.Residue()
        self.today = False
        """a failure has its cause, not only the sentence about it"""
        self.reworded = ""
        """the sentence about each of these causes"""
        self._folder = folder
        self._clocks: dict[str, Clock] = {}
        self._journals: dict[str, Journal] = {}

    def process(self, name: str, incarnation: int = 0) -> Journal:
        """The journal of a process, written at `now` from here on."""
        full = f"{name}.{incarnation}"
        if full not in self._journals:
            self._journals[full] = Journal(self._folder / full, Clock(lambda: self.now))
        return self._journals[full]

    @property
    def harness(self) -> Journal:
        return self.process("harness")

    def later(self, by_us: int = 1_000) -> None:
        self.now += by_us

    def attempt(
        self,
        number: int,
        *tasks: str,
        job: int = 1,
        incarnation: int = 0,
        restores: int | None = None,
        local: bool = False,
    ) -> None:
        """The coordinator starts an attempt, of all or (`alone`) of these tasks; each comes up in its own process."""
        self.later()
        self.process("coordinator").saw(o.StatusChanged(job, AttemptStarted(AttemptId(number), restores, Submitted())))
        if local:
            self.process("coordinator").saw(
                o.StatusChanged(job, RegionRestarted(AttemptId(number), restores, tuple(map(TaskId, tasks)), False))
            )
        self.later()
        for task in tasks:
            self.run(task, number, incarnation=incarnation)

    def run(self, task: str, attempt: int = 1, *, process: str = "", incarnation: int = 0) -> RunJournal:
        self.later()
        journal = self.process(process or task, incarnation)
        return journal.task_started(TaskId(task), task.partition("-")[0], 0, AttemptId(attempt), 0, [], [])

    def ends(self, run: RunJournal, process: str, how: o.RunEnd) -> None:
        self.process(process).saw(o.RunEnded(run.run, how))

    def fails(
        self, task: str, why: AnyCause | str, attempt: int = 1, *, by: str = "", fault: int | None = None
    ) -> None:
        """A failure with its cause; or with a sentence alone, as journals of older runs have it."""
        self.later()
        words = str(why)
        event = o.TaskFailed(TaskId(task), AttemptId(attempt), words, fault)
        cause = why if not isinstance(why, str) else cause_of(event) or EngineRaised(words) if self.today else None
        if cause is not None:
            words = self.reworded or words
        self.process(by or task).saw(msgspec.structs.replace(event, reason=words, cause=cause))

    def dies(self, process: str, incarnation: int = 0, *, fault: int | None = KILL) -> None:
        self.later()
        self.harness.saw(o.Died(process, incarnation, "it was killed", fault))

    # -- the store -------------------------------------------------------------------

    def asks(
        self, *requests: t.AnyRequest, answer: t.Outcome | None = None, by: str = "", incarnation: int = 0
    ) -> None:
        """Requests, each with its answer (by default it was done)."""
        for request in requests:
            self.sends(request, by=by, incarnation=incarnation)
            self.later()
            self.process(by or request.writer, incarnation).saw(o.Transacted.of(request, answer or t.Done(), 0))

    def sends(self, request: t.AnyRequest, *, by: str = "", incarnation: int = 0) -> None:
        """A request without an answer."""
        self.later()
        self.process(by or request.writer, incarnation).saw(o.Transacting(request))

    # -- what it becomes ---------------------------------------------------------------

    def history(
        self, *committed: tuple[str | None, Row], passing: Sequence[str] = (), rolls_back: bool = False
    ) -> h.History:
        for journal in self._journals.values():
            journal.close()
        history = h.History(
            subject="processes",
            guarantee="exactly-once",
            sink="transactional",
            residue=self.residue,
            runs=[],
            channels=[],
            stored=[],
            completed=[],
            transactions=[],
            written=[],
            reads=[],
            journal=[],
            timeline=[],
        )
        journals = journals_in(self._folder)
        merged(history, KINDS, journals, False, committed=committed, passing=passing, rolls_back=rolls_back)
        return history


def entries(kind: type[E], history: h.History) -> list[E]:
    return [entry for entry in history.journal if isinstance(entry, kind)]


def failures(history: h.History) -> list[tuple[str, int, int | None]]:
    return [(entry.task, entry.attempt, entry.fault) for entry in entries(h.TaskFailed, history)]


def orders(*values: int | None) -> Sequence[int]:
    """All of them, which must be there."""
    assert None not in values
    return [value for value in values if value is not None]


def asking(attempt: int = 1, writer: str = "sink-0") -> dict[str, Any]:
    return {"writer": TaskId(writer), "attempt": AttemptId(attempt)}


def begun(name: str, attempt: int = 1, *rows: Row) -> list[t.AnyRequest]:
    return [
        t.BeginTransaction(**asking(attempt), name=name),
        t.Write(**asking(attempt), name=name, rows=rows or (ROW,)),
    ]


def sealing(name: str, attempt: int = 1, checkpoint: int = 3) -> t.PreCommit:
    return t.PreCommit(**asking(attempt), name=name, checkpoint=CheckpointId(checkpoint))


def committing(name: str, attempt: int = 1) -> t.Commit:
    return t.Commit(**asking(attempt), name=name)


def aborting(name: str, attempt: int = 1) -> t.AbortTransaction:
    return t.AbortTransaction(**asking(attempt), name=name)
