"""Swarm testing: scenarios in batches, each of which leaves a drawn subset of features out.

A scenario in which everything can happen seldom has much of one thing.  So each batch is drawn without some kinds of
faults, commands, sinks, alignments, operators and templates, and has more of the others (Groce, Zhang, Eide, Chen and
Regehr, "Swarm Testing", ISSTA 2012).  The scenarios of a batch that aim at coverage targets aim mostly at those that
were hit least, and at points where failures were found.  Some batches aim at a transition of the protocol's tables,
and leave out what does not lead to it (`aims`).

Which features a batch leaves out, and where its scenarios aim, follows from the seed, the number of the batch and
the `Swarm` alone: no result of the same run is used.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from ...faults.plan import kind_of as kind_of_fault
from ..runtime.exit_codes import UsageError
from ..scenario.model import Scenario
from ..scenario.model import kind_of as kind_of_command
from ..search.coverage import CoverageTarget, in_words
from ..subject.abilities import VOCABULARIES, demand
from ..subject.needs import demand_given
from ..subject.not_tried import ABILITIES
from ..subject.port import Capabilities
from .aims import Learnt, aim_of, left_out_for
from .coverage.target_groups import snapshot_targets_of
from .coverage.target_rounds import group_of, groups_in_a_round
from .coverage.target_scenarios import TARGETS
from .strategies import SUBJECT, Drawing, scenario_of

FIELDS: dict[str, int] = {
    "faults": 3,
    "commands": 0,
    "sinks": 1,
    "committing": 1,
    "alignments": 1,
    "guarantees": 1,
    "spilling": 1,
    "operators": 3,
    "state_backends": 1,
}
"""by field of the capabilities from which features are left out: how many stay"""
LEAST_TEMPLATES = 5
LEAST_TEMPLATES_AIMED = 3
"""the same in a batch that aims at a transition"""
RATES = (0.0, 0.25, 0.5)
"""the shares of the features that a batch leaves out: each is drawn as often"""
RATE_OF_FAILURES = 0.5
"""by how much the rate of a feature is multiplied if a failure of the bank needs it"""
WEIGHT_OF_FAILURES = 4.0
"""by how much the weight of a target is multiplied if a failure of the bank needs its point"""
LEAST_WEIGHT = 0.001
"""of a group of targets, relative to a target that was never hit: none is given up"""


class Swarm(msgspec.Struct, frozen=True, kw_only=True):
    """What the batches of a night are drawn from, besides the seed."""

    batch: int = 100
    """scenarios in a batch"""
    hits: dict[str, int] = {}
    """by coverage target in words: how often the nights before hit it"""
    learnt: Learnt = msgspec.field(default_factory=Learnt)
    """what the nights before have counted of the transitions of the protocol's tables"""
    points: tuple[str, ...] = ()
    """protocol points at which failures were found"""
    features: tuple[str, ...] = ()
    """features that found failures need: left out less often"""


class Batches:
    """Scenario i of a seed, drawn in batches; a function of (drawing, swarm, seed, i) alone."""

    def __init__(self, drawing: Drawing, swarm: Swarm) -> None:
        """The drawing has the subject's capabilities."""
        self._drawing = drawing
        self._swarm = swarm
        self._batch = lru_cache(maxsize=4)(self._made)

    @property
    def size(self) -> int:
        """Scenarios in a batch."""
        return self._swarm.batch

    def __call__(self, seed: int, index: int) -> Scenario:
        draw, _ = self._batch(seed, index // self._swarm.batch)
        return draw.aimed(seed, index, self.group_number(seed, index))

    def group_number(self, seed: int, index: int) -> int | None:
        """The group of coverage targets at which a scenario aims, drawn by weight."""
        draw, weights = self._batch(seed, index // self._swarm.batch)
        own = draw.group_number(seed, index)
        if own is None or not weights:
            return own
        number = index // self._swarm.batch
        drawn = random.Random(f"group {seed} {index}").choices(range(len(weights)), weights)[0]
        return number * len(weights) + drawn

    def left_out(self, seed: int, number: int) -> tuple[str, ...]:
        """The features that a batch leaves out."""
        chance = random.Random(f"batch {seed} {number}")
        rate = chance.choice(RATES)
        transition = self.aim(seed, number)
        kinds = _kinds_of(self._drawing)
        rates = left_out_for(self._swarm.learnt, transition, kinds) if transition else {}
        out = []
        for one in kinds:
            less = RATE_OF_FAILURES if one in self._swarm.features else 1.0
            if one == _template(TARGETS) and not transition:  # those are weighted by themselves
                continue
            if chance.random() < rates.get(one, rate * less):
                out.append(one)
        chance.shuffle(out)
        return tuple(_possible(self._drawing, out, LEAST_TEMPLATES_AIMED if transition else LEAST_TEMPLATES))

    def aim(self, seed: int, number: int) -> str:
        """The transition at which a batch aims; empty if it aims at none."""
        return aim_of(self._swarm.learnt, random.Random(f"aim {seed} {number}"))

    def _made(self, seed: int, number: int) -> tuple[scenario_of, list[float]]:
        drawing = without(self._drawing, self.left_out(seed, number))
        draw = scenario_of(drawing)
        if TARGETS not in drawing.templates or draw.frame.real_time:
            return draw, []
        groups = groups_in_a_round(draw.frame)
        return draw, [self._weight(draw, number * groups + place) for place in range(groups)]

    def _weight(self, draw: scenario_of, group_number: int) -> float:
        """How often a group is aimed at, relative to the others: as often as the target in it that was hit least."""
        group = group_of(draw.frame, group_number)
        weights = [LEAST_WEIGHT]
        for point, fault in group.pairs if group.use is None else ():
            target = CoverageTarget(alignment=group.alignment, ending=group.ending, point=point, fault=fault)
            near = WEIGHT_OF_FAILURES if point in self._swarm.points else 1.0
            weights.append(near / (1 + self._swarm.hits.get(in_words(target), 0)))
        for aimed in snapshot_targets_of(group):
            weights.append(1 / (1 + self._swarm.hits.get(in_words(aimed), 0)))
        return max(weights)


def drawn_again(drawing: Drawing, left_out: tuple[str, ...], group: int | None, seed: int, index: int) -> Scenario:
    """The scenario that a batch drew, from what its record says of it."""
    return scenario_of(without(drawing, left_out)).aimed(seed, index, group)


def features_of(drawing: Drawing) -> Iterator[str]:
    """The features that any batch can leave out, in words."""
    yield from (one for one in _kinds_of(drawing) if one != _template(TARGETS))


def _kinds_of(drawing: Drawing) -> dict[str, str]:
    """The kind of each feature that some batch can leave out."""
    capabilities = _capabilities(drawing)
    fields = [field for field in FIELDS if field != "operators" or drawing.workload is None]
    return {
        **{_word(field, name): field for field in fields for name in sorted(getattr(capabilities, field))},
        **{words: name for name, words in ABILITIES.items() if getattr(capabilities, name)},
        **{_template(name): "templates" for name in sorted(set(drawing.templates))},
    }


def features_in(scenario: Scenario) -> Iterator[str]:
    """The features that a scenario uses."""
    yield from (_word("faults", kind_of_fault(fault)) for fault in scenario.faults)
    yield from (_word("commands", kind_of_command(command)) for command in scenario.commands)
    yield _word("sinks", scenario.engine.sink)
    yield _word("guarantees", scenario.engine.guarantee)
    if scenario.engine.guarantee == "exactly-once":  # the only one in which barriers are aligned, or overtake
        yield _word("alignments", scenario.engine.alignment)
    yield _word("state_backends", scenario.engine.state_backend)
    yield _template(scenario.name)


def without(drawing: Drawing, left_out: tuple[str, ...]) -> Drawing:
    """The drawing without these features; names that it does not have are ignored."""
    out = frozenset(left_out)
    capabilities = _capabilities(drawing)
    changes: dict[str, object] = {
        field: frozenset(name for name in getattr(capabilities, field) if _word(field, name) not in out)
        for field in FIELDS
    }
    changes |= {name: getattr(capabilities, name) and words not in out for name, words in ABILITIES.items()}
    return msgspec.structs.replace(
        drawing,
        capabilities=msgspec.structs.replace(capabilities, **changes),
        templates=tuple(name for name in drawing.templates if _template(name) not in out),
    )


def _possible(drawing: Drawing, out: list[str], least_templates: int) -> list[str]:
    """Those of the features that can be left out together: something of each kind stays, and a scenario is possible."""
    kept: list[str] = []
    for one in out:
        rest = without(drawing, (*kept, one))
        if _is_enough(drawing, rest, least_templates):
            kept.append(one)
    return kept


def _is_enough(drawing: Drawing, rest: Drawing, least_templates: int) -> bool:
    before, after = _capabilities(drawing), _capabilities(rest)
    for field, least in FIELDS.items():
        if len(getattr(after, field)) < min(least, len(getattr(before, field))):
            return False
    if len(set(rest.templates)) < min(least_templates, len(set(drawing.templates))):
        return False
    try:
        demand(after, SUBJECT)
        if rest.workload is not None:
            demand_given(rest.workload, rest.topology, after, SUBJECT)
    except UsageError:
        return False
    return True


def _capabilities(drawing: Drawing) -> Capabilities:
    if drawing.capabilities is None:
        raise ValueError("a swarm leaves out what a subject can do, so it needs its capabilities")
    return drawing.capabilities


def _word(field: str, name: str) -> str:
    return f"{VOCABULARIES[field][0]} {name}"


def _template(name: str) -> str:
    return f"template {name}"
