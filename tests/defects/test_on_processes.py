"""The planted defects show on real processes as well, where a race may be lost: at least once in three runs.

*Shows* means what it means in virtual time: the wrong code itself ran, and the invariant named
beforehand is violated; without the defect the same scenario never violates any, and exercises it.
How often each shows in ten runs stands in docs/defects.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.faults.plan import AtPoint
from cutproof.harness.reference_engine.orchestrator.layout import DATABASE, store_of
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.self_check.defects import Catch
from cutproof.harness.subject.run import run
from cutproof.properties.model.verdict import Holds
from cutproof.reference_impl.defects import DEFECTS
from defects.differences import NOT_ON_PROCESSES, ON_PROCESSES
from defects.on_processes import CORPUS, IN_POSTGRESQL, TESTED

RUNS = 3
SOUND_RUNS = 10
"""of a sound engine at most: none is violated, and one of them exercises the invariant, which is a matter of time"""


def scenario_of(defect: str) -> Scenario:
    return read_scenario(CORPUS / f"{defect}.json")


@pytest.fixture(scope="session")
def processes(toxiproxy_server: Path) -> Iterator[ProcessesSubject]:
    """One for all: a run takes the defect that is planted when it begins; its servers stay."""
    subject = ProcessesSubject()
    yield subject
    subject.close()


def test_there_is_a_scenario_for_every_planted_defect_but_those_that_are_named() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.json")) == sorted(ON_PROCESSES)
    assert sorted((*ON_PROCESSES, *NOT_ON_PROCESSES)) == sorted(DEFECTS)


@pytest.mark.parametrize("defect", ON_PROCESSES)
def test_it_strikes_at_points_and_not_at_times(defect: str) -> None:
    scenario = scenario_of(defect)
    assert (scenario.defect, scenario.expects) == (defect, DEFECTS[defect].invariant)
    assert [fault for fault in scenario.faults if not isinstance(fault.trigger, AtPoint)] == []


def test_some_write_to_postgresql_and_some_to_files() -> None:
    assert tuple(one for one in ON_PROCESSES if store_of(scenario_of(one)) == DATABASE) == IN_POSTGRESQL


@pytest.mark.parametrize("defect", ON_PROCESSES)
def test_it_shows_in_the_simulator_as_well(defect: str) -> None:
    scenario, invariant = scenario_of(defect), DEFECTS[defect].invariant
    catch = Catch.of(run(SimulatedSubject(defect), scenario), invariant)
    assert catch is not None
    assert catch.holds_without(SimulatedSubject(), scenario)


@pytest.mark.parametrize("defect", TESTED)
def test_its_invariant_is_violated_with_the_defect(processes: ProcessesSubject, defect: str) -> None:
    invariant = DEFECTS[defect].invariant
    processes.defect = defect
    shown = (Catch.of(run(processes, scenario_of(defect)), invariant) for _ in range(RUNS))
    catch = next(filter(None, shown), None)
    assert catch is not None
    assert catch.difference == ON_PROCESSES[defect]


@pytest.mark.parametrize("defect", TESTED)
def test_without_the_defect_it_holds_and_is_exercised(processes: ProcessesSubject, defect: str) -> None:
    processes.defect = None
    verdicts = []
    for _ in range(SOUND_RUNS):
        result = run(processes, scenario_of(defect))
        assert not result.judgement.violated
        assert not result.history.defect_reached
        verdicts.append(result.judgement.verdicts[DEFECTS[defect].invariant])
        if isinstance(verdicts[-1], Holds):
            return
    pytest.fail(f"never exercised: {verdicts}")
