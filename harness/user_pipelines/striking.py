"""The faults of one run: each waits for its moment, and strikes while the pipeline holds work.

A kill counts only if the pipeline held work (`Strikes.holds_work`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from ...faults.plan import AnyFault, AtAim, ChannelFault, KillNode, PauseNode, kind_of
from .aims import Lookout
from .attempts import Attempts
from .description import PipelineFile
from .feeding.feeder import Feeder
from .journal import Journal
from .output.reader import Reader
from .processes.programs import Programs
from .proxying.disturbance import may_be_noticed, proxy_of
from .proxying.proxies import Proxies
from .watches import NOTICED_WITHIN_S, Interrupted, Watch


class Strikes:
    """The faults of a scenario, and what became of them."""

    def __init__(
        self,
        faults: Sequence[AnyFault],
        watches: Sequence[Watch],
        file: PipelineFile,
        places: Mapping[str, str],
        programs: Programs,
        proxies: Proxies,
        feeder: Feeder,
        reader: Reader,
        attempts: Attempts,
        journal: Journal,
        look_at_output: Callable[[], None],
    ) -> None:
        """`watches` have the moments of the faults, `look_at_output` reads what is visible."""
        self._faults = faults
        self.waiting = list(watches)
        """those that have not struck yet"""
        self._file = file
        self._programs = programs
        self._proxies = proxies
        self._feeder = feeder
        self._reader = reader
        self._attempts = attempts
        self._journal = journal
        self._look_at_output = look_at_output
        self.struck_at = 0.0
        """when the last fault struck"""
        self._busy = {one.name: Lookout(one.program.busy, places) for one in programs.all if one.program.busy}
        self._proxies_busy = {name: Lookout(one.busy, places) for name, one in file.proxies.items() if one.busy}

    def strike(self, since_began_s: float, now: float) -> bool:
        """Apply a fault that is due, unless it has to wait; whether the pipeline's own process was killed."""
        for one in self.waiting:  # one that cannot begin keeps no other from it
            if not one.is_due(since_began_s):
                one.waits_for("")
            elif self._begins(one, now):
                return not self._programs.own.runs
        return False

    def all_wait(self, what: str) -> bool:
        """Note for what each fault waits; always false."""
        for one in self.waiting:
            one.waits_for(what)
        return False

    def _begins(self, due: Watch, now: float) -> bool:
        """Apply a fault that is due, unless it has to wait; whether it has begun."""
        if not self._may_begin(due):
            return False
        self._look_at_output()  # the last read may be older than the last rows
        if not self._may_begin(due):  # or the read may have taken longer than the moment lasts
            return False
        fault = self._faults[due.number]
        if isinstance(fault, ChannelFault):
            return self._disturb(due, fault)
        if not isinstance(fault, KillNode | PauseNode):
            return False
        struck = self._programs.all[fault.node]
        watched = self._attempts.recovery_from(struck)  # the log is marked before the process can print anything more
        if not (struck.kill() if isinstance(fault, KillNode) else struck.pause(fault.for_us / 1e6)):
            return False
        self.waiting.remove(due)
        self.struck_at = now
        which = f"{struck.name}: " if self._programs.roles else ""
        self._journal.fired(due.number, kind_of(fault), due.name, f"{which}{self._work()}", self._attempts.number)
        killed = isinstance(fault, KillNode)
        if killed:
            self._proxies.forget_recoveries()
        if struck.runs:  # paused, or what listens at its port was killed
            cause = f"what listens at the port of {struck.name} was killed" if killed else f"{struck.name} was paused"
            self._attempts.interrupted = None if watched is None else Interrupted(cause, watched, killed)
            return True
        self._attempts.recovery, self._attempts.interrupted = watched, None
        if struck is self._programs.own:
            self._attempts.cause = "it was killed"
        else:
            self._attempts.begin(f"{struck.name} was killed")
        return True

    def _may_begin(self, due: Watch) -> bool:
        """Whether the pipeline holds work that the fault may strike, as far as the last read tells, and what it hits
        has a part in it and can be hit."""
        if not self._holds_work_for(due):
            due.finds_no_work()
            return False
        fault = self._faults[due.number]
        if isinstance(fault, ChannelFault):
            name = proxy_of(fault)
            return self._is_busy(due, self._proxies_busy.get(name), f"the proxy {name}") and self._proxies.may_begin(
                fault
            )
        if not isinstance(fault, KillNode | PauseNode):
            return False
        struck = self._programs.all[fault.node]
        if not struck.can_be_hit:
            due.waits_for(f"no process of the run listened at the port of {struck.name} when it was due")
            return False
        return self._is_busy(due, self._busy.get(struck.name), struck.name)

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
        restored = self._file.proxies[proxy_of(fault)].restored
        recovery = self._attempts.recovery_by(restored) if may_be_noticed(fault) else None
        if not self._proxies.begin(due.number, fault, due.name, self._work(), recovery):
            return False
        self.waiting.remove(due)
        self.struck_at = time.monotonic()
        return True

    def watch_proxies(self, now: float) -> None:
        """Record the faults of proxies that connections have felt."""
        for one in self._proxies.watch(now):
            detail = f"{one.felt()}; {one.work}"
            self._journal.fired(one.number, kind_of(one.fault), one.aim, detail, self._attempts.number)
            if one.recovery is not None:
                done = "broken" if one.breaks else "stalled"
                cause = f"connections through the proxy {proxy_of(one.fault)} were {done}"
                self._attempts.interrupted = Interrupted(cause, one.recovery, one.breaks)
        if self._proxies.is_disturbing:
            self.struck_at = now

    def is_up(self) -> bool:
        """Whether every process runs, no connections are being broken, and the pipeline is seen to have continued:
        another fault waits for that."""
        if any(not one.runs or one.resumes_at is not None for one in self._programs.all):
            return False
        interrupted = self._attempts.interrupted
        goes_on = self._reader.changed_at > self.struck_at + NOTICED_WITHIN_S
        if self._proxies.is_breaking or (interrupted is not None and interrupted.broke and not goes_on):
            return False
        return self._attempts.has_continued or self._reader.changed_at > self._programs.own.started_at

    def holds_work(self) -> bool:
        """Whether the pipeline was given records whose rows no reader has seen yet."""
        return self._feeder.given > 0 and self._reader.misses_rows

    def _holds_work_for(self, due: Watch) -> bool:
        """Whether the pipeline holds work that a fault may strike.

        At the moment of an aim, all rows of the records so far may be visible, and their commit under way.  A time
        that was drawn says nothing of the kind: then a row of these records must not be visible yet.
        """
        if isinstance(due.trigger, AtAim):
            return self.holds_work()
        return self._feeder.given > 0 and self._reader.misses_rows_of(self._feeder.given)

    def kills_to_come(self) -> bool:
        """Whether a kill of the pipeline's own process has not struck yet."""
        faults = (self._faults[one.number] for one in self.waiting)
        return any(isinstance(fault, KillNode) and self.hits_own(fault) for fault in faults)

    def hits_own(self, fault: AnyFault) -> bool:
        """Whether a fault kills or pauses the pipeline's own process, not a role and not connections."""
        return isinstance(fault, KillNode | PauseNode) and self._programs.all[fault.node] is self._programs.own
