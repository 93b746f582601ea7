"""From what a user asks for to a campaign, and `cutproof.verify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cutproof.harness.generate.coverage.target_scenarios import TARGETS
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, UsageError
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.oracle import Examined
from cutproof.harness.search.profiles import PROFILES
from cutproof.harness.search.verification import (
    UNBOUNDED,
    Request,
    campaign_of,
    loaded_workload,
    point_latest,
    verify,
)
from cutproof.harness.subject.names import name_of
from cutproof.harness.workloads.library import GENERAL
from cutproof.properties.model.history import History


class Agrees:
    """A second judge that never disagrees."""

    def start(self) -> None:
        pass

    def wait(self) -> None:
        pass

    def examine(self, questions: Sequence[bytes]) -> Examined:
        return Examined(engine="stub", workloads=len(questions))


class Repeating(SimulatedSubject):
    """Shows its first row twice, once anything was restored."""

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        history = super().run(scenario, timeline=timeline)
        if history.sink == "transactional" and any(run.loaded for run in history.runs):
            history.committed += history.committed[:1]
        return history


def test_the_profile_decides_what_is_not_asked_for() -> None:
    campaign = campaign_of(Request(seed=3, profile="nightly"))
    profile = PROFILES["nightly"]
    assert campaign.budget.scenarios == profile.scenarios
    assert campaign.plan.drawing.max_records == profile.max_records
    assert campaign.plan.drawing.templates.count(TARGETS) == profile.target_shares > 1
    assert set(campaign.plan.drawing.templates) == set(SHARES)
    assert campaign.plan.seed == 3


def test_a_time_alone_bounds_by_time() -> None:
    budget = campaign_of(Request(seed=3, seconds=5.0)).budget
    assert (budget.scenarios, budget.seconds) == (UNBOUNDED, 5.0)
    assert campaign_of(Request(seed=3, seconds=5.0, scenarios=9)).budget.scenarios == 9


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(UsageError, match="no profile 'hourly'; there are: smoke, default, nightly"):
        campaign_of(Request(seed=0, profile="hourly"))


def test_an_example_is_no_workload_to_draw_over() -> None:
    with pytest.raises(UsageError, match="is one scenario; run it with"):
        loaded_workload("two-input-alignment")


def test_a_subject_that_lives_here_is_named_by_its_class() -> None:
    assert name_of(SimulatedSubject()) == "simulated"
    assert name_of(Repeating()).endswith(":Repeating")


def test_verify_holds_on_a_workload_of_ones_own() -> None:
    workload = GENERAL["orders"][1]()
    verified = verify(SimulatedSubject(), workload, scenarios=8, seed=1, oracle=Agrees())
    assert verified.exit_code is ExitCode.HELD
    assert (verified.summary.scenarios.run, verified.summary.scenarios.violated) == (8, 0)


def test_verify_finds_and_keeps_what_is_wrong(tmp_path: Path) -> None:
    verified = verify(
        Repeating(), "orders", scenarios=30, seed=1, stop_at_first=True, out=tmp_path / "run", oracle=Agrees()
    )
    assert verified.exit_code is ExitCode.VIOLATED
    (finding,) = (one for one in verified.findings if one.counterexample.invariant == "exactly-once")
    assert finding.counterexample.difference == "repeated row"
    assert (tmp_path / "run" / finding.counterexample.scenario).is_file()


def test_latest_leads_to_the_newest_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_latest(tmp_path / name)
    assert (tmp_path / "latest").resolve() == tmp_path / "two"
