"""What the nights have learnt about the transitions of the protocol's tables, and the batches that aim at them.

No fault can be aimed at a transition by its name.  But the nights have counted with which features of a scenario (its
template, alignment, faults and so on) it was taken.  Some batches aim at one transition: they leave out the features
with which it was seldom taken.  The fewer scenarios have taken a transition, the more batches aim at it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

AIMED = 0.5
"""the share of the batches that aim at a transition, once the nights have taken any"""
DOUBT = 50
"""With so many scenarios more, in which the transition was taken as often as on average, a feature is judged: one
scenario alone says little about it."""


class Learnt(msgspec.Struct, kw_only=True):
    """In how many scenarios each transition was taken, and with which features."""

    scenarios: dict[str, int] = {}
    """by feature: in how many scenarios it was"""
    run: int = 0
    """all these scenarios"""
    taken: dict[str, int] = {}
    """by transition; 0 for one that no scenario has taken"""
    taken_with: dict[str, dict[str, int]] = {}
    """by transition and feature"""


def aim_of(learnt: Learnt, chance: random.Random) -> str:
    """The transition at which a batch aims; empty if it aims at none.

    A transition is drawn with the weight 1 / (1 + scenarios that took it).  Nothing is known about one that no
    scenario has taken.
    """
    known = {name: count for name, count in sorted(learnt.taken.items()) if count}
    if not known or chance.random() >= AIMED:
        return ""
    return chance.choices(list(known), [1 / (1 + count) for count in known.values()])[0]


def left_out_for(learnt: Learnt, transition: str, kinds: Mapping[str, str]) -> dict[str, float]:
    """By feature: with which probability a batch that aims at the transition leaves it out.

    That is (1 - a) x (1 - b).  a: how often scenarios with the feature took the transition, relative to the best
    feature of its kind.  b: the share of the scenarios that took the transition which had the feature.  `kinds` are the
    kinds of the features; those that no scenario has had are left out of the result.
    """
    taken, with_it = learnt.taken[transition], learnt.taken_with.get(transition, {})
    on_average = taken / max(1, learnt.run)
    rates = {
        feature: (with_it.get(feature, 0) + DOUBT * on_average) / (learnt.scenarios[feature] + DOUBT)
        for feature in kinds
        if learnt.scenarios.get(feature)
    }
    best: dict[str, float] = {}
    for feature, rate in rates.items():
        best[kinds[feature]] = max(best.get(kinds[feature], 0.0), rate)
    return {
        feature: (1 - rate / best[kinds[feature]]) * (1 - min(1.0, with_it.get(feature, 0) / taken))
        for feature, rate in rates.items()
    }
