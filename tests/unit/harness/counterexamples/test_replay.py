"""A scenario again, once or more often: what is told of it, and how often it came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutproof.harness.cli.entry import main
from cutproof.harness.counterexamples.replay import replay
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.files import write_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.shrink.repetition import Rate
from cutproof.harness.subject.run import run
from unit.harness.scenarios import chain
from unit.harness.subjects import InRealTime, Lossy


@pytest.fixture(scope="module")
def failing() -> Scenario:
    """One that violates exactly-once where a row is lost after a restore."""
    draw = scenario_of(Drawing(max_records=20))
    drawn = (draw(3, index) for index in range(100))
    return next(one for one in drawn if "exactly-once" in run(Lossy(), one).judgement.violated)


def test_one_run_is_the_rule(failing: Scenario) -> None:
    subject = InRealTime(every=1)
    replayed = replay(subject, failing)
    assert (subject.runs, replayed.rate) == (1, Rate(reproduced=1, runs=1))
    assert replayed.rate_in_words.startswith("violated in 1 of 1 run (exactly-once: ")


def test_the_first_violated_run_is_reported_and_the_rate_with_it(failing: Scenario) -> None:
    subject = InRealTime()
    subject.runs = 1
    replayed = replay(subject, failing, runs=9)
    assert replayed.rate == Rate(reproduced=4, runs=9)
    assert "exactly-once" in replayed.judgement.violated
    difference = replayed.judgement.violated["exactly-once"].difference
    assert replayed.rate_in_words == f"violated in 4 of 9 runs (exactly-once: {difference})"


def test_where_none_is_violated_the_first_is_reported() -> None:
    replayed = replay(InRealTime(at_most=0), chain(), runs=3)
    assert (replayed.rate, replayed.judgement.outcome) == (Rate(reproduced=0, runs=3), "held")
    assert replayed.rate_in_words == "violated in 0 of 3 runs"


def test_the_command_repeats_and_closes(
    failing: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subject = InRealTime()
    monkeypatch.setattr("cutproof.harness.cli.replay.subject_called", lambda name, defect: subject)
    path = tmp_path / "case.json"
    write_scenario(path, failing)
    assert main(["replay", str(path), "--runs", "4", "--quick", "--json"]) == 1
    printed = capsys.readouterr()
    assert {"runs": 4, "reproduced": 2, "outcome": "violated"}.items() <= json.loads(printed.out).items()
    assert "violated in 2 of 4 runs (exactly-once: " in printed.err
    assert subject.closed == 1
