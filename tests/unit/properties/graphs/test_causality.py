"""The judge of general snapshots: each mutation of a true cut is seen, and gets the right difference."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.properties.graphs.causality import Event, GraphHistory, Part, Taken, check, in_absolute_time
from cutproof.properties.model.verdict import Holds, Unknown, Violated

EVENTS = (
    Event(process="P", kind="send", label="a", at_us=1, channel="to", message=0),
    Event(process="Q", kind="receive", label="a", at_us=2, channel="to", message=0),
    Event(process="P", kind="send", label="b", at_us=3, channel="to", message=2),
    Event(process="P", kind="send", label="c", at_us=4, channel="to", message=3),
    Event(process="Q", kind="local", label="d", at_us=5),
    Event(process="Q", kind="receive", label="b", at_us=6, channel="to", message=2),
    Event(process="Q", kind="receive", label="c", at_us=7, channel="to", message=3),
)
OF_P = Part(process="P", events=(0, 2, 3), channels={})
OF_Q = Part(process="Q", events=(1, 4), channels={"to": (2, 3)})
HISTORY = GraphHistory(
    processes=("P", "Q"),
    events=EVENTS,
    snapshots=(Taken(name="S", begun_us=4, parts=(OF_P, OF_Q), complete_us=9),),
)


def _with(p: dict[str, Any] | None = None, q: dict[str, Any] | None = None, **taken: Any) -> GraphHistory:
    parts = (msgspec.structs.replace(OF_P, **(p or {})), msgspec.structs.replace(OF_Q, **(q or {})))
    (one,) = HISTORY.snapshots
    altered = msgspec.structs.replace(one, **{"parts": parts, **taken})
    return msgspec.structs.replace(HISTORY, snapshots=(altered,))


def test_a_true_cut_holds_with_what_is_under_way() -> None:
    assert check(HISTORY) == Holds(exercised=1)


@pytest.mark.parametrize(
    ("history", "difference"),
    [
        (_with(complete_us=None), "snapshot without an end"),
        (_with(parts=(OF_P,)), "process missing"),
        (_with(p={"events": (0, 2, 99)}), "event from nowhere"),
        (_with(p={"events": (0, 2, 4)}), "event from nowhere"),
        (_with(p={"events": (0, 3)}), "event missing"),
        (_with(p={"events": (0, 3, 2)}), "events out of order"),
        (_with(p={"events": (0, 2, 3, 3)}), "events out of order"),
        (_with(q={"channels": {"to": (2, 99)}}), "message from nowhere"),
        (_with(q={"channels": {"to": (1,)}}), "message from nowhere"),
        (_with(p={"events": ()}), "received, not sent"),
        (_with(q={"channels": {"to": (2,)}}), "missing in a channel"),
        (_with(q={"channels": {}}), "missing in a channel"),
        (_with(q={"channels": {"to": (2, 3, 3)}}), "twice in a channel"),
        (_with(q={"channels": {"to": (3, 2)}}), "out of order in a channel"),
        (_with(q={"channels": {"to": (0, 2, 3)}}), "too much in a channel"),
        (msgspec.structs.replace(_with(q={"channels": {"to": (2,)}}), events=EVENTS[:6]), "lost from a channel"),
    ],
)
def test_a_mutation_is_seen(history: GraphHistory, difference: str) -> None:
    verdict = check(history)
    assert isinstance(verdict, Violated)
    assert verdict.difference == difference


def test_a_message_that_was_taken_twice_inside_is_seen() -> None:
    again = Event(process="Q", kind="receive", label="a", at_us=3, channel="to", message=0)
    changed = msgspec.structs.replace(HISTORY, events=(*EVENTS, again))
    found = check(_at_once(changed))
    assert isinstance(found, Violated)
    assert found.difference == "received twice"


def _at_once(history: GraphHistory) -> GraphHistory:
    """All of Q's events inside."""
    own = tuple(number for number, event in enumerate(history.events) if event.process == "Q")
    (one,) = history.snapshots
    parts = (OF_P, Part(process="Q", events=own, channels={"to": ()}))
    return msgspec.structs.replace(history, snapshots=(msgspec.structs.replace(one, parts=parts),))


@pytest.mark.parametrize("number", [0, len(EVENTS)])
def test_a_cut_before_or_after_everything_reports_nothing(number: int) -> None:
    inside = range(number)
    parts = tuple(
        Part(process=name, events=tuple(one for one in inside if EVENTS[one].process == name), channels={})
        for name in ("P", "Q")
    )
    (one,) = HISTORY.snapshots
    history = msgspec.structs.replace(HISTORY, snapshots=(msgspec.structs.replace(one, parts=parts),))
    assert isinstance(check(history), Unknown)


def test_no_snapshot_is_no_pass() -> None:
    assert isinstance(check(msgspec.structs.replace(HISTORY, snapshots=())), Unknown)


def test_absolute_time_asks_for_what_nobody_could_know() -> None:
    (one,) = HISTORY.snapshots
    assert list(in_absolute_time(HISTORY, one)) == []
    early = _with(p={"events": (0, 2)}, q={"channels": {"to": (2,)}})
    assert isinstance(check(early), Holds)
    assert list(in_absolute_time(early, early.snapshots[0])) == [(3, 4)]
