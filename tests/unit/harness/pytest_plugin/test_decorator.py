"""`@cutproof.scenario`: an ordinary Hypothesis test, with settings of ours and fixtures beside."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

import cutproof
from cutproof.harness.scenario.files import decode_scenario
from cutproof.harness.scenario.model import Scenario


@cutproof.scenario(max_faults=2, max_records=20, max_examples=15, database=None)
def test_a_test_is_handed_scenarios(scenario: Scenario, tmp_path: Path) -> None:
    assert len(scenario.faults) <= 2
    assert scenario.workload.records() <= 20
    assert tmp_path.is_dir()


def test_it_is_handed_many() -> None:
    seen: list[Scenario] = []

    @cutproof.scenario(max_faults=2, max_records=20, max_examples=15, database=None)
    def handed(scenario: Scenario) -> None:
        seen.append(scenario)

    handed()
    assert len(seen) >= 15


def test_a_failure_is_shrunk_and_prints_its_scenario_file() -> None:
    @cutproof.scenario(max_records=20, max_examples=60, database=None, derandomize=True)
    def fails(scenario: Scenario) -> None:
        assert not scenario.faults

    with pytest.raises(AssertionError) as caught:
        fails()
    (note,) = [line for line in caught.value.__notes__ if line.startswith("The scenario file: ")]
    shrunk = decode_scenario(note.removeprefix("The scenario file: ").encode())
    assert 1 <= len(shrunk.faults) <= 2, "some templates have a fault that comes with another"
    assert shrunk.workload.records() == 1


def test_the_profiles_are_registered() -> None:
    for name, examples in (("smoke", 25), ("default", 100), ("nightly", 2_000)):
        profile = settings.get_profile(f"cutproof-{name}")
        assert (profile.max_examples, profile.deadline, profile.print_blob) == (examples, None, True)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="no profile 'hourly'; there are smoke, default, nightly"):
        cutproof.scenario(profile="hourly")
