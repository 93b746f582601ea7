"""docs/your-engine.md: its steps are run, its tables are those of the code, and its claims are judged."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, indent

import msgspec
import pytest

import cutproof
from cutproof import History, Scenario, Workload, history
from cutproof.faults.plan import AtPoint, AtTime, InPhase
from cutproof.faults.points import PHASES
from cutproof.harness.cli.entry import main
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.history_checks import history_problems
from cutproof.harness.scenario.model import COMMANDS
from cutproof.harness.scenario.model import Engine as Settings
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.abilities import OPERATORS, VOCABULARIES
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import Capabilities
from cutproof.harness.subject_kit.new import TEMPLATE, write_new
from cutproof.harness.subject_kit.template.adapter import BrokenEngine, Engine
from cutproof.harness.subject_kit.trial import Trial, tried
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.verdict import Holds, Unknown, Verdict, Violated
from cutproof.properties.model.workload import Topology, problems
from cutproof.properties.reconstruct.layouts import owner_of_key
from unit.docs import engine_tables

TEXT = engine_tables.PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python ?(\S*)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
STEPS = ("rows:Engine", "journal:Engine", "steps:Reads", "steps:Listing", "steps:Inside", "mine.adapter:Engine")


def _section(title: str) -> str:
    found = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Trial]]:
    """The trial of what each step builds: the page's own files, beside the folder that its first command writes."""
    folder = tmp_path_factory.mktemp("steps")
    write_new("mine", folder)
    for name, body in BLOCKS:
        if name:
            (folder / name).write_text(body)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield {name: tried(subject_called(name), name, 0) for name in STEPS}
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("rows", "journal", "steps", "mine"):
                del sys.modules[name]


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_wrong_in_a_step(trials: dict[str, Trial], step: str) -> None:
    trial = trials[step]
    assert (trial.violated, trial.malformed, trial.not_run) == ([], [], [])
    assert trial.scenarios == 40


def _judged(trial: Trial) -> set[str]:
    return {one.invariant for one in trial.invariants if one.held}


def _how(trial: Trial, how: str) -> set[str]:
    return {one.invariant for one in trial.invariants if one.how == how}


def test_each_step_makes_the_invariants_judgeable_that_the_page_names(trials: dict[str, Trial]) -> None:
    rows, journal, reads, listing, inside, whole = (trials[step] for step in STEPS)
    assert _how(rows, "from outside") == {"exactly-once", "at-most-once", "visibility"}
    named = [{name for name, there in trials[step].witnesses.items() if there} for step in STEPS]
    assert [len(names) for names in named] == [1, 2, 2, 3, 6, 7]
    assert _judged(rows) == set()
    assert _judged(journal) == {"exactly-once", "no-data-loss", "progress"}
    assert "visibility" in _judged(reads) - _judged(journal)
    assert _judged(listing) - _judged(reads) == {"no-leaks"}
    assert _how(inside, "in full") == {"order", "drain"}
    assert len(_judged(whole)) == 11
    assert _how(whole, "in full") - _judged(whole) == {"restorable"}, "the toy forks no job"


def test_the_job_of_the_page_can_be_run_and_judged() -> None:
    (body,) = [body for name, body in BLOCKS if name == "one_job.py"]
    names: dict[str, Workload] = {}
    exec(compile(body, "one_job.py", "exec"), names)
    workload = names["workload"]
    scenario = Scenario(workload=workload, topology=lay_out(workload))
    assert problems(workload, scenario.topology) == []
    subject = subject_called("simulated")
    assert judge(workload, scenario.topology, subject.run(scenario)).violated == {}


def test_what_the_page_imports_is_public() -> None:
    table = _section("How Python makes a `History`").partition("The classes of faults")[0]
    named = {name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert len(named) == 13
    assert named <= set(cutproof.__all__)
    dotted = re.findall(r"`(\w+)\.(\w+)`", TEXT)
    modules = {"history": cutproof.history, "operators": cutproof.operators}
    used = [(modules[module], name) for module, name in dotted if module in modules]
    assert len(used) >= 8
    assert [name for module, name in used if not hasattr(module, name)] == []


def test_the_files_of_the_page_can_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (body,) = [body for name, body in BLOCKS if name == "to_files.py"]
    names: dict[str, Callable[[Scenario, History, Path], None]] = {}
    exec(compile(body, "to_files.py", "exec"), names)
    for engine in (Engine(), BrokenEngine()):
        for scenario in _scenarios(number=4):
            seen = engine.run(scenario)
            expected = judge(scenario.workload, scenario.topology, seen).violated
            names["keep"](scenario, seen, tmp_path)
            assert main(["judge", str(tmp_path / "history.json"), "--quick", "--json"]) == bool(expected)
            assert f'"subject": "{engine.name}"' in capsys.readouterr().out


def test_jobs_without_an_operator_and_with_two_are_drawn() -> None:
    lengths = {len(scenario.workload.nodes) for scenario in _scenarios()}
    assert {0, 1, 2} <= lengths


def test_what_the_page_quotes_is_in_the_adapter() -> None:
    adapter = (TEMPLATE / "adapter.py").read_text(encoding="utf-8")
    quoted = [part for name, body in BLOCKS if not name for part in re.split(r"\n\n\n(?=def )", body.rstrip())]
    assert len(quoted) == 3
    assert [part for part in quoted if indent(dedent(part), "    ") not in adapter] == []


def test_the_methods_that_the_page_names_are_there() -> None:
    adapter = (TEMPLATE / "adapter.py").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `\w+` \| `(?:Recorder|WatchedStorage)\.([^|]+) \|", TEXT, flags=re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"\w+", row)]
    assert len(names) == 15
    assert [name for name in names if f"def {name}(" not in adapter] == []


def test_the_tables_are_those_of_the_code() -> None:
    assert engine_tables.renewed(TEXT) == TEXT
    readme = engine_tables.README.read_text(encoding="utf-8")
    assert "<!-- speed: begin -->" in readme
    assert engine_tables.renewed(readme) == readme


def test_every_capability_of_an_operator_has_a_row_and_an_example() -> None:
    named = [name for names, _, _ in engine_tables.OPERATORS for name in re.findall(r"`([^`]+)`", names)]
    assert sorted(named) == sorted(OPERATORS)
    without = [names for names, operator, _ in engine_tables.OPERATORS if operator is None]
    assert [names for names in without if not names.startswith(("`burst`", "`user"))] == []


def test_every_setting_of_a_scenario_is_said_to_bind_or_not() -> None:
    named = set(re.findall(r"`(\w+\.\w+|\w+)`", _section("What a scenario asks of your adapter")))
    fields = {f"engine.{name}" for name in Settings.__struct_fields__}
    fields |= {f"topology.{name}" for name in Topology.__struct_fields__}
    fields |= {"faults", "commands", "deviations", "workload.inputs", "workload.nodes"}
    assert fields - named == set()
    assert {name for name in named if name.startswith(("engine.", "topology."))} <= fields


def test_every_capability_is_explained_with_all_its_names() -> None:
    section = _section("Capabilities")
    named = set(re.findall(r"`([\w-]+)`", section))
    assert set(Capabilities.__struct_fields__) - named == set()
    for field, (_, names) in VOCABULARIES.items():
        if field not in ("faults", "commands", "operators"):
            assert set(names) - named == set(), field


def test_triggers_and_phases_are_those_of_the_code() -> None:
    section = _section("Faults and their triggers")
    for trigger in (AtTime, AtPoint, InPhase):
        assert f"`{trigger.__name__}({', '.join(trigger.__struct_fields__)})`" in section
    assert set(PHASES) - set(re.findall(r"`([\w-]+)`", section)) == set()


def test_every_command_is_explained() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", _section("Commands"), flags=re.MULTILINE)
    assert rows == list(COMMANDS)


def test_no_link_leads_into_the_source() -> None:
    assert [link for link in re.findall(r"\]\(([^)]+)\)", TEXT) if ".." in link or link.endswith(".py")] == []


# -- what the page says of the judge


def _scenarios(sources: str = "bounded", number: int = 40) -> list[Scenario]:
    capabilities = msgspec.structs.replace(Engine.capabilities, sources=frozenset({sources}))
    draw = scenario_of(Drawing(max_records=60, max_faults=2, capabilities=capabilities))
    return [draw(3, index) for index in range(number)]


def _verdict(scenario: Scenario, seen: History, invariant: str) -> Verdict:
    assert list(history_problems(scenario, seen)) == []
    return judge(scenario.workload, scenario.topology, seen).verdicts[invariant]


def _has_fired(seen: History) -> bool:
    return any(isinstance(entry, history.FaultFired) for entry in seen.journal)


def test_without_a_fault_progress_is_demanded_from_the_beginning_and_healed_is_left_out() -> None:
    runs = [(scenario, Engine().run(scenario)) for scenario in _scenarios()]
    undisturbed = [(scenario, seen) for scenario, seen in runs if not _has_fired(seen) and seen.completed]
    disturbed = [(scenario, seen) for scenario, seen in runs if _has_fired(seen) and seen.completed]
    assert undisturbed
    assert disturbed
    for scenario, seen in undisturbed:
        assert seen.healed is None
        verdict = _verdict(scenario, seen, "progress")
        assert isinstance(verdict, Holds)
        assert verdict.exercised > 1
    for scenario, seen in disturbed:
        assert seen.healed is not None
        healed, seen.healed = seen.healed, None
        assert _verdict(scenario, seen, "progress") == Holds(exercised=1), "the good end alone"
        seen.healed, seen.lasting = healed, [0]
        seen.journal = [entry for entry in seen.journal if not isinstance(entry, history.JobEnded)]
        seen.quiet = False
        assert isinstance(_verdict(scenario, seen, "progress"), Unknown)


def _still_running(seen: History) -> History:
    """The history of a job that goes on: nothing says that its input ended."""
    seen.journal = [entry for entry in seen.journal if not isinstance(entry, history.JobEnded)]
    for run in seen.runs:
        run.end_of_data = False
        if run.how == "finished":
            run.how, run.ended = "alive", None
    return seen


def test_a_job_whose_input_does_not_end_is_judged_while_it_runs() -> None:
    found = []
    for scenario in _scenarios("unbounded"):
        if scenario.engine.guarantee == "exactly-once" and not any(
            node.operator.__struct_config__.tag == "batch" for node in scenario.workload.nodes
        ):
            seen = _still_running(Engine().run(scenario))
            judgement = judge(scenario.workload, scenario.topology, seen)
            assert judgement.violated == {}
            found.append(isinstance(judgement.verdicts["progress"], Holds))
            seen.completed = []
            uncovered = judge(scenario.workload, scenario.topology, seen)
            assert "progress" in uncovered.violated
    assert found.count(True) > 10


def test_from_outside_only_the_end_says_what_the_output_covers() -> None:
    for scenario in _scenarios(number=15):
        engine = Engine()
        engine.witnesses = ("reader", "journal")
        seen = engine.run(scenario)
        if scenario.engine.guarantee == "exactly-once" and scenario.engine.sink == "transactional":
            ended = _verdict(scenario, seen, "exactly-once")
            assert not isinstance(ended, Violated)
            assert getattr(ended, "reason", "") != "not observable"
            verdict = _verdict(scenario, _still_running(seen), "exactly-once")
            assert isinstance(verdict, Unknown)
            assert verdict.reason == "not observable"


def test_an_operator_may_run_with_fewer_subtasks_and_not_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from cutproof.harness.subject_kit.template import adapter

    translate = adapter.job_of

    def ran_with(scenario: Scenario, parallelism: int) -> History:
        def narrow(one: Scenario) -> adapter.Job:
            job = translate(one)
            steps = tuple(
                adapter.Step(step.name, step.kind, parallelism, step.hashed, step.settings) for step in job.steps
            )
            return adapter.Job(steps, job.splits, job.checkpoint_every, job.read_every, job.transactional, job.rewinds)

        monkeypatch.setattr(adapter, "job_of", narrow)
        return Engine().run(scenario)

    for scenario in _scenarios(number=20):
        narrow = ran_with(scenario, 1)
        assert list(history_problems(scenario, narrow)) == []
        assert judge(scenario.workload, scenario.topology, narrow).violated == {}
        assert list(history_problems(scenario, ran_with(scenario, 9))) != []


def test_the_owner_of_a_key_after_a_rescale_is_as_the_page_computes_it() -> None:
    import zlib

    topology = Topology(parallelism={"count": 3}, edges=(), key_groups=16)
    for key in (None, *range(-5, 40)):
        group = zlib.crc32(b"null" if key is None else str(key).encode()) % 16
        assert owner_of_key(key, topology, "count") == group * 3 // 16
    assert "CRC-32 of its decimal text (`null` for NULL) modulo `topology.key_groups`" in TEXT
    assert "`group * parallelism // key_groups`" in TEXT


def test_the_page_is_linked_from_where_an_engine_is_spoken_of() -> None:
    root = Path(__file__).parents[3]
    for name, link in (("README.md", "docs/your-engine.md"), ("docs/extending.md", "your-engine.md")):
        assert f"]({link}" in (root / name).read_text(encoding="utf-8")
    assert "](your-engine.md" in (root / "docs" / "format.md").read_text(encoding="utf-8")
