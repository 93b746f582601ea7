"""What a scenario of the template `cells` is after: a cell of the coverage, and what it needs to be hit."""

from __future__ import annotations

from functools import cache

import msgspec

from ...faults.plan import COMMON_KINDS
from ..coverage import ALIGNMENTS, possible_cells
from ..subject import Capabilities
from .choices import Choices
from .stage import ALL_GUARANTEES, ALL_SINKS, Frame

Pair = tuple[str, str]
"""a point, and the kind of fault that it sets off"""

ENDS = frozenset({"end-of-data-sent", "end-of-partition-sent"})
RECOVERY = frozenset({"task-deployed", "state-loaded", "task-running"})
MESSAGES = frozenset({"lose-message", "late-message", "repeat-message"})
UPSETTING = frozenset(
    {
        "kill-task",
        "kill-node",
        "kill-coordinator",
        "pause-task",
        "cut-channel",
        "tear-write",
        "lose-unsynced",
        "fail-read",
        "raise-in-operator",
    }
)
"""kinds after which the job mostly starts another attempt, or fails when it has no more"""
_ALL = Capabilities(
    faults=frozenset(COMMON_KINDS),
    commands=frozenset({"savepoint", "stop-with-savepoint", "cancel", "resume"}),
    guarantees=ALL_GUARANTEES,
    sinks=ALL_SINKS,
)


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What one scenario is after, and what it needs for that."""

    guarantee: str
    sink: str
    ending: str
    pairs: tuple[Pair, ...]
    needs: frozenset[str]

    @property
    def apart(self) -> bool:
        """One input ends long before the others."""
        return "apart" in self.needs

    @property
    def whole(self) -> bool:
        """All input ends, and what ends the job otherwise comes amid that: without checkpoints no part ends before."""
        return "whole" in self.needs


@cache
def _table(capabilities: Capabilities) -> dict[tuple[str, str], tuple[Pair, ...]]:
    """By guarantee and ending: the points and kinds that are possible there."""
    guarantees = {alignment: guarantee for guarantee, alignment in ALIGNMENTS.items()}
    table: dict[tuple[str, str], list[Pair]] = {}
    for cell in possible_cells(capabilities):
        if cell.fault in COMMON_KINDS:
            table.setdefault((guarantees[cell.alignment], cell.ending), []).append((cell.point, cell.fault))
    return {key: tuple(pairs) for key, pairs in table.items()}


def draw_aim(choices: Choices, frame: Frame) -> Aim:
    """An aim within what the frame allows; without a pair where nothing can be hit."""
    table = _table(frame.capabilities or _ALL)
    keys = [key for key in table if key[0] != "at-most-once" or "plain" in frame.sinks for _ in range(_weight(*key))]
    guarantee, ending = choices.pick(keys or [(min(frame.guarantees), "finished")])
    sink = _draw_sink(choices, frame, guarantee)
    pairs = [pair for pair in table.get((guarantee, ending), ()) if _fits(pair, sink, guarantee)]
    if not pairs:
        return Aim(guarantee=guarantee, sink=sink, ending=ending, pairs=(), needs=frozenset())
    rare = [pair for pair in pairs for _ in range(_rarity(pair, guarantee, ending))]
    first = choices.pick(rare if rare and choices.percent(RARE_PERCENT) else pairs)
    needs = _needs(first, guarantee)
    calm = UPSETTING if ending == "failed" or "slow writes" in needs else frozenset()
    others = [pair for pair in pairs if pair != first and pair[1] not in calm]
    beside = [pair for pair in others if _needs(pair, guarantee) <= needs]
    alike = [pair for pair in beside if _needs(pair, guarantee)]
    chosen = [first]
    for _ in range(frame.max_faults - 1 - len(needs & COSTING) - (ending == "failed")):
        other = choices.pick(alike if alike and choices.percent(50) else beside or [first])
        if other not in chosen:
            chosen.append(other)
    return Aim(guarantee=guarantee, sink=sink, ending=ending, pairs=tuple(chosen), needs=needs)


def _weight(guarantee: str, ending: str) -> int:
    """At-most-once has few cells; a job that is to fail can be hit hard but once, so its cells need more scenarios."""
    return (2 if guarantee == "at-most-once" else 5) * (2 if ending == "failed" else 1)


RARE_PERCENT = 70
"""how often the cell is one that cannot be hit beside any other"""
ROWS_PERCENT = 6
"""how often the sink writes rows at once, to reach the one point that no transactional sink has"""


def _draw_sink(choices: Choices, frame: Frame, guarantee: str) -> str:
    at_once = "idempotent" if guarantee == "exactly-once" else "plain"
    wanted = at_once if guarantee == "at-most-once" or choices.percent(ROWS_PERCENT) else "transactional"
    return wanted if wanted in frame.sinks else min(frame.sinks)


def _fits(pair: Pair, sink: str, guarantee: str) -> bool:
    """Where rows are written at once that point alone is aimed at, but in at-most-once, which has few others."""
    point, fault = pair
    if sink == "transactional":
        return point != "row-written"
    return fault != "fail-commit" and (point == "row-written" or guarantee == "at-most-once")


def _rarity(pair: Pair, guarantee: str, ending: str) -> int:
    """How often a pair stands among those that are not hit beside others: the more it needs, the oftener."""
    needs = len(_needs(pair, guarantee))
    alone = pair[1] == "raise-in-operator" or (ending == "failed" and pair[1] in UPSETTING)
    return 4 if needs > 1 or pair[1] == "lose-unsynced" else max(needs, int(alone))


COSTING = frozenset({"abort", "restart before", "restart after"})
"""needs that take a fault of their own"""


def _needs(pair: Pair, guarantee: str) -> frozenset[str]:
    point, fault = pair
    needs = set()
    whole = guarantee == "at-most-once" and point == "end-of-partition-sent"
    if whole:
        needs.add("whole")
    elif point in ENDS:
        needs.add("apart")
    if point == "checkpoint-aborted":
        needs.add("abort")
    if point == "savepoint-requested":
        needs.add("savepoint")
    if point == "state-loaded" or (point in RECOVERY and fault == "lose-unsynced"):
        needs.add("restart before")
    if fault == "fail-read" or (fault in MESSAGES and guarantee == "at-most-once" and not whole):
        needs.add("restart after")
    if fault == "lose-unsynced":
        needs.add("slow writes")
    return frozenset(needs)
