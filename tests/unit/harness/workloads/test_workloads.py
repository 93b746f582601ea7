"""The library of named workloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutproof.harness.examples import EXAMPLES, Example
from cutproof.harness.examples.pipelines.examples import PIPELINE_EXAMPLES
from cutproof.harness.examples.systems.examples import SYSTEM_EXAMPLES
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.workloads.inputs import LoadedWorkload
from cutproof.harness.workloads.library import FROM_DATA, GENERAL, find, listing
from cutproof.properties.model.workload import problems

OF_THE_DOCUMENTS = """
    four-global-states single-input-barrier two-input-alignment unblocked-alignment barriers-in-stream
    snapshot-contents stateless-parse greater-than-previous chandy-lamport-p1-p2-p3 clock-skew-snapshot
    barrier-before-snapshot vicious-circle spilling-arithmetic retained-incremental failure-after-savepoint
    ab-test two-histories-after-fork incremental-stop-and-upgrade count-streaming-batch mixed-bounded-unbounded
    finished-operators-snapshot two-ways-to-finish three-2pc-chain commit-at-finish discard-at-finish
    drain-after-savepoint
"""


def test_every_example_of_the_documents_is_listed_once() -> None:
    names = [listed.name for listed in listing()]
    assert len(names) == len(set(names))
    assert sorted([*EXAMPLES, *SYSTEM_EXAMPLES, *PIPELINE_EXAMPLES]) == sorted(OF_THE_DOCUMENTS.split())


@pytest.mark.parametrize("name", [*GENERAL, *FROM_DATA])
def test_a_named_workload_can_be_run(name: str) -> None:
    found = find(name)
    assert isinstance(found, LoadedWorkload)
    assert problems(found.workload, found.topology or lay_out(found.workload)) == []
    tags = [tag for _, _, records in found.workload.splits() for _, _, tag in records]
    assert len(set(tags)) == len(tags) > 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_a_scenario_that_can_be_run(name: str) -> None:
    found = find(name)
    assert isinstance(found, Example)
    assert found.scenario.name == found.scenario.workload.name == name
    assert problems(found.scenario.workload, found.scenario.topology) == []
    assert len(found.claims) >= 2


def test_flights_are_all_there() -> None:
    flights = find("flights")
    assert isinstance(flights, LoadedWorkload)
    assert flights.workload.records() == 5_000
    assert len(flights.workload.inputs[0].splits) == 3
    assert flights.keys[:3] == ("9E", "AA", "AS")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ordres", "there is no workload 'ordres'; did you mean 'orders'?"),
        ("nowhere.toml", "there is no workload file nowhere.toml"),
    ],
)
def test_a_name_that_cannot_be_run(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason.replace("?", r"\?")):
        find(name)


def test_input_goes_with_data_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="brings its own data"):
        find("orders", tmp_path / "x.csv")


def test_a_workload_file_is_found_by_its_ending(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("k,v\n1,2\n2,3\n")
    inputs = [{"name": "in", "file": "d.csv", "key": "k", "value": "v"}]
    (tmp_path / "w.json").write_text(json.dumps({"format": "cutproof-workload/1", "name": "w", "inputs": inputs}))
    found = find(str(tmp_path / "w.json"))
    assert isinstance(found, LoadedWorkload)
    assert found.workload.records() == 2
    assert found.keys == ()
