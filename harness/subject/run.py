"""Runs one scenario, and has the quick checker judge it.

The faults of a scenario heal by themselves.  The run goes on until the job has come to
rest, so that its progress can be judged too.  Only the history is judged.
"""

from __future__ import annotations

import time
from typing import Literal

from ...properties.invariants.judge import Judgement, judge_case, verdict_of
from ...properties.model.history import History
from ...properties.model.verdict import INVARIANTS, Holds, Violated
from ...properties.quick_checker.case import Case
from ..scenario.model import Scenario
from .port import ScenarioRefused, Subject, SubjectFailed, asks_pyspark, forget, transitions_of

Keep = Literal["nothing", "violated", "everything"]
"""which saved runs of a subject stay when they have been judged"""


class Result:
    """A scenario, its history, and the judgement.

    `case` has the intermediate results of the checkers (lineages, expected rows); `run_s` and
    `judge_s` are the seconds that the subject and the judge took.  `transitions` says how often the
    run took each transition of the protocol's tables, by name, if the subject counts them.
    """

    __slots__ = ("case", "judge_s", "judgement", "run_s", "scenario", "transitions")

    def __init__(
        self,
        scenario: Scenario,
        case: Case,
        judgement: Judgement,
        run_s: float,
        judge_s: float,
        transitions: dict[str, int] | None = None,
    ) -> None:
        self.scenario = scenario
        self.case = case
        self.judgement = judgement
        self.run_s = run_s
        self.judge_s = judge_s
        self.transitions = transitions or {}

    @property
    def history(self) -> History:
        return self.case.history


def run(subject: Subject, scenario: Scenario, *, timeline: bool = False, keep: Keep = "nothing") -> Result:
    """Run the scenario on the subject and judge it; raises `SubjectFailed` if it cannot be run.

    If the judge crashes, the saved run of the subject stays.
    """
    began = time.perf_counter()
    history = history_of(subject, scenario, timeline=timeline)
    transitions = transitions_of(subject)
    ran = time.perf_counter()
    case = Case(scenario.workload, scenario.topology, history)
    judgement = judge_case(case)
    if keep == "nothing" or (keep == "violated" and not judgement.violated):
        forget(subject)
    return Result(scenario, case, judgement, ran - began, time.perf_counter() - ran, transitions)


def violates_like(
    subject: Subject,
    scenario: Scenario,
    invariant: str,
    difference: str,
    *,
    among: frozenset[str] | None = None,
    reached: bool = False,
) -> bool:
    """Run the scenario: does it violate the invariant by this kind of difference, and no invariants but `among`?

    Most scenarios of a shrinking do not, and the judge says so soonest if it is asked about this invariant first, and
    about the others only if that one is violated.  With `reached`, the defective code must have run too.
    """
    try:
        case = Case(scenario.workload, scenario.topology, history_of(subject, scenario))
        if reached and not case.history.defect_reached:
            return False
        verdict = verdict_of(case, invariant)
        if not isinstance(verdict, Violated) or verdict.difference != difference:
            return False
        return among is None or not _violates_any(case, among | {invariant})
    finally:
        forget(subject)


def holds_on(subject: Subject, scenario: Scenario, invariant: str) -> bool:
    """Run the scenario: does it exercise the invariant, and violate nothing?"""
    try:
        case = Case(scenario.workload, scenario.topology, history_of(subject, scenario))
        return isinstance(verdict_of(case, invariant), Holds) and not _violates_any(case, frozenset({invariant}))
    finally:
        forget(subject)


def _violates_any(case: Case, but: frozenset[str]) -> bool:
    return any(isinstance(verdict_of(case, name), Violated) for name in INVARIANTS if name not in but)


def history_of(subject: Subject, scenario: Scenario, *, timeline: bool = False) -> History:
    """The history that a subject returns for a scenario; raises `SubjectFailed` if it returns no history."""
    if scenario.workload.query and not asks_pyspark(subject):
        raise ScenarioRefused(
            "what it computes is a query in a pipeline's file: name the file with --subject pipeline:FILE"
        )
    history: object = subject.run(scenario, timeline=timeline)
    if not isinstance(history, History):
        raise SubjectFailed(f"run returned a {type(history).__name__}; it has to return a cutproof.History")
    return history
