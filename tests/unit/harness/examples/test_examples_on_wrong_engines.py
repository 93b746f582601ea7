"""An example judges the engine that it is given, in its own run and in those that its claims set it beside."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.harness.cli import main
from cutproof.harness.examples import EXAMPLES, Comparison
from cutproof.harness.examples.run import ExampleRun, run_example
from cutproof.harness.examples.trials import Trials
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search import oracle
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import Capabilities, SubjectFailed
from cutproof.properties.model.history import History
from unit.harness.subjects import Agreeing

WRONG = {
    "single-input-barrier": "A01",
    "two-input-alignment": "I27",
    "unblocked-alignment": "I01",
    "barriers-in-stream": "A01",
    "snapshot-contents": "J06",
    "stateless-parse": "D16",
    "greater-than-previous": "H01",
    "count-streaming-batch": "F12",
    "mixed-bounded-unbounded": "X03",
    "finished-operators-snapshot": "J25",
    "two-ways-to-finish": "J01",
    "three-2pc-chain": "X03",
    "commit-at-finish": "J23",
    "discard-at-finish": "I01",
    "drain-after-savepoint": "J02",
    "retained-incremental": "P13",
    "failure-after-savepoint": "F03",
    "incremental-stop-and-upgrade": "J01",
    "two-histories-after-fork": "F03",
    "ab-test": "F03",
}
"""Example: a planted defect that its runs meet."""


def tried(name: str, defect: str | None) -> ExampleRun:
    found, _ = run_example(Trials(subject_called("simulated", defect)), EXAMPLES[name], Agreeing())
    return found


def test_there_is_a_defect_for_every_example() -> None:
    assert list(WRONG) == list(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_on_the_engine_as_it_is_nothing_is_violated_but_what_the_text_states(name: str) -> None:
    found = tried(name, None)
    assert found.exit_code == ExitCode.HELD
    assert {one.name: dict(one.against) for one in found.companions} == {
        one.name: {} for one in EXAMPLES[name].variants
    }
    for one in found.companions:
        assert one.outcome == ("as the text says" if one.expected else "held"), one.name


@pytest.mark.parametrize(("name", "defect"), WRONG.items())
def test_an_engine_with_a_defect_is_violated(name: str, defect: str) -> None:
    assert tried(name, defect).exit_code == ExitCode.VIOLATED


@pytest.mark.parametrize(
    ("defect", "where", "claim"),
    [
        ("J01", "open windows, stopped without drain", "if the --drain parameter is not set"),
        ("J02", "open windows, stopped with drain", "if the --drain parameter is not set"),
    ],
)
def test_a_defect_that_only_a_variant_meets_is_violated_and_its_claim_does_not_show(
    defect: str, where: str, claim: str
) -> None:
    found = tried("two-ways-to-finish", defect)
    assert {name for name, verdict in found.verdicts.items() if type(verdict).__name__ == "Violated"} == set()
    (met,) = (one for one in found.companions if one.name == where)
    assert "drain" in met.against
    assert met.outcome == "violated"
    assert any(one.text.startswith(claim) and not one.shown for one in found.claims)


@pytest.mark.parametrize("defect", ["J01", "J02"])
def test_on_the_command_line_it_ends_with_1(
    defect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(oracle, "PySpark", Agreeing)
    words = ["verify", "--workload", "two-ways-to-finish", "--defect", defect, "--out", str(tmp_path)]
    assert main(words) == ExitCode.VIOLATED
    assert ": drain is violated: " in capsys.readouterr().out
    assert "✗" in (tmp_path / "report.html").read_text(encoding="utf-8").partition("<main>")[0]


class Choosy:
    """The reference engine, but it cannot be driven through a scenario that drains."""

    name = "choosy"
    capabilities = Capabilities()

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        if any(getattr(command, "drain", False) for command in scenario.commands):
            raise SubjectFailed("choosy does not drain")
        return SimulatedSubject().run(scenario, timeline=timeline)


def test_a_variant_that_cannot_be_run_is_reported_and_what_rests_on_it_is_not_shown() -> None:
    example = EXAMPLES["two-ways-to-finish"]
    found, _ = run_example(Trials(Choosy()), example, Agreeing())
    problems = {one.name: one.problem for one in found.companions if one.outcome == "not run"}
    assert set(problems) == {
        "stopped with drain",
        "open windows, stopped with drain",
        "stopped with drain, one by one",
    }
    assert set(problems.values()) == {"choosy does not drain"}
    for claim, looked_up in zip(example.claims, found.claims, strict=True):
        rests = {one.name for one in claim.companions} if isinstance(claim, Comparison) else set()
        assert looked_up.shown is not bool(rests & set(problems))
    assert found.exit_code == ExitCode.FELL_SHORT


def test_a_variant_is_run_once_however_many_claims_and_figures_use_it() -> None:
    runs: list[Scenario] = []

    class Counted(SimulatedSubject):
        def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
            runs.append(scenario)
            return super().run(scenario, timeline=timeline)

    example = EXAMPLES["three-2pc-chain"]
    trials = Trials(Counted())
    run_example(trials, example, Agreeing())
    assert runs == [example.scenario, *(variant.scenario for variant in example.variants)]
    trials.ran(replace(example.scenario))
    assert len(runs) == 2


def test_both_judges_are_asked_about_every_run() -> None:
    class Disagreeing(Agreeing):
        def examine(self, questions):  # type: ignore[no-untyped-def]
            examined = super().examine(questions)
            return replace(examined, disagreements=((len(questions) - 1, "one more row"),))

    example = EXAMPLES["two-ways-to-finish"]
    found, _ = run_example(Trials(SimulatedSubject()), example, Disagreeing())
    assert found.disagreements == ["stopped with drain, one by one: one more row"]
    assert found.exit_code == ExitCode.HARNESS_FAILED
