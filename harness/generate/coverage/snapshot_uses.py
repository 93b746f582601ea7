"""What users do with snapshots in the scenarios that aim at snapshot targets.

A few sequences of actions together have every action of the model; a command that stands in none of them is a sequence
of its own.  Each is played with every format and state backend, and with each kind of fault.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....faults.plan import COMMON_KINDS, AnyTrigger, AtPoint, AtRest, AtTime
from ....properties.model.upgrade import Upgrade
from ....properties.model.workload import KEYED
from ...scenario.actions import ACTIONS, KIND_OF, NONE
from ...scenario.checks import CLAIM_MODES
from ...scenario.forecast import Forecast
from ...scenario.model import (
    COMMANDS,
    AnyCommand,
    Cancel,
    CopySnapshot,
    DeleteSnapshot,
    Fork,
    MoveSnapshot,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
)
from ...scenario.upgrades import CHANGEABLE, changeable, upgrade_problems
from ...search.coverage import MODES
from ...search.fault_cells import DEATHS, FAULT_CELLS, OF_COMMANDS, OF_DELETIONS, OF_MARKS, OF_SNAPSHOTS, kind_in
from ...search.snapshot_targets import KEYED_NAMES, RESCALING, SnapshotTarget, possible_snapshot_targets
from ...subject.abilities import OPERATORS, usable
from ...subject.port import Capabilities
from ..choices import Choices
from ..situations.rescaling import parallelism_of_a_fork, with_rescaling
from ..workloads.draw_workloads import Recipe
from .target_groups import Pair, SnapshotUse

_SEQUENCES: tuple[tuple[str, ...], ...] = (
    (),
    ("savepoint", "delete-snapshot", "stop", "resume named"),
    ("copy-snapshot", "drain", "resume newest"),
    ("savepoint", "cancel", "resume oldest"),
    ("stop", "resume claim"),
    ("cancel", "resume no-claim"),
    ("stop", "resume upgraded"),
    ("move-snapshot", "stop", "fork"),
    ("stop", "resume changed"),
    ("stop", "resume rescaled"),
)
_KNOWN = {NONE, *(action for actions in _SEQUENCES for action in actions)}
SEQUENCES: tuple[tuple[str, ...], ...] = (*_SEQUENCES, *((action,) for action in ACTIONS if action not in _KNOWN))

_ENDINGS = {"stop": "stopped", "drain": "drained", "cancel": "cancelled"}
_POINTS = ("record-applied", "snapshot-taken", "barrier-received", "checkpoint-triggered", "ack-sent", "record-read")
"""where the faults are triggered: every job with checkpoints reaches these points early"""
_POINT_OF = {"lose-unsynced": "snapshot-taken", "fail-read": "record-applied"}
"""kinds with a point of their own: behind the one a write begins, and the other waits for a restart"""
SECOND = AtPoint(point="checkpoint-completed", occurrence=2, side="after")
"""there are several snapshots by then, one of which the job would restore"""
LAST = "last"
"""the name of the savepoint that a stop takes, and from which a job is resumed by name"""


def snapshot_uses(capabilities: Capabilities) -> Iterator[tuple[SnapshotUse, str, str, list[Pair]]]:
    """Each use that the subject's snapshots can have, the alignment mode and the ending of its first job, and its
    faults with a point each.  Faults on files come with every alignment mode: other templates seldom draw them."""
    modes = _with_checkpoints(usable(capabilities))
    possible = possible_snapshot_targets(capabilities)
    able = {(one.format, one.backend): None for one in possible}
    actions = {one.action for one in possible}
    cells = [cell for cell in FAULT_CELLS if kind_in(cell) in COMMON_KINDS and cell in {one.fault for one in possible}]
    own = [cell for cell in cells if cell not in OF_COMMANDS | OF_SNAPSHOTS]
    files = [cell for cell in cells if cell in OF_SNAPSHOTS]
    for number, (form, backend) in enumerate(able):
        for place, sequence in enumerate(SEQUENCES):
            done = tuple(action for action in sequence if action in actions)
            if sequence and not done:
                continue
            ending = next((_ENDINGS[action] for action in done if action in _ENDINGS), "finished")
            pairs = [
                (_POINT_OF.get(cell, _POINTS[(number + place + at) % len(_POINTS)]), cell)
                for at, cell in enumerate(own)
            ]
            mode = modes[(number + place) % len(modes)]
            use = SnapshotUse(format=form, backend=backend, actions=done)
            yield use, mode, ending, pairs
            at_files = [(_POINTS[(number + place + at) % len(_POINTS)], cell) for at, cell in enumerate(files)]
            for every in modes if files else ():
                yield use, every, ending, at_files
    for one in dict.fromkeys((target.format, target.backend, target.action) for target in possible):
        form, backend, action = one
        struck = [target.fault for target in possible if target.fault in OF_COMMANDS and _row(target) == one]
        pairs = [(DEATHS[cell].point if cell in DEATHS else "checkpoint-completed", cell) for cell in struck]
        for mode in modes if struck else ():
            yield SnapshotUse(format=form, backend=backend, actions=(action, action)), mode, "finished", pairs


def _row(target: SnapshotTarget) -> tuple[str, str, str]:
    return target.format, target.backend, target.action


def _with_checkpoints(capabilities: Capabilities) -> list[str]:
    """The alignment modes of the subject that take checkpoints."""
    return [
        mode
        for mode, (guarantee, alignment) in MODES.items()
        if guarantee in capabilities.guarantees
        and guarantee != "at-most-once"
        and (guarantee != "exactly-once" or alignment in capabilities.alignments)
    ]


def with_state_by_key(recipe: Recipe, use: SnapshotUse) -> Recipe:
    """The recipe with operators alone that keep state by key, as far as the subject has any; if the use removes one,
    such as can be removed."""
    known = OPERATORS if recipe.operators is None else recipe.operators
    names = REMOVABLE if changes_operators(use) else KEYED_NAMES
    kept = frozenset(name for name in known if name.partition(":")[0] in names and not name.endswith(":signed"))
    if changes_operators(use):
        recipe = msgspec.structs.replace(recipe, clocked_percent=0, batches_percent=0, retractions_percent=0)
    return msgspec.structs.replace(
        recipe, shapes=("chain",), operators=kept or recipe.operators, tallies_percent=0, least_operators=1
    )


REMOVABLE: frozenset[str] = frozenset(str(kind.__struct_config__.tag) for kind in CHANGEABLE if issubclass(kind, KEYED))
"""the operators that keep state by key and can be removed from a job"""


def changes_operators(use: SnapshotUse) -> bool:
    return "resume changed" in use.actions


def without_one(scenario: Scenario) -> Scenario:
    """The scenario, with the last operator removed by the resume from the savepoint, if it can be."""
    removable = changeable(scenario)[-1:]
    if not removable:
        return scenario
    upgrade = Upgrade(removed=tuple(removable), allow_non_restored_state=True)
    commands = tuple(
        msgspec.structs.replace(one, upgrade=upgrade) if isinstance(one, Resume) and one.snapshot == LAST else one
        for one in scenario.commands
    )
    changed = msgspec.structs.replace(scenario, commands=commands)
    return scenario if list(upgrade_problems(changed)) else changed


TRIES = 8
"""how often another parallelism is drawn until the job's output can be judged as strictly as before"""


def rescales(use: SnapshotUse) -> bool:
    return any(action in RESCALING for action in use.actions)


def with_other_parallelism(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, with another parallelism of the jobs that are resumed or forked, if one is found."""
    for _ in range(TRIES):
        scenario = with_rescaling(choices, scenario, percent=100)
        commands = tuple(
            msgspec.structs.replace(one, parallelism=parallelism_of_a_fork(choices, scenario))
            if isinstance(one, Fork) and not one.parallelism
            else one
            for one in scenario.commands
        )
        scenario = msgspec.structs.replace(scenario, commands=commands)
        if all(one.parallelism for one in commands if isinstance(one, Resume | Fork)):
            break
    return scenario


def settings_of(choices: Choices, use: SnapshotUse) -> dict[str, object]:
    """The engine's settings: several snapshots are retained, and state in files makes many of them."""
    settings: dict[str, object] = {
        "snapshot_format": use.format,
        "full_every": choices.pick((4, 2, 3, 8)),
        "retained_checkpoints": 3,
        "state_backend": use.backend,
        "failover": "full",
        "pooled_ids": False,
    }
    if use.backend != "heap":
        settings |= {"memtable_entries": choices.pick((2, 1, 3)), "compaction_files": 2, "compaction_us": 100}
    return settings


def commands_of(
    choices: Choices, target: Forecast, use: SnapshotUse, end: AnyTrigger, cells: frozenset[str] = frozenset()
) -> tuple[AnyCommand, ...]:
    """The commands of a use; `end` triggers the one that ends the job.  A command that a fault of the `cells` strikes
    is repeated.  It marks the snapshot that the job would restore, and deletes one that the job would not."""
    if len(use.actions) > len(set(use.actions)):
        known = ("newest",) if cells & OF_MARKS else ("oldest",) if cells & OF_DELETIONS else ("oldest", "newest")
        return tuple(
            _REPEATED[action](
                trigger=AtPoint(point="checkpoint-completed", occurrence=occurrence, side="after"),
                snapshot=choices.pick(known),
            )
            for action, occurrence in zip(use.actions, (2, 3), strict=True)
        )
    return tuple(_command(choices, target, use, action, end) for action in use.actions)


_REPEATED: dict[str, type[CopySnapshot | MoveSnapshot | DeleteSnapshot]] = {
    "copy-snapshot": CopySnapshot,
    "move-snapshot": MoveSnapshot,
    "delete-snapshot": DeleteSnapshot,
}
"""by action that a fault strikes: its command"""


def _command(choices: Choices, target: Forecast, use: SnapshotUse, action: str, end: AnyTrigger) -> AnyCommand:
    amid = AtTime(at_us=target.start_us + target.span_us * choices.between(75, 95) // 100)
    match KIND_OF[action]:
        case "savepoint":  # most faults have struck by then: one that strikes meanwhile aborts it
            late = AtTime(at_us=target.start_us + target.span_us * choices.between(80, 130) // 100 + 2_000)
            return Savepoint(trigger=late, format=use.format)
        case "stop-with-savepoint":
            return StopWithSavepoint(trigger=end, drain=action == "drain", name=LAST, format=use.format)
        case "cancel":
            return Cancel(trigger=end)
        case "delete-snapshot":  # the job would restore a newer one by then
            return DeleteSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=choices.pick((2, 3))))
        case "copy-snapshot":
            return CopySnapshot(trigger=SECOND)
        case "move-snapshot":
            return MoveSnapshot(trigger=SECOND)
        case "resume":
            which, again = action.rpartition(" ")[2], AtTime(at_us=1_000)
            if which == "upgraded":
                name = choices.pick(target.layout.operators or target.layout.tasks).rpartition("-")[0]
                uid = f"{name}-as-2"
                return Resume(trigger=again, snapshot=LAST, upgrade=Upgrade(renamed={name: uid}, moves={name: uid}))
            if which == "changed":  # `without_one` says how
                return Resume(trigger=again, snapshot=LAST)
            if which in CLAIM_MODES:
                return Resume(trigger=again, claim_mode=which)
            if which == "rescaled":  # `with_other_parallelism` says to what
                return Resume(trigger=again)
            return Resume(trigger=again, snapshot=LAST if which == "named" else which)
        case "fork":
            return Fork(trigger=AtRest(), snapshot=choices.pick(("each", "oldest")))
        case kind:
            command: AnyCommand = COMMANDS[kind](trigger=amid)  # type: ignore[assignment]
            return command
