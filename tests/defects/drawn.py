"""Runs of the kind that a test is about, drawn until there are enough, and what the judge said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds


def first_runs(
    scenarios: Iterable[Scenario],
    count: int,
    *,
    of: Callable[[Scenario], object] = lambda _: True,
    showing: Callable[[Result], bool] = lambda _: True,
) -> list[Result]:
    """The first `count` runs whose scenarios are of a kind, and that show something when they have run."""
    runs = (run(SimulatedSubject(), scenario) for scenario in filter(of, scenarios))
    return list(islice(filter(showing, runs), count))


def accused(results: Iterable[Result]) -> list[Scenario]:
    """The scenarios of which the judge says that an invariant is violated."""
    return [result.scenario for result in results if result.judgement.violated]


def times_held(results: Iterable[Result]) -> Counter[str]:
    """In how many runs each invariant held."""
    return Counter(
        name for result in results for name, one in result.judgement.verdicts.items() if isinstance(one, Holds)
    )
