"""The bounds as a JSON Schema says them: of one list each; what is counted over several is said in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import bounds as b
from .bounds import Bound

_LISTS: dict[tuple[str, str], Bound] = {
    ("Input", "splits"): b.SPLITS,
    ("Workload", "inputs"): b.OPERATORS,
    ("Workload", "nodes"): b.OPERATORS,
    ("Scenario", "faults"): b.FAULTS,
    ("Scenario", "commands"): b.COMMANDS,
    ("Scenario", "deviations"): b.PERTURBATIONS,
    ("System", "processes"): b.PROCESSES_OF_SYSTEM,
    ("System", "channels"): b.CHANNELS_OF_SYSTEM,
    ("System", "acts"): b.ACTS,
    ("System", "beginnings"): b.BEGINNINGS,
    ("System", "breaches"): b.BREACHES,
}
"""by definition and property, lists that have the bound as a schema can say it"""


def with_bounds(schema: dict[str, Any], bounds: Iterable[Bound]) -> dict[str, Any]:
    """The schema of a format, with what its bounds are."""
    defs: dict[str, Any] = schema["$defs"]
    for (definition, name), bound in _LISTS.items():
        if definition in defs:
            defs[definition]["properties"][name]["maxItems"] = bound.most
    if "Input" in defs:
        defs["Input"]["properties"]["splits"]["items"]["maxItems"] = b.RECORDS.most
    if "Topology" in defs:
        width = defs["Topology"]["properties"]["parallelism"]["additionalProperties"]
        width |= {"minimum": 1, "maximum": b.PARALLELISM_LIMIT}
    for one in defs.get("Engine", {}).get("properties", {}).values():
        if one.get("type") == "integer":
            one |= {"minimum": 0, "maximum": b.HOUR_US}
    limits = "; ".join(f"{bound.most:,} {bound.what}" for bound in bounds)
    return {**schema, "description": f"At most, in all: {limits}."}
