"""The commands of a scenario: they stop the pipeline's job with a savepoint, drain it, and resume it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...faults.plan import AtTime
from ...properties.reconstruct.commands import STOPS
from ..scenario.model import AnyCommand, Resume, StopWithSavepoint
from .description import PipelineFile
from .entries import EntryFailed
from .journal import Journal
from .processes.keeper import end_in_words
from .processes.programs import Programs


class Stopped(NamedTuple):
    """The end of a job that a command has stopped."""

    status: str
    covers: dict[int, int] | None
    """split: how many records it had processed, if the command has told it"""


class JobCommands:
    """The commands that have not been requested yet, in their order, and what came of the last stop."""

    def __init__(
        self, commands: Sequence[AnyCommand], file: PipelineFile, programs: Programs, journal: Journal, *, records: int
    ) -> None:
        """`records` is how many the workload has."""
        self._left = list(enumerate(commands))
        self._file = file
        self._programs = programs
        self._journal = journal
        self._records = records
        self.stopped: Stopped | None = None
        """how the job was stopped, if it was and has not been resumed"""
        self.refused = ""
        """what the last stop said that had failed"""

    def next_stop(self) -> StopWithSavepoint | None:
        """The stop that comes next; None if no command is left, or another one comes first."""
        command = self._left[0][1] if self._left else None
        return command if isinstance(command, StopWithSavepoint) else None

    def leaves_windows_unknown(self, given: int) -> bool:
        """Whether the job would be stopped for good when it may have processed all records of the workload, and its
        windows wait for a last record: which of them that has closed by then, `covers` does not say.

        `given` is how many records there are.
        """
        stop = self.next_stop()
        resumed = len(self._left) > 1
        waits = bool(self._file.feed.last_record) and not (resumed or (stop is not None and stop.drain))
        return waits and given >= self._records

    def request_stop(self, given: int) -> None:
        """Request the stop that comes next: then `stopped` or `refused` is set.

        Raises SubjectFailed if the command does not end, or does not say what the job covers.
        """
        number, command = self._left.pop(0)
        commands, requests = self._file.commands, self._programs.requests
        drain = isinstance(command, StopWithSavepoint) and command.drain
        self._journal.issued(number, command)
        request = commands.drain if drain else commands.stop_with_savepoint
        code = self._programs.ran(requests, request)
        if code is None:
            raise EntryFailed("commands", f"{request[0]} did not end: {requests.last_words()}")
        if code != 0:
            self.refused = f"it {end_in_words(code)}: {requests.last_words()}"
            self._journal.returned(number, self.refused)
            return
        self._journal.returned(number)
        self.stopped = Stopped(STOPS[drain], self._told_cover(given) if commands.covers else None)

    def _told_cover(self, given: int) -> dict[int, int]:
        """What the command that has stopped the job says of the records that it had processed."""
        requests = self._programs.requests
        found = re.search(self._file.commands.covers, requests.printed(), re.MULTILINE)
        if found is None:
            raise EntryFailed("commands.covers", f"no such line was printed: {requests.last_words()}")
        told = int(found[1]) if (found[1] or "").isdecimal() else -1
        if told < 0 or (told > given and not self._journal.disturbed):  # else it counts what was processed twice
            raise EntryFailed("commands.covers", f"{found[1]!r} of {given} records that were given")
        return {0: min(told, given, self._records)}

    def resumes_after_s(self) -> float | None:
        """How long after its stop the job is resumed; None if it never is."""
        if not self._left:
            return None
        trigger = self._left[0][1].trigger
        return trigger.at_us / 1e6 if isinstance(trigger, AtTime) else 0.0

    def issue_resume(self) -> tuple[int, int]:
        """Record that the job is resumed, as a job of its own; the command's number, and the parallelism to run at."""
        number, command = self._left.pop(0)
        given = command.parallelism.values() if isinstance(command, Resume) else ()
        self._journal.issued(number, command)
        self._journal.job += 1
        self.stopped = None
        return number, max(given, default=next(iter(self._file.commands.parallelism), 1))
