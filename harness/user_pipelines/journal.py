"""What the harness records of a run: every entry in one order."""

from __future__ import annotations

import time

from ...properties.model.history import (
    AnyJournalEntry,
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    Commit,
    FaultFired,
    JobEnded,
    Read,
    Timed,
)
from ...properties.model.workload import Row
from ..scenario.model import AnyCommand, Resume, StopWithSavepoint, kind_of


class Journal:
    """The journal and the reads of one run."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._order = 0
        self.job = 1
        """the number of the present job: a job that is resumed has the next one"""
        self.entries: list[AnyJournalEntry] = []
        self.reads: list[Read] = []
        self.commits: list[Commit] = []
        self.timeline: list[Timed] = []
        """what happened to the processes, what was fed, and what was seen of the pipeline"""

    @property
    def disturbed(self) -> bool:
        """Whether a fault has fired, or the pipeline was started a second time: then it may have repeated something."""
        starts = sum(isinstance(entry, AttemptStarted) for entry in self.entries)
        return starts > 1 or any(isinstance(entry, FaultFired) for entry in self.entries)

    def next(self) -> int:
        self._order += 1
        return self._order

    def attempt(self, number: int, cause: str) -> AttemptStarted:
        """The process is started; `restores` is set once it is seen that it continued from something of its own."""
        entry = AttemptStarted(order=self.next(), at_us=self.at_us(), attempt=number, job=self.job, cause=cause)
        self.entries.append(entry)
        return entry

    def fired(self, fault: int, kind: str, phase: str, detail: str, attempt: int) -> None:
        self.entries.append(
            FaultFired(
                order=self.next(),
                at_us=self.at_us(),
                fault=fault,
                kind=kind,
                phase=phase,
                detail=detail,
                attempt=attempt,
            )
        )

    def ended(self, status: str, covers: dict[int, int] | None = None) -> None:
        """The job has ended well; `covers` is what a stopped one had processed, if it says so."""
        self.entries.append(JobEnded(order=self.next(), at_us=self.at_us(), job=self.job, status=status, covers=covers))

    def failed(self, reason: str, *, undisturbed: bool) -> None:
        """The job has failed; `undisturbed`: nothing that it needs had been disturbed since its last attempt began."""
        self.entries.append(
            JobEnded(
                order=self.next(),
                at_us=self.at_us(),
                job=self.job,
                status="failed",
                reason=reason,
                undisturbed=undisturbed,
            )
        )

    def issued(self, number: int, command: AnyCommand) -> None:
        """A command of the scenario is requested."""
        drain = isinstance(command, StopWithSavepoint) and command.drain
        parallelism = command.parallelism if isinstance(command, Resume) else {}
        self.entries.append(
            CommandIssued(
                order=self.next(),
                at_us=self.at_us(),
                command=number,
                kind=kind_of(command),
                drain=drain,
                parallelism=parallelism,
            )
        )

    def returned(self, number: int, error: str = "") -> None:
        """The command has returned; with an error it had no effect."""
        self.entries.append(CommandReturned(order=self.next(), at_us=self.at_us(), command=number, error=error))

    def read(self, began: int, rows: list[Row], marker: int = 0) -> None:
        """A reader has read; `began` is the order at which it began.

        `marker` says of how many records the rows may be that were visible then.  The commits that it tells of came
        before the end of the read: when they were made, and whether others came between, nobody saw.
        """
        before = self.commits[-1].positions[0] if self.commits else 0
        if marker > before:
            commit = Commit(commit=len(self.commits) + 1, order=self.next(), positions={0: marker})
            self.commits.append(commit)
        ended = self.note("output-read", "reader", amount=len(rows))
        self.reads.append(Read(began=began, ended=ended, rows=len(rows), seen=rows))

    def note(self, what: str, who: str, detail: str = "", *, amount: int = -1) -> int:
        """Record an event of the time line; `amount` is how many records or rows there are.  Returns its order."""
        order = self.next()
        entry = Timed(order=order, at_us=self.at_us(), what=what, task=who, detail=detail, position=amount)
        self.timeline.append(entry)
        return order

    def at_us(self) -> int:
        """The time since the run began."""
        return int((time.monotonic() - self._began) * 1e6)
