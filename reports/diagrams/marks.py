"""The small signs on the lanes of the space-time diagram, each with its own shape."""

from __future__ import annotations

from collections.abc import Callable

from ...properties.model.history import Timed
from ..svg import element, label, path

Sign = Callable[[float, float, str], str]


def mark_of(entry: Timed, x: float, y: float) -> str:
    """The sign of an entry at its place; empty if the entry needs none, such as the ends of a message."""
    return mark_at(entry.what, x, y, "" if entry.checkpoint is None else str(entry.checkpoint))


def mark_at(what: str, x: float, y: float, number: str = "") -> str:
    """The sign of a kind of event, with the number of its checkpoint; empty if it needs none."""
    sign = SIGNS.get(what)
    return sign(x, y, number) if sign else ""


def _square(x: float, y: float, _number: str) -> str:
    return element("rect", x=x - 4.5, y=y - 4.5, width=9, height=9)


def _loaded(x: float, y: float, number: str) -> str:
    return element("rect", class_="hollow", x=x - 8, y=y - 8, width=16, height=16) + label(
        number, x, y + 4, class_="in-box"
    )


def _stored(x: float, y: float, _number: str) -> str:
    return element("rect", x=x - 3, y=y - 3, width=6, height=6)


def _cross(x: float, y: float, _number: str) -> str:
    return element("path", d=path([(x - 6, y - 6), (x + 6, y + 6)]) + path([(x - 6, y + 6), (x + 6, y - 6)]))


def _bar(x: float, y: float, _number: str) -> str:
    return element("path", d=path([(x, y - 8), (x, y + 8)]))


def _start(x: float, y: float, number: str) -> str:
    shape = path([(x - 4, y - 5), (x + 5, y), (x - 4, y + 5)]) + "Z"
    return element("path", d=shape) + label(number, x, y - 9, class_="number")


def _tick(x: float, y: float, number: str) -> str:
    ring = element("circle", class_="hollow", cx=x, cy=y, r=8)
    return (
        ring
        + element("path", d=path([(x - 4, y), (x - 1, y + 3.5), (x + 4, y - 3.5)]))
        + label(number, x, y - 12, class_="number")
    )


def _checkpoint_aborted(x: float, y: float, number: str) -> str:
    ring = element("circle", class_="hollow", cx=x, cy=y, r=8)
    return ring + element("path", d=path([(x - 5, y + 5), (x + 5, y - 5)])) + label(number, x, y - 12, class_="number")


def _diamond(x: float, y: float) -> str:
    return path([(x, y - 6.5), (x + 6.5, y), (x, y + 6.5), (x - 6.5, y)]) + "Z"


def _sealed(x: float, y: float, _number: str) -> str:
    return element("path", class_="hollow", d=_diamond(x, y))


def _asked(x: float, y: float, _number: str) -> str:
    return element("path", class_="hollow", d=_diamond(x, y)) + element("circle", cx=x, cy=y, r=2)


def _committed(x: float, y: float, _number: str) -> str:
    return element("path", class_="full", d=_diamond(x, y))


def _aborted(x: float, y: float, _number: str) -> str:
    return _sealed(x, y, "") + element("path", d=path([(x - 6, y + 6), (x + 6, y - 6)]))


def _bolt(x: float, y: float, _number: str) -> str:
    points = [(x + 2, y - 9), (x - 5, y + 2), (x, y + 2), (x - 2, y + 9), (x + 5, y - 2), (x, y - 2)]
    return element("path", d=path(points) + "Z")


def _flag(x: float, y: float, _number: str) -> str:
    return element("path", d=path([(x, y), (x, y - 12), (x + 8, y - 9), (x, y - 6)]))


def _thin_bar(x: float, y: float, _number: str) -> str:
    return element("path", d=path([(x, y - 5), (x, y + 5)]))


def _pause(x: float, y: float, _number: str) -> str:
    return element("path", d=path([(x - 3, y - 7), (x - 3, y + 7)]) + path([(x + 3, y - 7), (x + 3, y + 7)]))


def _play(x: float, y: float, _number: str) -> str:
    return element("path", class_="hollow", d=path([(x - 4, y - 6), (x + 6, y), (x - 4, y + 6)]) + "Z")


def _back(x: float, y: float, _number: str) -> str:
    """An arrow back in a box: what was stored is taken up."""
    arrow = path([(x + 4, y), (x - 4, y)]) + path([(x, y - 4), (x - 4, y), (x, y + 4)])
    return element("rect", class_="hollow", x=x - 7, y=y - 7, width=14, height=14) + element("path", d=arrow)


def _up(x: float, y: float, _number: str) -> str:
    return element("path", class_="full", d=path([(x, y - 7), (x + 6, y + 4), (x - 6, y + 4)]) + "Z")


def _down(x: float, y: float, _number: str) -> str:
    return element("path", class_="hollow", d=path([(x, y + 7), (x + 6, y - 4), (x - 6, y - 4)]) + "Z")


SIGNS: dict[str, Sign] = {
    "snapshot-taken": _square,
    "snapshot-persisted": _stored,
    "state-loaded": _loaded,
    "killed": _cross,
    "failed": _cross,
    "coordinator-down": _cross,
    "coordinator-up": _bar,
    "finished": _bar,
    "cancelled": _bar,
    "end-of-data-sent": _bar,
    "checkpoint-triggered": _start,
    "checkpoint-completed": _tick,
    "checkpoint-aborted": _checkpoint_aborted,
    "transaction-pre-committed": _sealed,
    "commit-requested": _asked,
    "commit-answered": _committed,
    "commit-seen": _committed,
    "transaction-aborted": _aborted,
    "fault-fired": _bolt,
    "command-issued": _flag,
    "job-ended": _bar,
    "savepoint-requested": _flag,
    "process-started": _bar,
    "process-ready": _thin_bar,
    "process-killed": _cross,
    "process-paused": _pause,
    "process-continued": _play,
    "process-ended": _bar,
    "work-stored": _square,
    "work-restored": _back,
    "aim-met": _thin_bar,
    "command-returned": _thin_bar,
    "command-refused": _cross,
    "rows-wrong": _up,
    "rows-vanished": _down,
    "counted": _thin_bar,
}
"""the sign of each kind of event; the report has a key for readers"""
