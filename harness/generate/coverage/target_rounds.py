"""The coverage targets of the n-th scenario of the template `cells`.

Random drawing hits the last few of thousands of targets only after very many scenarios.
So each scenario of the template is given a group of targets that it can hit together.  A
round goes through all possible targets once, and the next round shuffles the groups.  The
possible targets follow from the subject's capabilities (`coverage.possible_targets`).  No
result of a run is used, so that a scenario is a function of its seed and number.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from ....faults.plan import COMMON_KINDS
from ...scenario.checks import ALIGNMENTS, SNAPSHOT_FORMATS, STATE_BACKENDS
from ...scenario.model import COMMANDS
from ...search.coverage import MODES, possible_targets
from ...subject.abilities import OPERATORS
from ...subject.port import Capabilities
from ..stage import ALL_GUARANTEES, ALL_SINKS, Frame
from .snapshot_uses import changes_operators, snapshot_uses
from .target_groups import Pair, SnapshotUse, TargetGroup, is_upsetting, needs_of, room_in, sink_for

T = TypeVar("T")

_ALL = Capabilities(
    faults=frozenset(COMMON_KINDS),
    commands=frozenset(COMMANDS),
    guarantees=ALL_GUARANTEES,
    alignments=frozenset(ALIGNMENTS),
    sinks=ALL_SINKS,
    state_backends=frozenset(STATE_BACKENDS),
    snapshot_formats=frozenset(SNAPSHOT_FORMATS),
    operators=frozenset(OPERATORS),
    resumes_older=True,
    claims_snapshots=True,
    rescales=True,
    upgrades=True,
    changes_operators=True,
    file_faults=True,
)


def number_of_group(frame: Frame, seed: int, index: int, share: int, of: int) -> int | None:
    """The number of the group of scenario `index`; None if it has no targets.  `share` of `of` scenarios have some.

    Each seed begins with a round of its own, so that short runs of several seeds aim at different targets.
    """
    group_number = index * share // of
    if (index + 1) * share // of == group_number:
        return None
    first_round = int.from_bytes(hashlib.sha256(f"turns {seed}".encode()).digest()[:4])
    return first_round * groups_in_a_round(frame) + group_number


def group_of(frame: Frame, group_number: int) -> TargetGroup:
    """The group with a number; its `pairs` are empty if no target is possible."""
    capabilities, most = frame.capabilities or _ALL, max(1, frame.max_faults)
    number_of_groups = groups_in_a_round(frame)
    return _round(capabilities, frame.sinks, most, group_number // number_of_groups)[group_number % number_of_groups]


def aims_at_snapshots(frame: Frame) -> bool:
    """Whether the scenario of the frame aims at snapshot targets."""
    return frame.group_number is not None and group_of(frame, frame.group_number).use is not None


def groups_in_a_round(frame: Frame) -> int:
    """The number of groups in a round, in which each possible target is aimed at once."""
    return len(_round(frame.capabilities or _ALL, frame.sinks, max(1, frame.max_faults), 0))


@lru_cache(maxsize=4)
def _round(capabilities: Capabilities, sinks: frozenset[str], most: int, number: int) -> tuple[TargetGroup, ...]:
    """The groups of one round; every round has as many."""
    groups = [
        TargetGroup(alignment=alignment, sink=sink, ending=ending, pairs=pairs, needs=needs, use=use)
        for (alignment, ending, sink, needs, use), alike in _groups(capabilities, sinks).items()
        for pairs in _shared_out(_mixed(alike, number), room_in(most, ending, needs), ending, needs)
    ]
    nothing = TargetGroup(alignment=_least(capabilities), sink=min(sinks), ending="finished", pairs=(), needs=_NONE)
    return tuple(_mixed(groups, number)) or (nothing,)


_NONE: frozenset[str] = frozenset()
_Group = tuple[str, str, str, frozenset[str], SnapshotUse | None]
"""the alignment, ending, sink, needs and use of a group"""


def _least(capabilities: Capabilities) -> str:
    least = min(capabilities.guarantees)
    return next(mode for mode, (guarantee, _) in MODES.items() if guarantee == least)


@lru_cache(maxsize=4)
def _groups(capabilities: Capabilities, sinks: frozenset[str]) -> dict[_Group, list[Pair]]:
    """The possible targets by the job and the abilities that they need."""
    groups: dict[_Group, list[Pair]] = {}
    key: _Group
    for target in possible_targets(capabilities):
        guarantee, pair = MODES[target.alignment][0], (target.point, target.fault)
        if target.fault in COMMON_KINDS and (guarantee != "at-most-once" or "plain" in sinks):
            key = (target.alignment, target.ending, sink_for(pair, guarantee, sinks), needs_of(pair, guarantee), None)
            groups.setdefault(key, []).append(pair)
    for use, alignment, ending, pairs in snapshot_uses(capabilities):
        guarantee = MODES[alignment][0]
        known = sinks - {"idempotent"} if changes_operators(use) else sinks
        for pair in pairs:
            key = (alignment, ending, sink_for(pair, guarantee, known), needs_of(pair, guarantee), use)
            groups.setdefault(key, []).append(pair)
    return groups


def _mixed(things: Iterable[T], number: int) -> list[T]:
    return sorted(things, key=lambda one: hashlib.sha256(f"{number} {_name(one)}".encode()).digest())


def _name(thing: object) -> str:
    """A name that is the same in every process: it does not depend on the order of a set."""
    if not isinstance(thing, TargetGroup):
        return str(thing)
    use = thing.use and f"{thing.use.format} {thing.use.backend} {thing.use.actions}"
    return f"{thing.alignment} {thing.ending} {thing.pairs} {use or ''}".rstrip()


TRIES = 3
"""how often a scenario tries to hit an unsynced write, because no write may be in progress at that moment"""


def _shared_out(pairs: list[Pair], room: int, ending: str, needs: frozenset[str]) -> Iterator[tuple[Pair, ...]]:
    """Split targets into groups, each as large as one scenario allows.

    Faults that cause a restart form groups of their own, because a restart may undo the event for which another fault
    waits.  Such a group has one fault at a point, and only one fault if the first ends the job.  A target that is never
    sure to be hit is alone in its scenario, which tries it several times.  So is a fault that strikes what a command
    does: the command is given again.
    """
    if "again" in needs:
        yield from ((pair,) for pair in pairs)
        return
    if "files" in needs:  # what waits for a deletion still waits behind a restart
        yield from (tuple(pairs[first : first + room]) for first in range(0, len(pairs), room))
        return
    if "slow writes" in needs:
        yield from ((pair,) * min(room, TRIES) for pair in pairs)
        return
    blows = [pair for pair in pairs if is_upsetting(pair)]
    mild = [pair for pair in pairs if not is_upsetting(pair)]
    at_one_point = max(Counter(point for point, _ in blows).values(), default=0)
    yield from _round_robin(blows, len(blows) if ending == "failed" else max(at_one_point, -(-len(blows) // room)))
    yield from _round_robin(mild, -(-len(mild) // room))


def _round_robin(pairs: list[Pair], among: int) -> Iterator[tuple[Pair, ...]]:
    """Distribute targets round-robin, point by point: targets at one point go to different groups."""
    points = {point: None for point, _ in pairs}
    cards = [pair for point in points for pair in pairs if pair[0] == point]
    yield from (tuple(cards[first::among]) for first in range(among))
