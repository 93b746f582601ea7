"""An example's run and its variants on the simulated engine, for the tests of what its claims can find."""

from __future__ import annotations

from collections.abc import Callable

from cutproof.harness.examples import EXAMPLES, Example, Ran, Shown, show
from cutproof.harness.examples.trials import Trials
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History


def run(scenario: Scenario) -> History:
    return SimulatedSubject().run(scenario, timeline=True)


def judged(scenario: Scenario, history: History) -> Ran:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return Ran(scenario=scenario, history=history, verdicts=verdicts)


def looked_up(
    example: Example, history: History, otherwise: Callable[[Scenario], Scenario] = lambda scenario: scenario
) -> list[Shown]:
    """The claims on a history of the example's scenario; `otherwise` alters each variant before it runs."""
    trials = Trials(SimulatedSubject())
    companions = {variant.name: trials.ran(otherwise(variant.scenario)) for variant in example.variants}
    return show(example, judged(example.scenario, history), companions)


def not_shown(
    name: str, history: History, otherwise: Callable[[Scenario], Scenario] = lambda scenario: scenario
) -> set[int]:
    """The numbers of the claims that do not show."""
    claims = looked_up(EXAMPLES[name], history, otherwise)
    return {number for number, claim in enumerate(claims) if not claim.shown}
