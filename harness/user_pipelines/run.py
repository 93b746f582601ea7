"""One run of a pipeline: it is fed and read, killed and started again, until its output is complete or its time is up.

The harness sees the pipeline from outside alone: its processes, its output, and the aims of its
file.  A kill counts only if the pipeline held work: it had been given records whose rows no
reader had seen.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable

from ...faults.plan import AtAim, AtTime, kind_of
from ...properties.model.history import AttemptStarted, History, JobEnded
from ...properties.model.workload import Row
from ...properties.quick_checker.from_outside import OutsideView
from ...properties.reconstruct.lineage import INFINITE
from ..scenario.model import Scenario
from ..subject.port import SubjectFailed
from .aims import Lookout, tail
from .description import HALFWAY, Pipeline, filled
from .feeding import Feeder
from .journal import Journal
from .output import NotReadable, Output
from .processes import Keeper, environment_of

POLL_S = 0.01
COMMAND_S = 120.0
"""how long a command before or after the run may take"""
LAST_LINES = 3
TIMEOUTS = 20
"""after so many times `timeout_s` a pipeline whose output goes on changing is cut off"""
WITNESSES = ("reader", "journal")


class Watch:
    """A fault that waits for its trigger; `predicate` looks whether its aim is met just now."""

    def __init__(self, number: int, trigger: AtTime | AtAim, predicate: Callable[[], bool]) -> None:
        self.number = number
        self.trigger = trigger
        self._predicate = predicate
        self._met = 0
        self._holds = False
        self._due: float | None = None

    def is_due(self, now_s: float) -> bool:
        """Whether the fault has to strike now; `now_s` is the time since the run began."""
        if isinstance(self.trigger, AtTime):
            return now_s * 1e6 >= self.trigger.at_us
        if self._due is None:
            holds = self._predicate()
            self._met += holds and not self._holds
            self._holds = holds
            if self._met >= self.trigger.occurrence:
                self._due = now_s + self.trigger.after_us / 1e6
        return self._due is not None and now_s >= self._due

    @property
    def name(self) -> str:
        return self.trigger.aim if isinstance(self.trigger, AtAim) else "at a time"


class PipelineRun:
    """One run in a folder of its own.  `close` ends its processes and deletes the folder."""

    def __init__(self, pipeline: Pipeline, scenario: Scenario, *, watches_aims: bool = False) -> None:
        self._file = pipeline.file
        self._scenario = scenario
        self._keeper = Keeper()
        self._folder = self._keeper.folder
        self._places = {
            "pipeline": str(pipeline.folder),
            "python": sys.executable,
            "run": secrets.token_hex(6),
        }
        for name in ("input", "output", "state"):
            (self._folder / name).mkdir()
            self._places[name] = str(self._folder / name)
        self._log = self._folder / "log"
        self._log.touch()
        self._journal = Journal()
        self._output = Output(self._file.read, self._places)
        (records,) = scenario.workload.inputs[0].splits
        self._feeder = Feeder(self._file.feed, records, self._folder / "input")
        self.expected = self._expected_rows()
        self.aims_met = dict.fromkeys(self._file.aims if watches_aims else (), False)
        """of each aim of the file, whether it was met; empty if aims are not watched"""
        self._aims = {name: Lookout(self._file.aims[name], self._places) for name in self.aims_met}
        self._watches = [self._watch(number) for number in range(len(scenario.faults))]
        self._pid: int | None = None
        self._since = 0
        self._attempt: AttemptStarted | None = None
        self._stored = Lookout(self._file.stored, self._places) if self._file.stored is not None else None
        self._restored = Lookout(self._file.restored, self._places) if self._file.restored is not None else None
        self._was_killed = False
        self._cause = ""
        self._restart_at: float | None = None
        self._rows: list[Row] = []
        self._changed_at = self._began = self._started_at = time.monotonic()
        self._read_at = self._fed_at = 0.0
        self._cut_short = False

    def close(self) -> None:
        """End every process of the run, and delete its folder."""
        self._keeper.close()

    def history(self) -> History:
        """Run to the end; raises SubjectFailed if the pipeline cannot be started, fed or read."""
        for command in self._file.run.before:
            self._run_to_the_end("before", command)
        try:
            if self._file.feed.at_once:
                self._feeder.give_all()
            self._start(self._cause)
            while not self._is_over():
                time.sleep(POLL_S)
            self._stop()
            committed = self._output.rows()
            self._demand_output()
        finally:
            for command in self._file.run.after:
                self._run_to_the_end("after", command)
        ended = any(isinstance(entry, JobEnded) for entry in self._journal.entries)
        return History(
            subject=self._file.name,
            guarantee=self._file.promises.guarantee,
            sink=self._file.promises.sink,
            identity=self._file.promises.identity,
            witnesses=list(WITNESSES),
            committed=committed,
            reads=self._journal.reads,
            journal=self._journal.entries,
            quiet=ended,
            cut_short=self._cut_short,
            unapplied=[f"{kind_of(self._scenario.faults[one.number])}, {one.name}" for one in self._watches],
        )

    def _demand_output(self) -> None:
        """Raise SubjectFailed if a pipeline that did not fail has left nothing that could be read: then the file names
        the wrong place."""
        failed = any(isinstance(entry, JobEnded) and entry.status == "failed" for entry in self._journal.entries)
        if self._output.absent and self.expected and not failed:
            raise SubjectFailed(f"{self._output.absent}; it was not there until the end of the run")

    # -- the course of a run ----------------------------------------------------------

    def _is_over(self) -> bool:
        now = time.monotonic()
        self._feed(now)
        self._read(now)
        self._look_for_recovery()
        for name, lookout in self._aims.items():
            self.aims_met[name] = self.aims_met[name] or lookout.sees(self._log, self._since)
        if self._pid is None:
            if self._restart_at is not None and now >= self._restart_at:
                self._start(self._cause)
            return False
        if self._strike(now):
            return False
        code = self._keeper.exit_code(self._pid)
        if code is not None:
            return self._has_ended(code)
        return self._is_at_rest(now)

    def _feed(self, now: float) -> None:
        if not self._feeder.is_over and now - self._fed_at >= self._file.feed.every_ms / 1e3:
            self._fed_at = now
            self._feeder.give()

    def _read(self, now: float) -> None:
        if now - self._read_at < self._file.read.every_ms / 1e3:
            return
        self._read_now()

    def _read_now(self) -> None:
        """Read what is visible.  A reader that comes while a file is replaced, or a table is locked, reads again."""
        began = self._journal.next()
        self._read_at = time.monotonic()
        try:
            rows = self._output.rows()
        except NotReadable:
            return
        self._journal.read(began, rows)
        if rows != self._rows:
            self._rows, self._changed_at = rows, self._read_at

    def _look_for_recovery(self) -> None:
        attempt, restored = self._attempt, self._restored
        if attempt is None or restored is None or not self._was_killed or attempt.restores is not None:
            return
        if restored.sees(self._log, self._since):
            attempt.restores = attempt.attempt - 1

    def _strike(self, now: float) -> bool:
        """Kill the pipeline if a fault is due; one that would strike while the pipeline holds no work waits."""
        if self._pid is None or not self._holds_work() or not self._is_up():
            return False
        due = next((one for one in self._watches if one.is_due(now - self._began)), None)
        if due is None:
            return False
        if self._stored is not None and not self._stored.sees(self._log, self._since):
            return False
        self._read_now()  # the last read may be older than the last rows
        if not self._holds_work() or not self._keeper.kill(self._pid):
            return False
        self._watches.remove(due)
        detail = f"{self._feeder.given} records had been given, {len(self._rows)} rows were visible"
        attempt = self._attempt.attempt if self._attempt is not None else 1
        self._journal.fired(due.number, kind_of(self._scenario.faults[due.number]), due.name, detail, attempt)
        self._keeper.end(self._pid)
        self._pid, self._was_killed, self._cause = None, True, "it was killed"
        self._restart_at = time.monotonic() + self._file.run.restart_after_ms / 1e3
        return True

    def _is_up(self) -> bool:
        """Whether a process that was started again is seen to have continued: another kill waits for that."""
        attempt = self._attempt
        if not self._was_killed or self._restored is None or attempt is None:
            return True
        return attempt.restores is not None or self._changed_at > self._started_at

    def _holds_work(self) -> bool:
        """Whether the pipeline was given records whose rows no reader has seen yet."""
        return self._feeder.given > 0 and bool(self.expected - Counter(self._rows))

    def _has_ended(self, code: int) -> bool:
        self._look_for_recovery()  # the process may have printed its last lines since
        self._keeper.end(self._pid or 0)
        self._pid = None
        if code != 0:
            self._journal.ended("failed", f"it ended with {_code_in_words(code)}: {self._last_words()}")
            return True
        if not self._file.run.ends:
            self._journal.ended("failed", f"it ended by itself, though `run.ends` is false: {self._last_words()}")
            return True
        if not self._feeder.is_over:  # what it had not been given is left
            self._restart_at, self._cause = time.monotonic(), "it had processed what it had been given"
            return False
        self._journal.ended("finished")
        return True

    def _is_at_rest(self, now: float) -> bool:
        """Whether a pipeline that does not end has made its output, or nothing has happened for `timeout_s`.

        An output that never stops changing is cut off.
        """
        run = self._file.run
        still_s = now - max(self._fed_at, self._began, self._started_at, self._changed_at)
        complete = self._feeder.is_over and not self._holds_work()
        if not run.ends and (still_s >= run.timeout_s or (complete and now - self._changed_at >= run.settle_s)):
            self._journal.ended("finished")
            return True
        self._cut_short = now - self._started_at >= TIMEOUTS * run.timeout_s
        return self._cut_short or still_s >= run.timeout_s

    # -- its process ------------------------------------------------------------------

    def _start(self, cause: str) -> None:
        run = self._file.run
        command = run.restart if self._was_killed and run.restart is not None else run.start
        number = self._attempt.attempt + 1 if self._attempt is not None else 1
        self._since = self._log.stat().st_size
        self._attempt = self._journal.attempt(number, cause)
        self._pid = self._keeper.start(self._filled(command), self._environment(), self._folder, self._log)
        self._restart_at, self._started_at = None, time.monotonic()

    def _stop(self) -> None:
        if self._pid is not None:
            self._keeper.terminate(self._pid)
            self._keeper.end(self._pid)
            self._pid = None

    def _run_to_the_end(self, when: str, command: tuple[str, ...]) -> None:
        self._since = self._log.stat().st_size
        pid = self._keeper.start(self._filled(command), self._environment(), self._folder, self._log)
        deadline = time.monotonic() + COMMAND_S
        while (code := self._keeper.exit_code(pid)) is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self._keeper.end(pid)
        if code != 0:
            how = "did not end" if code is None else f"ended with {_code_in_words(code)}"
            raise SubjectFailed(f"run.{when}: {command[0]} {how}: {self._last_words()}")

    def _filled(self, command: tuple[str, ...]) -> list[str]:
        return [filled(argument, self._places) for argument in command]

    def _environment(self) -> dict[str, str]:
        added = {name: filled(value, self._places) for name, value in self._file.run.environment.items()}
        return environment_of(added)

    def _last_words(self) -> str:
        """The last lines that the process has printed since it was started."""
        lines = [line.strip() for line in tail(self._log, self._since).split("\n") if line.strip()]
        return " | ".join(lines[-LAST_LINES:]) or "it has printed nothing"

    # -- from the scenario ------------------------------------------------------------

    def _watch(self, number: int) -> Watch:
        trigger = self._scenario.faults[number].trigger
        if isinstance(trigger, AtAim) and trigger.aim == HALFWAY:
            return Watch(number, trigger, self._halfway())
        if isinstance(trigger, AtAim):
            lookout = Lookout(self._file.aims[trigger.aim], self._places)
            return Watch(number, trigger, lambda: lookout.sees(self._log, self._since))
        if isinstance(trigger, AtTime):
            return Watch(number, trigger, lambda: False)
        raise SubjectFailed("a fault of a pipeline has a time or an aim")

    def _halfway(self) -> Callable[[], bool]:
        """Whether more rows are visible than before, and others are not."""
        before = 0

        def is_met() -> bool:
            nonlocal before
            grew, before = len(self._rows) > before, len(self._rows)
            return grew

        return is_met

    def _expected_rows(self) -> Counter[Row]:
        """The rows that the output has to hold in the end: what a run without any fault would leave."""
        promises = self._file.promises
        stub = History(subject="", guarantee=promises.guarantee, sink=promises.sink, identity=promises.identity)
        view = OutsideView(self._scenario.workload, self._scenario.topology, stub)
        if promises.sink == "idempotent":
            rows = view.last_rows.values() if promises.identity == "key" else view.rows_until(INFINITE)
            return Counter(set(rows))
        return view.rows_until(INFINITE)


def _code_in_words(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
