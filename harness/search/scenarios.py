"""Scenarios as a kind of run: on the search's subject, judged by the quick checker and by PySpark."""

from __future__ import annotations

import msgspec

from ...reports.model import ShownRun
from ..counterexamples.story import rows_side_by_side
from ..subject.port import Subject
from ..subject.run import run
from .kind import Drawn, Ran
from .oracle import put
from .outcome import ScenarioOutcome, outcome_of


class Scenarios:
    """Every scenario of a search, on one subject."""

    name = ScenarioOutcome.kind

    def __init__(self, subject: Subject, *, keep_histories: bool) -> None:
        self._subject = subject
        self._keep_histories = keep_histories

    def number_at(self, index: int) -> int:
        return index

    def run(self, number: int, drawn: Drawn) -> Ran:
        """Raises SubjectFailed if the subject cannot run it, CounterpartFailed for an error in a user's function,
        CutproofError if the environment fails."""
        result = run(self._subject, drawn.scenario, keep="everything" if self._keep_histories else "violated")
        asked = put(result)
        outcome = outcome_of(
            number,
            drawn.scenario,
            result.history,
            result.judgement.verdicts,
            not_asked=asked.unasked,
            keep_history=self._keep_histories,
            seconds=(drawn.draw_s, result.run_s, result.judge_s),
            transitions=result.transitions,
        )
        if drawn.scenario.pipeline and outcome.in_a_word == "held" and outcome.measured.recoveries:
            rows = rows_side_by_side(result.case)
            shown = ShownRun(index=number, history=result.history, rows=rows)
            outcome = msgspec.structs.replace(outcome, shown=shown)
        return Ran(outcome=outcome, question=asked.question)
