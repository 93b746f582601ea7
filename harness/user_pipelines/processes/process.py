"""One process of a pipeline in one run: started, killed, paused and watched through the run's keeper."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..aims import tail
from ..description import Program, Role, Run
from ..entries import EntryFailed
from ..places import filled
from .keeper import Keeper, environment_of, start_of
from .log import Log, last_lines

UNREAD = "it did not read its line; each process has to read a line of its standard input before it looks at its input"
POLL_S = 0.01
ENDS_WITHIN_S = 2.0
"""how long a process may take to end after SIGTERM"""
Note = Callable[[str, str, str], object]
"""records what has happened, to which process, and how"""


class Process:
    """A program of a pipeline's file, and its process, if it runs."""

    def __init__(self, name: str, program: Program, keeper: Keeper, places: Mapping[str, str], note: Note) -> None:
        self.name = name
        self.program = program
        self._keeper = keeper
        self._places = places
        self._note = note
        self.log = Log(keeper.folder / f"log-{name}")
        """what it has printed, in all its lives"""
        self.since = 0
        """the place in the log at which its present life began"""
        self.pid: int | None = None
        self.started_at = 0.0
        self.restart_at: float | None = None
        """when it is to be started again"""
        self.resumes_at: float | None = None
        """when it is to go on, while it is paused"""
        self.was_killed = False
        """or has ended by itself and is to go on as after a kill; and not started again since"""
        self.was_hit = False
        """whether what listens at its port was killed in its present life: its command may end because of that"""
        self._port = int(filled(program.port, places)) if program.port else None
        self._command = program.start
        self._waits = isinstance(program, Run) and program.spare
        """whether its processes come up, and then wait until they may begin"""
        self._spare: int | None = None
        self._spares = 0
        """how many have been started"""
        self._log_of_spare: Path | None = None
        """where a spare prints that has not taken over"""

    @property
    def where(self) -> str:
        """Its place in the file."""
        return f"roles.{self.name}" if isinstance(self.program, Role) else "run"

    @property
    def runs(self) -> bool:
        return self.pid is not None

    def start(self, command: tuple[str, ...] = ()) -> None:
        """Start it, or start it again; raises SubjectFailed if there is no such program.

        `command` is run in place of the program's own, now and after kills, unless the program has one for these.
        """
        self._command = command or self._command
        again = self.program.restart if self.was_killed and not command else None
        if command:  # the spare was started with another one
            self.end_spare()
        by_spare = self.was_killed and self._took_over()
        if not by_spare:
            self.pid = self.launch(again or self._command, waits=self._waits)
            if self._waits:
                self._keeper.go(self.pid)
        self.was_killed = False
        self.restart_at, self.started_at, self.was_hit = None, time.monotonic(), False
        how = "with another command" if command else "by its spare" if by_spare else "by `restart`" if again else ""
        self._note("process-started", self.name, how)

    def start_spare(self) -> None:
        """Start the process that takes over after the next kill, if the file asks for one and there is none yet."""
        if self._waits and self._spare is None:
            self._spares += 1
            log = self._keeper.folder / f"log-{self.name}-spare-{self._spares}"
            self._spare = self._start_command(self.program.restart or self._command, log, waits=True)
            self._log_of_spare = log

    def end_spare(self) -> None:
        """Kill the process that no kill needed."""
        if self._spare is not None:
            self._keeper.end(self._spare, strayed=True)
            self._spare = None

    def has_unread_line(self) -> bool:
        """Whether it has been given the line that a process with spares waits for, and has not read it."""
        return self._waits and self.pid is not None and self._keeper.has_unread_line(self.pid)

    def _took_over(self) -> bool:
        """Have the spare begin; whether there is one.  Raises SubjectFailed if it did not wait."""
        if self._spare is None:
            return False
        self.since = self.log.end()  # marked before the process can print anything more
        if not self._keeper.go(self._spare):
            words = last_lines(tail(self.log.path, 0))
            raise EntryFailed("run.spare", f"it ended before it was given a line to go on: {words}")
        self.pid, self._spare = self._spare, None
        return True

    def go_on_as_after_a_kill(self) -> None:
        """It has ended, and is to be started again.  The lines of its spare are its own from now on."""
        self.pid, self.was_killed, self.resumes_at = None, True, None
        if self._spare is not None and self._log_of_spare is not None:
            self.log.go_on_in(self._log_of_spare)
            self.since, self._log_of_spare = self.log.end(), None
        self.restart_later()

    def launch(self, command: tuple[str, ...], output: Path | None = None, *, waits: bool = False) -> int:
        """Start a command with the process's environment and log; standard output may go to a file of its own.

        One that `waits` finds a line in its standard input once it may begin.
        """
        if output is None:
            self.since = self.end_of_log()
        return self._start_command(command, self.log.path, output, waits=waits)

    def _start_command(
        self, command: tuple[str, ...], log: Path, output: Path | None = None, *, waits: bool = False
    ) -> int:
        return self._keeper.start(
            self._filled(command),
            self._environment(),
            self._keeper.folder,
            log,
            output,
            waits=waits,
            outlasts=isinstance(self.program, Role),
        )

    def run_after(self, commands: Sequence[tuple[str, ...]]) -> None:
        """Have commands run with its environment and log if the harness dies; none: no longer."""
        folder, environment = self._keeper.folder, self._environment()
        self._keeper.run_after([start_of(self._filled(one), environment, folder, self.log.path) for one in commands])

    def kill(self) -> bool:
        """SIGKILL to all of its processes; it is to be started again.  Whether it still ran.

        If the file gives its port, SIGKILL to those that listen there instead.  Raises SubjectFailed if one of its
        processes may have survived: it would go on beside its successor.
        """
        if self.pid is not None and self._port is not None:
            return self._kill_at(self._port)
        if self.pid is None or not self._keeper.kill(self.pid):
            return False
        self._note("process-killed", self.name, "")
        strays = self._keeper.end(self.pid, strayed=True)
        if strays:
            left = f"{strays[0]} has left its session and its environment, so a kill does not find it"
            raise EntryFailed(self.where, f"{left}: start it in the foreground")
        self.go_on_as_after_a_kill()
        return True

    @property
    def can_be_hit(self) -> bool:
        """Whether some process would be hit: one that listens at its port, if the file gives one."""
        return self.runs and (self._port is None or self._keeper.signal_at(self._port, 0))

    def _kill_at(self, port: int) -> bool:
        """SIGKILL to what listens at a port; whether there was such a process.  The command may go on."""
        if not self._keeper.signal_at(port, signal.SIGKILL):
            return False
        self.was_hit = True
        self._note("process-killed", self.name, f"what listens at port {port}")
        return True

    def restart_later(self) -> None:
        self.restart_at = time.monotonic() + self.program.restart_after_ms / 1e3

    def pause(self, for_s: float) -> bool:
        """SIGSTOP to all of its processes, or to those that listen at its port; whether there was one."""
        if self.pid is None:
            return False
        if not (
            self._keeper.pause(self.pid) if self._port is None else self._keeper.signal_at(self._port, signal.SIGSTOP)
        ):
            return False
        self.resumes_at = time.monotonic() + for_s
        self._note("process-paused", self.name, "")
        return True

    def resume(self) -> None:
        """SIGCONT, if it is paused."""
        if self.pid is not None and self.resumes_at is not None:
            if self._port is not None:
                self._keeper.signal_at(self._port, signal.SIGCONT)
            self._keeper.resume(self.pid)
            self._note("process-continued", self.name, "")
        self.resumes_at = None

    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return None if self.pid is None else self._keeper.exit_code(self.pid)

    def forget(self, how: str, *, strayed: bool = False) -> None:
        """It has ended, as `how` says: kill what it left behind in its session, if `strayed` also elsewhere."""
        if self.pid is not None:
            self._keeper.end(self.pid, strayed=strayed)
            self.pid = None
            self._note("process-ended", self.name, how)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to what is left two seconds later; a spare is killed."""
        self.end_spare()
        if self.pid is not None:
            self.resume()
            self._keeper.terminate(self.pid)
            deadline = time.monotonic() + ENDS_WITHIN_S
            while self._keeper.exit_code(self.pid) is None and time.monotonic() < deadline:
                time.sleep(POLL_S)
            self.forget("stopped by cutproof", strayed=True)

    def end_of_log(self) -> int:
        """Where in its log the next line will be."""
        return self.log.end()

    def printed(self, since: int | None = None) -> str:
        """What it has printed in its present life, or since a place in its log."""
        return self.log.since(self.since if since is None else since)

    def last_words(self) -> str:
        """The last lines of its present life."""
        return last_lines(self.printed())

    def _filled(self, command: tuple[str, ...]) -> list[str]:
        return [filled(argument, self._places) for argument in command]

    def _environment(self) -> dict[str, str]:
        added = {name: filled(value, self._places) for name, value in self.program.environment.items()}
        return environment_of({"TMPDIR": str(self._keeper.temporary), **added})
