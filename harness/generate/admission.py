"""The templates that are drawn for a subject: those whose situation it can be brought into.

A template in these tables is left out if the subject lacks what its situation needs: the
rest of its scenario would be that of another template.  Any other template has something
to show on every subject.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ...properties.model.workload import Join, Union
from ..subject.abilities import drawable, knows
from ..subject.port import Capabilities
from .situations.functional import known_functions
from .workloads.event_times import BURST, known_windows

Can = Callable[[Capabilities], bool]


def _overtakes(can: Capabilities) -> bool:
    return "exactly-once" in can.guarantees and bool(can.alignments - {"aligned"})


def _resumes(can: Capabilities) -> bool:
    return "resume" in can.commands and bool(can.commands & {"stop-with-savepoint", "cancel"})


def _rescales_in_flight(can: Capabilities) -> bool:
    return _overtakes(can) and _resumes(can) and can.rescales


def _commits(can: Capabilities) -> bool:
    return "transactional" in can.sinks and can.guarantees != {"at-most-once"}


def _has_regions(can: Capabilities) -> bool:
    return can.regional_recovery and "forward" in can.edges


def _merges(can: Capabilities) -> bool:
    return any(knows(drawable(can), operator) for operator in (Union(), Join()))


TAKES: dict[str, Can] = {
    "S3": _overtakes,
    "S4": _rescales_in_flight,
    "S5": _rescales_in_flight,
    "S6": lambda can: (
        can.guarantees != {"at-most-once"} and "savepoint" in can.commands and "incremental" in can.snapshot_formats
    ),
    "S7": _commits,
    "S9": lambda can: "stop-with-savepoint" in can.commands,
    "S10": lambda can: can.enumerators and can.guarantees != {"at-most-once"},
    "regional": _has_regions,
    "partly-stopped": lambda can: _has_regions(can) and "stop-with-savepoint" in can.commands,
    "local": lambda can: can.local_recovery,
    "retained": lambda can: (
        can.guarantees != {"at-most-once"}
        and "savepoint" in can.commands
        and (can.resumes_older or "fork" in can.commands)
    ),
    "deleted": lambda can: can.guarantees != {"at-most-once"} and {"savepoint", "delete-snapshot"} <= can.commands,
    "claimed": lambda can: can.guarantees != {"at-most-once"} and _resumes(can) and can.claims_snapshots,
    "declined-first": lambda can: can.guarantees != {"at-most-once"} and _resumes(can) and can.claims_snapshots,
    "copied": lambda can: (
        can.guarantees != {"at-most-once"} and {"savepoint", "copy-snapshot", "move-snapshot"} <= can.commands
    ),
    "referred": lambda can: can.guarantees != {"at-most-once"} and can.forks_by_reference and "fork" in can.commands,
    "forked-increments": lambda can: can.guarantees != {"at-most-once"} and "fork" in can.commands,
    "other-operators": lambda can: (
        can.guarantees != {"at-most-once"}
        and can.upgrades
        and can.changes_operators
        and {"stop-with-savepoint", "resume"} <= can.commands
    ),
    "upgraded": lambda can: (
        can.guarantees != {"at-most-once"} and can.upgrades and {"stop-with-savepoint", "resume"} <= can.commands
    ),
    "laid-out-anew": lambda can: _resumes(can) and can.rescales,
    "crash-after-savepoint": lambda can: bool(can.commands & {"savepoint", "stop-with-savepoint"}),
    "zombie-upsert": lambda can: "idempotent" in can.sinks,
    "crash-before-commit": _commits,
    "crash-after-reuse": lambda can: _commits(can) and can.pooled_ids and "writer" in can.committing,
}
"""by template, what a subject must be able to do"""

COMPUTES: dict[str, Can] = {
    "S2": _merges,
    "S11": lambda can: bool(known_windows(drawable(can))) or knows(drawable(can), BURST),
    "part-finished": _merges,
    "user-function": lambda can: bool(known_functions(drawable(can))),
    "crash-while-waiting": lambda can: knows(drawable(can), BURST),
}
"""by template, what a subject must be able to compute, if the workload is drawn"""


@lru_cache(maxsize=32)
def admitted(templates: tuple[str, ...], capabilities: Capabilities | None, *, given: bool) -> tuple[str, ...]:
    """The templates that are drawn for a subject, each as often as it is given.

    If none is left, all are drawn, and each scenario is reduced to what the subject can do.
    """
    if capabilities is None:
        return templates
    remaining = tuple(name for name in templates if _can(capabilities, name, given=given))
    return remaining or templates


def _can(capabilities: Capabilities, name: str, *, given: bool) -> bool:
    asked = [TAKES.get(name)] if given else [TAKES.get(name), COMPUTES.get(name)]
    return all(can(capabilities) for can in asked if can is not None)
