"""The processes of a pipeline in one run: its own, those of its roles, and commands that run to their end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from ..aims import Lookout
from ..description import Aim, Pipeline, Role
from ..entries import EntryFailed
from ..output.formats import NotReadable
from ..watches import Recovery
from .keeper import Keeper, code_in_words, end_in_words
from .process import POLL_S, Note, Process

COMMAND_S = 120.0
"""how long a command that runs to its end may take"""
READ_S = 20.0
"""how long the command that prints the rows may take while the pipeline runs: nothing is fed or killed meanwhile"""
ENDS_AT_MOST = 20
"""so often a role may end by itself in one run"""


class Programs:
    """All processes of a run; each is started when the run asks for it."""

    def __init__(self, pipeline: Pipeline, keeper: Keeper, places: Mapping[str, str], note: Note) -> None:
        self._file = pipeline.file
        self._keeper = keeper
        self._places = places
        self._note = note
        self.all = [Process(*one, keeper, places, note) for one in pipeline.programs.items()]
        """by the number of the node that a fault hits"""
        self.own, *self.roles = self.all
        self.requests = Process("commands", self._file.run, keeper, places, note)
        """runs the commands of users, and the one that prints the rows: their log is not the pipeline's own"""
        self.meanwhile: Callable[[float], object] = self.keep_up
        """what is done again and again while a command runs, given the time: the command may ask a paused process"""
        self._ends = Counter[str]()
        """how often each role has ended by itself"""

    def start_role(self, role: Process) -> None:
        """Start a process beside the pipeline's own, and wait until it is ready."""
        self.prepare(role)
        role.start()
        if not isinstance(role.program, Role) or role.program.ready is None:
            return
        ready = Lookout(role.program.ready, self._places)
        deadline = time.monotonic() + role.program.ready_within_s
        while not ready.sees(role.printed):
            if role.exit_code() is not None:
                raise EntryFailed(role.where, f"it ended before it was ready: {role.last_words()}")
            if time.monotonic() > deadline:
                within = f"{role.program.ready_within_s:g} s"
                raise EntryFailed(f"{role.where}.ready", f"it was not seen within {within}: {role.last_words()}")
            time.sleep(POLL_S)
        self._note("process-ready", role.name, "")

    def keep_up(self, now: float) -> None:
        """Let go on what was paused for long enough; start roles again that were killed, or ended by themselves."""
        for process in self.all:
            if process.resumes_at is not None and now >= process.resumes_at:
                process.resume()
        for role in self.roles:
            code = role.exit_code()
            if role.runs and code is not None and role.was_hit:
                role.forget(f"after its kill, with {code_in_words(code)}")
                role.go_on_as_after_a_kill()
            elif role.runs and code is not None:
                self._ends[role.name] += 1
                if self._ends[role.name] > ENDS_AT_MOST:
                    words = f"it has ended by itself {self._ends[role.name]} times: {role.last_words()}"
                    raise EntryFailed(role.where, words)
                role.forget(f"by itself, with {code_in_words(code)}")
                role.restart_later()
            if not role.runs and role.restart_at is not None and now >= role.restart_at:
                role.start()

    def resume_all(self) -> None:
        """Let go on whatever is paused."""
        for process in self.all:
            process.resume()

    def prepare(self, process: Process) -> None:
        """Run the commands that come before the first start of a process."""
        for number, command in enumerate(process.program.before):
            self.run_to_the_end(process, f"{process.where}.before[{number}]", command)

    def printed_rows(self, within_s: float) -> str:
        """What the command that prints the rows has printed; raises NotReadable if it fails, or takes too long."""
        output, command = self._keeper.folder / "rows", self._file.read.command
        since = self.requests.end_of_log()
        code = self._exit_code_of(pid := self.requests.launch(command, output), within_s)
        self._keeper.end(pid)
        if code != 0:
            said = self.requests.printed(since).strip().splitlines()[-1:] or ["it has printed nothing"]
            raise NotReadable("read.command", f"{command[0]} {end_in_words(code)}: {said[0]}")
        return output.read_text(encoding="utf-8", errors="replace")

    def _exit_code_of(self, pid: int, within_s: float = COMMAND_S) -> int | None:
        """How a command ended; None if it takes too long."""
        deadline = time.monotonic() + within_s
        while (code := self._keeper.exit_code(pid)) is None and (now := time.monotonic()) < deadline:
            self.meanwhile(now)
            time.sleep(POLL_S)
        return code

    def run_to_the_end(self, process: Process, where: str, command: tuple[str, ...]) -> None:
        code = self.ran(process, command)
        if code != 0:
            raise EntryFailed(where, f"{command[0]} {end_in_words(code)}: {process.last_words()}")

    def ran(self, process: Process, command: tuple[str, ...]) -> int | None:
        """Run a command with a process's environment and log; how it ended, None if it took too long."""
        code = self._exit_code_of(pid := process.launch(command))
        self._keeper.end(pid)
        return code

    def sees(self, lookout: Lookout) -> bool:
        return lookout.sees(self._named(lookout.aim.role).printed)

    def printed_by(self, role: str) -> str:
        """What a role, or the pipeline's own process, has printed in all its lives."""
        return self._named(role).printed(0)

    def recovery(self, aim: Aim) -> Recovery:
        """What shows, from now on, that the pipeline continued."""
        return Recovery(Lookout(aim, self._places), self.heard(aim))

    def heard(self, aim: Aim) -> Callable[[], str]:
        """What the process that an aim names prints from now on."""
        process = self._named(aim.role)
        since = process.end_of_log()
        return lambda: process.printed(since)

    def _named(self, role: str) -> Process:
        return next((one for one in self.roles if one.name == role), self.own)
