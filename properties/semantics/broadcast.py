"""Broadcast edges and broadcast state (OPS-1, OPS-2): every subtask takes, and keeps, every row of a broadcast edge.

Two things follow for a judge.  Every subtask is expected to take each row of such an
edge once.  And in a consistent cut all subtasks hold the same rules, since the greater
of two rules for one key applies, whichever came first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ..model.history import StoredState, TaskRun
from ..model.workload import Rules, Workload
from .semantics import Entry

RULES = "rules"


def with_rules(workload: Workload) -> tuple[str, ...]:
    """The nodes that keep broadcast state."""
    return tuple(node.name for node in workload.nodes if isinstance(node.operator, Rules))


def broadcasters(workload: Workload) -> dict[str, str]:
    """By node that keeps broadcast state, the operator that sends the rules."""
    return {node.name: node.broadcast_input for node in workload.nodes if node.broadcast_input is not None}


def rules_in(state: StoredState) -> list[Entry]:
    """The rules that a subtask's snapshot holds, as entries."""
    decoded = [msgspec.json.decode(text) for name, text in state.broadcast if name == RULES]
    return [(0, key, value, tag) for key, value, tag in decoded]


def odd_one_out(copies: Mapping[str, StoredState]) -> tuple[str, str] | None:
    """Two tasks whose copies differ; None when all copies are equal."""
    first: tuple[str, Counter[tuple[str, str]]] | None = None
    for task, state in copies.items():
        held = Counter(state.broadcast)
        if first is None:
            first = (task, held)
        elif held != first[1]:
            return first[0], task
    return None


def taken_by_all(
    runs: Iterable[tuple[TaskRun, list[int]]], wide: Mapping[int, int]
) -> tuple[Counter[int], Counter[int]]:
    """(least, most): how often a subtask took each row of a broadcast edge, summed over the attempts.

    In each attempt all subtasks should take a row equally often.  `least` counts the subtask that took it least often,
    `most` the one that took it most often.  `runs` are runs with the origins that each took through the edge; `wide`
    has the number of subtasks by job.
    """
    counts: dict[tuple[int, int], list[int]] = {}
    widths: dict[int, int] = {}
    for run, origins in runs:
        widths[run.attempt] = wide[run.job]
        for origin, count in Counter(origins).items():
            counts.setdefault((run.attempt, origin), []).append(count)
    least: Counter[int] = Counter()
    most: Counter[int] = Counter()
    for (attempt, origin), each in counts.items():
        least[origin] += min(each) if len(each) == widths[attempt] else 0
        most[origin] += max(each)
    return least, most
