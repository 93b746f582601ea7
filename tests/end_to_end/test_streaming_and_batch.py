"""Hundreds of jobs in both modes, held against PySpark's word in one session; an error in any of the three shows."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.streaming_batch import Comparison, as_bounded, compare_all
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario import topologies
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.workloads import library as workloads
from cutproof.harness.workloads.inputs import LoadedWorkload
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.spark.operators import MEANINGS
from cutproof.properties.spark.oracle import Oracle
from cutproof.reference_impl.batch.execution import Batch
from cutproof.reference_impl.core.operators import operators

SCENARIOS = 200
FEW = 40

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    """One for all, which knows the answers from the first test on: an error in the engine changes no question."""
    return Oracle()


def drawn(number: int) -> list[Scenario]:
    draw = scenario_of(Drawing(max_records=60))
    return [as_bounded(draw(11, index)) for index in range(number)]


def differing(found: list[Comparison]) -> dict[str, int]:
    """How many of each comparison are violated."""
    names = ("streaming", "batch", "equal")
    return {name: sum(isinstance(getattr(one, name), Violated) for one in found) for name in names}


NOTHING = {"streaming": 0, "batch": 0, "equal": 0}


def test_drawn_jobs_leave_what_is_expected_both_ways(oracle: Oracle) -> None:
    before = oracle.queries
    found = compare_all(SimulatedSubject(), drawn(SCENARIOS), oracle)
    assert differing(found) == NOTHING
    assert sum(all(isinstance(verdict, Holds) for verdict in one.verdicts) for one in found) >= 0.8 * SCENARIOS
    assert oracle.queries - before < 20


@pytest.mark.parametrize("name", ["flights", "flight-delays"])
def test_all_flights_leave_what_is_expected_both_ways(name: str) -> None:
    loaded = workloads.find(name)
    assert isinstance(loaded, LoadedWorkload)
    topology = loaded.topology or topologies.lay_out(loaded.workload)
    scenario = Scenario(name=name, workload=loaded.workload, topology=topology)
    (found,) = compare_all(SimulatedSubject(), [scenario], Oracle())
    assert [type(verdict) for verdict in found.verdicts] == [Holds, Holds, Holds]


def test_an_error_in_the_batch_shows_against_both(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batch, "sort_by_key", lambda self, fed: fed)
    found = differing(compare_all(SimulatedSubject(), drawn(FEW), oracle))
    assert found["batch"] > 5
    assert found["equal"] > 5
    assert found["streaming"] == 0


def test_an_error_in_the_stream_shows_against_both(oracle: Oracle) -> None:
    class Forgetful(SimulatedSubject):
        def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
            history = super().run(scenario, timeline=timeline)
            for one in history.transactions:
                one.rows = []
            history.committed = history.committed[:-1]
            return history

    found = differing(compare_all(Forgetful(), drawn(FEW), oracle))
    assert found["streaming"] > 5
    assert found["equal"] == found["streaming"]
    assert found["batch"] == 0


def test_an_operator_that_is_wrong_in_both_shows_against_pyspark_alone(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both modes share the operators, so that only the oracle can tell."""
    monkeypatch.setattr(operators.Join, "apply", lambda self, record, gate: ())
    monkeypatch.setattr(operators.Filter, "apply", lambda self, record, gate: (record,))
    found = differing(compare_all(SimulatedSubject(), drawn(FEW), oracle))
    assert found["streaming"] > 5
    assert found["batch"] > 5
    assert found["equal"] == 0


def test_an_error_in_pyspark_shows_against_both() -> None:
    wrong = {
        name: msgspec.structs.replace(meaning, value=f"({meaning.value}) + 1") for name, meaning in MEANINGS.items()
    }
    found = differing(compare_all(SimulatedSubject(), drawn(FEW), Oracle(meanings=wrong)))
    assert found["streaming"] > 5
    assert found["batch"] > 5
    assert found["equal"] == 0
