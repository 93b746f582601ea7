"""The trial of a subject: what is right is not accused, and what is wrong or missing is named."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
import pytest

from cutproof import Capabilities, History, Scenario, history
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import HarnessFailed
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject_kit import trial as trials
from cutproof.harness.subject_kit.template.adapter import BrokenEngine, Engine
from cutproof.harness.subject_kit.trial import NOT_ASKED, Trial, tried
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.verdict import INVARIANTS

Change = Callable[[History], None]


@pytest.fixture(autouse=True)
def few_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "CANDIDATES", 50)
    monkeypatch.setattr(trials, "SCENARIOS", 25)


class Changed(Engine):
    """The toy, with something wrong in what it reports."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        seen = super().run(scenario, timeline=timeline)
        self._change(seen)
        return seen


def _tried(change: Change) -> Trial:
    return tried(Changed(change), "mine:Engine", 0)


def _todo(trial: Trial) -> str:
    return "\n".join(trial.to_do)


def test_an_engine_that_holds_is_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "CANDIDATES", 150)
    monkeypatch.setattr(trials, "SCENARIOS", 40)
    seen: list[tuple[int, int]] = []
    trial = tried(Engine(), "mine:Engine", 0, lambda done, total: seen.append((done, total)))
    assert (trial.violated, trial.malformed, trial.not_run, trial.is_wrong) == ([], [], [], False)
    assert (trial.subject, trial.seed, trial.scenarios, trial.pyspark) == ("mine:Engine", 0, 40, NOT_ASKED)
    assert all(trial.witnesses.values())
    assert [(one.invariant, one.how, one.held > 0) for one in trial.invariants] == [
        (name, "in full", name != "restorable")
        for name in INVARIANTS  # it forks no job
    ]
    assert trial.unused == []
    assert {"the fault kill-task", "the operator batch", "the sink plain"} <= set(trial.used)
    (kill,) = trial.faults
    assert 0 < kill.restored < kill.restarted == kill.fired <= kill.planned
    (points,) = trial.to_do
    assert points.startswith("no fault fired at checkpoint-aborted, savepoint-requested: announce")
    assert seen == [(done, 40) for done in range(40)]


def test_the_scenarios_are_the_same_for_a_seed() -> None:
    first, second = (tried(Engine(), "mine:Engine", 3) for _ in range(2))
    other = tried(Engine(), "mine:Engine", 4)
    first.seconds = second.seconds = 0.0
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert msgspec.json.encode(first.faults) != msgspec.json.encode(other.faults)


def test_what_a_run_has_shown_is_not_looked_for_again() -> None:
    def picked(tells: bool) -> set[str]:
        engine = Engine()
        choice = trials._Choice(engine, "mine:Engine", 0, None)
        found: set[str] = set()
        for _ in range(4):
            index, scenario = choice.next()
            seen = engine.run(scenario)
            judgement = judge(scenario.workload, scenario.topology, seen)
            if tells:
                choice.showed(trials.Ran(index=index, scenario=scenario, history=seen, judgement=judgement))
            found |= trials._names(scenario)
        return found

    assert picked(False) < picked(True)


def test_a_planted_bug_is_named_with_its_scenario() -> None:
    trial = tried(BrokenEngine(), "mine:Engine", 0)
    assert trial.is_wrong
    assert any(one.problem.startswith("exactly-once: repeated row") for one in trial.violated)
    assert [one.index for one in trial.violated] == sorted(one.index for one in trial.violated)


def test_a_malformed_history_is_named_and_not_judged() -> None:
    def rename(seen: History) -> None:
        if seen.runs:
            seen.runs[0].task = "nobody-0"

    trial = _tried(rename)
    assert trial.is_wrong
    assert trial.scenarios == 0
    assert "there is no task 'nobody-0'" in trial.malformed[0].problem
    assert len(trial.malformed) == 25


@pytest.mark.parametrize("error", [SubjectFailed("no port is free"), KeyError("port")])
def test_a_scenario_that_cannot_be_run_is_no_violation(error: Exception) -> None:
    def fail(seen: History) -> None:
        raise error

    trial = _tried(fail)
    assert not trial.is_wrong
    assert {one.problem for one in trial.not_run} == {f"{type(error).__name__}: {error}"}


def test_a_failure_of_the_environment_ends_the_trial() -> None:
    def fail(seen: History) -> None:
        raise HarnessFailed("the disk is full")

    with pytest.raises(HarnessFailed, match="the disk is full"):
        _tried(fail)


class Deaf(Engine):
    """No fault reaches it."""

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        return super().run(msgspec.structs.replace(scenario, faults=()), timeline=timeline)


def test_a_fault_that_never_fires_is_named() -> None:
    trial = tried(Deaf(), "mine:Engine", 0)
    (kill,) = trial.faults
    assert kill.planned > 10
    assert (kill.fired, kill.is_felt) == (0, False)
    assert f"kill-task was planned {kill.planned} times and never fired" in _todo(trial)
    assert "the fault kill-task" in trial.unused


class Refusing(SimulatedSubject):
    """Every savepoint is refused."""

    capabilities = Capabilities(
        faults=frozenset({"kill-task"}),
        commands=frozenset({"savepoint", "stop-with-savepoint", "resume"}),
        operators=frozenset({"count"}),
    )

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        seen = super().run(scenario, timeline=timeline)
        refused = {
            entry.command
            for entry in seen.journal
            if isinstance(entry, history.CommandIssued) and entry.kind == "savepoint"
        }
        for entry in seen.journal:
            if isinstance(entry, history.CommandReturned) and entry.command in refused:
                entry.error = "not now"
        return seen


def test_a_command_that_is_never_carried_out_is_not_used() -> None:
    trial = tried(Refusing(), "mine:Engine", 0)
    assert "the command savepoint" in trial.unused
    assert {"the command stop-with-savepoint", "the command resume"} <= set(trial.used)


class Undisturbed(Engine):
    capabilities = msgspec.structs.replace(Engine.capabilities, faults=frozenset())


def test_a_subject_without_faults_is_told_so() -> None:
    assert "no fault is declared" in _todo(tried(Undisturbed(), "mine:Engine", 0))


def _only_the_first_attempt(seen: History) -> None:
    first, *others = seen.journal
    attempts = (history.AttemptStarted, history.AttemptRunning)
    seen.journal = [first, *(one for one in others if not isinstance(one, attempts))]


def test_a_fault_after_which_nothing_began_is_named() -> None:
    class Outside(Changed):
        witnesses = ("reader", "journal")

    trial = tried(Outside(_only_the_first_attempt), "mine:Engine", 0)
    assert "kill-task fired, and no attempt began after it" in _todo(trial)
    assert trial.faults[0].restarted == 0


def test_an_attempt_that_restored_nothing_is_named() -> None:
    class Outside(Changed):
        witnesses = ("reader", "journal")

    def forget(seen: History) -> None:
        for entry in seen.journal:
            if isinstance(entry, history.AttemptStarted):
                entry.restores = None

    trial = tried(Outside(forget), "mine:Engine", 0)
    assert "no attempt after a fault has `restores`" in _todo(trial)
    assert "neither held nor violated in this trial: exactly-once" in _todo(trial)


def test_a_history_without_healed_is_named() -> None:
    def forget(seen: History) -> None:
        seen.healed = None

    assert "a fault fired, and `healed` is missing" in _todo(_tried(forget))


def test_witnesses_that_are_missing_are_named_with_what_they_would_buy() -> None:
    class Outside(Engine):
        witnesses = ("reader", "journal")

    trial = tried(Outside(), "mine:Engine", 0)
    assert [name for name, there in trial.witnesses.items() if there] == ["reader", "journal"]
    how = {one.invariant: one.how for one in trial.invariants}
    assert (how["exactly-once"], how["drain"]) == ("from outside", "no")
    assert "no-leaks cannot be judged: the history has no witness listing" in trial.to_do
    assert "consistent-cut cannot be judged: the history has no witness tasks, snapshots, store" in trial.to_do


def test_a_witness_that_one_history_lacks_is_missing() -> None:
    numbers = itertools.count()

    def forget(seen: History) -> None:
        if next(numbers) == 7:
            seen.witnesses = [name for name in history.WITNESSES if name != "network"]
            seen.channels = []

    trial = _tried(forget)
    assert [name for name, there in trial.witnesses.items() if not there] == ["network"]


def test_an_adapter_that_raises_in_the_run_that_is_repeated_keeps_its_checklist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trials, "SCENARIOS", 3)
    numbers = itertools.count()

    def break_down(_: History) -> None:
        if next(numbers) >= 3:
            raise KeyError("left over")

    trial = _tried(break_down)
    assert trial.scenarios == 3
    assert "could be run once, and not a second time: KeyError: 'left over'" in _todo(trial)


def test_chance_is_noticed_in_virtual_time_and_allowed_in_real_time() -> None:
    numbers = itertools.count()

    def vary(seen: History) -> None:
        seen.unapplied = [str(next(numbers))]

    assert "declare `real_time=True`" in _todo(_tried(vary))

    class RealTime(Changed):
        capabilities = msgspec.structs.replace(Engine.capabilities, real_time=True)

    trial = tried(RealTime(vary), "mine:Engine", 0)
    assert "real_time" not in _todo(trial)
    assert trial.scenarios == 25


def test_in_real_time_a_few_scenarios_are_enough_once_some_seconds_have_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class RealTime(Engine):
        capabilities = msgspec.structs.replace(Engine.capabilities, real_time=True)

    monkeypatch.setattr(trials, "ENOUGH_S", 0.0)
    assert tried(RealTime(), "mine:Engine", 0).scenarios == 6
    assert tried(Engine(), "mine:Engine", 0).scenarios == 25


def test_defaults_that_nothing_can_use_are_not_asked_for() -> None:
    assert not {"the way of spilling at-once", "the spill store log"} & set(tried(Engine(), "mine", 0).unused)
    assert isinstance(Engine.capabilities, Capabilities)
