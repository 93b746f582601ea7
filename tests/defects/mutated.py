"""Every mutation of a run that the judge has cleared."""

from __future__ import annotations

from collections.abc import Iterator

from cutproof.harness.subject.run import Result
from cutproof.properties.invariants.judge import verdict_of
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.mutations.tampering import tamperings
from cutproof.properties.quick_checker.case import Case


def mutations_seen(result: Result) -> Iterator[str]:
    """The names of the mutations that an invariant which held had to see; each was seen by an invariant that it aims
    at."""
    scenario = result.scenario
    for mutation in tamperings(result.case):
        holding = [name for name in mutation.invariants if isinstance(result.judgement.verdicts[name], Holds)]
        if holding:
            false = Case(scenario.workload, scenario.topology, mutation.apply(result.history))
            assert any(isinstance(verdict_of(false, name), Violated) for name in holding), (mutation.name, scenario)
            yield mutation.name
