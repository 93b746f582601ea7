"""A pipeline is tried: each entry of its file by itself, and what is missing.

Only at the end it is killed once, or paused if no process is killed, connections through its proxies are cut, and its
job is stopped by each of its commands.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from ...faults.plan import AnyFault, AtAim, CutChannel, KillNode, PauseNode, kind_of_class
from ...properties.invariants.judge import verdict_of
from ...properties.model.history import AttemptStarted, CommandReturned, FaultFired, History, JobEnded
from ...properties.model.verdict import Violated
from ...properties.model.words import LIMIT, columns_of, plural, row_in_words
from ...properties.quick_checker.case import Case
from ..scenario.model import AnyCommand, Scenario, StopWithSavepoint
from ..subject.port import SubjectFailed
from ..subject.run import Result
from ..subject.run import run as run_on
from .description import CLIENT, HALFWAY, OWN, Computes
from .entries import problem_of
from .run import PipelineRun
from .subject import PipelineSubject

RECORDS = 10
AMID_RECORDS = 60
"""of the run in which the pipeline is killed or paused"""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the file: whether it does what it says, and what was seen."""

    entry: str
    ok: bool
    seen: str


def tried(subject: PipelineSubject, progress: Callable[[str], None] = lambda _: None) -> list[Check]:
    """Start the pipeline, feed it ten records, and read their rows, without any fault.

    If all is well, the pipeline is started again, and killed once, or paused if no process is killed; and once more for
    each proxy, whose connections are cut.  Then each command that stops its job is requested once, in a run without any
    fault.
    """
    scenario = subject.without_faults(RECORDS)
    progress("starting the pipeline")
    run = subject.new_run(scenario, watches_aims=True)
    try:
        history = run.history()
    except SubjectFailed as error:
        return [Check(entry=_entry_of(error), ok=False, seen=str(error))]
    finally:
        run.close()
    what = _computed(subject.pipeline.file.computes)
    checks = [*_course(subject, history), *_rows(scenario, run, history, what), *_aims(run), *_proxies(run)]
    checks += _quiet(subject, run)
    checks += _commits(subject, scenario, history) + _leaks(subject, history)
    works = all(check.ok for check in checks)
    checks += _counters(subject, run)
    if not works:
        return checks
    restored = [_restored(subject, entry, fault, progress) for entry, fault in _faults(subject).items()]
    return [*checks, *restored, *_commands(subject, progress)]


def _entry_of(error: SubjectFailed) -> str:
    """The entry that an error is about; of an error that is about none, the command's."""
    return problem_of(error).entry or "run"


def _course(subject: PipelineSubject, history: History) -> list[Check]:
    ends = [entry for entry in history.journal if isinstance(entry, JobEnded)]
    entry = "run.start"
    if not ends:
        timeout = subject.pipeline.file.run.timeout_s
        return [Check(entry=entry, ok=False, seen=f"the process did not end within {timeout:g} s (run.timeout_s)")]
    if ends[-1].status == "failed":
        return [Check(entry=entry, ok=False, seen=ends[-1].reason)]
    how = "it ended by itself" if subject.pipeline.file.run.ends else "it ran until its output was complete"
    return [Check(entry=entry, ok=True, seen=how)]


def _computed(computes: Computes) -> str:
    """What the rows are if they are right."""
    if computes.sql:
        return "those that the query computes.sql yields"
    return "those that computes.steps yield" if computes.steps else "the records as they were given"


def _rows(scenario: Scenario, run: PipelineRun, history: History, what: str) -> list[Check]:
    """Whether the rows are those that were expected; `what` says which these are."""
    given, found = plural(len(scenario.workload.inputs[0].splits[0]), "record"), Counter(history.committed)
    lost, extra = run.expected - found, found - run.expected
    checks = [Check(entry="feed, read", ok=bool(found), seen=f"{given} given, {plural(found.total(), 'row')} read")]
    if lost or extra:
        first = next(iter(extra or lost))
        missing = f"{plural(lost.total(), 'row')} missing, {plural(extra.total(), 'row')} not expected"
        other = next(iter(lost), None) if extra else None
        columns = columns_of(history)
        instead = f"; expected was ({row_in_words(other, columns)})" if other is not None else ""
        word = "found" if extra else "missing"
        checks.append(
            Check(entry="computes", ok=False, seen=f"{missing}; {word}: ({row_in_words(first, columns)}){instead}")
        )
    else:
        checks.append(Check(entry="computes", ok=True, seen=f"the rows are {what}"))
    return checks


def _commits(subject: PipelineSubject, scenario: Scenario, history: History) -> list[Check]:
    """Whether the markers of commits tell of all records in the end, and no row was visible before its own."""
    if not subject.pipeline.file.commits.query:
        return []
    given, commits = scenario.workload.records(), history.commits or []
    last = commits[-1].positions[0] if commits else 0
    verdict = verdict_of(Case(scenario.workload, scenario.topology, history), "visibility")
    if isinstance(verdict, Violated):
        return [Check(entry="commits", ok=False, seen=f"{verdict.message}: ({verdict.records[0]})")]
    return [Check(entry="commits", ok=last == given, seen=f"in the end it said {last} of {plural(given, 'record')}")]


def _leaks(subject: PipelineSubject, history: History) -> list[Check]:
    """Whether anything is left without any fault."""
    if subject.pipeline.file.leaks is None:
        return []
    left = history.residue.left or []
    seen = f"{', '.join(left[:LIMIT])} was left, though no fault struck" if left else "nothing was left"
    return [Check(entry="leaks", ok=not left, seen=seen)]


def _restored(
    subject: PipelineSubject, entry: str, fault: KillNode | PauseNode | CutChannel, progress: Callable[[str], None]
) -> Check:
    """Whether an entry `restored` is seen after a fault."""
    what, doing, done = _WORDS[type(fault)]
    proxy = subject.pipeline.file.proxies.get(fault.receiver) if isinstance(fault, CutChannel) else None
    if subject.pipeline.file.restored is None and (proxy is None or proxy.restored is None):
        return Check(entry=entry, ok=False, seen=f"it is not in the file, so no {what} will count as exercise")
    progress(f"{doing} once")
    scenario = msgspec.structs.replace(subject.without_faults(AMID_RECORDS), faults=(fault,))
    run = _watching(subject, fault).new_run(scenario, watches_aims=True)
    try:
        history = run.history()
    except SubjectFailed as error:
        return Check(entry=entry, ok=False, seen=f"after a {what}: {error}")
    finally:
        run.close()
    if not any(isinstance(entry, FaultFired) for entry in history.journal):
        return Check(entry=entry, ok=False, seen=_why_not(run, done))
    if all(start.restores is None for start in history.journal if isinstance(start, AttemptStarted)):
        seen = f"it was not seen after a {what}, so no {what} will count as exercise{_unless_stored(subject)}"
        return Check(entry=entry, ok=False, seen=seen)
    return Check(entry=entry, ok=True, seen=f"it was seen after a {what}")


def _unless_stored(subject: PipelineSubject) -> str:
    """Without `stored` a fault may strike before the pipeline has anything to continue from."""
    if subject.pipeline.file.stored is not None:
        return ""
    return ". If nothing had been stored by then, the file lacks [stored]: what shows it, so that faults wait for it"


def _counters(subject: PipelineSubject, run: PipelineRun) -> list[Check]:
    """Whether each counter could be read; a line of a log may be one that only a fault brings about."""
    checks = []
    for name, counter in subject.pipeline.file.counters.items():
        taken, problem = run.counters.taken[name], run.counters.problems.get(name, "")
        if problem:
            seen = problem
        elif taken:
            seen = f"it showed {taken[-1].value} in the end"
        elif counter.log:
            seen = "no line matched it in a run without faults"
        else:
            seen = "it had no value while the pipeline ran"
        ok = not problem and bool(taken or counter.log)
        checks.append(Check(entry=f"counters.{name}", ok=ok, seen=seen))
    return checks


def _commands(subject: PipelineSubject, progress: Callable[[str], None]) -> Iterator[Check]:
    """Whether each command that stops the job does so, and whether a stopped job is resumed."""
    for drain in subject.stops:
        name = "drain" if drain else "stop_with_savepoint"
        progress(f"requesting commands.{name}")
        yield from _stopped(subject, name, drain=drain)


def _stopped(subject: PipelineSubject, name: str, *, drain: bool) -> list[Check]:
    """A run in which the job is stopped once, and resumed if the file says how."""
    file, scenario = subject.pipeline.file, subject.without_faults(AMID_RECORDS)
    commands: tuple[AnyCommand, ...] = (StopWithSavepoint(drain=drain, trigger=AtAim(aim=HALFWAY)),)
    if file.commands.resume and not drain:
        commands += (subject.resume(scenario, max(file.commands.parallelism, default=0)),)
    entry = f"commands.{name}"
    try:
        result = run_on(subject, msgspec.structs.replace(scenario, commands=commands))
    except SubjectFailed as error:
        place = _entry_of(error)
        told = place if place.startswith("commands.") else entry
        return [Check(entry=told, ok=False, seen=str(error))]
    journal = result.history.journal
    returned = {one.command: one.error for one in journal if isinstance(one, CommandReturned)}
    if 0 not in returned:
        waited = " or `stored` was not seen in time" if file.stored is not None else ""
        why = f"it was not requested: its output was complete too early: feed it slower{waited}"
        return [Check(entry=entry, ok=False, seen=why)]
    if returned[0]:
        return [Check(entry=entry, ok=False, seen=f"it was refused: {returned[0]}")]
    ends = [one for one in journal if isinstance(one, JobEnded)]
    if not ends or ends[0].status == "failed":
        return [Check(entry=entry, ok=False, seen=f"the job did not stop: {ends[0].reason if ends else 'time is up'}")]
    return _stop_seen(entry, ends, result, resumed=1 in returned)


def _stop_seen(entry: str, ends: list[JobEnded], result: Result, *, resumed: bool) -> list[Check]:
    """What became of a job that was stopped, and of the one that was resumed from it."""
    covers = ends[0].covers
    seen = f"the job was {ends[0].status}" + ("" if covers is None else f", and covers {covers[0]} of {AMID_RECORDS}")
    wrong = next((one.message for one in result.judgement.verdicts.values() if isinstance(one, Violated)), "")
    if not resumed:
        return [Check(entry=entry, ok=not wrong, seen=f"{seen}; {wrong}" if wrong else f"{seen}; its rows are right")]
    checks = [Check(entry=entry, ok=True, seen=seen)]
    again = ends[1].status if len(ends) > 1 else "still running when time was up"
    rows = wrong or "its rows are right"
    checks.append(Check(entry="commands.resume", ok=not wrong, seen=f"the resumed job: {again}; {rows}"))
    return checks


_WORDS: dict[type[AnyFault], tuple[str, str, str]] = {
    KillNode: ("kill", "killing the pipeline", "no process was killed"),
    PauseNode: ("pause", "pausing the pipeline", "no process was paused"),
    CutChannel: ("cut", "cutting its connections", "no connection was cut"),
}
"""A fault as a noun, while it is done, and that it was not done."""


def _faults(subject: PipelineSubject) -> dict[str, KillNode | PauseNode | CutChannel]:
    """What is tried, by the entry that has to be seen after it: a kill of the first process that is killed (if none is,
    the longest pause of the first that is paused), and a cut of the connections through each proxy."""
    trigger = AtAim(aim=HALFWAY)
    found: dict[str, KillNode | PauseNode | CutChannel] = {}
    if subject.killed:
        found["restored"] = KillNode(node=subject.killed[0], trigger=trigger)
    elif subject.paused:
        node = subject.paused[0]
        for_ms = max([*subject.pipeline.programs.values()][node].paused_for_ms)
        found["restored"] = PauseNode(node=node, for_us=for_ms * 1_000, trigger=trigger)
    for name, proxy in subject.pipeline.file.proxies.items():
        if kind_of_class(CutChannel) in proxy.faults:
            cut = CutChannel(trigger=trigger, sender=CLIENT, receiver=name, for_us=min(proxy.for_ms) * 1_000)
            found[f"proxies.{name}.restored" if proxy.restored else f"restored, proxies.{name}"] = cut
    return found


def _watching(subject: PipelineSubject, fault: KillNode | PauseNode | CutChannel) -> PipelineSubject:
    """The same pipeline with what a fault waits for, `stored` and the `busy` of what it hits, in place of its aims."""
    pipeline = subject.pipeline
    if isinstance(fault, CutChannel):
        busy = {f"proxies.{fault.receiver}.busy": pipeline.file.proxies[fault.receiver].busy}
    else:
        name = [*pipeline.programs][fault.node]
        busy = {f"{_place_of(name)}.busy": pipeline.programs[name].busy}
    awaited = {"stored": pipeline.file.stored, **busy}
    aims = {where: aim for where, aim in awaited.items() if aim is not None}
    watching = copy.copy(subject)
    watching.pipeline = msgspec.structs.replace(pipeline, file=msgspec.structs.replace(pipeline.file, aims=aims))
    return watching


def _place_of(name: str) -> str:
    """Where a process is in the file."""
    return "run" if name == OWN else f"roles.{name}"


def _why_not(run: PipelineRun, undone: str) -> str:
    """Why a fault did not strike."""
    unseen = [where for where, met in run.aims_met.items() if not met]
    if unseen:
        return f"{undone}: {' and '.join(unseen)} {'was' if len(unseen) == 1 else 'were'} never seen"
    return f"{undone} before its output was complete: feed it slower"


def _proxies(run: PipelineRun) -> list[Check]:
    return [
        Check(
            entry=f"proxies.{name}",
            ok=used,
            seen="connections came through it" if used else "no connection came through it: what connects to its port?",
        )
        for name, used in run.proxies.were_used.items()
    ]


def _aims(run: PipelineRun) -> list[Check]:
    return [
        Check(entry=f"aims.{name}", ok=met, seen="it was met" if met else "it was never met while the pipeline ran")
        for name, met in run.aims_met.items()
    ]


def _quiet(subject: PipelineSubject, run: PipelineRun) -> list[Check]:
    """Whether the pipeline was quiet in the end."""
    file = subject.pipeline.file
    if file.quiet is None:
        return []
    within = f"it was not met within {file.run.timeout_s:g} s of the last row (run.timeout_s)"
    return [Check(entry="quiet", ok=run.was_quiet, seen="it was met in the end" if run.was_quiet else within)]
