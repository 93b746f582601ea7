"""The page of the nights as data: what to do first, the failures' lives, a row a night, the trends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..charts.trend import Chart
from ..model import Value
from ..words import in_a_row, plural, took
from .lives import Life, Seen, failed_again, lives_of, seen_by_failure, was_fixed
from .model import Failure, Night
from .trends import SubjectTrends, defects_chart, trends_of
from .urgent import Urgent, urgent_of
from .words import GROUPS, Standing, exit_in_words, minute, night_took, sentence, subject_of


class Seens(Value, kw_only=True):
    """How many failures a night saw, by what changed about them."""

    new: int = 0
    again: int = 0
    """they fail, and were fixed the last time that they were replayed"""
    still_failing: int = 0
    flaky: int = 0
    fixed: int = 0
    """they held, and failed the last time that they were replayed"""
    not_reached: int = 0
    known: int = 0
    """they fail, and are known failures; they are counted nowhere else"""


class NightRow(Value, kw_only=True):
    """One night."""

    number: int
    """from 1 for the oldest"""
    night: Night
    began: str
    took: str
    scenarios: int
    violated: int
    per_second: str
    exit: str
    outcome: str
    """held, violated, short or failed"""
    seen: Seens
    found: tuple[str, ...]
    """the ids of the failures that are new, and not known"""
    notes: tuple[str, ...]
    """what went wrong or fell short, and what a reader has to know besides; each in one sentence"""


class NightsView(Value, kw_only=True):
    """The whole page."""

    bank: str
    version: str
    urgent: Urgent
    nights: tuple[NightRow, ...]
    """the newest first"""
    lives: tuple[Life, ...]
    """the most urgent first"""
    subjects: tuple[SubjectTrends, ...]
    defects: Chart | None

    @property
    def last(self) -> NightRow | None:
        return self.nights[0] if self.nights else None

    @property
    def groups(self) -> list[tuple[Standing, list[Life]]]:
        """The failures by standing, the most urgent group first; groups without a failure are left out."""
        found = [(standing, [life for life in self.lives if life.standing == standing]) for standing in GROUPS]
        return [(standing, lives) for standing, lives in found if lives]

    @property
    def known(self) -> list[Life]:
        """The known failures, the first to expire first; also those that have just expired."""
        listed = [life for life in self.lives if life.known]
        return sorted(listed, key=lambda life: (life.expires is None, str(life.expires), life.failure.id))


def view_of(nights: Sequence[Night], failures: Iterable[Failure], *, bank: str = "", version: str = "") -> NightsView:
    """The page's view; the nights come in the bank's order, the oldest first."""
    seen = seen_by_failure(nights)
    lives = lives_of(nights, failures, seen)
    counts = _counts(nights, seen)
    rows = [
        _row(number, night, counts[number], nights[number - 1] if number else None)
        for number, night in enumerate(nights)
    ]
    return NightsView(
        bank=bank,
        version=version,
        urgent=urgent_of(nights, lives),
        nights=tuple(reversed(rows)),
        lives=lives,
        subjects=trends_of(nights),
        defects=defects_chart(nights),
    )


def _counts(nights: Sequence[Night], seen: Mapping[str, Sequence[Seen]]) -> list[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in nights]
    for replays in seen.values():
        for at, (number, _) in enumerate(replays):
            kind = _kind(replays, at)
            if kind:
                counts[number][kind] = counts[number].get(kind, 0) + 1
    return counts


def _kind(replays: Sequence[Seen], at: int) -> str:
    """Under which field of `Seens` a replay counts; empty for one that was fixed before."""
    replay = replays[at][1]
    if replay.status == "fixed":
        return "fixed" if was_fixed(replays, at) else ""
    if replay.status == "not_reached":
        return "not_reached"
    if replay.known:
        return "known"
    return "again" if failed_again(replays, at) else replay.status


def _row(number: int, night: Night, counts: Mapping[str, int], before: Night | None) -> NightRow:
    spent = night_took(night)
    scenarios = sum(one.scenarios.run for one in night.subjects)
    rated = [one for one in night.subjects if one.scenarios_per_second]
    seconds = sum(one.scenarios.run / one.scenarios_per_second for one in rated)
    return NightRow(
        number=number + 1,
        night=night,
        began=minute(night.began),
        took="–" if spent is None else took(spent),
        scenarios=scenarios,
        violated=sum(one.scenarios.violated for one in night.subjects),
        per_second=f"{sum(one.scenarios.run for one in rated) / seconds:,.1f}" if seconds else "–",
        exit=exit_in_words(night.exit_code),
        outcome=_outcome(night),
        seen=Seens(**counts),
        found=tuple(one.failure for one in night.replays if one.status == "new" and not one.known),
        notes=_notes(night, before),
    )


def _outcome(night: Night) -> str:
    return {0: "held", 1: "violated", 3: "short", 130: "short"}.get(
        -1 if night.exit_code is None else night.exit_code, "failed"
    )


def _notes(night: Night, before: Night | None) -> tuple[str, ...]:
    notes = [sentence(words) for words in night.words]
    if before is not None and before.ended is None:
        notes.append(f"The night before it, of {minute(before.began)} UTC, did not run to its end.")
    if night.not_replayed:
        notes.append(f"There was no time to replay {plural(len(night.not_replayed), 'failure')}.")
    if left := night.unshrunk - night.unshrunk_elsewhere:
        notes.append(f"It left {plural(left, 'failing scenario')} for the next night to shrink.")
    if night.unshrunk_elsewhere:
        notes.append(sentence(left_elsewhere(night)))
    for one in night.subjects:
        notes += [
            sentence(f"{subject_of(one.subject, one.defect)}: {words}") for words in (*one.failures, *one.shortfalls)
        ]
        if one.could_not_run and not one.failures:
            notes.append(
                f"{subject_of(one.subject, one.defect)}: {plural(one.could_not_run, 'scenario')} could not be run."
            )
    return tuple(notes)


def left_elsewhere(night: Night) -> str:
    """What is said of failing scenarios that only a night with another subject or planted defect can shrink."""
    left = plural(night.unshrunk_elsewhere, "failing scenario")
    return f"{left} of earlier nights can be shrunk only by a night that tests what they failed on"


def lead(view: NightsView) -> str:
    """The last night in one sentence."""
    last = view.last
    if last is None or (last.night.ended is None and not last.night.subjects):
        return ""
    subjects = list(dict.fromkeys(subject_of(one.subject, one.defect) for one in last.night.subjects))
    on = "" if not subjects else f" on {in_a_row(subjects)}" if len(subjects) <= 3 else f" on {len(subjects)} subjects"
    lasted = "" if last.took == "–" else f" in {last.took}"
    ran = f"The night of {last.began} UTC ran {plural(last.scenarios, 'scenario')}{on}{lasted}"
    if last.violated and last.seen == Seens():
        return f"{ran}: {plural(last.violated, 'scenario')} failed, and no failure of the bank has changed."
    return f"{ran}: {seen_in_words(last.seen)}."


def seen_in_words(seen: Seens) -> str:
    """`1 failure is new, 2 still fail, 1 is fixed`."""
    parts = [
        (seen.new, "is new", "are new"),
        (seen.again, "is back after its fix", "are back after their fix"),
        (seen.still_failing, "still fails", "still fail"),
        (seen.flaky, "is flaky", "are flaky"),
        (seen.known, "is known", "are known"),
        (seen.fixed, "is fixed", "are fixed"),
        (seen.not_reached, "was not reached", "were not reached"),
    ]
    said = [(number, one if number == 1 else many) for number, one, many in parts if number]
    if not said:
        return "no failure was found, and none has changed"
    return ", ".join(f"{plural(number, 'failure') if not at else f'{number:,}'} {words}"
                     for at, (number, words) in enumerate(said))  # fmt: skip
