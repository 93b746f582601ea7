"""Mutations of the in-flight data of stored snapshots (see `tampering`); only unaligned checkpoints have any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ..quick_checker.case import Case
from .cuts_and_records import Mutation, in_store, middle, out_of_range

Passing = list[Any]
RECORD = 6
"""(key, value, tag, tag2, origin, event time): a shorter element is no record"""
VALUE, ORIGIN = 1, 4


def _channels(state: dict[str, Any]) -> Iterator[list[Passing]]:
    """The elements in flight of each channel, first `queued`, then `unsent`."""
    for what in ("queued", "unsent"):
        yield from state.get(what, {}).values()


def _records(passing: list[Passing]) -> list[int]:
    return [place for place, one in enumerate(passing) if len(one) == RECORD]


def _places(state: dict[str, Any]) -> list[tuple[list[Passing], int]]:
    return [(passing, place) for passing in _channels(state) for place in _records(passing)]


def _neighbours(state: dict[str, Any]) -> list[tuple[list[Passing], int, int]]:
    """Pairs of neighbouring records of one channel with different origins."""
    return [
        (passing, one, other)
        for passing in _channels(state)
        for one, other in zip(_records(passing), _records(passing)[1:], strict=False)
        if passing[one][ORIGIN] != passing[other][ORIGIN]
    ]


def _elsewhere(state: dict[str, Any]) -> list[tuple[list[Passing], int, list[Passing]]]:
    """Each record with each other channel of the same kind (`queued` or `unsent`)."""
    return [
        (passing, place, other)
        for what in ("queued", "unsent")
        for passing in state.get(what, {}).values()
        for place in _records(passing)
        for other in state[what].values()
        if other is not passing
    ]


def _drop(state: dict[str, Any]) -> None:
    chosen = middle(_places(state))
    if chosen is not None:
        del chosen[0][chosen[1]]


def _swap(state: dict[str, Any]) -> None:
    chosen = middle(_neighbours(state))
    if chosen is not None:
        passing, one, other = chosen
        passing[one], passing[other] = passing[other], passing[one]


def _move(state: dict[str, Any]) -> None:
    chosen = middle(_elsewhere(state))
    if chosen is not None:
        passing, place, other = chosen
        other.append(passing.pop(place))


def _change(state: dict[str, Any]) -> None:
    chosen = middle(_places(state))
    if chosen is not None:
        passing, place = chosen
        passing[place][VALUE] = out_of_range(passing[place][VALUE])


def _where(places: Callable[[dict[str, Any]], list[Any]]) -> Callable[[str], bool]:
    return lambda text: bool(text) and bool(places(msgspec.json.decode(text)))


def drop_in_flight(case: Case) -> Mutation | None:
    """A snapshot lacks a record that was in flight."""
    return in_store(case, _where(_places), _drop)


def swap_in_flight(case: Case) -> Mutation | None:
    """Two records in flight in one channel are in the other order."""
    return in_store(case, _where(_neighbours), _swap)


def move_in_flight(case: Case) -> Mutation | None:
    """A record in flight is in another channel."""
    return in_store(case, _where(_elsewhere), _move)


def change_in_flight(case: Case) -> Mutation | None:
    """A row in flight has another value; only if the replay determines that value."""
    if not case.is_determined(at_sink=False):
        return None
    return in_store(case, _where(_places), _change)
