"""The cost of the ways to finish, as tables: one final checkpoint or several in turn (FIN-3), no checkpoint after a
task has finished (FIN-7), none at the end (FIN-9).

All figures are measured with the jobs of the examples, on the engine that the examples run on.
"""

from __future__ import annotations

from collections import Counter

from ....properties.model.history import History
from ....reports.charts.bars import Bar, Bars
from ....reports.charts.curves import Chart, Curve
from ....reports.example_report import Figures, Picture
from ...counterexamples.words import time_in_words
from ..claims import Ran
from ..trials import Trials
from .at_finish import COMMIT_AT_FINISH
from .examples import ABOUT_FINISHING
from .finished import FAILURES_US, MIXED_BOUNDED_UNBOUNDED, late_failure, replayed
from .ways_to_finish import THREE_2PC_CHAIN, expected_rows, finishing_by, finishing_us, while_finishing

OF_FINISHING = tuple(example.scenario.name for example in ABOUT_FINISHING)
"""the examples whose pages have these figures"""
WAYS: dict[str, str] = {
    "together": "FIN-3",
    "one-by-one": "FIN-3",
    "commit-at-finish": "FIN-9",
    "discard-at-finish": "FIN-9",
}
_STATEMENTS = {
    "together": "“the same checkpoint”",
    "one-by-one": "“three more checkpoints”",
    "commit-at-finish": "“data duplication”",
    "discard-at-finish": "“data loss”",
}
"""by way of finishing: the post's words"""


def measured_for(name: str, trials: Trials) -> tuple[tuple[Figures, ...], tuple[Picture, ...]]:
    """Tables and pictures for the page of an example; none if the example is not about finishing.

    Raises SubjectFailed, or NotShown if a run lacks what is measured.
    """
    if name not in OF_FINISHING:
        return (), ()
    chain = {way: trials.ran(finishing_by(THREE_2PC_CHAIN.scenario, way)) for way in WAYS}
    late = _late_failures(trials)
    tables = of_the_chain(chain), of_settling(trials), of_late_failures(late)
    return tables, (bars_of_the_chain(chain), chart_of_failures(late))


def of_the_chain(found: dict[str, Ran]) -> Figures:
    """By way of finishing, the cost of the end of three two-phase commits in a chain."""
    return Figures(
        caption="A chain of three two-phase commits, through a failure, by way of finishing: how many checkpoints "
        "complete from the first end of data to the job's end, and how long that takes",
        head=("way", "the text", "checkpoints", "time", "rows expected", "lost", "twice", "violated"),
        rows=tuple(
            (
                _named(way),
                _STATEMENTS[way],
                str(len(while_finishing(ran.history))),
                time_in_words(finishing_us(ran.history)),
                *_rows(ran),
            )
            for way, ran in found.items()
        ),
    )


def bars_of_the_chain(found: dict[str, Ran]) -> Bars:
    """The two ways that commit each row once."""
    counts = {way: len(while_finishing(found[way].history)) for way in ("together", "one-by-one")}
    return Bars(
        title="Checkpoints that the chain of three waits for",
        caption="From the first end of data to the job's end.",
        bars=tuple(Bar(name=way, value=float(count), text=str(count)) for way, count in counts.items()),
    )


def of_settling(trials: Trials) -> Figures:
    """The rejected ways on two pipelines of which one ends early, with and without a failure afterwards (FIN-9)."""
    rows = []
    for way in ("together", "commit-at-finish", "discard-at-finish"):
        scenario = finishing_by(COMMIT_AT_FINISH.scenario, way)
        for cause, tried in (("a failure", scenario), ("no failure", finishing_by(scenario, way, faults=()))):
            rows.append((f"{_named(way)}, {cause}", *_rows(trials.ran(tried))))
    return Figures(
        caption="The rejected ways on two pipelines of which one ends early (FIN-9), with a failure of the other after "
        "that and without",
        head=("way", "rows expected", "lost", "twice", "violated"),
        rows=tuple(rows),
    )


def of_late_failures(found: dict[int, tuple[History, History]]) -> Figures:
    """The cost of no checkpoints after a finish (FIN-7): records that are read again, and rows that are visible."""
    return Figures(
        caption="The cost of no checkpoints after a finish (FIN-7): one input ends, the other is unbounded. "
        "The records of the unbounded input that are read again after a failure, and the rows that are committed in "
        "the end, with such checkpoints and without",
        head=("failure at", "read again with", "without", "rows expected", "committed with", "without"),
        rows=tuple(
            (
                time_in_words(at_us),
                *(str(replayed(history, "events")) for history in both),
                str(MIXED_BOUNDED_UNBOUNDED.scenario.workload.records()),
                *(str(len(history.committed)) for history in both),
            )
            for at_us, both in found.items()
        ),
    )


def chart_of_failures(found: dict[int, tuple[History, History]]) -> Chart:
    """The records that are read again, by the time of the failure."""
    return Chart(
        title="Read again after a failure",
        caption="Without checkpoints after a finish, all records since then are read again: the "
        "later the failure, the more.",
        across="failure at, ms",
        up="records",
        curves=tuple(
            Curve(
                name=name,
                points=tuple((at_us / 1_000, float(replayed(both[at], "events"))) for at_us, both in found.items()),
            )
            for at, name in enumerate(("with", "without"))
        ),
    )


def _late_failures(trials: Trials) -> dict[int, tuple[History, History]]:
    """By time of the failure, in µs: with checkpoints after a finish, and without."""

    def run(at_us: int, *, after_finish: bool) -> History:
        return trials.ran(late_failure(at_us, after_finish=after_finish).scenario).history

    return {at_us: (run(at_us, after_finish=True), run(at_us, after_finish=False)) for at_us in FAILURES_US}


def _named(way: str) -> str:
    return f"{way} ({WAYS[way]})"


def _rows(ran: Ran) -> tuple[str, str, str, str]:
    """Rows expected, lost and shown twice, and the violated invariants."""
    due, shown = expected_rows(ran.scenario), Counter(ran.history.committed)
    against = ", ".join(ran.violated) or "nothing"
    return str(due.total()), str((due - shown).total()), str((shown - due).total()), against
