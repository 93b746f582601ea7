"""The names by which an engine declares its capabilities, and the check of a declaration.

An operator has one name for its kind and one for each flag.  `count` is a count without
flags; an engine that also declares `count:signed` supports retractions in it.  An engine that
declares only `count` never receives a retraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec.structs import replace

from ...faults.plan import KINDS
from ...properties.model.workload import KEYED, AnyOperator, Count, Dedup, Join, Operator, Rules, Sum, User, Window
from ..runtime.config import nearest
from ..runtime.exit_codes import UsageError
from ..scenario.checks import (
    ALIGNMENTS,
    COMMITTING,
    GUARANTEES,
    SINKS,
    SNAPSHOT_FORMATS,
    SNAPSHOT_MODES,
    SNAPSHOT_STORES,
    SPILL_STORES,
    SPILLING,
    STATE_BACKENDS,
)
from ..scenario.model import COMMANDS
from ..workloads.user_functions import FUNCTIONS, RESERVED
from .port import Capabilities

EDGES = ("forward", "hash", "rebalance", "broadcast")
SOURCES = ("bounded", "unbounded", "idle", "not-rewindable")
"""inputs that end, inputs that do not, inputs with splits that can be idle, and inputs that cannot rewind"""

RETRACTIONS = "retractions"
"""short for the flag `signed` of each declared operator that can have it"""

_FLAGS: dict[str, tuple[str, ...]] = {
    "count": ("tagged", "signed"),
    "sum": ("signed",),
    "join": ("signed",),
    "dedup": ("rows",),
    "tumbling": ("late",),
    "sliding": ("late",),
    "session": ("late",),
    "user": ("ordered", "timed", "clocked"),
    FUNCTIONS: ("ordered", "timed", "clocked"),
}
"""by kind, the flags that an operator can have"""

_KINDS: dict[str, type[Operator]] = {str(kind.__struct_config__.tag): kind for kind in AnyOperator.__args__}

OPERATORS: tuple[str, ...] = tuple(
    name for kind in (*_KINDS, FUNCTIONS) for name in (kind, *(f"{kind}:{flag}" for flag in _FLAGS.get(kind, ())))
)
"""every name of an operator, with and without flags"""

VOCABULARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "faults": ("fault", tuple(KINDS)),
    "commands": ("command", tuple(COMMANDS)),
    "operators": ("operator", (*OPERATORS, RETRACTIONS)),
    "guarantees": ("guarantee", GUARANTEES),
    "alignments": ("alignment", ALIGNMENTS),
    "spilling": ("way of spilling", SPILLING),
    "spill_stores": ("spill store", SPILL_STORES),
    "local_spilling": ("way of spilling", SPILLING),
    "sinks": ("sink", SINKS),
    "committing": ("way of committing", COMMITTING),
    "edges": ("edge", EDGES),
    "sources": ("source", SOURCES),
    "state_backends": ("state backend", STATE_BACKENDS),
    "snapshot_modes": ("snapshot mode", SNAPSHOT_MODES),
    "snapshot_stores": ("snapshot store", SNAPSHOT_STORES),
    "snapshot_formats": ("snapshot format", SNAPSHOT_FORMATS),
}
"""by field of `Capabilities`: what its names stand for, and all its names"""


def names_of(operator: Operator) -> frozenset[str]:
    """The names that an engine must declare to receive the operator: its kind, and each of its flags."""
    return _names(_kind_of(operator), _flags_of(operator))


@lru_cache(maxsize=256)
def _names(kind: str, flags: tuple[str, ...]) -> frozenset[str]:
    return frozenset({kind, *(f"{kind}:{flag}" for flag in flags)})


def _kind_of(operator: Operator) -> str:
    if isinstance(operator, User):
        return FUNCTIONS if operator.function.startswith(RESERVED) else "user"
    return str(type(operator).__struct_config__.tag)


def _flags_of(operator: Operator) -> tuple[str, ...]:
    match operator:
        case Count(tagged=tagged, signed=signed):
            flags = {"tagged": tagged, "signed": signed}
        case Sum(signed=signed) | Join(signed=signed):
            flags = {"signed": signed}
        case Dedup(keys_only=keys_only):
            flags = {"rows": not keys_only}
        case User(ordered=ordered, timed=timed, clocked=clocked):
            flags = {"ordered": ordered, "timed": timed, "clocked": clocked}
        case Window(lateness=lateness) if _kind_of(operator) in _FLAGS:
            flags = {"late": lateness > 0}
        case _:
            return ()
    return tuple(flag for flag, has in flags.items() if has)


def edge_of(kind: type[Operator]) -> str | None:
    """The edge that an operator of a kind needs."""
    if issubclass(kind, KEYED):
        return "hash"
    return "broadcast" if kind is Rules else None


def operators_of(capabilities: Capabilities) -> frozenset[str]:
    """The operators that a subject has declared, with `RETRACTIONS` replaced by flags."""
    declared = capabilities.operators
    if RETRACTIONS not in declared:
        return declared
    signed = {f"{kind}:signed" for kind in declared & {kind for kind, flags in _FLAGS.items() if "signed" in flags}}
    return declared - {RETRACTIONS} | signed


@lru_cache(maxsize=16)
def drawable(capabilities: Capabilities) -> frozenset[str]:
    """The subject's operators for which it also has the edges."""
    missing = {"hash", "broadcast"} - capabilities.edges
    return frozenset(name for name in operators_of(capabilities) if edge_of(_kind_called(name)) not in missing)


def knows(operators: frozenset[str] | None, operator: AnyOperator) -> bool:
    """Whether an operator is among those that a subject knows (None: all)."""
    return operators is None or names_of(operator) <= operators


def _kind_called(name: str) -> type[Operator]:
    kind = name.partition(":")[0]
    return User if kind == FUNCTIONS else _KINDS[kind]


def is_promised(guarantee: str, sink: str) -> bool:
    """Whether such a job is possible: at-most-once has no checkpoints, so only a plain sink makes its rows visible."""
    return guarantee != "at-most-once" or sink == "plain"


def demand(capabilities: object, who: str) -> None:
    """Raise UsageError, in one line, for a declaration with an unknown name, or with which nothing can be drawn."""
    if not isinstance(capabilities, Capabilities):
        kind = type(capabilities).__name__
        raise UsageError(f"the capabilities of {who} are a {kind}; they have to be cutproof.Capabilities")
    for problem in (*_misspelt(capabilities), *_too_narrow(capabilities)):
        raise UsageError(f"{who} {problem}")


def _misspelt(capabilities: Capabilities) -> Iterator[str]:
    for field, (what, names) in VOCABULARIES.items():
        for name in sorted(map(str, getattr(capabilities, field) - frozenset(names))):
            yield f"declares the {what} {name!r}, which does not exist{nearest(name, names)}"


def usable(capabilities: Capabilities) -> Capabilities:
    """The capabilities without settings that need another setting which the subject does not declare."""
    spilling = capabilities.spilling if capabilities.spill_stores else capabilities.spilling & {"at-once"}
    alignments = capabilities.alignments if spilling else capabilities.alignments & {"aligned"}
    return replace(
        capabilities,
        spilling=spilling,
        alignments=alignments,
        guarantees=capabilities.guarantees if alignments else capabilities.guarantees - {"exactly-once"},
        sinks=capabilities.sinks if capabilities.committing else capabilities.sinks - {"transactional"},
    )


def _too_narrow(capabilities: Capabilities) -> Iterator[str]:
    """Why no scenario is possible with the capabilities."""
    can = usable(capabilities)
    if not can.guarantees:
        yield _none_of(_first_empty(capabilities, ("guarantees", "alignments", "spilling"), "spill_stores"))
    if not can.sinks:
        yield _none_of(_first_empty(capabilities, ("sinks",), "committing"))
    if not any(is_promised(guarantee, sink) for guarantee in can.guarantees for sink in can.sinks):
        yield "can run no scenario: the guarantee at-most-once needs the sink plain, which it does not declare"
    for field, enough in _ESSENTIAL.items():
        if not getattr(capabilities, field) & set(enough):
            yield _none_of(field, enough)


_ESSENTIAL: dict[str, tuple[str, ...]] = {
    "edges": ("forward", "hash", "rebalance"),
    "sources": ("bounded", "unbounded"),
    "state_backends": STATE_BACKENDS,
    "snapshot_modes": SNAPSHOT_MODES,
    "snapshot_stores": SNAPSHOT_STORES,
}
"""by field: the names of which every job needs one"""


def _first_empty(capabilities: Capabilities, fields: Iterable[str], last: str) -> str:
    return next((field for field in fields if not getattr(capabilities, field)), last)


def _none_of(field: str, names: Iterable[str] = ()) -> str:
    known = ", ".join(names or VOCABULARIES[field][1])
    return f"can run no scenario: of {field} it declares none of {known}"
