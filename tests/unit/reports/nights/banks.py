"""Banks written by hand, for the tests of the page of the nights."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from typing import Any

from cutproof.reports.model import ScenarioCounts, Size
from cutproof.reports.nights.model import Failure, Growth, Night, Origin, Replay, Status, SubjectNight

FIRST = datetime.datetime(2026, 2, 3, 2, 17, tzinfo=datetime.UTC)
LETTERS: dict[str, Status] = {
    "n": "new",
    "x": "still_failing",
    "~": "flaky",
    "o": "fixed",
    "?": "not_reached",
}


def began(number: int) -> datetime.datetime:
    return FIRST + datetime.timedelta(days=number)


def night_id(number: int) -> str:
    return f"{began(number):%Y%m%dT%H%M%S}-n{number:04}"


def failure(name: str, *, found: int = 0, **fields: Any) -> Failure:
    """A failure that the night of a number found."""
    known: dict[str, Any] = {
        "subject": "simulated",
        "invariant": "exactly-once",
        "difference": "row repeated",
        "point": "commit-requested",
        "shape": "source, window, sink; unaligned",
        "story": f"A commit was sent again after a lost answer, and row 7 of {name} shows twice.",
        "replay": f"cutproof replay failures/{name}/scenario.json",
        "size": Size(tasks=2, records=3, faults=1),
        "shrunk": True,
    }
    return Failure(
        id=name,
        found=began(found),
        night=night_id(found),
        version="0.1.0",
        origin=Origin(seed=7, index=1_234),
        scenario=f"failures/{name}/scenario.json",
        **(known | fields),
    )


def subject_night(number: int, *, subject: str = "simulated", run: int = 1_000, **fields: Any) -> SubjectNight:
    """What the night of a number did with a subject, with plausible figures."""
    chance = random.Random(f"{subject!a} {number}")
    targets = min(300, 40 + number * 9)
    known: dict[str, Any] = {
        "seconds": run / 48,
        "seed": 1_000 + number,
        "scenarios": ScenarioCounts(run=run, held=run - 3, unknown=3),
        "scenarios_per_second": 48 + chance.gauss(0, 3),
        "hits": {f"target {at}": 1 + at % 5 for at in range(targets) if chance.random() < 0.9},
        "possible": 340,
        "transitions": {f"aligning: signal {at}": run // (at + 1) if at < 30 + number else 0 for at in range(49)},
        "growth": [Growth(scenarios=run * at // 20, hit=max(1, targets - 180 // (at + number * 20 + 1)),
                          taken=min(45, 20 + at // 2 + number)) for at in range(1, 21)],
        "checkpoints_ms": (chance.uniform(4, 5), chance.uniform(18, 25), chance.uniform(90, 400)),
        "recoveries_ms": (chance.uniform(20, 30), chance.uniform(60, 90), chance.uniform(300, 900)),
        "first_failure_s": chance.uniform(2, 600) if number % 4 == 0 else None,
    }  # fmt: skip
    return SubjectNight(subject=subject, **(known | fields))


def night(number: int, replays: Sequence[Replay] = (), **fields: Any) -> Night:
    """The night of a number; it ran for two hours and held, unless the fields say otherwise."""
    failing = any(one.status in ("new", "still_failing", "flaky") and not one.known for one in replays)
    known: dict[str, Any] = {
        "ended": began(number) + datetime.timedelta(hours=2),
        "version": "0.1.0",
        "machine": "ci-1, 2 cores",
        "budget_s": 7_200.0,
        "exit_code": 1 if failing else 0,
        "subjects": [subject_night(number)],
    }
    return Night(id=night_id(number), began=began(number), replays=list(replays), **(known | fields))


def replay(name: str, letter: str, **fields: Any) -> Replay:
    """A replay with a status by its letter: `n`ew, `x` still failing, `~` flaky, `o` fixed, `?` not reached."""
    runs = 10 if letter == "~" else 1
    violated = {"~": 3, "x": 1, "n": 1}.get(letter, 0)
    return Replay(failure=name, status=LETTERS[letter], runs=runs, violated=violated, **fields)


def told(lives: dict[str, str], **last: Any) -> tuple[list[Night], list[Failure]]:
    """Nights and failures from a letter a night for each failure; a space is no replay, `k` still failing and known."""
    many = max(map(len, lives.values()), default=1)
    known = {"known": "ENGINE-123: a known bug", "expires": began(many + 9).date()}
    nights = []
    for number in range(many):
        replays = [
            replay(name, "x", **known) if letters[number] == "k" else replay(name, letters[number])
            for name, letters in lives.items()
            if number < len(letters) and letters[number] != " "
        ]
        nights.append(night(number, replays, **(last if number == many - 1 else {})))
    return nights, [failure(name, found=max(letters.find("n"), 0)) for name, letters in lives.items()]


SUBJECTS = ("simulated", "processes", "kafka-copy", "flink-count", "spark-foreachbatch-append")
INVARIANTS = ("exactly-once", "no-data-loss", "consistent-cut", "restored-state", "progress")


def large(nights: int, failures: int) -> tuple[list[Night], list[Failure]]:
    """A bank of many nights and failures, with every standing; the same numbers give the same bank."""
    chance = random.Random(f"{nights} {failures}")
    found, lives = [], []
    for at in range(failures):
        begin = min(int(nights * at / failures * 1.05), nights - 1)
        name = f"{chance.getrandbits(48):012x}"
        subject = SUBJECTS[at % len(SUBJECTS)]
        found.append(failure(name, found=begin, subject=subject, invariant=INVARIANTS[at % 3 + at % 2],
                             difference=("row repeated", "row lost", "position differs from reads")[at % 3],
                             defect="A01" if at % 11 == 0 else "", shrunk=at % 7 != 0))  # fmt: skip
        lives.append(_drawn_life(chance, nights - begin))
    all_nights = []
    for number in range(nights):
        replays = []
        for one, letters in zip(found, lives, strict=True):
            at = number - (nights - len(letters))
            if at < 0 or letters[at] == " ":
                continue
            known = {
                "known": f"ENGINE-{one.id[:3]}: the answer is lost",
                "expires": began(nights + len(letters) % 40).date(),
            }
            replays.append(replay(one.id, letters[at].replace("k", "x"), **(known if letters[at] == "k" else {})))
        cut_off = number % 37 == 36
        all_nights.append(
            night(
                number,
                replays,
                subjects=[subject_night(number, subject=subject) for subject in SUBJECTS],
                defects_caught=(min(108, 90 + number // 10), 108),
                words=["The clock went back by 2 hours since the night before."] if number % 53 == 5 else [],
                **({"ended": None, "exit_code": None} if cut_off else {}),
            )
        )
    return all_nights, found


def _drawn_life(chance: random.Random, nights: int) -> str:
    """A failure's letters from the night that found it."""
    letters = "n"
    while len(letters) < nights:
        letters += chance.choice("xxx~oook? ") * chance.randint(1, 40)
    return letters[:nights]
