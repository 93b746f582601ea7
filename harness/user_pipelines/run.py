"""One run of a pipeline: it is fed and read, killed and started again, until its output is complete or its time is up.

The harness sees the pipeline from outside alone: its processes, its output, and the aims of its file.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from ...faults.plan import AnyFault, AtAim, AtTime, kind_of
from ...properties.model.history import Computed, FaultFired, History, JobEnded, Residue
from ...properties.model.workload import Row
from ...properties.reconstruct.commands import STOPS
from ..scenario.model import AnyCommand, Scenario, StopWithSavepoint
from ..subject.port import SubjectFailed
from .aims import Lookout
from .answers import Answers
from .attempts import Attempts
from .counters import Counters
from .description import HALFWAY, Pipeline, PipelineFile
from .entries import EntryFailed
from .feeding.kinds import feeder_of
from .job_commands import JobCommands, Stopped
from .journal import Journal
from .leaks import Listing
from .output.reader import Reader, expected_rows, rows_by_record
from .places import PORTS, free_ports
from .processes.keeper import Keeper, code_in_words, end_in_words
from .processes.process import POLL_S, UNREAD
from .processes.programs import COMMAND_S, READ_S, Programs
from .proxying.proxies import Proxies
from .striking import Strikes
from .watches import NOTICED_WITHIN_S, Watch

TIMEOUTS = 20
"""after so many times `timeout_s` a pipeline whose output goes on changing is cut off"""
WITNESSES = ("reader", "journal")


def witnesses_of(file: PipelineFile) -> tuple[str, ...]:
    """The witnesses of a run: what is left is listed where the file says what must not be."""
    return WITNESSES if file.leaks is None else (*WITNESSES, "listing")


class PipelineRun:
    """One run in a folder of its own.  `close` ends its processes and deletes the folder."""

    def __init__(
        self,
        pipeline: Pipeline,
        scenario: Scenario,
        keeper: Keeper,
        supplies: Mapping[str, str],
        *,
        watches_aims: bool = False,
        answers: Answers | None = None,
    ) -> None:
        """`supplies` are the places of what the pipeline needs (`supplies.supplied`); the run closes the keeper.

        `answers` are the rows of a pipeline whose file has an SQL text.
        """
        self._file = pipeline.file
        self._scenario = scenario
        self._keeper = keeper
        self._folder = self._keeper.folder
        self._places = {
            "pipeline": str(pipeline.folder),
            "python": sys.executable,
            "run": secrets.token_hex(6),
            **free_ports(PORTS),
            **supplies,
            **pipeline.parameters,
        }
        for name in ("input", "output", "state"):
            (self._folder / name).mkdir()
            self._places[name] = str(self._folder / name)
        self._journal = Journal()
        self._programs = Programs(pipeline, self._keeper, self._places, self._journal.note)
        self._programs.meanwhile = self._keep_up
        self._own = self._programs.own
        self._in_the_end = False
        """whether the processes are stopped, and the last rows are read"""
        self.proxies = Proxies(self._file.proxies, self._keeper, self._places)
        (records,) = scenario.workload.inputs[0].splits
        self._records = len(records)
        self._feeder = feeder_of(self._file, records, self._folder / "input", self._places)
        self._answers = answers
        self._reader = Reader(
            self._file,
            self._places,
            lambda: self._programs.printed_rows(COMMAND_S if self._in_the_end else READ_S),
            self._journal,
            records=self._records,
            expected=expected_rows(self._file, scenario, self._computed()),
            by_record=rows_by_record(self._file, scenario),
        )
        self.aims_met = dict.fromkeys(self._file.aims if watches_aims else (), False)
        """of each aim of the file, whether it was met; empty if aims are not watched"""
        self._aims = {name: Lookout(self._file.aims[name], self._places) for name in self.aims_met}
        self._stored = Lookout(self._file.stored, self._places) if self._file.stored is not None else None
        self._stored_seen = False
        """whether `stored` was seen when it was looked for last"""
        self._quiet = Lookout(self._file.quiet, self._places) if self._file.quiet is not None else None
        self.was_quiet = False
        """whether `quiet` was met when it was looked for last"""
        self._commands = JobCommands(
            scenario.commands, self._file, self._programs, self._journal, records=self._records
        )
        self._attempts = Attempts(self._file, self._programs, self._journal)
        self._strikes = Strikes(
            scenario.faults,
            [self._watch(number) for number in range(len(scenario.faults))],
            self._file,
            self._places,
            self._programs,
            self.proxies,
            self._feeder,
            self._reader,
            self._attempts,
            self._journal,
            self._look_at_output,
        )
        self._stop = self._watch_of_stop()
        self.counters = Counters(self._file.counters, self._places, self._programs.printed_by, self._journal.at_us)
        """what the pipeline counts itself; nobody judges it"""
        leaks = self._file.leaks
        self._listing = None if leaks is None else Listing(leaks, self._places, self._folder)
        self._began = time.monotonic()
        self._fed_at = self._given_at = 0.0
        self._was_there = False
        """whether a read has found the output, be it empty"""
        self._restless_at = 0.0
        """when the output was last complete, and the pipeline not quiet"""
        self._disturbed_at = 0.0
        """when something was last paused, down or disturbed"""
        self._cut_short = False

    @property
    def expected(self) -> Counter[Row]:
        """The rows that the output has to hold in the end."""
        return self._reader.expected

    def close(self) -> None:
        """End every process of the run, and delete its folder."""
        try:
            self.counters.close()
            self._feeder.close()
            self._reader.close()
        finally:
            self._keeper.close()

    def history(self) -> History:
        """Run to the end; raises SubjectFailed if the pipeline cannot be started, fed or read."""
        try:
            committed = self._run()
        except BaseException:
            with contextlib.suppress(SubjectFailed):  # what went wrong first is what is told
                self._clean_up()
            raise
        self._clean_up()
        ended = any(isinstance(entry, JobEnded) for entry in self._journal.entries)
        return History(
            subject=self._file.name,
            guarantee=self._file.promises.guarantee,
            sink=self._file.promises.sink,
            identity=self._file.promises.identity,
            witnesses=list(witnesses_of(self._file)),
            committed=committed,
            unreadable=self._reader.broken or msgspec.UNSET,
            reads=self._journal.reads,
            commits=self._journal.commits if self._file.commits.query else msgspec.UNSET,
            computed=self._computed(),
            columns=self._file.read.columns or msgspec.UNSET,
            journal=self._journal.entries,
            timeline=self._journal.timeline,
            counters=self.counters.taken if self._file.counters else msgspec.UNSET,
            quiet=ended and (self.was_quiet or self._quiet is None),
            residue=Residue(left=self._listing.left) if self._listing else Residue(),
            cut_short=self._cut_short,
            unapplied=[
                *(
                    f"{kind_of(self._scenario.faults[one.number])}, {one.name} ({one.why_not})"
                    for one in self._strikes.waiting
                ),
                *(f"{kind_of(one.fault)}, {one.aim} (no connection felt it)" for one in self.proxies.unfelt),
            ],
        )

    def _run(self) -> list[Row]:
        """Run to the end; returns the committed rows."""
        self._feeder.open()
        self.proxies.open()
        for role in self._programs.roles:
            self._programs.start_role(role)
        self._own.run_after(self._file.run.after)
        self._programs.prepare(self._own)
        if self._file.feed.at_once:
            self._feeder.give_all()
            self._note_given()
        self._start(self._attempts.cause)
        self.counters.begin()
        while not self._is_over():
            time.sleep(POLL_S)
        self._settle()
        self.counters.finish()  # as long as the pipeline can be asked
        if self._listing:
            self._listing.look(self._wait)
        self._own.stop()
        self._programs.resume_all()
        self.proxies.close()
        self._in_the_end, self._programs.meanwhile = True, self._programs.keep_up
        committed = self._reader.final_rows(self._wait)
        self._demand_output()
        return committed

    def _settle(self) -> None:
        """Wait until what was paused or held back when the run was over has gone on, and has had time to act; if the
        process has ended by itself, also for `quiet`."""
        began = held_at = time.monotonic()
        held = False
        while True:
            now = time.monotonic()
            if self._is_disturbed() or self._waits_for_quiet(began):
                held, held_at = True, now
            elif not held or now - held_at >= self._file.run.settle_s:
                return
            self._keep_up(now)
            time.sleep(POLL_S)
            self._read(time.monotonic())

    def _waits_for_quiet(self, began: float) -> bool:
        """Whether the pipeline's own process has ended well, and what it has left is not quiet, though it still may
        be."""
        ended = self._journal.entries[-1]
        if not self._file.run.ends or not isinstance(ended, JobEnded) or ended.status == "failed":
            return False
        still_s = time.monotonic() - max(began, self._reader.changed_at, self._disturbed_at)
        return still_s < self._file.run.timeout_s and not self._sees_quiet()

    def _sees_quiet(self) -> bool:
        """Whether the pipeline is quiet, as far as its file says how that shows."""
        self.was_quiet = self._quiet is None or self._programs.sees(self._quiet)
        return self.was_quiet

    def _is_disturbed(self) -> bool:
        """Whether a process is paused, or a role that was killed is down, or a fault of a proxy is in force.  What they
        hold back may still come."""
        roles_down = any(one.was_killed for one in self._programs.roles)
        paused = any(one.resumes_at is not None for one in self._programs.all)
        disturbed = paused or roles_down or self.proxies.is_disturbing
        if disturbed:
            self._disturbed_at = time.monotonic()
        return disturbed

    def _wait(self) -> None:
        """Let time pass, while roles that end are started again."""
        self._programs.keep_up(time.monotonic())
        time.sleep(POLL_S)

    def _clean_up(self) -> None:
        self._programs.resume_all()
        self._programs.meanwhile = lambda _: None  # the run is over: no role is started again
        try:
            for number, command in enumerate(self._file.run.after):
                self._programs.run_to_the_end(self._own, f"run.after[{number}]", command)
        finally:
            self._own.run_after(())

    def _demand_output(self) -> None:
        """Raise SubjectFailed if a pipeline that did not fail could not be fed, or if no read of the run has found its
        output: then the file names the wrong place.  An output that was there and has gone is judged."""
        ends = {entry.status for entry in self._journal.entries if isinstance(entry, JobEnded)}
        unfed = self._feeder.problem if not self._feeder.is_over else None
        if unfed is not None and not ends.intersection(("failed", *STOPS)):
            raise EntryFailed(unfed.entry, f"{unfed.words}; so it was until the end of the run")
        if self._was_there or not self.expected or ends.intersection(("failed", *STOPS)):
            return
        absent = self._reader.absent
        if absent is not None:
            raise EntryFailed(absent.entry, f"{absent.words}; it was not there until the end of the run")

    # -- the course of a run ----------------------------------------------------------

    def _is_over(self) -> bool:
        self._keep_up(time.monotonic())
        self._feed(time.monotonic())
        self._read(time.monotonic())
        self._attempts.look()
        for name, lookout in self._aims.items():
            self.aims_met[name] = self.aims_met[name] or self._programs.sees(lookout)
        now = time.monotonic()  # what was looked at may have taken its time
        if not self._own.runs:
            if self._own.restart_at is not None and now >= self._own.restart_at:
                self._start_again()
            return False
        if self._strike(now):
            return False
        if self._request_stop(now):
            return True
        code = self._own.exit_code()
        if code is not None:
            return self._has_ended(code)
        return self._is_at_rest(now)

    def _keep_up(self, now: float) -> None:
        """End the faults whose time has come, and start roles again."""
        self._programs.keep_up(now)
        self._strikes.watch_proxies(now)

    def _feed(self, now: float) -> None:
        if not self._feeder.is_over and now - self._fed_at >= self._file.feed.every_ms / 1e3:
            self._fed_at = now
            before = self._feeder.given
            self._feeder.give()
            if self._feeder.given > before:
                self._given_at = now
                self._note_given()

    def _note_given(self) -> None:
        self._journal.note("records-given", "feed", amount=self._feeder.given)

    def _read(self, now: float) -> None:
        if not self._reader.is_due(now):
            return
        self._look_at_output()
        self._demand_line_was_read()
        if not self._stored_seen:
            self._sees_stored()

    def _look_at_output(self) -> None:
        """Read what is visible, and note whether the output was there."""
        before = len(self._journal.reads)
        self._reader.read()
        self._was_there = self._was_there or (len(self._journal.reads) > before and self._reader.absent is None)

    def _demand_line_was_read(self) -> None:
        """Raise SubjectFailed if rows show that the process has begun without its line.  Of a second life, late rows do
        so, unless roles may have put them out."""
        late = self._reader.changed_at > self._own.started_at + NOTICED_WITHIN_S and not self._programs.roles
        if self._reader.rows and (late or self._attempts.number == 1) and self._own.has_unread_line():
            raise EntryFailed("run.spare", UNREAD)

    def _sees_stored(self) -> bool:
        """Whether the pipeline has stored something to continue from, as far as its file says how that shows."""
        if self._stored is None:
            return True
        seen = self._programs.sees(self._stored)
        if seen and not self._stored_seen:
            self._journal.note("work-stored", self._own.name)
        self._stored_seen = seen
        return seen

    def _strike(self, now: float) -> bool:
        """Apply a fault that is due; one that would strike while the pipeline holds no work waits.

        Whether the pipeline's own process was killed.
        """
        if self._commands.stopped is not None or not self._strikes.holds_work():
            return False
        if not self._strikes.is_up():
            return self._strikes.all_wait("the pipeline was not seen to go on after the fault before it")
        if not self._sees_stored():  # an aim that is met before is no moment
            return self._strikes.all_wait("`stored` was not seen while rows were missing")
        return self._strikes.strike(now - self._began, now)

    def _has_ended(self, code: int) -> bool:
        self._attempts.look()  # the process may have printed its last lines since
        unread = self._own.has_unread_line()
        self._own.forget(f"by itself, with {code_in_words(code)}")
        disturbed = self._was_disturbed()
        if (code != 0 or not self._file.run.ends) and disturbed:
            self._continue_later(f"it {end_in_words(code)}, since {disturbed}")
            return False
        if unread:
            raise EntryFailed("run.spare", f"{UNREAD}: {self._own.last_words()}")
        if code != 0:
            self._has_failed(f"it ended with {code_in_words(code)}")
            return True
        if self._commands.stopped is not None:
            return self._has_stopped(self._commands.stopped)
        if not self._file.run.ends:
            self._has_failed("it ended by itself, though `run.ends` is false")
            return True
        if not self._feeder.is_over:  # what it had not been given is left
            self._own.restart_later()
            self._attempts.cause = "it had processed what it had been given"
            changed_at = max(self._given_at, self._began, self._strikes.struck_at, self._reader.changed_at)
            return time.monotonic() - changed_at >= self._file.run.timeout_s
        self._look_at_output()
        refused = self._commands.refused
        if refused and self._strikes.holds_work():
            raise EntryFailed("commands", f"a stop has failed, and the job has ended nevertheless: {refused}")
        self._journal.ended("finished")
        return True

    def _has_failed(self, how: str) -> None:
        """It has ended as it must not.  Kills of this process alone, in lives before this one, are no excuse."""
        fired = [entry for entry in self._journal.entries if isinstance(entry, FaultFired)]
        own = all(self._strikes.hits_own(self._scenario.faults[entry.fault]) for entry in fired)
        undisturbed = own and self._strikes.struck_at < self._own.started_at
        self._journal.failed(f"{how}: {self._own.last_words()}", undisturbed=undisturbed)

    def _was_disturbed(self) -> str:
        """What was disturbed while the pipeline's own process lived, which may be why it has ended; empty if nothing
        was."""
        if self._commands.stopped is not None:
            return ""
        if self._own.was_hit:
            return "what listens at its port was killed"
        return "its connections were disturbed" if self.proxies.have_disturbed_since(self._own.started_at) else ""

    def _continue_later(self, cause: str) -> None:
        """Start the pipeline's own process again, as after a kill."""
        self._attempts.try_again(cause)
        self._own.go_on_as_after_a_kill()

    def _is_at_rest(self, now: float) -> bool:
        """Whether a pipeline that does not end has made its output and is quiet, or nothing has happened for
        `timeout_s`.

        An output that never stops changing is cut off.
        """
        run = self._file.run
        disturbed = self._is_disturbed()
        changed_at = max(self._reader.changed_at, self._disturbed_at)
        still_s = now - max(self._given_at, self._began, self._own.started_at, self._strikes.struck_at, changed_at)
        complete = self._feeder.is_over and not self._strikes.holds_work() and not disturbed
        if complete and not run.ends and not self._sees_quiet():
            self._restless_at = now
        rests = complete and now - max(changed_at, self._restless_at) >= run.settle_s
        if not run.ends and (still_s >= run.timeout_s or rests):
            self._journal.ended("finished")
            return True
        self._cut_short = now - self._own.started_at >= TIMEOUTS * run.timeout_s
        return self._cut_short or still_s >= run.timeout_s

    # -- the commands of a user -------------------------------------------------------

    def _watch_of_stop(self) -> Watch | None:
        """What the first stop of the scenario waits for."""
        stop = next((one for one in self._scenario.commands if isinstance(one, StopWithSavepoint)), None)
        return None if stop is None else Watch(0, *self._trigger_of(stop), self._note_aim)

    def _request_stop(self, now: float) -> bool:
        """Stop the job with a savepoint, if that is due and the pipeline holds work; whether the run is over.

        A stop waits until a fault has struck: it would take the work away that the fault needs.
        """
        if self._stop is None or len(self._strikes.waiting) == len(self._scenario.faults) > 0:
            return False
        if not self._strikes.holds_work() or not self._strikes.is_up() or self.proxies.is_disturbing:
            return False
        if self._commands.next_stop() is None or not self._stop.is_due(now - self._began):
            return False
        if not self._sees_stored() or self._commands.leaves_windows_unknown(self._feeder.given):
            return False
        self._commands.request_stop(self._feeder.given)
        stopped = self._commands.stopped
        if stopped is None or self._file.run.ends:  # then the process sees that its job has ended
            return False
        self._own.stop()
        return self._has_stopped(stopped)

    def _has_stopped(self, stopped: Stopped) -> bool:
        """The job has ended as a command required; whether the run is over: no command resumes it."""
        self._journal.ended(stopped.status, covers=stopped.covers)
        after_s = self._commands.resumes_after_s()
        if after_s is None:
            return True
        self._own.restart_at = time.monotonic() + after_s
        return False

    def _resume(self) -> None:
        """Start the pipeline from its savepoint."""
        number, parallelism = self._commands.issue_resume()
        self._places["parallelism"] = str(parallelism)
        self._attempts.recovery = self._attempts.recovery_by()
        self._start("it was resumed", self._file.commands.resume)
        self._journal.returned(number)

    # -- its processes ----------------------------------------------------------------

    def _start_again(self) -> None:
        """Start the pipeline's own process after a kill, or after a stop."""
        if self._commands.stopped is not None:
            self._resume()
        else:
            self._start(self._attempts.cause)

    def _start(self, cause: str, command: tuple[str, ...] = ()) -> None:
        """Start the pipeline's own process."""
        self.proxies.forget_recoveries()
        if self._file.stored is not None and self._file.stored.log:  # of the lines of this life
            self._stored_seen = False
        self._attempts.begin_with_start(cause)
        self._own.start(command)
        if self._strikes.kills_to_come():
            self._own.start_spare()

    # -- from the scenario ------------------------------------------------------------

    def _watch(self, number: int) -> Watch:
        return Watch(number, *self._trigger_of(self._scenario.faults[number]), self._note_aim)

    def _note_aim(self, name: str) -> None:
        self._journal.note("aim-met", "aim", name)

    def _trigger_of(self, one: AnyFault | AnyCommand) -> tuple[AtTime | AtAim, Callable[[], bool]]:
        """When a fault or a command is due, and what looks whether its aim is met."""
        trigger = one.trigger
        if isinstance(trigger, AtAim) and trigger.aim == HALFWAY:
            return trigger, self._reader.halfway()
        if isinstance(trigger, AtAim):
            lookout = Lookout(self._file.aims[trigger.aim], self._places)
            return trigger, lambda: self._programs.sees(lookout)
        if isinstance(trigger, AtTime):
            return trigger, lambda: False
        raise SubjectFailed("a fault or a command of a pipeline has a time or an aim")

    def _computed(self) -> Computed | msgspec.UnsetType:
        """What PySpark computes of the run's query: the rows of all records, and of those that a stopped job covers or
        that a marker of a commit tells of."""
        if self._answers is None:
            return msgspec.UNSET
        ends = [entry for entry in self._journal.entries if isinstance(entry, JobEnded)]
        covers = [entry.covers for entry in ends if entry.covers is not None]
        return self._answers.computed(covers, [one.positions for one in self._journal.commits])
