"""Input records, one packed integer each: split, key and value."""

from __future__ import annotations

from random import Random

import msgspec

from ....properties.model.workload import InputRecord
from ..choices import Choices

_TAG_BITS = 40
_LARGE = (1 << 32) + 1
"""odd and no multiple of 3, so that filters pass as many values as usual"""
_tags: list[int] = []


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """How the keys and values of a scenario's records are spread."""

    keys: int
    separate: bool
    """whether each key belongs to one split, as ordered operators need (class S)"""
    skewed: bool
    """whether one split and one key have more records than the others"""
    nulls: bool
    scale: int = 1


def tag(number: int) -> int:
    """The tag of a scenario's n-th record: distinct random integers, the same in every scenario."""
    if number >= len(_tags):
        _extend_tags(number + 1)
    return _tags[number]


def _extend_tags(size: int) -> None:
    source = Random("cutproof tags")
    distinct: dict[int, None] = {}
    while len(distinct) < max(size, 1024):
        distinct[source.getrandbits(_TAG_BITS)] = None
    _tags[:] = distinct


def draw_keys(choices: Choices, *, separate: bool, least_keys: int = 1) -> Keys:
    return Keys(
        keys=choices.between(least_keys, 9),
        separate=separate,
        skewed=choices.percent(25),
        nulls=choices.percent(25),
        scale=_LARGE if choices.percent(5) else 1,
    )


def draw_splits(choices: Choices, keys: Keys, *, splits: int, least: int, most: int) -> list[tuple[InputRecord, ...]]:
    """The records of `splits` splits, in order; some splits may be empty."""
    drawn: list[list[InputRecord]] = [[] for _ in range(splits)]
    for number, packed in enumerate(choices.packed(least, most)):
        split = 0 if keys.skewed and packed & 3 == 0 else (packed >> 2) % splits
        drawn[split].append((_key(packed, keys, split, splits), _value(packed, keys), tag(number)))
    return [tuple(records) for records in drawn]


def _key(packed: int, keys: Keys, split: int, splits: int) -> int | None:
    bits = packed >> 6 & 0xFF
    if keys.nulls and bits >= 248 and (split == 0 or not keys.separate):
        return None
    key = 0 if keys.skewed and bits & 1 == 0 else bits % keys.keys
    return key * splits + split if keys.separate else key


def _value(packed: int, keys: Keys) -> int | None:
    bits = packed >> 14
    if keys.nulls and bits & 0xF == 0xF:
        return None
    magnitude = (bits >> 4 & 0x3F) * keys.scale
    return -magnitude if bits >> 10 & 3 == 3 else magnitude
