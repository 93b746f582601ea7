"""The attempts of a run: each start of the pipeline, each time that it had to continue, and what shows that it did."""

from __future__ import annotations

from ...properties.model.history import AttemptStarted, FaultFired
from .description import Aim, PipelineFile, Role
from .journal import Journal
from .processes.process import Process
from .processes.programs import Programs
from .watches import Interrupted, Recovery


class Attempts:
    """The attempts so far.  The present one has continued once `restored` is seen: then it counts as exercise."""

    def __init__(self, file: PipelineFile, programs: Programs, journal: Journal) -> None:
        self._file = file
        self._programs = programs
        self._journal = journal
        self._present: AttemptStarted | None = None
        self.recovery: Recovery | None = None
        """what shows that the present attempt, or the one that is about to begin, has continued"""
        self.interrupted: Interrupted | None = None
        self.cause = ""
        """why the next attempt begins"""
        self._goes_on = False
        """the next start belongs to the present attempt"""

    @property
    def number(self) -> int:
        """Of the present attempt; 0 before the first."""
        return self._present.attempt if self._present is not None else 0

    @property
    def has_continued(self) -> bool:
        """Whether the present attempt has continued, or nothing would show it."""
        present = self._present
        return self.recovery is None or present is None or present.restores is not None

    def try_again(self, cause: str) -> None:
        """The pipeline's own process has ended since it is still disturbed, and is about to be started again.  If it
        had not continued behind the last fault yet, the start belongs to the same attempt: one fault, one recovery."""
        self.cause = cause
        faults = [entry.order for entry in self._journal.entries if isinstance(entry, FaultFired)]
        began_behind = self._present is not None and bool(faults) and self._present.order > faults[-1]
        self._goes_on = began_behind and not self.has_continued
        self.recovery = self.recovery_by()

    def begin(self, cause: str) -> AttemptStarted:
        """The pipeline's work begins, or has to go on, behind a fault."""
        self._present = self._journal.attempt(self.number + 1, cause)
        return self._present

    def begin_with_start(self, cause: str) -> None:
        """The pipeline's own process is about to be started: what it does from now on shows that it has continued."""
        if not self._goes_on:
            self.begin(cause)
        self._goes_on = False
        self.interrupted = None
        if self.recovery is not None:  # marked before the process can print anything
            self.recovery = self._programs.recovery(self.recovery.lookout.aim)

    def look(self) -> None:
        """Look whether the pipeline has continued."""
        if not self._programs.own.runs:  # nothing has continued yet
            return
        if self.interrupted is not None and self.interrupted.recovery.is_seen():
            self._restored(self.begin(self.interrupted.cause))
            self.interrupted = None
        present, recovery = self._present, self.recovery
        if present is None or recovery is None or present.restores is not None:
            return
        if recovery.is_seen():
            self._restored(present)

    def _restored(self, attempt: AttemptStarted) -> None:
        attempt.restores = attempt.attempt - 1
        self._journal.note("work-restored", self._programs.own.name)

    def recovery_from(self, struck: Process) -> Recovery | None:
        """What shows that the pipeline continued, once this process was killed."""
        return self.recovery_by(struck.program.restored if isinstance(struck.program, Role) else None)

    def recovery_by(self, aim: Aim | None = None) -> Recovery | None:
        """What shows from now on that the pipeline continued: an aim, or else that of the file."""
        aim = aim or self._file.restored
        return None if aim is None else self._programs.recovery(aim)
