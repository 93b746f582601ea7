"""Templates that draw a workload of their own: what may be added to any drawn one is added to theirs too."""

from __future__ import annotations

import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.model.workload import Map


def drawn(*templates: str, count: int, **given: object) -> list[Scenario]:
    draw = scenario_of(Drawing(templates=templates, **given))  # type: ignore[arg-type]
    return [draw(5, index) for index in range(count)]


@pytest.fixture(scope="module")
def regional() -> list[Scenario]:
    return drawn("regional", "partly-stopped", count=80)


def test_maps_of_a_job_in_regions_commit_what_they_pass_on(regional: list[Scenario]) -> None:
    committing = [one for one in regional if one.engine.two_phase]
    assert {one.name for one in committing} == {"regional", "partly-stopped"}
    for one in committing:
        assert one.engine.failover == "region"
        assert {edge.partitioning for edge in one.topology.edges} == {"forward"}
        assert one.engine.two_phase == tuple(node.name for node in one.workload.nodes if node.operator == Map())


def test_no_enumerator_joins_the_regions(regional: list[Scenario]) -> None:
    assert {source.assignment for one in regional for source in one.workload.inputs} == {"static"}


def test_a_workload_that_is_given_stays_as_it_is(regional: list[Scenario]) -> None:
    given = next(one for one in regional if any(isinstance(node.operator, Map) for node in one.workload.nodes))
    again = drawn("regional", count=12, workload=given.workload, topology=given.topology)
    assert [one for one in again if (one.workload, one.topology) != (given.workload, given.topology)] == []
    assert [one for one in again if one.engine.two_phase] == []
