"""The scenarios of `cutproof verify`, judged by the quick checker alone, and mutations of their histories.

What a mutant has to get past before the real `verify`, with PySpark, is asked:
the same search without Spark's start, which stops at the first thing that is
wrong.  Says what it was in one line, and exits 1.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.judge import judge_case
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.mutations.tampering import tamperings
from cutproof.properties.quick_checker.case import Case

OFTEN = (
    "exactly-once",
    "no-data-loss",
    "consistent-cut",
    "restored-state",
    "order",
    "visibility",
    "progress",
    "no-leaks",
)
"""Invariants of which a fifth of all scenarios must be exercise."""
MUTATED_EVERY = 4
"""Of every fourth scenario each mutation is applied."""


def wrong_verdicts(result: Result) -> Iterator[str]:
    for name, verdict in result.judgement.verdicts.items():
        if isinstance(verdict, Violated):
            yield f"{name} is violated: {verdict.message}"
        elif isinstance(verdict, Unknown) and verdict.reason == "checker failed":
            yield f"{name}: the checker failed: {verdict.detail}"


def mutations_unseen(result: Result) -> Iterator[str]:
    case, verdicts = result.case, result.judgement.verdicts
    for mutation in tamperings(case):
        holding = [name for name in mutation.invariants if isinstance(verdicts[name], Holds)]
        turned = (
            judge_case(Case(case.workload, case.submitted, mutation.apply(result.history))).verdicts if holding else {}
        )
        if holding and not any(isinstance(turned[name], Violated) for name in holding):
            yield f"a mutation was not seen: {mutation.name}"


def search(seconds: float) -> str:
    """The first thing that is wrong, in words; empty when nothing is."""
    draw, subject = scenario_of(Drawing()), subject_called("simulated", None)
    held: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    index = 0
    while time.monotonic() < deadline:
        result = run(subject, draw(1, index))
        found = [*wrong_verdicts(result), *(mutations_unseen(result) if index % MUTATED_EVERY == 0 else ())]
        if found:
            return f"scenario {index}: {found[0]}"
        held.update(name for name, verdict in result.judgement.verdicts.items() if isinstance(verdict, Holds))
        index += 1
    seldom = [name for name in OFTEN if held[name] < index / 5]
    print(f"{index} scenarios: {dict(held)}")
    return f"hardly exercised: {', '.join(seldom)}" if seldom else ""


if __name__ == "__main__":
    wrong = search(float(sys.argv[1]))
    print(wrong)
    sys.exit(bool(wrong))
