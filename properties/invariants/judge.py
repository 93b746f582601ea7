"""The verdicts on one history, invariant by invariant."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..model.history import History
from ..model.verdict import INVARIANTS, Reason, Unknown, Verdict, Violated, in_a_word
from ..model.workload import Topology, Workload
from ..quick_checker.case import Case
from ..semantics.user_functions import CounterpartFailed
from . import (
    at_least_once,
    at_most_once,
    consistent_cut,
    drain,
    exactly_once,
    no_data_loss,
    no_leaks,
    order,
    progress,
    restorable,
    restored_state,
    seen_from_outside,
    visibility,
)
from .parts.incompatible import undescribed

CHECKERS: dict[str, Callable[[Case], Verdict]] = {
    "exactly-once": exactly_once.check,
    "no-data-loss": no_data_loss.check,
    "consistent-cut": consistent_cut.check,
    "at-least-once": at_least_once.check,
    "at-most-once": at_most_once.check,
    "order": order.check,
    "restored-state": restored_state.check,
    "restorable": restorable.check,
    "visibility": visibility.check,
    "drain": drain.check,
    "progress": progress.check,
    "no-leaks": no_leaks.check,
}


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of each invariant, in the order of `verdict.INVARIANTS`."""

    verdicts: dict[str, Verdict]

    @property
    def violated(self) -> dict[str, Violated]:
        """The invariants that are violated, with their witnesses."""
        return {name: verdict for name, verdict in self.verdicts.items() if isinstance(verdict, Violated)}

    @property
    def outcome(self) -> str:
        """violated, held or unknown"""
        return in_a_word(self.verdicts.values())


def judge(workload: Workload, topology: Topology, history: History) -> Judgement:
    """Judge a history of this workload on this topology."""
    return judge_case(Case(workload, topology, history))


def judge_case(case: Case) -> Judgement:
    """Judge a case; the caller can use its lineage and expected rows afterwards."""
    return Judgement(verdicts={name: verdict_of(case, name) for name in INVARIANTS})


def verdict_of(case: Case, invariant: str) -> Verdict:
    """One invariant's verdict; a checker that raises leaves it unknown.

    Raises CounterpartFailed where a user's own code raises: the user has to see that error.
    """
    try:
        if seen_from_outside.unseen(case, invariant):
            return seen_from_outside.check(case, invariant)
        # restored-state alone judges a job that should not have begun
        unknown = undescribed(case) if invariant != "restored-state" else None
        return unknown or CHECKERS[invariant](case)
    except CounterpartFailed:
        raise
    except Exception as error:  # a broken history may break a checker anywhere: the verdict is then unknown
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f" (line {place.tb_lineno} of {place.tb_frame.f_code.co_name})" if place else ""
        return Unknown(reason=Reason.CHECKER_FAILED, detail=f"{type(error).__name__}: {error}{where}")
