"""A user's own code that is wrong is told to its user in one line: bad input, and not the harness's failure (OPS-4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.harness.cli import entry
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.scenario.files import write_history, write_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.oracle import PySpark, question_of
from cutproof.harness.search.verification import Request, campaign_of, loaded_workload, verify
from cutproof.harness.subject.run import run
from cutproof.harness.workloads.user_functions import UserFunction, known
from cutproof.properties.model.verdict import Violated
from cutproof.properties.model.workload import Input, Node, User, Workload
from cutproof.properties.semantics.user_functions import CounterpartFailed, UserMachine
from cutproof.properties.spark.user_functions import given_by
from cutproof.reference_impl.core.operators.user_functions import Context, Function, Out, Taken
from unit.harness import subjects
from unit.user_examples import examples_known


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with examples_known(monkeypatch):
        yield


def workload(name: str = "top-two") -> Workload:
    splits = (tuple((n % 3, n, 100 + n) for n in range(24)),)
    source = Input(name="source", splits=splits, times=(tuple(range(0, 240, 10)),), delay=40)
    operator = User(function=name, ordered=name == "top-two", timed=name != "top-two")
    return Workload(name="own", inputs=(source,), nodes=(Node(name="mine", operator=operator, inputs=("source",)),))


def scenario(name: str = "top-two") -> Scenario:
    capabilities = SimulatedSubject().capabilities
    return scenario_of(Drawing(capabilities=capabilities, workload=workload(name), templates=("S14",)))(3, 0)


def top_two(**changes: Any) -> UserFunction:
    function: UserFunction = __import__("top_two").TOP_TWO
    return msgspec.structs.replace(function, **changes)


def raises(*_: Any) -> Any:
    raise ZeroDivisionError("by a user")


# -- an entry that leads nowhere -----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ValueError('at import')", "cannot be imported: ValueError: at import"),
        ("def broken(:", "cannot be imported: SyntaxError: invalid syntax"),
        ("import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("import nowhere_at_all", "cannot be imported: No module named 'nowhere_at_all'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_bad_input(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "users_own.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert entry.main(["verify", "--function", "users_own:X", "--scenarios", "1"]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"cutproof: the function users_own:X {words}")


@pytest.mark.parametrize("name", [":X", "silence:", ":", "silence"])
def test_half_an_entry_is_bad_input(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["verify", "--function", name, "--scenarios", "1"]) == ExitCode.USAGE
    assert f"is named package.module:NAME, not {name!r}" in capsys.readouterr().err


class Unmade(Function):
    def __init__(self) -> None:
        raise OSError("no room")


def test_a_function_that_cannot_be_made_is_bad_input() -> None:
    with pytest.raises(UsageError, match="top-two cannot be made: it raised OSError: no room"):
        known([top_two(function=Unmade)])


# -- a function that nobody has made known -------------------------------------------

UNKNOWN = "cutproof: there is no user function 'mine'; make it known with --function package.module:NAME"


def test_a_scenario_with_an_unknown_function_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_scenario(tmp_path / "own.json", scenario("mine"))
    assert entry.main(["replay", str(tmp_path / "own.json"), "--quick"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [UNKNOWN]


def test_a_history_with_an_unknown_function_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_scenario(tmp_path / "scenario.json", scenario("mine"))
    write_history(tmp_path / "history.json", SimulatedSubject().run(scenario("top-two")))
    assert entry.main(["judge", str(tmp_path / "history.json"), "--quick"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [UNKNOWN]


def test_a_workload_with_an_unknown_function_is_bad_input() -> None:
    assert campaign_of(Request(seed=0, workload=loaded_workload(workload())))
    with pytest.raises(UsageError, match="there is no user function 'mine'; make it known with --function"):
        campaign_of(Request(seed=0, workload=loaded_workload(workload("mine"))))


# -- a function that is another than the workload says ------------------------------


@pytest.mark.parametrize(
    ("name", "declared", "words"),
    [
        ("silence", {"timed": False}, "the function 'silence' is timed, and the workload declares otherwise"),
        ("top-two", {"ordered": False}, "the function 'top-two' is ordered, and the workload declares otherwise"),
        ("top-two", {"timed": True}, "the function 'top-two' is not timed, and the workload declares otherwise"),
        ("top-two", {"clocked": True}, "the function 'top-two' is not clocked, and the workload declares otherwise"),
    ],
)
def test_a_function_that_is_declared_to_be_another_is_bad_input(
    name: str, declared: dict[str, bool], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it owes would be reckoned by what the workload says, and the engine accused."""
    own = workload(name)
    (mine,) = own.nodes
    other = msgspec.structs.replace(mine, operator=msgspec.structs.replace(mine.operator, **declared))
    own = msgspec.structs.replace(own, nodes=(other,))
    write_scenario(tmp_path / "own.json", msgspec.structs.replace(scenario(name), workload=own))
    assert entry.main(["replay", str(tmp_path / "own.json"), "--quick"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [f"cutproof: mine: {words}"]
    with pytest.raises(UsageError, match=words):
        campaign_of(Request(seed=0, workload=loaded_workload(own)))


def test_that_the_order_matters_may_be_declared_of_any(tmp_path: Path) -> None:
    known([top_two(ordered=False)])
    write_scenario(tmp_path / "own.json", scenario())
    assert entry.main(["replay", str(tmp_path / "own.json"), "--quick"]) == ExitCode.HELD


@pytest.mark.parametrize("name", ["", 5])
def test_a_function_without_a_name_is_bad_input(name: str) -> None:
    with pytest.raises(UsageError, match=f"the name of a user function is a text, not {name!r}"):
        known([top_two(name=name)])


# -- a counterpart that raises, or never ends ----------------------------------------


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (raises, "`expected` of top-two raised ZeroDivisionError: by a user"),
        (lambda records, time: ((n, 0, 0) for n in count()), "`expected` of top-two gives more than 100,000 rows of"),
        (lambda records, time: [(1, 2)], r"`expected` of top-two gave \(1, 2\); a row is \(value, tag, tag2\)"),
        (lambda records, time: None, "`expected` of top-two raised TypeError"),
    ],
)
def test_a_wrong_expected_is_bad_input(expected: Any, words: str) -> None:
    known([top_two(expected=expected)])
    with pytest.raises(CounterpartFailed, match=words):
        UserMachine(User(function="top-two")).take_at((1, 2, 3, 0), 0, 0)
    with pytest.raises(UsageError, match=words):
        verify(SimulatedSubject(), workload(), scenarios=2, oracle=subjects.Agreeing(), workers=1)


def test_a_wrong_expected_is_bad_input_to_a_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known([top_two(expected=raises)])
    write_scenario(tmp_path / "own.json", scenario())
    assert entry.main(["replay", str(tmp_path / "own.json"), "--quick"]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "cutproof: `expected` of top-two raised ZeroDivisionError: by a user"


class Up(PySpark):
    """On no session at all."""

    def wait(self) -> None:
        pass


class Asks:
    """In place of the oracle: asks a function's `spark` for its rows."""

    computed = queries = 0

    def judge_batch(self, *_: Any) -> Any:
        return given_by("top-two", None)  # type: ignore[arg-type]


def test_a_spark_that_raises_is_bad_input_and_named() -> None:
    known([top_two(spark=raises)])
    with pytest.raises(UsageError, match="`spark` of top-two raised ZeroDivisionError: by a user"):
        Up(Asks()).examine([])  # type: ignore[arg-type]


class Breaks(Asks):
    """In place of Spark, where it carries a plan out."""

    def judge_batch(self, *_: Any) -> Any:
        raise ArithmeticError("long overflow")


def test_a_spark_that_breaks_when_it_is_carried_out_is_named() -> None:
    known([top_two()])
    questions = [question_of(run(SimulatedSubject(), scenario()))]
    with pytest.raises(HarnessFailed, match="batch of 1, in it `spark` of top-two: ArithmeticError: long overflow"):
        Up(Breaks()).examine(questions)  # type: ignore[arg-type]
    with pytest.raises(HarnessFailed, match="failed in a batch of 0: ArithmeticError: long overflow"):
        Up(Breaks()).examine([])  # type: ignore[arg-type]


class AsksInASearch(subjects.Agreeing):
    def examine(self, questions: Any) -> Any:
        return Up(Asks()).examine(questions)  # type: ignore[arg-type]


def test_a_search_ends_with_the_line_of_a_spark_that_raises() -> None:
    known([top_two(spark=raises)])
    with pytest.raises(UsageError, match="`spark` of top-two raised ZeroDivisionError: by a user"):
        verify(SimulatedSubject(), workload(), scenarios=2, oracle=AsksInASearch(), workers=1)


# -- a function that gives what is no row --------------------------------------------


class Text(Function):
    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        yield "text", record.tag, 0  # type: ignore[misc]


def test_a_function_that_gives_no_row_fails_its_job_and_is_named() -> None:
    known([top_two(function=Text)])
    result = run(SimulatedSubject(), scenario())
    verdict = result.judgement.verdicts["progress"]
    assert isinstance(verdict, Violated)
    assert "the user function of mine-0 is refused: top-two gave ('text', " in verdict.message
