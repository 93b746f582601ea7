"""What users do with snapshots in the scenarios that aim at snapshot targets.

A few sequences of actions together have every action of the model; a command that stands in none of them is a sequence
of its own.  Each is played with every format and state backend, and with each kind of fault.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....faults.plan import COMMON_KINDS, AnyTrigger, AtPoint, AtRest, AtTime
from ...scenario.actions import ACTIONS, KIND_OF, NONE
from ...scenario.forecast import Forecast
from ...scenario.model import (
    COMMANDS,
    AnyCommand,
    Cancel,
    DeleteSnapshot,
    Fork,
    Resume,
    Savepoint,
    StopWithSavepoint,
)
from ...search.snapshot_targets import KEYED_NAMES, possible_snapshot_targets
from ...subject.abilities import OPERATORS
from ...subject.port import Capabilities
from ..choices import Choices
from ..workloads.draw_workloads import Recipe
from .target_groups import Life, Pair

_SEQUENCES: tuple[tuple[str, ...], ...] = (
    (),
    ("savepoint", "delete-snapshot", "stop", "resume named"),
    ("drain", "resume newest"),
    ("savepoint", "cancel", "resume oldest"),
    ("fork",),
)
_KNOWN = {NONE, *(action for actions in _SEQUENCES for action in actions)}
SEQUENCES: tuple[tuple[str, ...], ...] = (*_SEQUENCES, *((action,) for action in ACTIONS if action not in _KNOWN))

_ENDINGS = {"stop": "stopped", "drain": "drained", "cancel": "cancelled"}
_POINTS = ("record-applied", "snapshot-taken", "barrier-received", "checkpoint-triggered", "ack-sent", "record-read")
"""where the faults are triggered: every job with checkpoints reaches these points early"""
_AMID_WRITES = frozenset({"lose-unsynced", "fail-read"})
"""kinds that a point of records suits best: the one tries again and again, the other waits for a restart"""
KEPT = "kept"
LAST = "last"
"""the names of a savepoint, and of the one that a stop takes"""


def lives_of(capabilities: Capabilities) -> Iterator[tuple[Life, str, list[Pair]]]:
    """Each life that the subject's snapshots can have, the ending of its first job, and its faults with a point
    each."""
    possible = possible_snapshot_targets(capabilities)
    able = {(one.format, one.backend): None for one in possible}
    actions = {one.action for one in possible}
    kinds = [kind for kind in COMMON_KINDS if kind in {one.fault for one in possible}]
    for number, (form, backend) in enumerate(able):
        for place, sequence in enumerate(SEQUENCES):
            done = tuple(action for action in sequence if action in actions)
            if sequence and not done:
                continue
            ending = next((_ENDINGS[action] for action in done if action in _ENDINGS), "finished")
            points = [_POINTS[(number + place + at) % len(_POINTS)] for at in range(len(kinds))]
            pairs = [
                ("record-applied" if kind in _AMID_WRITES else point, kind)
                for point, kind in zip(points, kinds, strict=True)
            ]
            yield Life(format=form, backend=backend, actions=done), ending, pairs


def with_state_by_key(recipe: Recipe) -> Recipe:
    """The recipe with operators alone that keep state by key, as far as the subject has any."""
    known = OPERATORS if recipe.operators is None else recipe.operators
    kept = frozenset(name for name in known if name.partition(":")[0] in KEYED_NAMES)
    return msgspec.structs.replace(
        recipe, shapes=("chain",), operators=kept or recipe.operators, tallies_percent=0, least_operators=1
    )


def settings_of(choices: Choices, life: Life) -> dict[str, object]:
    """The engine's settings: several snapshots are retained, and state in files makes many of them."""
    settings: dict[str, object] = {
        "snapshot_format": life.format,
        "full_every": choices.pick((4, 2, 3, 8)),
        "retained_checkpoints": 3,
        "state_backend": life.backend,
        "failover": "full",
        "pooled_ids": False,
    }
    if life.backend != "heap":
        settings |= {"memtable_entries": choices.pick((2, 1, 3)), "compaction_files": 2, "compaction_us": 100}
    return settings


def commands_of(choices: Choices, target: Forecast, life: Life, end: AnyTrigger) -> tuple[AnyCommand, ...]:
    """The commands of a life; `end` triggers the one that ends the job."""
    return tuple(_command(choices, target, life, action, end) for action in life.actions)


def _command(choices: Choices, target: Forecast, life: Life, action: str, end: AnyTrigger) -> AnyCommand:
    amid = AtTime(at_us=target.start_us + target.span_us * choices.between(75, 95) // 100)
    match KIND_OF[action]:
        case "savepoint":
            return Savepoint(trigger=amid, name=KEPT, format=life.format)
        case "stop-with-savepoint":
            return StopWithSavepoint(trigger=end, drain=action == "drain", name=LAST, format=life.format)
        case "cancel":
            return Cancel(trigger=end)
        case "delete-snapshot":  # the job would restore a newer one by then
            return DeleteSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=choices.pick((2, 3))))
        case "resume":
            which = action.rpartition(" ")[2]
            taken = (LAST, KEPT, LAST) if "savepoint" in life.actions else (LAST,)
            named = choices.pick(taken if {"stop", "drain"} & set(life.actions) else (KEPT,))
            return Resume(trigger=AtTime(at_us=1_000), snapshot=named if which == "named" else which)
        case "fork":
            return Fork(trigger=AtRest(), snapshot=choices.pick(("each", "oldest")))
        case kind:
            command: AnyCommand = COMMANDS[kind](trigger=amid)  # type: ignore[assignment]
            return command
