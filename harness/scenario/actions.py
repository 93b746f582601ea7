"""What a user did, by name: the commands, where it matters in the ways in which they can be given.

A new command of the model is an action of its own, without a line here.  A command whose settings make it another
action for the coverage stands in `_WAYS`.
"""

from __future__ import annotations

from ...properties.model.workload import Topology
from ...properties.reconstruct.layouts import rescaled
from .checks import ANY_SNAPSHOT
from .model import COMMANDS, Command, Fork, Resume, StopWithSavepoint, kind_of
from .upgrades import upgrade_of

NONE = "none"
"""no command was carried out"""

_WAYS: dict[str, tuple[str, ...]] = {
    "stop-with-savepoint": ("stop", "drain"),
    "resume": (
        "resume newest",
        "resume oldest",
        "resume named",
        "resume claim",
        "resume no-claim",
        "resume upgraded",
        "resume changed",
        "resume rescaled",
    ),
    "fork": ("fork", "fork rescaled"),
}
"""by kind of command, its actions"""

ACTIONS: tuple[str, ...] = (NONE, *(action for kind in COMMANDS for action in _WAYS.get(kind, (kind,))))
"""every action, in the order of the model's commands"""

KIND_OF: dict[str, str] = {action: kind for kind in COMMANDS for action in _WAYS.get(kind, (kind,))}
"""by action, the kind of its command; `NONE` has no command"""


def action_of(command: Command, before: Topology | None = None) -> str:
    """The action of a command.  `before`: the topology of the job that a resume or a fork goes on from, if it is known:
    a parallelism that the job had already is no other one."""
    match command:
        case StopWithSavepoint(drain=drain):
            return "drain" if drain else "stop"
        case Resume() if (upgrade := upgrade_of(command)) is not None:  # whichever snapshot it is, and whoever's
            return "resume changed" if upgrade.added or upgrade.removed else "resume upgraded"
        case Resume() | Fork() if _rescales(command, before):  # whichever snapshot it is, and whoever's
            return f"{kind_of(command)} rescaled"
        case Resume(snapshot=snapshot, claim_mode="by-kind"):
            return f"resume {snapshot if snapshot in ANY_SNAPSHOT else 'named'}"
        case Resume(claim_mode=claim_mode):  # whichever snapshot it is
            return f"resume {claim_mode}"
        case _:
            return kind_of(command)


def _rescales(command: Resume | Fork, before: Topology | None) -> bool:
    return bool(command.parallelism) if before is None else rescaled(before, command.parallelism) != before
