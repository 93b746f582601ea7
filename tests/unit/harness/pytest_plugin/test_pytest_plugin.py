"""The pytest plugin, in test runs of its own; PySpark is stood in for by a judge that never disagrees."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

from cutproof.harness.examples import EXAMPLES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.scenario.files import text_of, write_scenario

pytest_plugins = ["pytester"]

STUB = """
    import pytest
    from cutproof.harness.pytest_plugin import verifier
    from cutproof.harness.search.oracle import Examined

    class Agrees:
        def start(self): pass
        def wait(self): pass
        def examine(self, questions): return Examined(engine="stub", workloads=len(questions))

    verifier.PySpark = Agrees
"""
BROKEN = """
    from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject

    class Broken(SimulatedSubject):
        "Shows its first committed row twice, once anything was restored."
        name = "broken"

        def run(self, scenario, *, timeline=False):
            history = super().run(scenario, timeline=timeline)
            if history.sink == "transactional" and any(run.loaded for run in history.runs):
                history.committed += history.committed[:1]
            return history
"""


def _options() -> list[str]:
    """The plugin is an entry point where cutproof is installed, and is named where it is not."""
    installed = any(point.name == "cutproof" for point in importlib.metadata.entry_points(group="pytest11"))
    return [] if installed else ["-p", "cutproof.harness.pytest_plugin.plugin"]


def _run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*_options(), "-p", "no:cacheprovider", *options)


def test_a_subject_that_holds_passes_and_is_in_the_summary(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile(
        "def test_it(cutproof):\n    assert cutproof.verify(scenarios=20, seed=3).scenarios.run == 20\n"
    )
    result = _run(pytester)
    result.assert_outcomes(passed=1)
    printed_text = result.stdout.str()
    assert re.search(r"::test_it: 20 scenarios on simulated, seed 3: \d+ held, 0 violated", printed_text)
    assert re.search(r"  PySpark computed the expected rows in \d+ of 20 scenarios", printed_text)
    assert "  The run had 20 of the 1,500 scenarios of the profile default: whether it exercised enough" in printed_text


def test_a_failure_is_a_story_with_rows_and_the_one_command(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile(broken=BROKEN)
    pytester.makepyfile(
        "import broken\n"
        "def test_one(cutproof):\n    cutproof.verify(broken.Broken(), scenarios=30)\n"
        "def test_two(cutproof):\n    cutproof.verify(broken.Broken(), scenarios=30)\n"
    )
    result = _run(pytester)
    result.assert_outcomes(failed=2)
    printed_text = result.stdout.str()
    assert "exactly-once violated (repeated row)" in printed_text
    assert re.search(r"E\s+expected\s+committed", printed_text)
    assert re.search(r"E\s+repeated\s+-\s+\d", printed_text)
    assert re.search(r"E\s+replay: cutproof replay \S+\.json", printed_text)
    assert re.search(r"E\s+Both judges saw it\.", printed_text)
    assert "verifier.py" not in printed_text
    summary = printed_text.split("= cutproof =")[1]
    command = re.findall(r"cutproof replay (\S+) --subject broken:Broken", summary)[0]
    assert json.loads(Path(command).read_text())["format"] == "cutproof-scenario/1"
    causes = re.findall(r"(\S+ violated \(.+?\)) on broken", summary)
    assert causes
    assert len(causes) == len(set(causes)), "what both tests show is told once"


def test_a_known_failure_is_not_red_until_it_expires(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile(broken=BROKEN)
    pytester.makepyfile("import broken\ndef test_it(cutproof):\n    cutproof.verify(broken.Broken(), scenarios=20)\n")
    one = '[[failure]]\ninvariant = "{}"\nreason = "ENGINE-1"\nexpires = %s\n'
    known = one.format("exactly-once") + one.format("at-least-once")
    path = pytester.path / "known.toml"
    path.write_text(known.replace("%s", "2999-01-01"))
    result = _run(pytester, f"--cutproof-known-failures={path}")
    result.assert_outcomes(passed=1)
    assert "known: ENGINE-1" in result.stdout.str()
    path.write_text(known.replace("%s", "2020-01-01"))
    _run(pytester, f"--cutproof-known-failures={path}").assert_outcomes(failed=1)


def test_scenario_files_are_collected(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile(broken=BROKEN)
    write_scenario(pytester.path / "kept.cutproof.json", EXAMPLES["single-input-barrier"].scenario)
    (pytester.path / "cut.cutproof.json").write_text('{"format":"cutproof-sc')
    (pytester.path / "other.json").write_text("{}")
    result = _run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    assert "cut.cutproof.json: the file is cut off" in result.stdout.str()
    assert "1 scenario on simulated: 1 held" in result.stdout.str()
    result = _run(pytester, "--cutproof-subject=broken:Broken", "kept.cutproof.json")
    result.assert_outcomes(failed=1)
    assert "--subject broken:Broken" in result.stdout.str()
    assert "PySpark was not asked, because only the quick checker was asked for." in result.stdout.str()


def test_a_collected_file_that_states_what_is_not_so_of_a_function_is_refused(pytester: pytest.Pytester) -> None:
    """What it owes would be reckoned by what the file says, and the engine accused."""
    draw = scenario_of(Drawing(templates=("user-function",)))
    timed = next(text for text in (text_of(draw(1, index)) for index in range(40)) if '"timed": true' in text)
    (pytester.path / "wrong.cutproof.json").write_text(timed.replace('"timed": true', '"timed": false'))
    result = _run(pytester)
    result.assert_outcomes(failed=1)
    assert "is timed, and the workload declares otherwise" in result.stdout.str()


def test_it_works_under_xdist(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile(broken=BROKEN)
    body = "import broken\n" + "".join(
        f"def test_{number}(cutproof):\n    cutproof.verify(broken.Broken(), scenarios=15, workload='orders')\n"
        for number in range(2)
    )
    pytester.makepyfile(body)
    result = _run(pytester, "-n", "2")
    result.assert_outcomes(failed=2)
    summary = result.stdout.str().split("= cutproof =")[1]
    assert len(re.findall(r"exactly-once violated \(", summary)) == 1
    (printed,) = re.findall(r"exactly-once violated \(.+\n((?:  in \S+::test_\d\n)+)", summary)
    assert len(printed.splitlines()) == 2


def test_a_run_that_does_not_use_it_loads_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_light():\n"
        "    heavy = {'hypothesis', 'pyspark', 'pandas', 'pyarrow', 'msgspec'} & set(sys.modules)\n"
        "    assert heavy == set()\n"
    )
    result = _run(pytester, "-p", "no:hypothesispytest", "-p", "no:xdist")
    result.assert_outcomes(passed=1)
    assert "cutproof" not in result.stdout.str().split("test session starts")[1].split("rootdir")[1].split("\n", 2)[2]


def test_its_options_begin_with_its_name(pytester: pytest.Pytester) -> None:
    printed_text = _run(pytester, "--help").stdout.str()
    group = printed_text.split("cutproof: verification of stream processors:")[1].split("\n\n")[0]
    options = re.findall(r"^  (--[a-z-]+)", group, re.M)
    assert len(options) >= 5
    assert all(option.startswith("--cutproof-") for option in options)


def test_a_failing_harness_is_not_a_violation(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB.replace("return Examined(", "return Examined(disagreements=((0, 'a row'),), "))
    pytester.makepyfile("def test_it(cutproof):\n    cutproof.verify(scenarios=5)\n")
    result = _run(pytester)
    result.assert_outcomes(failed=1)
    assert "the harness failed: the two judges disagree" in result.stdout.str()


def test_scenarios_that_could_not_be_run_come_with_their_commands(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile(
        halting="""
            from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject

            class Halting(SimulatedSubject):
                def run(self, scenario, *, timeline=False):
                    if scenario.workload.records() % 2:
                        raise LookupError("no such table")
                    return super().run(scenario, timeline=timeline)
        """,
        test_it="""
            from halting import Halting

            def test_it(cutproof):
                cutproof.verify(subject=Halting(), scenarios=12, seed=3)
        """,
    )
    printed = _run(pytester).stdout.str()
    assert "the harness failed: " in printed
    assert "could not be run, the first of them scenario" in printed
    assert re.search(r"\n\s+cutproof replay \S*counterexamples/undriven-\d+\.json --subject halting:Halting", printed)
    assert re.search(r"scenarios on simulated, seed 3: .* unknown; \d+ could not be run", printed)


def test_a_misspelt_capability_is_one_line(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(STUB)
    pytester.makepyfile("""
        from cutproof import Capabilities

        class Mine:
            name = "mine"
            capabilities = Capabilities(faults={"kill-tsk"})
            def run(self, scenario, *, timeline=False): ...

        def test_it(cutproof):
            cutproof.verify(subject=Mine(), scenarios=2)
    """)
    printed = _run(pytester).stdout.str()
    assert "Mine declares the fault 'kill-tsk', which does not exist; did you mean 'kill-task'?" in printed
    assert "Traceback" not in printed
