"""What to do first this morning: one sentence, and the command that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..model import Value
from ..words import plural, took
from .lives import Life
from .model import Night
from .words import GROUPS, Standing, exit_in_words, minute, name_of, sentence

Outcome = Literal["held", "violated", "short", "failed"]


class Urgent(Value, kw_only=True):
    """The most urgent thing to do."""

    kind: str
    """a standing of a failure; unseen, if the last night did not replay it; or what the last night was: none, cut-off,
    interrupted, unshrunk, failed, damaged, short, empty or held"""
    outcome: Outcome
    """the mark of the headline"""
    headline: str
    """in one sentence"""
    more: str = ""
    """why, or what next, in a few sentences"""
    life: Life | None = None
    """the failure to look at"""
    replay: str = ""
    """the command that runs it again, in the folder of the bank"""


def urgent_of(nights: Sequence[Night], lives: Sequence[Life]) -> Urgent:
    """The most urgent thing, after the last night; of the nights the oldest is first, of the lives the most urgent."""
    if not nights:
        return Urgent(
            kind="none", outcome="short", headline="No night has run yet.", more="The first night writes its row here."
        )
    last = nights[-1]
    failing = [life for life in lives if life.standing in _FAILING]
    seen = [life for life in failing if life.replayed_last]
    if seen and seen[0].standing in _UNTOLD:
        return _of_failures(seen)
    return (
        _unfinished(last)
        or _broken(last, fails=bool(seen))
        or (_damaged(last, fails=True) if seen else None)
        or (_of_failures(seen) if seen else None)
        or _unseen(failing)
        or _damaged(last)
        or _left(last)
        or _short(last)
        or _unknown(lives)
        or _held(lives, last)
    )


_UNTOLD: tuple[Standing, ...] = ("new", "again", "expired")
"""the standings that no earlier night has told of; the others wait behind what went wrong with the night itself, which
may have missed something new"""
_FAILING: tuple[Standing, ...] = (*_UNTOLD, "still_failing", "flaky")


def _of_failures(failing: Sequence[Life]) -> Urgent:
    life = failing[0]
    same = sum(one.standing == life.standing for one in failing)
    return Urgent(
        kind=life.standing,
        outcome="violated",
        headline=_headline(life, same),
        more=_story(life),
        life=life,
        replay=life.failure.replay,
    )


def _headline(life: Life, same: int) -> str:
    name = name_of(life.failure)
    many = f"the {same:,} " if same > 1 else "the "
    s = "s" if same > 1 else ""
    begin = ", first:" if same > 1 else ":"
    match life.standing:
        case "new":
            return f"Look at {many}new failure{s}{begin} {name}."
        case "again":
            it = f"{same:,} fixed failures are" if same > 1 else "A fixed failure is"
            return f"{it} back{begin} {name}."
        case "expired":
            it = f"{same:,} known failures have" if same > 1 else "A known failure has"
            return f"{it} expired and still fail{'' if same > 1 else 's'}{begin} {name}."
        case "still_failing":
            return f"Nothing new: fix {many}failure{s} that still fail{'' if same > 1 else 's'}{begin} {name}."
        case _:
            rate = f", in {life.rate}" if life.rate and same == 1 else ""
            return f"Nothing new: look at {many}flaky failure{s}{begin} {name}{rate}."


def _story(life: Life) -> str:
    failure = life.failure
    unshrunk = "" if failure.shrunk else " It is not shrunk yet; the next night goes on with it."
    return f"{failure.story}{unshrunk}".strip()


def _unfinished(last: Night) -> Urgent | None:
    violated = sum(one.scenarios.violated for one in last.subjects)
    so_far = "Nothing new was found until then."
    if violated:
        so_far = f"Until then {plural(violated, 'scenario')} failed; what is new among them is still to be shrunk."
    if last.ended is None and not last.subjects:
        so_far = "This page was written at its begin; `cutproof report` writes it again from the bank."
    if last.ended is None or last.exit_code is None:
        budget = took(last.budget_s)
        had = f" with a budget of {budget}; until that is over, it may still be running" if last.budget_s else ""
        return Urgent(
            kind="cut-off",
            outcome="failed",
            headline="The last night did not run to its end: find out why.",
            more=f"It began at {minute(last.began)} UTC{had}. {so_far} "
            "The next night goes on with what is in the bank.",
        )
    if last.exit_code == 130:
        return Urgent(
            kind="interrupted",
            outcome="short",
            headline="The last night was interrupted: run it again.",
            more=f"{so_far} What was done is in the bank.",
        )
    return None


def _broken(last: Night, *, fails: bool) -> Urgent | None:
    """`fails`: it saw failures of earlier nights fail, which is why it ended as violated."""
    problems = [problem for one in last.subjects for problem in one.failures]
    if last.exit_code in (0, 3) and not problems:
        return None
    left_here = last.unshrunk - last.unshrunk_elsewhere
    if last.exit_code == 1 and left_here:
        return _to_shrink(left_here, "violated")
    if last.exit_code == 1 and fails and not problems:
        return None
    headline = (
        "Read the night's log: it ended as violated, and the bank does not say of what."
        if last.exit_code == 1 and not fails
        else "Repair the job: the harness failed, so nothing is certain."
    )
    more = problems[0] if problems else f"The night ended so: {exit_in_words(last.exit_code)}."
    return Urgent(kind="failed", outcome="failed", headline=headline, more=more)


def _unseen(failing: Sequence[Life]) -> Urgent | None:
    if not failing:
        return None
    life = failing[0]
    return Urgent(
        kind="unseen",
        outcome="short",
        headline=f"Nothing new, but the last night did not replay {_first(failing)}.",
        more=f"It failed the last time that it was replayed. {_story(life)}".strip(),
        life=life,
        replay=life.failure.replay,
    )


def _damaged(last: Night, *, fails: bool = False) -> Urgent | None:
    if not last.put_aside:
        return None
    nothing = "Nothing new" if fails else "Nothing failed"
    return Urgent(
        kind="damaged",
        outcome="short",
        headline=f"{nothing}, but {plural(last.put_aside, 'file')} of the bank could not be read.",
        more="What could not be read was moved into the folder `aside` of the bank. A failure among it is not replayed "
        "before its files are restored.",
    )


def _left(last: Night) -> Urgent | None:
    if not last.unshrunk:
        return None
    if last.unshrunk > last.unshrunk_elsewhere:
        return _to_shrink(last.unshrunk - last.unshrunk_elsewhere, "short")
    left = plural(last.unshrunk, "failing scenario")
    they, are = ("It", "is") if last.unshrunk == 1 else ("They", "are")
    return Urgent(
        kind="unshrunk",
        outcome="short",
        headline=f"Nothing failed, but {left} of earlier nights {are} still to be shrunk.",
        more=f"{they} failed on a subject, or with a planted defect, that the last night did not test.",
    )


def _to_shrink(left: int, outcome: Outcome) -> Urgent:
    return Urgent(
        kind="unshrunk",
        outcome=outcome,
        headline=f"Run another night now: it shrinks {plural(left, 'failing scenario')} that the last one left.",
        more="Something failed, and the bank does not hold it as a failure before it is shrunk.",
    )


def _short(last: Night) -> Urgent | None:
    shortfalls = [words for one in last.subjects for words in one.shortfalls]
    if last.exit_code == 3 or shortfalls:
        return Urgent(
            kind="short",
            outcome="short",
            headline="Nothing failed, but the last night fell short of what it had to show.",
            more=sentence(shortfalls[0]) if len(shortfalls) == 1 else "",
        )
    if not any(one.scenarios.held for one in last.subjects) and not last.replays:
        return Urgent(kind="empty", outcome="short", headline="The last night judged nothing: give it more time.")
    return None


def _unknown(lives: Sequence[Life]) -> Urgent | None:
    unsure = [life for life in lives if life.standing in ("not_reached", "not_replayed")]
    if not unsure:
        return None
    life, is_ = unsure[0], "is" if len(unsure) == 1 else "are"
    return Urgent(
        kind=life.standing,
        outcome="short",
        headline=f"Nothing failed, but {_first(unsure)} {is_} not known to be fixed.",
        more=f"{GROUPS[life.standing][1]} {_story(life)}".strip(),
        life=life,
        replay=life.failure.replay,
    )


def _first(lives: Sequence[Life]) -> str:
    name = name_of(lives[0].failure)
    return name if len(lives) == 1 else f"{name} and {len(lives) - 1:,} more"


def _held(lives: Sequence[Life], last: Night) -> Urgent:
    known = sorted((life for life in lives if life.standing == "known"), key=lambda life: str(life.expires))
    if not known:
        return Urgent(
            kind="held",
            outcome="held",
            headline="Nothing to do: everything that was judged held.",
            more=last.unjudged,
        )
    failed = sum(one.scenarios.violated for one in last.subjects)
    rest = (
        f"{plural(failed, 'scenario')} failed, and showed no other failure."
        if failed
        else "Everything else that was judged held."
    )
    until = f" The first of them expires on {known[0].expires}." if known[0].expires else ""
    return Urgent(
        kind="held",
        outcome="held",
        headline=f"Nothing to do: only {plural(len(known), 'known failure')} showed.",
        more=f"{rest}{until} {last.unjudged}".strip(),
    )
