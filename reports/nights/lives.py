"""The life of each failure: what each night saw of it, and how it stands after the last one."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence

from ..model import Value
from ..words import plural
from .model import Failure, Night, Replay
from .words import STANDINGS, Standing, When, days_of, sentence

Seen = tuple[int, Replay]
"""the number of a night, from 0 for the oldest, and what it saw"""

SAW = {"new": "x", "still_failing": "x", "flaky": "~", "fixed": "o", "not_reached": "?"}
"""by status: its letter in a life"""
UNSEEN, BEFORE = ".", " "


class Life(Value, kw_only=True):
    """One failure over all nights."""

    failure: Failure
    standing: Standing
    nights: str
    """a letter a night, the oldest first: as in `SAW`, UNSEEN if it was not replayed, BEFORE it was found"""
    words: str
    """its history, in sentences"""
    known: str = ""
    """for a known failure, also one that has just expired: why it is expected"""
    expires: datetime.date | None = None
    """its last day"""
    replayed_last: bool = False
    """whether the last night replayed it, or found it"""
    violated: int = 0
    runs: int = 0
    """the runs of the last replay, and how many of them were violated"""

    @property
    def is_open(self) -> bool:
        """It fails, or nobody can say that it does not, and it is no known failure."""
        return self.standing not in ("known", "fixed")

    @property
    def rate(self) -> str:
        return f"{self.violated:,} of {plural(self.runs, 'run')}" if self.runs else ""


def seen_by_failure(nights: Sequence[Night]) -> dict[str, list[Seen]]:
    """By the id of a failure: its replays, the oldest first."""
    found: dict[str, list[Seen]] = {}
    for number, night in enumerate(nights):
        for replay in night.replays:
            found.setdefault(replay.failure, []).append((number, replay))
    return found


def lives_of(
    nights: Sequence[Night], failures: Iterable[Failure], seen: Mapping[str, Sequence[Seen]]
) -> tuple[Life, ...]:
    """Every failure's life, the most urgent first; of the nights, the oldest is first."""
    numbers = {night.id: number for number, night in enumerate(nights)}
    when = days_of(nights)
    lives = [_life(one, nights, numbers.get(one.night), seen.get(one.id, ()), when) for one in failures]
    return tuple(sorted(lives, key=_urgency))


_ORDER = {standing: place for place, standing in enumerate(STANDINGS)}


def _urgency(life: Life) -> tuple[int, bool, bool, int, str]:
    """Those that are shrunk and small are understood first."""
    failure = life.failure
    return (_ORDER[life.standing], not life.replayed_last, not failure.shrunk, failure.size.total, failure.id)


def failed_again(seen: Sequence[Seen], at: int) -> bool:
    """Whether the replay at a place of the list failed, and the last one before it that could tell had said fixed."""
    if seen[at][1].status not in ("still_failing", "flaky"):
        return False
    before = next((one.status for _, one in reversed(seen[:at]) if one.status != "not_reached"), "")
    return before == "fixed"


def was_fixed(seen: Sequence[Seen], at: int) -> bool:
    """Whether the replay at a place of the list was the first that says fixed."""
    if seen[at][1].status != "fixed":
        return False
    before = next((one.status for _, one in reversed(seen[:at]) if one.status != "not_reached"), "")
    return before != "fixed"


def fixed_before(nights: Sequence[Night]) -> frozenset[str]:
    """The failures that the last night found fixed, as the one before it had that could tell."""
    seen = seen_by_failure(nights)
    return frozenset(
        name
        for name, replays in seen.items()
        if replays[-1][0] == len(nights) - 1
        and replays[-1][1].status == "fixed"
        and not was_fixed(replays, len(replays) - 1)
    )


def _life(failure: Failure, nights: Sequence[Night], found: int | None, seen: Sequence[Seen], when: When) -> Life:
    last = seen[-1] if seen else None
    last_number = len(nights) - 1
    replayed_last = (last[0] if last else found) == last_number
    standing = _standing(nights, found, seen)
    listed = seen[-2] if standing == "expired" else last
    known = listed[1] if listed and listed[1].known else None
    return Life(
        failure=failure,
        standing=standing,
        nights=_letters(len(nights), found, seen),
        words=_words(failure, nights, standing, seen, replayed_last, when),
        known=known.known if known else "",
        expires=known.expires if known else None,
        replayed_last=replayed_last,
        violated=last[1].violated if last else 0,
        runs=last[1].runs if last else 0,
    )


def _standing(nights: Sequence[Night], found: int | None, seen: Sequence[Seen]) -> Standing:
    if not seen:
        return "new" if found is not None and found == len(nights) - 1 else "not_replayed"
    number, last = seen[-1]
    if last.status in ("fixed", "not_reached"):
        return last.status
    if last.known:
        return "known"
    is_last = number == len(nights) - 1
    if last.status == "new":
        return "new" if is_last else "still_failing"
    if is_last and failed_again(seen, len(seen) - 1):
        return "again"
    if is_last and len(seen) > 1 and _has_expired(seen[-2][1], nights[number]):
        return "expired"
    return last.status


def _has_expired(earlier: Replay, night: Night) -> bool:
    return bool(earlier.known) and earlier.expires is not None and earlier.expires < night.began.date()


def _letters(nights: int, found: int | None, seen: Sequence[Seen]) -> str:
    first = min((number for number in (found, seen[0][0] if seen else None) if number is not None), default=nights)
    letters = [BEFORE] * first + [UNSEEN] * (nights - first)
    if found is not None:
        letters[found] = SAW["new"]
    for number, replay in seen:
        letters[number] = SAW[replay.status]
    return "".join(letters)


def _words(
    failure: Failure,
    nights: Sequence[Night],
    standing: Standing,
    seen: Sequence[Seen],
    replayed_last: bool,
    when: When,
) -> str:
    replays = [(number, one) for number, one in seen if one.status != "new"]
    showed = [number for number, one in replays if one.status in ("still_failing", "flaky")]
    named = next((nights[number] for number, one in seen if one.status == "new"), None)
    later = f", shrunk on {when(named.began)}" if named is not None and named.id != failure.night else ""
    parts = [f"Found on {when(failure.found)}{later}."]
    if replays:
        last = f", the last time on {when(nights[showed[-1]].began)}" if showed else ""
        parts.append(f"{plural(len(replays), 'night')} replayed it, and it {_failed(len(showed), len(replays))}{last}.")
    parts += _now(nights, standing, seen, when)
    if seen:
        parts += _said(seen[-1][1], standing)
    if seen and not replayed_last:
        parts.append("The last night did not replay it.")
    return " ".join(parts)


def _failed(nights: int, of: int) -> str:
    if not nights:
        return "did not fail"
    if of == 1:
        return "failed"
    return f"failed in {'all' if nights == of else f'{nights:,}'} of them"


def _now(nights: Sequence[Night], standing: Standing, seen: Sequence[Seen], when: When) -> list[str]:
    """What the last replay means, where the standing does not say it."""
    if not seen:
        return []
    last = seen[-1][1]
    if standing in ("fixed", "again"):
        first = next(number for at, (number, _) in reversed(list(enumerate(seen))) if was_fixed(seen, at))
        listed = " It is still listed as a known failure." if standing == "fixed" and last.known else ""
        since = "Fixed since" if standing == "fixed" else "It was fixed on"
        return [f"{since} {when(nights[first].began)}.{listed}"]
    if standing == "flaky":
        return [f"It failed in {last.violated:,} of the last {plural(last.runs, 'run')}."] if last.runs else []
    if standing == "expired" and (expires := seen[-2][1].expires):
        return [f"It was a known failure until {expires.isoformat()}: {seen[-2][1].known}"]
    if standing == "known":
        until = f" until {last.expires.isoformat()}" if last.expires else ""
        return [f"Known{until}: {last.known}"]
    return []


def _said(last: Replay, standing: Standing) -> list[str]:
    """What the last replay says itself, as a sentence; the part that the page says with a date is left out."""
    words = last.words.partition("; ")[2] if standing == "again" and last.again else last.words
    return [sentence(words)] if words else []
