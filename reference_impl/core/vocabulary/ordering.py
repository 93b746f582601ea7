"""The order in which a canonical snapshot has what an operator keeps by key, so that the same state has the same bytes.

A backend gives its entries in an order of its own: a dictionary as keys came, a log-structured merge tree as the bytes
of keys sort.  The order has no meaning, but for the rows that a join keeps of one key, which stay as they came.
"""

from __future__ import annotations

from operator import itemgetter

import msgspec

from .state import TaskState
from .views import OWN, Entry, Held

_side_and_key = itemgetter(0, 1)


def ordered(state: TaskState) -> TaskState:
    """The state with its entries by side (of a window: by its start) and key, NULL first; what a user's function holds
    by key and name, its own state first."""
    if not state.held and len(state.entries) < 2:
        return state
    entries, panes = state.entries, state.panes
    if panes and len(panes) == len(entries):
        paired = sorted(zip(entries, panes, strict=True), key=lambda one: _place(one[0]))
        entries, panes = [entry for entry, _ in paired], [pane for _, pane in paired]
    else:
        entries = _sorted(entries)
    return msgspec.structs.replace(state, entries=entries, panes=panes, held=sorted(state.held, key=_place_of_held))


def _sorted(entries: list[Entry]) -> list[Entry]:
    try:
        return sorted(entries, key=_side_and_key)
    except TypeError:  # a key is NULL
        return sorted(entries, key=_place)


def _place(entry: Entry) -> tuple[int, bool, int]:
    side, key, _, _ = entry
    return side, key is not None, key or 0


def _place_of_held(held: Held) -> tuple[bool, bool, int, str]:
    key, name, _ = held
    return name != OWN, key is not None, key or 0, name
