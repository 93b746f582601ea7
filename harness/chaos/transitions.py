"""The transitions of the protocol's tables that a night has taken, and with which features of its scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ...reports.nights.counts import CountTable, table_of
from ...reports.nights.model import SubjectNight
from ..generate.aims import Learnt
from ..generate.swarm import features_in
from ..search.outcome import ScenarioOutcome

ANY = ""
"""the row of a night's table that counts all scenarios with a feature"""


class TransitionTally:
    """What one night counts; nothing if the subject declares no transitions."""

    def __init__(self, declared: Collection[str], before: Learnt) -> None:
        """`before`: what the nights before have learnt."""
        self._declared = sorted(declared)
        self._before = before
        self._scenarios = Counter[str]()
        self._with = Counter[tuple[str, str]]()

    def add(self, outcome: ScenarioOutcome) -> None:
        if not self._declared:
            return
        taken = outcome.measured.transitions
        self._scenarios.update(taken.keys())
        for feature in set(features_in(outcome.scenario)):
            self._with.update((row, feature) for row in (ANY, *taken))

    @property
    def scenarios(self) -> dict[str, int]:
        """By declared transition: how many scenarios have taken it."""
        return {name: self._scenarios[name] for name in self._declared}

    @property
    def with_features(self) -> CountTable:
        """By transition and feature: in how many scenarios both were."""
        return table_of(self._with, sorted({feature for _, feature in self._with}))

    @property
    def taken_so_far(self) -> int:
        """How many of the transitions this night or an earlier one has taken."""
        return sum(bool(self._scenarios[name] or self._before.taken.get(name)) for name in self._declared)


def learn(learnt: Learnt, night: SubjectNight) -> None:
    """Add what a night has counted."""
    if not night.transitions:
        return
    learnt.run += night.scenarios.run
    for name, count in night.transitions.items():
        learnt.taken[name] = learnt.taken.get(name, 0) + count
    for row, feature, count in night.transitions_with.counts():
        found = learnt.scenarios if row == ANY else learnt.taken_with.setdefault(row, {})
        found[feature] = found.get(feature, 0) + count
