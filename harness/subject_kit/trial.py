"""A subject is tried: what its histories let the judge see, which faults took effect, and what it never showed.

A few drawn scenarios are run, chosen so that together they need as many of the declared
capabilities as possible.  The quick checker judges them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from ...faults.plan import AtPoint, kind_of
from ...properties.invariants.judge import Judgement, judge_case
from ...properties.model.history import WITNESSES, AttemptStarted, CommandIssued, CommandReturned, FaultFired, History
from ...properties.model.verdict import Holds, Unknown, Violated
from ...properties.model.words import plural
from ...properties.quick_checker.case import Case
from ..runtime.exit_codes import CutproofError, one_line
from ..scenario.history_checks import history_problems, in_one_line
from ..scenario.model import Scenario
from ..scenario.promises import RESTORING, can_show
from ..search.verification import Request, plan_of
from ..search.worker import check_given, drawer
from ..subject.abilities import VOCABULARIES, operators_of
from ..subject.needs import needs
from ..subject.not_tried import ABILITIES
from ..subject.port import Capabilities, Subject
from ..subject.run import history_of
from ..workloads.inputs import LoadedWorkload
from .judgeable import How, judgeable, judged_of

FORMAT = "cutproof-subject-check/1"
SCENARIOS, AT_LEAST, ENOUGH_S = 40, 6, 8.0
"""how many scenarios are run; in real time fewer once some seconds have passed"""
CANDIDATES = 150
"""scenarios that are drawn, from which those to run are chosen"""
TRIES = 6
"""how many scenarios are chosen because they could show one thing"""
NOT_ASKED = "The quick checker judged alone: PySpark was not asked. `cutproof verify` asks it."

Progress = Callable[[int, int], None]


class InvariantTried(msgspec.Struct, kw_only=True):
    """What the trial showed of one invariant; `unknown` counts by reason."""

    invariant: str
    how: How
    lacks: tuple[str, ...] = ()
    held: int = 0
    violated: int = 0
    unknown: dict[str, int] = {}


class FaultTried(msgspec.Struct, kw_only=True):
    """How often a declared kind of fault was planned and fired, and what followed it in the history."""

    kind: str
    planned: int = 0
    fired: int = 0
    restarted: int = 0
    """an attempt began after it"""
    restored: int = 0
    """this attempt has `restores`"""

    @property
    def is_felt(self) -> bool:
        return self.restarted > 0 if self.kind in RESTORING else self.fired > 0


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong in one scenario, which is number `index` of the seed."""

    index: int
    problem: str


class Trial(msgspec.Struct, kw_only=True):
    """The checklist of a subject."""

    format: str = FORMAT
    subject: str
    seed: int
    scenarios: int = 0
    seconds: float = 0.0
    pyspark: str = NOT_ASKED
    witnesses: dict[str, bool] = {}
    invariants: list[InvariantTried] = []
    faults: list[FaultTried] = []
    used: list[str] = []
    unused: list[str] = []
    """declared capabilities that some scenario used, and those that none used"""
    violated: list[Problem] = []
    malformed: list[Problem] = []
    not_run: list[Problem] = []
    to_do: list[str] = []

    @property
    def is_wrong(self) -> bool:
        return bool(self.violated or self.malformed)


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of the trial, with its history and judgement."""

    index: int
    scenario: Scenario
    history: History
    judgement: Judgement


def tried(
    subject: Subject,
    name: str,
    seed: int,
    progress: Progress = lambda done, total: None,
    *,
    workload: LoadedWorkload | None = None,
) -> Trial:
    """Try a subject, which has the name `name` on a command line, with the given workload if there is one.

    Raises UsageError if it cannot run the workload, and another CutproofError if the environment failed.
    """
    began = time.perf_counter()
    capabilities = subject.capabilities
    trial = Trial(subject=name, seed=seed)
    ran: list[Ran] = []
    choice = _Choice(subject, name, seed, workload)
    running = time.perf_counter()
    for done in range(SCENARIOS):
        if capabilities.real_time and done >= AT_LEAST and time.perf_counter() - running > ENOUGH_S:
            break
        progress(done, SCENARIOS)
        index, scenario = choice.next()
        found = _run(subject, index, scenario, trial)
        if found is not None:
            ran.append(found)
            choice.showed(found)
    trial.scenarios = len(ran)
    trial.witnesses = _witnesses(one.history for one in ran)
    trial.invariants = _invariants(ran, trial.witnesses)
    trial.faults = _faults(ran, capabilities)
    trial.used, trial.unused = _capabilities(ran, capabilities, trial.faults)
    ran.sort(key=lambda one: one.index)
    trial.violated = [
        Problem(index=one.index, problem=f"{invariant}: {verdict.difference} ({verdict.message})")
        for one in ran
        for invariant, verdict in one.judgement.violated.items()
    ]
    possible = judged_of(WITNESSES, sorted(capabilities.guarantees), sorted(capabilities.sinks))
    if "fork" not in capabilities.commands:
        possible = tuple(one for one in possible if one != "restorable")
    trial.to_do = [*_to_do(trial, ran, possible), *_unsteady(subject, ran)]
    trial.seconds = time.perf_counter() - began
    return trial


# -- what is run


class _Choice:
    """Chooses scenarios: the next is the one with which the most can still be shown that no run has shown.

    What does not show although some runs could have shown it is not waited for.
    """

    def __init__(self, subject: Subject, name: str, seed: int, workload: LoadedWorkload | None) -> None:
        request = Request(subject=name, seed=seed, real_time=subject.capabilities.real_time, workload=workload)
        plan = plan_of(request)
        check_given(plan, subject.capabilities)
        draw = drawer(plan, subject)
        self._left = {index: draw(seed, index) for index in range(CANDIDATES)}
        self._could = {index: _names(scenario) | can_show(scenario) for index, scenario in self._left.items()}
        self._tries: Counter[str] = Counter()
        self._shown: set[str] = set()

    def next(self) -> tuple[int, Scenario]:
        """The next scenario, and its number."""
        best = max(self._left, key=lambda index: (self._worth(index), -index))
        self._tries.update(self._could[best])
        return best, self._left.pop(best)

    def _worth(self, index: int) -> int:
        return sum(name not in self._shown and self._tries[name] < TRIES for name in self._could[index])

    def showed(self, one: Ran) -> None:
        """Take note of what a run has shown: faults that fired, invariants that were judged, and what it needed."""
        fired = {_fault_in_words(entry.kind) for entry in _fired(one).values()}
        needed = {name for name in _names(one.scenario) if not name.startswith(_fault_in_words(""))}
        judged = {
            name for name, verdict in one.judgement.verdicts.items() if not isinstance(verdict, Unknown)
        }  # fmt: skip
        self._shown |= fired | needed | judged


def _fault_in_words(kind: str) -> str:
    return f"the fault {kind}"


def _run(subject: Subject, index: int, scenario: Scenario, trial: Trial) -> Ran | None:
    """Run and judge a scenario; None if it could not be run, or if its history is malformed."""
    try:
        history = history_of(subject, scenario)
    except CutproofError:
        raise
    except Exception as error:  # of a user's adapter: anything
        trial.not_run.append(Problem(index=index, problem=one_line(error)))
        return None
    problem = in_one_line(history_problems(scenario, history))
    if problem:
        trial.malformed.append(Problem(index=index, problem=problem))
        return None
    case = Case(scenario.workload, scenario.topology, history)
    return Ran(index=index, scenario=scenario, history=history, judgement=judge_case(case))


# -- what is counted


def _witnesses(histories: Iterable[History]) -> dict[str, bool]:
    """Of each witness, whether every history has it."""
    lacking = {name for history in histories for name in history.lacks(WITNESSES)}
    return {name: name not in lacking for name in WITNESSES}


def _invariants(ran: Sequence[Ran], witnesses: dict[str, bool]) -> list[InvariantTried]:
    found = [
        InvariantTried(invariant=one.invariant, how=one.how, lacks=one.lacks)
        for one in judgeable(name for name, there in witnesses.items() if there)
    ]
    for one in found:
        verdicts = [each.judgement.verdicts[one.invariant] for each in ran]
        one.held = sum(isinstance(verdict, Holds) for verdict in verdicts)
        one.violated = sum(isinstance(verdict, Violated) for verdict in verdicts)
        reasons = Counter(verdict.reason for verdict in verdicts if isinstance(verdict, Unknown))
        one.unknown = dict(reasons.most_common())
    return found


def _faults(ran: Sequence[Ran], capabilities: Capabilities) -> list[FaultTried]:
    found = {kind: FaultTried(kind=kind) for kind in sorted(capabilities.faults)}
    for one in ran:
        for fault in one.scenario.faults:
            found[kind_of(fault)].planned += 1
        starts = [entry for entry in one.history.journal if isinstance(entry, AttemptStarted)]
        for number, fired in _fired(one).items():
            line = found[kind_of(one.scenario.faults[number])]
            after = next((start for start in starts if start.order > fired.order), None)
            line.fired += 1
            line.restarted += after is not None
            line.restored += after is not None and after.restores is not None
    return list(found.values())


def _fired(one: Ran) -> dict[int, FaultFired]:
    """The faults of a scenario that fired, by number."""
    return {entry.fault: entry for entry in one.history.journal if isinstance(entry, FaultFired)}


def _capabilities(
    ran: Sequence[Ran], capabilities: Capabilities, faults: Sequence[FaultTried]
) -> tuple[list[str], list[str]]:
    """The declared capabilities that some scenario used, and those that none used."""
    seen = set().union(*(_names(one.scenario) for one in ran))
    seen -= {_fault_in_words(one.kind) for one in faults if not one.fired}
    done = {kind for one in ran for kind in _carried_out(one.history)}
    seen -= {f"the command {name}" for name in capabilities.commands - done}
    declared = list(_declared(capabilities))
    return [name for name in declared if name in seen], [name for name in declared if name not in seen]


def _carried_out(seen: History) -> set[str]:
    """The kinds of commands that were answered without an error."""
    answers = [entry for entry in seen.journal if isinstance(entry, CommandReturned) and not entry.error]
    numbers = {entry.command for entry in answers}
    return {entry.kind for entry in seen.journal if isinstance(entry, CommandIssued) and entry.command in numbers}


def _names(scenario: Scenario) -> set[str]:
    """The capabilities that a scenario needs, in words."""
    return set(_in_words(needs(scenario)))


def _declared(capabilities: Capabilities) -> Iterator[str]:
    """The capabilities that a subject declares, in words, without defaults that nothing of it can use."""
    never: set[str] = {"local_spilling"}
    if capabilities.alignments <= {"aligned"}:
        never |= {"spilling", "spill_stores"}
    if "exactly-once" not in capabilities.guarantees:
        never |= {"alignments"}
    if capabilities.spilling <= {"at-once"}:
        never |= {"spill_stores"}
    if "transactional" not in capabilities.sinks:
        never |= {"committing"}
    if capabilities.snapshot_formats <= {"canonical"}:
        never |= {"snapshot_formats"}
    yield from _in_words(capabilities, never)


def _in_words(capabilities: Capabilities, never: Iterable[str] = ("local_spilling",)) -> Iterator[str]:
    for field, (what, _) in VOCABULARIES.items():
        names = operators_of(capabilities) if field == "operators" else getattr(capabilities, field)
        if field not in never:
            yield from (f"the {what} {name}" for name in sorted(names))
    yield from (phrase for name, phrase in ABILITIES.items() if getattr(capabilities, name))


# -- what is missing


def _to_do(trial: Trial, ran: Sequence[Ran], possible: Sequence[str]) -> Iterator[str]:
    """What its author can still do, the most useful first; `possible`: the invariants that it promises at all."""
    for one in trial.faults:
        if one.planned and not one.fired:
            times = plural(one.planned, "time")
            yield f"{one.kind} was planned {times} and never fired, or no `fault-fired` was recorded"
        elif one.fired > 1 and not one.is_felt:
            yield f"{one.kind} fired, and no attempt began after it: record an `attempt-started`"
    fired = sum(one.fired for one in trial.faults)
    if fired and not any(one.restored for one in trial.faults):
        yield "no attempt after a fault has `restores`: nothing counts as exercised until the engine restores"
    if ran and not trial.faults:
        yield "no fault is declared: nothing disturbs the engine, so most invariants cannot be exercised"
    unhealed = [one.index for one in ran if _fired(one) and one.history.healed is None and not one.history.lasting]
    if unhealed and trial.witnesses["tasks"]:
        yield f"scenario {unhealed[0]}: a fault fired, and `healed` is missing, so progress counts only the job's end"
    silent = _silent_points(ran)
    if silent:
        yield f"no fault fired at {', '.join(silent)}: announce these points, if the engine has them"
    blind: dict[tuple[str, ...], list[str]] = {}
    for line in trial.invariants:
        if line.how == "no" and line.invariant in possible:
            blind.setdefault(line.lacks, []).append(line.invariant)
    for lacks, invariants in blind.items():
        yield f"{', '.join(invariants)} cannot be judged: the history has no witness {', '.join(lacks)}"
    lines = [one for one in trial.invariants if one.how != "no" and one.invariant in possible]
    never = [one.invariant for one in lines if not one.held + one.violated]
    if ran and never:
        yield f"neither held nor violated in this trial: {', '.join(never)}"


def _silent_points(ran: Sequence[Ran]) -> list[str]:
    """Points at which faults were aimed, and none fired."""
    aimed: set[str] = set()
    hit: set[str] = set()
    for one in ran:
        fired = _fired(one)
        for number, fault in enumerate(one.scenario.faults):
            if isinstance(fault.trigger, AtPoint):
                (hit if number in fired else aimed).add(fault.trigger.point)
    return sorted(aimed - hit)


def _unsteady(subject: Subject, ran: Sequence[Ran]) -> Iterator[str]:
    """A subject in virtual time has to run a scenario the same way again: otherwise nothing can be shrunk."""
    disturbed = next((one for one in ran if _fired(one)), ran[0] if ran else None)
    if disturbed is None or subject.capabilities.real_time:
        return
    number = disturbed.index
    try:
        again = history_of(subject, disturbed.scenario)
    except CutproofError:
        raise
    except Exception as error:  # of a user's adapter: anything
        yield f"scenario {number} could be run once, and not a second time: {one_line(error)}"
        return
    if msgspec.json.encode(again) != msgspec.json.encode(disturbed.history):
        yield f"two runs of scenario {number} differ: declare `real_time=True`, or take chance out of the engine"
