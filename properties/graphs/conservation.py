"""Every buffer that a source read is, in the end, processed by the sink once, or still in flight (UNA-2, UNA-8).

`processed` is what the sink's state records, without what a failure undid.  For each
source it must be 0, 1, 2 ... without a gap, a repeat or a change of order.  The buffers
in flight must be all that were read beyond it, each once.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated

WITNESSES = 5


class BytesHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What could be observed of a run on bytes; a buffer is (number of its source, its place there)."""

    sources: dict[int, str]
    """number of a source: its name"""
    processed: tuple[tuple[int, int], ...]
    in_flight: tuple[tuple[int, int], ...]
    read: dict[int, int]
    """source: how many buffers it had read"""


def check(history: BytesHistory) -> Verdict:
    """Whether no buffer was lost, repeated or reordered; unknown if the sink processed none."""
    if not history.processed:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="the sink processed nothing")
    for source, name in history.sources.items():
        done = [place for number, place in history.processed if number == source]
        rest = sorted(place for number, place in history.in_flight if number == source)
        found = _compare(name, [*done, *rest], history.read.get(source, 0))
        if found is not None:
            return found
    return Holds(exercised=len(history.processed))


def _compare(source: str, found: list[int], read: int) -> Violated | None:
    """Whether `found` is 0, 1, 2 ... up to what was read."""
    if found == list(range(read)):
        return None
    there, wanted = Counter(found), Counter(range(read))
    differences = (
        ("never read", [place for place in found if place >= read]),
        ("repeated buffer", sorted((there - wanted).elements())),
        ("lost buffer", sorted((wanted - there).elements())),
        ("order differs", [place for place, right in zip(found, range(read), strict=False) if place != right]),
    )
    return next(_violated(source, difference, places) for difference, places in differences if places)


def _violated(source: str, difference: str, places: list[int]) -> Violated:
    names = tuple(f"{source} {place}" for place in places[:WITNESSES])
    more = f" and {len(places) - WITNESSES:,} more" if len(places) > WITNESSES else ""
    return Violated(difference=difference, message=f"{difference}: {', '.join(names)}{more}", records=names)
