"""The order in which a canonical snapshot has what means the same in any order, so that the same state has the same
bytes.

A backend gives its entries in an order of its own: a dictionary as keys came, a log-structured merge tree as the bytes
of keys sort.  In the same way timers come as they were set, and splits as they were assigned.  These orders have no
meaning, but for the rows that a join keeps of one key, which stay as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import msgspec

from .state import TaskState, Timer
from .views import OWN, Entry, Held

BY_NUMBER = ("positions", "maxima", "queued", "unsent", "replays", "spilled")
"""the fields that are maps by split or channel"""

_side_and_key = itemgetter(0, 1)


def ordered(state: TaskState) -> TaskState:
    """The state with its entries by side (of a window: by its start) and key, NULL first; what a user's function holds
    by key and name, its own state first; timers by time, key and start; maps by number or name."""
    changes: dict[str, Any] = {}
    if len(state.entries) > 1:
        entries, panes = state.entries, state.panes
        if panes and len(panes) == len(entries):
            paired = sorted(zip(entries, panes, strict=True), key=lambda one: _place(one[0]))
            changes["entries"], changes["panes"] = [entry for entry, _ in paired], [pane for _, pane in paired]
        else:
            changes["entries"] = _sorted(entries)
    if len(state.held) > 1:
        changes["held"] = sorted(state.held, key=_place_of_held)
    for name in BY_NUMBER:
        if len(by_number := getattr(state, name)) > 1:
            changes[name] = _by_key(by_number)
    if len(state.declared) > 1:
        changes["declared"] = _by_key(state.declared)
    if len(state.idle) > 1:
        changes["idle"] = sorted(state.idle)
    if len(state.timers) > 1:
        changes["timers"] = sorted(state.timers, key=_place_of_timer)
    if len(state.alarms) > 1:
        changes["alarms"] = sorted(state.alarms, key=_place_of_timer)
    return msgspec.structs.replace(state, **changes) if changes else state


def _by_key(some: Mapping[Any, Any]) -> dict[Any, Any]:
    return dict(sorted(some.items(), key=itemgetter(0)))


def _sorted(entries: list[Entry]) -> list[Entry]:
    try:
        return sorted(entries, key=_side_and_key)
    except TypeError:  # a key is NULL
        return sorted(entries, key=_place)


def _place(entry: Entry) -> tuple[int, bool, int]:
    side, key, _, _ = entry
    return side, key is not None, key or 0


def _place_of_timer(timer: Timer) -> tuple[int, bool, int, int]:
    time, key, start = timer
    return time, key is not None, key or 0, start


def _place_of_held(held: Held) -> tuple[bool, bool, int, str]:
    key, name, _ = held
    return name != OWN, key is not None, key or 0, name
