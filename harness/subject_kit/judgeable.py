"""Which invariants the witnesses of a history make judgeable, before any run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ...properties.invariants.seen_from_outside import ENOUGH, NEEDED
from ...properties.model.history import WITNESSES
from ...properties.model.verdict import INVARIANTS
from ...properties.semantics.classes import promised
from ..subject.abilities import is_promised

How = Literal["in full", "from outside", "no"]


class Judgeable(msgspec.Struct, frozen=True, kw_only=True):
    """How far an invariant can be judged.

    `lacks`: the witnesses without which it cannot be judged in full; if it cannot be judged at all, those without which
    it cannot be judged from outside, where this is possible.
    """

    invariant: str
    how: How
    lacks: tuple[str, ...] = ()


def judgeable(witnesses: Iterable[str]) -> list[Judgeable]:
    """All invariants, with how these witnesses judge them."""
    there = frozenset(witnesses)
    return [_one(invariant, there) for invariant in INVARIANTS]


def _one(invariant: str, there: frozenset[str]) -> Judgeable:
    lacks = _absent(NEEDED[invariant], there)
    outside = _absent(ENOUGH.get(invariant, NEEDED[invariant]), there)
    if lacks and not outside:
        return Judgeable(invariant=invariant, how="from outside", lacks=lacks)
    return Judgeable(invariant=invariant, how="no" if outside else "in full", lacks=outside)


def _absent(names: tuple[str, ...], there: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in WITNESSES if name in names and name not in there)


def judged_of(witnesses: Iterable[str], guarantees: Iterable[str], sinks: Iterable[str]) -> tuple[str, ...]:
    """The invariants that can be judged of a subject: promised by what it declares, and seen by its witnesses."""
    sinks = tuple(sinks)
    pairs = [(one, sink) for one in guarantees for sink in sinks if is_promised(one, sink)]
    some = frozenset[str]().union(*(promised(guarantee, sink) for guarantee, sink in pairs))
    return tuple(one.invariant for one in judgeable(witnesses) if one.how != "no" and one.invariant in some)
