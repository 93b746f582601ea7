"""Resume at another parallelism, from the scenario to the verdict: checked, drawn, told, shrunk, judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli.entry import main
from cutproof.harness.counterexamples.words import command_in_words
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.files import read_scenario, write_scenario
from cutproof.harness.scenario.layout import topologies_of
from cutproof.harness.scenario.model import Resume, Scenario, StopWithSavepoint
from cutproof.harness.shrink.shrink import shrink
from cutproof.harness.subject.run import run
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History, StoredState, TaskRun
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.layouts import owner_of_key
from cutproof.properties.spark.questions import questions_of
from cutproof.reference_impl.core.job import topology as engine

replace = msgspec.structs.replace
PROCESSES = Path(__file__).parents[4] / "corpus" / "processes"


def scenario(**parallelism: int) -> Scenario:
    """Two sources, counts and sinks over three splits, stopped amid the records and resumed."""
    kept = read_scenario(PROCESSES / "D14.json")
    commands = tuple(
        replace(command, parallelism=parallelism) if isinstance(command, Resume) else command
        for command in kept.commands
    )
    return replace(kept, commands=commands, defect="", expects="")


NARROWER = {"source": 1, "count": 1, "sink": 1}
WIDER = {"source": 3, "count": 4, "sink": 3}


# -- what can be asked for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parallelism", "problem"),
    [
        ({"count": 0}, "count cannot have a parallelism of 0"),
        ({"count": 17}, "count cannot have a parallelism of 17; it can be 1 to 16; there are 16 key groups"),
        ({"other": 1}, "there is no operator 'other'"),
    ],
)
def test_a_layout_that_cannot_be_is_reported_in_a_line(
    parallelism: dict[str, int], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = scenario(**parallelism)
    assert problem in next(problems_of(wrong))
    write_scenario(tmp_path / "wrong.json", wrong)
    assert main(["replay", str(tmp_path / "wrong.json"), "--quick"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


def test_nor_can_one_end_of_a_forward_edge_alone() -> None:
    asked = scenario(count=3)
    first, last = asked.topology.edges
    forward = replace(asked, topology=replace(asked.topology, edges=(first, replace(last, partitioning="forward"))))
    assert "a forward edge from count to sink of another parallelism" in next(problems_of(forward))


def test_a_fault_may_hit_a_task_that_only_a_later_job_has() -> None:
    kept = read_scenario(PROCESSES / "A05.json")
    hit = replace(kept.faults[0], trigger=replace(kept.faults[0].trigger, task="count-3"))
    if hasattr(hit, "task"):
        hit = replace(hit, task="count-3")
    assert list(problems_of(replace(scenario(**WIDER), faults=(hit,)))) == []
    assert list(problems_of(replace(scenario(**NARROWER), faults=(hit,)))) != []


# -- drawn, told, shrunk -------------------------------------------------------------------------------------------


def test_whoever_can_is_asked_for_it_and_nobody_else() -> None:
    def asked(rescales: bool) -> list[dict[str, int]]:
        capabilities = replace(SimulatedSubject().capabilities, rescales=rescales)
        draw = scenario_of(Drawing(capabilities=capabilities, templates=("laid-out-anew", "S9")))
        commands = [command for index in range(40) for command in draw(3, index).commands]
        return [command.parallelism for command in commands if isinstance(command, Resume) and command.parallelism]

    assert len(asked(True)) > 10
    assert asked(False) == []


def test_what_is_drawn_is_valid_and_judged_as_before() -> None:
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities, templates=("laid-out-anew",)))
    for index in range(40):
        drawn = draw(5, index)
        assert list(problems_of(drawn)) == []
        assert len(topologies_of(drawn)) == 1 + sum(isinstance(command, Resume) for command in drawn.commands)


def test_in_words() -> None:
    (_, again) = scenario(count=3, sink=1).commands
    assert command_in_words(again) == "the job is started again, rescaled: count in 3 tasks, sink in 1 task"


def test_another_layout_shrinks_away_unless_it_matters() -> None:
    def width(still_fails: Callable[[Scenario], bool]) -> list[dict[str, int]]:
        smallest = shrink(scenario(**WIDER), still_fails, max_runs=400).scenario
        return [command.parallelism for command in smallest.commands if isinstance(command, Resume)]

    resumes = width(lambda one: any(isinstance(command, Resume) for command in one.commands))
    assert resumes == [{}]
    counts = width(lambda one: topologies_of(one)[-1].parallelism.get("count", 0) > 1 and len(topologies_of(one)) > 1)
    assert counts in ([{"count": 2}], [{}]), "either the resume makes two of it, or there were two before"


# -- judged --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [NARROWER, WIDER, {"count": 3}, {"source": 3, "sink": 1}])
def test_a_correct_run_is_not_accused_and_all_agree(parallelism: dict[str, int]) -> None:
    result = run(SimulatedSubject(), scenario(**parallelism))
    accused = {name: verdict for name, verdict in result.judgement.verdicts.items() if isinstance(verdict, Violated)}
    assert accused == {}
    shown = ("exactly-once", "no-data-loss", "consistent-cut", "order", "restored-state", "progress", "no-leaks")
    assert [name for name in shown if not isinstance(result.judgement.verdicts[name], Holds)] == []
    case = Case(result.scenario.workload, result.scenario.topology, result.history)
    assert questions_of(case, "anew") != (), "PySpark has a word on it"


def loaded(history: History, operator: str, job: int = 2) -> list[TaskRun]:
    return [run for run in history.runs if run.operator == operator and run.job == job and run.loaded is not None]


def edited(history: History, task: TaskRun, change: Callable[[StoredState], None]) -> None:
    assert task.loaded is not None
    state = msgspec.json.decode(task.loaded.state, type=StoredState)
    change(state)
    task.loaded.state = msgspec.json.encode(state).decode()


def move(runs: list[TaskRun], history: History, field: str) -> None:
    """What one subtask loaded is loaded by another."""
    giver = next(run for run in runs if run.loaded and getattr(decoded(run), field))
    taker = next(run for run in runs if run is not giver)
    items = getattr(decoded(giver), field)
    edited(history, giver, lambda state: setattr(state, field, type(items)()))
    edited(history, taker, lambda state: setattr(state, field, type(items)(items)))


def decoded(task: TaskRun) -> StoredState:
    assert task.loaded is not None
    return msgspec.json.decode(task.loaded.state, type=StoredState)


@pytest.mark.parametrize(
    ("operator", "field"), [("count", "entries"), ("source", "positions"), ("sink", "transactions")]
)
@pytest.mark.parametrize("what", ["lost", "elsewhere", "twice"])
def test_a_share_that_is_lost_or_elsewhere_or_there_twice_is_seen(operator: str, field: str, what: str) -> None:
    result = run(SimulatedSubject(), scenario(**WIDER))
    history, runs = result.history, loaded(result.history, operator)
    giver = next(run for run in runs if getattr(decoded(run), field))
    items = getattr(decoded(giver), field)
    if what == "elsewhere":
        move(runs, history, field)
    elif what == "lost":
        edited(history, giver, lambda state: setattr(state, field, type(items)()))
    else:
        taker = next(run for run in runs if run is not giver)
        edited(history, taker, lambda state: setattr(state, field, type(items)(items)))
    verdict = judge(result.scenario.workload, result.scenario.topology, history).verdicts["restored-state"]
    assert isinstance(verdict, Violated)
    assert verdict.difference == "loaded state differs"


def test_that_it_was_rescaled_is_the_users_word_and_not_the_engines() -> None:
    """Were the command's word not there, the second job would have begun with the wrong states."""
    result = run(SimulatedSubject(), scenario(count=3))
    for entry in result.history.journal:
        if getattr(entry, "parallelism", None):
            entry.parallelism = {}
    verdict = judge(result.scenario.workload, result.scenario.topology, result.history).verdicts["restored-state"]
    assert isinstance(verdict, Violated)


@pytest.mark.parametrize("groups", [1, 4, 16, 128])
def test_two_reckonings_of_who_owns_a_key(groups: int) -> None:
    """The judge's and the engine's share no code, and agree."""
    laid_out = replace(scenario().topology, key_groups=groups)
    for wide in range(1, min(groups, 5) + 1):
        topology = replace(laid_out, parallelism={**laid_out.parallelism, "count": wide})
        for key in (None, *range(-40, 40)):
            owner = engine.owner(engine.key_group(key, groups), groups, wide)
            assert owner_of_key(key, topology, "count") == owner


def test_a_stop_that_the_file_names_is_the_one_that_is_made() -> None:
    stop, again = scenario(**WIDER).commands
    assert isinstance(stop, StopWithSavepoint)
    assert isinstance(again, Resume)
