"""One run of a pipeline: it is fed and read, killed and started again, until its output is complete or its time is up.

The harness sees the pipeline from outside alone: its processes, its output, and the aims of its
file.  A kill counts only if the pipeline held work (`_holds_work_for`).
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from ...faults.plan import AnyFault, AtAim, AtTime, ChannelFault, KillNode, PauseNode, kind_of
from ...properties.model.history import AttemptStarted, Computed, FaultFired, History, JobEnded
from ...properties.model.workload import Row
from ...properties.reconstruct.commands import STOPS
from ..scenario.model import AnyCommand, Scenario, StopWithSavepoint
from ..subject.port import SubjectFailed
from .aims import Lookout
from .answers import Answers
from .counters import Counters
from .description import HALFWAY, Aim, Pipeline, Role
from .feeding.kinds import feeder_of
from .job_commands import JobCommands, Stopped
from .journal import Journal
from .output.reader import Reader, expected_rows, rows_by_record
from .places import PORTS, free_ports
from .processes.keeper import Keeper, code_in_words, end_in_words
from .processes.process import POLL_S, UNREAD, Process
from .processes.programs import COMMAND_S, READ_S, Programs
from .proxying.disturbance import may_be_noticed, proxy_of
from .proxying.proxies import Proxies
from .watches import NOTICED_WITHIN_S, Interrupted, Recovery, Watch

TIMEOUTS = 20
"""after so many times `timeout_s` a pipeline whose output goes on changing is cut off"""
WITNESSES = ("reader", "journal")


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
        self._watches = [self._watch(number) for number in range(len(scenario.faults))]
        self._attempt: AttemptStarted | None = None
        self._stored = Lookout(self._file.stored, self._places) if self._file.stored is not None else None
        self._stored_seen = False
        """whether `stored` was seen when it was looked for last"""
        self._recovery: Recovery | None = None
        self._interrupted: Interrupted | None = None
        self._quiet = Lookout(self._file.quiet, self._places) if self._file.quiet is not None else None
        self.was_quiet = False
        """whether `quiet` was met when it was looked for last"""
        self._busy = {
            one.name: Lookout(one.program.busy, self._places) for one in self._programs.all if one.program.busy
        }
        self._proxies_busy = {
            name: Lookout(proxy.busy, self._places) for name, proxy in self._file.proxies.items() if proxy.busy
        }
        self._cause = ""
        self._commands = JobCommands(
            scenario.commands, self._file, self._programs, self._journal, records=self._records
        )
        self._stop = self._watch_of_stop()
        self.counters = Counters(self._file.counters, self._places, self._programs.printed_by, self._journal.at_us)
        """what the pipeline counts itself; nobody judges it"""
        self._began = time.monotonic()
        self._fed_at = self._given_at = 0.0
        self._struck_at = 0.0
        """when the last fault struck"""
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
            witnesses=list(WITNESSES),
            committed=committed,
            reads=self._journal.reads,
            commits=self._journal.commits if self._file.commits.query else msgspec.UNSET,
            computed=self._computed(),
            columns=self._file.read.columns or msgspec.UNSET,
            journal=self._journal.entries,
            timeline=self._journal.timeline,
            counters=self.counters.taken if self._file.counters else msgspec.UNSET,
            quiet=ended and (self.was_quiet or self._quiet is None),
            cut_short=self._cut_short,
            unapplied=[
                *(f"{kind_of(self._scenario.faults[one.number])}, {one.name} ({one.why_not})" for one in self._watches),
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
        self._start(self._cause)
        self.counters.begin()
        while not self._is_over():
            time.sleep(POLL_S)
        self._settle()
        self.counters.finish()  # as long as the pipeline can be asked
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
        if not ends.intersection(("failed", *STOPS)) and not self._feeder.is_over and self._feeder.problem:
            raise SubjectFailed(f"{self._feeder.problem}; so it was until the end of the run")
        if self._was_there or not self.expected or ends.intersection(("failed", *STOPS)):
            return
        if self._reader.absent:
            raise SubjectFailed(f"{self._reader.absent}; it was not there until the end of the run")

    # -- the course of a run ----------------------------------------------------------

    def _is_over(self) -> bool:
        self._keep_up(time.monotonic())
        self._feed(time.monotonic())
        self._read(time.monotonic())
        self._look_for_recovery()
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
        self._watch_proxies(now)

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
        self._was_there = self._was_there or (len(self._journal.reads) > before and not self._reader.absent)

    def _demand_line_was_read(self) -> None:
        """Raise SubjectFailed if rows show that the process has begun without its line.  Of a second life, late rows do
        so, unless roles may have put them out."""
        late = self._reader.changed_at > self._own.started_at + NOTICED_WITHIN_S and not self._programs.roles
        if self._reader.rows and (late or self._attempts == 1) and self._own.has_unread_line():
            raise SubjectFailed(f"run.spare: {UNREAD}")

    def _look_for_recovery(self) -> None:
        if not self._own.runs:  # nothing has continued yet
            return
        if self._interrupted is not None and self._interrupted.recovery.is_seen():
            self._restored(self._next_attempt(self._interrupted.cause))
            self._interrupted = None
        attempt, recovery = self._attempt, self._recovery
        if attempt is None or recovery is None or attempt.restores is not None:
            return
        if recovery.is_seen():
            self._restored(attempt)

    def _restored(self, attempt: AttemptStarted) -> None:
        attempt.restores = attempt.attempt - 1
        self._journal.note("work-restored", self._own.name)

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
        if self._commands.stopped is not None or not self._holds_work():
            return False
        if not self._is_up():
            return self._all_wait("the pipeline was not seen to go on after the fault before it")
        if not self._sees_stored():  # an aim that is met before is no moment
            return self._all_wait("`stored` was not seen while rows were missing")
        for one in self._watches:  # one that cannot begin keeps no other from it
            if not one.is_due(now - self._began):
                one.waits_for("")
            elif self._begins(one, now):
                return not self._own.runs
        return False

    def _all_wait(self, what: str) -> bool:
        """Note for what each fault waits; always false."""
        for one in self._watches:
            one.waits_for(what)
        return False

    def _begins(self, due: Watch, now: float) -> bool:
        """Apply a fault that is due, unless it has to wait; whether it has begun."""
        if not self._may_begin(due):
            return False
        self._look_at_output()  # the last read may be older than the last rows
        if not self._may_begin(due):  # or the read may have taken longer than the moment lasts
            return False
        fault = self._scenario.faults[due.number]
        if isinstance(fault, ChannelFault):
            return self._disturb(due, fault)
        if not isinstance(fault, KillNode | PauseNode):
            return False
        struck = self._programs.all[fault.node]
        watched = self._recovery_from(struck)  # the log is marked before the process can print anything more
        if not (struck.kill() if isinstance(fault, KillNode) else struck.pause(fault.for_us / 1e6)):
            return False
        self._watches.remove(due)
        self._struck_at = now
        which = f"{struck.name}: " if self._programs.roles else ""
        self._journal.fired(due.number, kind_of(fault), due.name, f"{which}{self._work()}", self._attempts)
        killed = isinstance(fault, KillNode)
        if killed:
            self.proxies.forget_recoveries()
        if struck.runs:  # paused, or what listens at its port was killed
            cause = f"what listens at the port of {struck.name} was killed" if killed else f"{struck.name} was paused"
            self._interrupted = None if watched is None else Interrupted(cause, watched, killed)
            return True
        self._recovery, self._interrupted = watched, None
        if struck is self._own:
            self._cause = "it was killed"
        else:
            self._next_attempt(f"{struck.name} was killed")
        return True

    def _may_begin(self, due: Watch) -> bool:
        """Whether the pipeline holds work that the fault may strike, as far as the last read tells, and what it hits
        has a part in it and can be hit."""
        if not self._holds_work_for(due):
            due.finds_no_work()
            return False
        fault = self._scenario.faults[due.number]
        if isinstance(fault, ChannelFault):
            name = proxy_of(fault)
            return self._is_busy(due, self._proxies_busy.get(name), f"the proxy {name}") and self.proxies.may_begin(
                fault
            )
        if not isinstance(fault, KillNode | PauseNode):
            return False
        name = self._programs.all[fault.node].name
        return self._is_busy(due, self._busy.get(name), name)

    def _is_busy(self, due: Watch, busy: Lookout | None, name: str) -> bool:
        """Whether what a fault hits has a part in the work just now, as far as its `busy` says."""
        if busy is None or self._programs.sees(busy):
            return True
        due.waits_for(f"`busy` of {name} was not seen when it was due")
        return False

    def _work(self) -> str:
        """What the pipeline has been given and has put out, in words."""
        return f"{self._feeder.given} records had been given, {len(self._reader.rows)} rows were visible"

    def _disturb(self, due: Watch, fault: ChannelFault) -> bool:
        """Begin a fault of a proxy, unless it has to wait; whether it has begun."""
        recovery = self._recovery_by(self._file.proxies[proxy_of(fault)].restored) if may_be_noticed(fault) else None
        if not self.proxies.begin(due.number, fault, due.name, self._work(), recovery):
            return False
        self._watches.remove(due)
        self._struck_at = time.monotonic()
        return True

    def _watch_proxies(self, now: float) -> None:
        """Record the faults of proxies that connections have felt."""
        for one in self.proxies.watch(now):
            self._journal.fired(one.number, kind_of(one.fault), one.aim, f"{one.felt()}; {one.work}", self._attempts)
            if one.recovery is not None:
                done = "broken" if one.breaks else "stalled"
                cause = f"connections through the proxy {proxy_of(one.fault)} were {done}"
                self._interrupted = Interrupted(cause, one.recovery, one.breaks)
        if self.proxies.is_disturbing:
            self._struck_at = now

    def _recovery_from(self, struck: Process) -> Recovery | None:
        """What shows that the pipeline continued, once this process was killed."""
        return self._recovery_by(struck.program.restored if isinstance(struck.program, Role) else None)

    def _recovery_by(self, aim: Aim | None) -> Recovery | None:
        """What shows from now on that the pipeline continued: an aim, or else that of the file."""
        aim = aim or self._file.restored
        return None if aim is None else self._programs.recovery(aim)

    def _is_up(self) -> bool:
        """Whether every process runs, no connections are being broken, and the pipeline is seen to have continued:
        another fault waits for that."""
        if any(not one.runs or one.resumes_at is not None for one in self._programs.all):
            return False
        goes_on = self._reader.changed_at > self._struck_at + NOTICED_WITHIN_S
        if self.proxies.is_breaking or (self._interrupted is not None and self._interrupted.broke and not goes_on):
            return False
        attempt = self._attempt
        if self._recovery is None or attempt is None:
            return True
        return attempt.restores is not None or self._reader.changed_at > self._own.started_at

    def _holds_work(self) -> bool:
        """Whether the pipeline was given records whose rows no reader has seen yet."""
        return self._feeder.given > 0 and self._reader.misses_rows

    def _holds_work_for(self, due: Watch) -> bool:
        """Whether the pipeline holds work that a fault may strike.

        At the moment of an aim, all rows of the records so far may be visible, and their commit under way.  A time
        that was drawn says nothing of the kind: then a row of these records must not be visible yet.
        """
        if isinstance(due.trigger, AtAim):
            return self._holds_work()
        return self._feeder.given > 0 and self._reader.misses_rows_of(self._feeder.given)

    def _has_ended(self, code: int) -> bool:
        self._look_for_recovery()  # the process may have printed its last lines since
        unread = self._own.has_unread_line()
        self._own.forget(f"by itself, with {code_in_words(code)}")
        disturbed = self._was_disturbed()
        if (code != 0 or not self._file.run.ends) and disturbed:
            self._continue_later(f"it {end_in_words(code)}, since {disturbed}")
            return False
        if unread:
            raise SubjectFailed(f"run.spare: {UNREAD}: {self._own.last_words()}")
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
            self._cause = "it had processed what it had been given"
            still_s = time.monotonic() - max(self._given_at, self._began, self._struck_at, self._reader.changed_at)
            return still_s >= self._file.run.timeout_s
        self._look_at_output()
        refused = self._commands.refused
        if refused and self._holds_work():
            raise SubjectFailed(f"commands: a stop has failed, and the job has ended nevertheless: {refused}")
        self._journal.ended("finished")
        return True

    def _has_failed(self, how: str) -> None:
        """It has ended as it must not.  Kills of this process alone, in lives before this one, are no excuse."""
        fired = [entry for entry in self._journal.entries if isinstance(entry, FaultFired)]
        own = all(self._hits_own(self._scenario.faults[entry.fault]) for entry in fired)
        undisturbed = own and self._struck_at < self._own.started_at
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
        self._cause = cause
        self._own.go_on_as_after_a_kill()
        self._recovery = self._recovery_by(None)

    def _is_at_rest(self, now: float) -> bool:
        """Whether a pipeline that does not end has made its output and is quiet, or nothing has happened for
        `timeout_s`.

        An output that never stops changing is cut off.
        """
        run = self._file.run
        disturbed = self._is_disturbed()
        changed_at = max(self._reader.changed_at, self._disturbed_at)
        still_s = now - max(self._given_at, self._began, self._own.started_at, self._struck_at, changed_at)
        complete = self._feeder.is_over and not self._holds_work() and not disturbed
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
        if self._stop is None or len(self._watches) == len(self._scenario.faults) > 0:
            return False
        if not self._holds_work() or not self._is_up() or self.proxies.is_disturbing:
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
        self._recovery = self._recovery_by(None)
        self._start("it was resumed", self._file.commands.resume)
        self._journal.returned(number)

    # -- its processes ----------------------------------------------------------------

    def _start_again(self) -> None:
        """Start the pipeline's own process after a kill, or after a stop."""
        if self._commands.stopped is not None:
            self._resume()
        else:
            self._start(self._cause)

    def _start(self, cause: str, command: tuple[str, ...] = ()) -> None:
        """Start the pipeline's own process."""
        self._next_attempt(cause)
        self._interrupted = None
        self.proxies.forget_recoveries()
        if self._file.stored is not None and self._file.stored.log:  # of the lines of this life
            self._stored_seen = False
        if self._recovery is not None:  # marked before the process can print anything
            self._recovery = self._programs.recovery(self._recovery.lookout.aim)
        self._own.start(command)
        if self._kills_to_come():
            self._own.start_spare()

    def _kills_to_come(self) -> bool:
        """Whether a kill of the pipeline's own process has not struck yet."""
        faults = (self._scenario.faults[one.number] for one in self._watches)
        return any(isinstance(fault, KillNode) and self._hits_own(fault) for fault in faults)

    def _hits_own(self, fault: AnyFault) -> bool:
        """Whether a fault kills or pauses the pipeline's own process, not a role and not connections."""
        return isinstance(fault, KillNode | PauseNode) and self._programs.all[fault.node] is self._own

    def _next_attempt(self, cause: str) -> AttemptStarted:
        self._attempt = self._journal.attempt(self._attempts + 1, cause)
        return self._attempt

    @property
    def _attempts(self) -> int:
        return self._attempt.attempt if self._attempt is not None else 0

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
