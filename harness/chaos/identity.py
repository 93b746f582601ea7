"""Which failures are one failure.

A failure is known by its subject, its invariant, the kind of difference, the protocol point that it needs, and its
shape: the operators of the shrunk job in order, and how it takes checkpoints.  A planted defect is no part of it: the
same failure may be found without it.

Shrinking ends at the first scenario that cannot be made smaller step by step, so one bug may leave two shapes.  Where a
run costs milliseconds, two shapes are compared by an experiment (`is_one_bug`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from ...faults.plan import AnyFault, AtAim, AtPoint, InPhase, kind_of
from ...properties.model.history import FaultFired, History
from ...properties.model.workload import KEYED, Operator, Rules
from ...reports.nights.model import Failure
from ..scenario.checks import problems_of
from ..scenario.model import Scenario
from ..search.coverage import MODES
from ..search.known_failures import Cause
from ..search.outcome import ScenarioOutcome
from ..shrink.on_subject import fails_like
from ..subject.port import Subject

DIGITS = 12
"""of an id"""


def id_of(cause: Cause, shape: str) -> str:
    """The id of a failure, a digest of its identity."""
    parts = (cause.subject, cause.invariant, cause.difference, cause.point, shape)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]


def shape_of(scenario: Scenario) -> str:
    """The job in a word, such as `flat-map > keyed, aligned`."""
    return f"{' > '.join(operators_of(scenario)) or 'no operator'}, {mode_of(scenario)}"


def operators_of(scenario: Scenario) -> tuple[str, ...]:
    """The operators in order; those with state by key have one name, since a bug that needs the one mostly shows with
    another too."""
    return tuple(_called(node.operator) for node in scenario.workload.nodes)


def _called(operator: Operator) -> str:
    if isinstance(operator, KEYED):
        return "keyed"
    return "rules" if isinstance(operator, Rules) else str(type(operator).__struct_config__.tag)


def mode_of(scenario: Scenario) -> str:
    """How the job takes checkpoints: the alignment, by its name in the coverage."""
    engine = scenario.engine
    return next((name for name, mode in MODES.items() if mode == (engine.guarantee, engine.alignment)), "aligned")


def cause_of_failure(failure: Failure) -> Cause:
    return Cause(
        invariant=failure.invariant, difference=failure.difference, point=failure.point, subject=failure.subject
    )


def fired_in(history: History) -> tuple[int, ...]:
    """The faults that fired, by number."""
    return tuple(sorted({entry.fault for entry in history.journal if isinstance(entry, FaultFired)}))


def is_one_bug(subject: Subject, cause: Cause, first: Scenario, second: Scenario) -> bool:
    """Whether two shrunk scenarios with one cause show one bug, as far as can be told.

    They do if one job has all operators of the other, and the smaller one fails in the same way if it takes
    checkpoints as the larger one does.  In real time, where a run proves little, the two have to be the same there.
    """
    for small, large in ((first, second), (second, first)):
        if _is_part(operators_of(small), operators_of(large)):
            if mode_of(small) == mode_of(large):
                return True
            if not subject.capabilities.real_time and _fails_in_the_mode_of(subject, cause, small, large):
                return True
    return False


def _fails_in_the_mode_of(subject: Subject, cause: Cause, small: Scenario, large: Scenario) -> bool:
    engine = msgspec.structs.replace(
        small.engine,
        guarantee=large.engine.guarantee,
        alignment=large.engine.alignment,
        alignment_timeout_us=large.engine.alignment_timeout_us,
    )
    changed = msgspec.structs.replace(small, engine=engine)
    if next(problems_of(changed), None) is not None:
        return False
    return fails_like(subject, changed, cause.invariant, cause.difference)


def _is_part(small: Sequence[str], large: Sequence[str]) -> bool:
    """Whether all names of one are among those of the other, in the same order."""
    rest = iter(large)
    return all(name in rest for name in small)


def points_of(failures: Sequence[Failure]) -> frozenset[str]:
    """The points, phases, aims and kinds of fault that failures need; "" if one of them needs none."""
    return frozenset(failure.point for failure in failures)


def is_explained(
    subject: Subject, outcome: ScenarioOutcome, invariant: str, difference: str, known: Sequence[Failure]
) -> bool:
    """Whether known failures by the same kind of difference may be all that a failing scenario shows.

    They are not, if it also fails without the faults that they need.
    """
    points = points_of(known)
    if "" in points:
        return True
    scenario = outcome.scenario
    kept = tuple(fault for fault in scenario.faults if names_of_fault(fault).isdisjoint(points))
    if len(kept) == len(scenario.faults):
        return False
    if subject.capabilities.real_time:
        return True
    return not fails_like(subject, msgspec.structs.replace(scenario, faults=kept), invariant, difference)


def names_of_fault(fault: AnyFault) -> frozenset[str]:
    """What a failure that needs the fault could have as its point (`causes.point_of`)."""
    match fault.trigger:
        case AtPoint(point=name) | InPhase(phase=name) | AtAim(aim=name):
            return frozenset({name, kind_of(fault)})
        case _:
            return frozenset({kind_of(fault)})
