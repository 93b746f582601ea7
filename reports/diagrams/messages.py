"""Matches sends with receipts, and chooses the messages that a picture shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal

import msgspec

from ...properties.model.history import Timed
from .entries import COORDINATOR

MOST_RECORDS = 80
MOST_OTHERS = 90
"""the most messages that one readable picture can show"""

MessageKind = Literal["record", "barrier", "control", "write"]


class Pair(msgspec.Struct):
    """A send and its receipt, which is None if the message never arrived."""

    kind: MessageKind
    send: Timed
    receipt: Timed | None
    crossing: str = ""


def pairs_of(entries: list[Timed]) -> list[Pair]:
    """Match each send with its receipts: by channel and position, or by checkpoint and task."""
    receipts = _Receipts(entries)
    pairs: list[Pair] = []
    for entry in entries:
        match entry.what:
            case "record-sent":
                pairs.append(Pair("record", entry, receipts.of_element(entry)))
            case "barrier-sent":
                pairs.append(Pair("barrier", entry, receipts.of_element(entry)))
            case "end-of-data-sent" | "cancel-barrier-sent":
                taken = receipts.of_element(entry)
                pairs.extend([Pair("control", entry, taken)] if taken else [])
            case "ack-sent":
                pairs.append(Pair("control", entry, receipts.one("ack-received", entry.task, entry.checkpoint)))
            case "snapshot-taken":
                stored = receipts.one("snapshot-persisted", entry.task, entry.attempt, entry.checkpoint)
                pairs.append(Pair("write", entry, stored))
            case "checkpoint-triggered" | "checkpoint-completed" | "checkpoint-aborted":
                pairs.extend(Pair("control", entry, one) for one in receipts.of_announcement(entry))
    return pairs


class _Receipts:
    """Finds the receipts of sent messages."""

    def __init__(self, entries: list[Timed]) -> None:
        self._first: dict[tuple[object, ...], Timed] = {}
        self._announced: dict[tuple[str, int | None], list[Timed]] = {}
        # The tasks that receive from a channel.  A source does not; its snapshot answers the coordinator's trigger.
        fed = {entry.task for entry in entries if entry.what in ("record-applied", "barrier-received")}
        for entry in entries:
            for key in _receipt_keys(entry):
                self._first.setdefault(key, entry)
            if entry.what in ANNOUNCED_BY:
                self._announced.setdefault((ANNOUNCED_BY[entry.what], entry.checkpoint), []).append(entry)
            elif entry.what == "snapshot-taken" and fed and entry.task not in fed:
                self._announced.setdefault(("snapshot", entry.checkpoint), []).append(entry)

    def one(self, *key: object) -> Timed | None:
        return self._first.get(key)

    def of_element(self, sent: Timed) -> Timed | None:
        return self.one("element", sent.channel, sent.attempt, sent.position)

    def of_announcement(self, sent: Timed) -> list[Timed]:
        """The receipts of the coordinator's announcement to the tasks, later than the announcement."""
        receipts = self._announced.get((sent.what, sent.checkpoint), [])
        if not receipts and sent.what == "checkpoint-triggered":
            receipts = self._announced.get(("snapshot", sent.checkpoint), [])
        return [one for one in receipts if one.order > sent.order]


ANNOUNCED_BY = {
    "trigger-received": "checkpoint-triggered",
    "completion-notified": "checkpoint-completed",
    "abort-received": "checkpoint-aborted",
}
"""by event at which a task receives a message: the coordinator's event that announced it"""


def _receipt_keys(entry: Timed) -> Iterator[tuple[object, ...]]:
    match entry.what:
        case "record-applied" | "barrier-received" | "control-received":
            yield "element", entry.channel, entry.attempt, entry.position
        case "ack-received":
            yield "ack-received", entry.peer if entry.task == COORDINATOR else entry.task, entry.checkpoint
        case "snapshot-persisted":
            yield "snapshot-persisted", entry.task, entry.attempt, entry.checkpoint


def crossing(pair: Pair, cut: dict[tuple[str, int], int]) -> str:
    if pair.kind != "record" or pair.receipt is None:
        return ""
    sender = cut.get((pair.send.task, pair.send.attempt))
    receiver = cut.get((pair.receipt.task, pair.receipt.attempt))
    if sender is None or receiver is None:
        return ""
    if pair.send.order > sender and pair.receipt.order < receiver:
        return "sent after the cut, applied before it"
    if pair.send.order < sender and pair.receipt.order > receiver:
        return "sent before the cut, applied after it"
    return ""


def nearest(pairs: list[Pair], entries: list[Timed], cut: dict[tuple[str, int], int]) -> tuple[list[Pair], int]:
    """The messages nearest to the cut and to the faults, if there are too many to show."""
    focus = sorted(
        [*cut.values(), *(one.order for one in entries if one.what in ("fault-fired", "killed", "failed"))]
    ) or [0]

    def distance(pair: Pair) -> int:
        at = bisect_left(focus, pair.send.order)
        return 0 if pair.crossing else min(abs(pair.send.order - one) for one in focus[max(at - 1, 0) : at + 1])

    kept: set[int] = set()
    for most, wanted in ((MOST_RECORDS, True), (MOST_OTHERS, False)):
        some = [pair for pair in pairs if (pair.kind == "record") == wanted]
        kept.update(id(pair) for pair in sorted(some, key=distance)[:most])
    return [pair for pair in pairs if id(pair) in kept], len(pairs) - len(kept)
