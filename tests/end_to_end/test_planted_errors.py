"""An error planted in either evaluator, operator by operator, is the harness's failure, and never a violation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from random import Random

import msgspec
import pytest

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.campaign import Verified
from cutproof.harness.search.oracle import Examined, PySpark
from cutproof.harness.search.verification import verify
from cutproof.harness.shrink.shrink import Shrunk
from cutproof.harness.subject.port import Capabilities, Subject
from cutproof.properties.model.workload import (
    AnyOperator,
    Batch,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Input,
    Join,
    Map,
    Model,
    Node,
    Row,
    Rules,
    Session,
    Sliding,
    Sum,
    Tally,
    Tumbling,
    Union,
    Window,
    Workload,
)
from cutproof.properties.semantics import semantics
from cutproof.properties.semantics.semantics import Entry, Machine
from cutproof.properties.semantics.windows import Emitted, Pane, WindowMachine
from cutproof.properties.spark.operators import MEANINGS, Keyed, Meaning, Windowed
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.questions import decode

SCENARIOS = 3
SEED = 4
"""of whose scenarios PySpark is asked about the rows of each, whatever was in flight"""

pytestmark = pytest.mark.usefixtures("spark")

OPERATORS: dict[str, AnyOperator] = {
    "map": Map(multiply=3, add=1),
    "filter": Filter(modulus=3),
    "flat-map": FlatMap(fan=2),
    "union": Union(),
    "count": Count(),
    "count-tagged": Count(tagged=True),
    "sum": Sum(),
    "greater": Greater(),
    "dedup": Dedup(keys_only=True),
    "dedup-row": Dedup(keys_only=False),
    "join": Join(),
    "batch": Batch(),
    "tally": Tally(),
    "rules": Rules(),
    "model": Model(),
    "count-signed": Count(signed=True),
    "sum-signed": Sum(signed=True),
    "join-signed": Join(signed=True),
    "tumbling": Tumbling(size=20, of="sum"),
    "sliding": Sliding(size=30, slide=10),
    "session": Session(gap=8, of="sum"),
}
"""By the names that PySpark's meanings have."""

STATEFUL = [name for name, meaning in MEANINGS.items() if isinstance(meaning, Keyed | Windowed)]


def workload(operator: AnyOperator) -> Workload:
    """Sixty records through one operator."""
    random = Random(1)
    names = ("left", "right") if isinstance(operator, (Join, Union, Rules)) else ("source",)
    inputs = tuple(
        Input(
            name=name,
            splits=(tuple((random.randrange(4), random.randrange(50), random.getrandbits(40)) for _ in range(30)),),
            times=(tuple(5 * number + random.randrange(5) for number in range(30)),),
            delay=5,
        )
        for name in names
    )
    return Workload(name="one", inputs=inputs, nodes=(Node(name="one", operator=operator, inputs=names),))


class Aligned(SimulatedSubject):
    """With nothing in flight at its checkpoints: of a batch PySpark is asked nothing where there is."""

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(super().capabilities, alignments=frozenset({"aligned"}))


def verified(name: str, oracle: PySpark) -> Verified:
    subject = Aligned() if isinstance(OPERATORS[name], Batch) else SimulatedSubject()
    return verify(subject, workload(OPERATORS[name]), scenarios=SCENARIOS, seed=SEED, oracle=oracle)


class Collecting(PySpark):
    """Keeps what it is asked, and answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []

    def examine(self, questions: Sequence[bytes]) -> Examined:
        self.asked += questions
        return Examined(engine="none", workloads=len(questions))


@cache
def questions(name: str) -> list[bytes]:
    """What PySpark is asked about an operator's scenarios."""
    oracle = Collecting()
    verified(name, oracle)
    return oracle.asked


@cache
def rightly() -> tuple[PySpark, int]:
    """PySpark, which knows the answers about all operators, and how many it has computed.

    It is asked of all of them at once: some queries, not some for each operator.  An error in the quick checker
    changes few questions.
    """
    oracle = PySpark()
    return oracle, oracle.examine([question for name in OPERATORS for question in questions(name)]).workloads


@cache
def without_an_error(name: str) -> Verified:
    return verified(name, rightly()[0])


@cache
def wrongly(column: str) -> PySpark:
    """The same with a column of every operator's meaning changed: the one operator of each job here is wrong."""
    meanings: dict[str, Meaning] = {
        name: msgspec.structs.replace(meaning, **{column: f"({getattr(meaning, column)}) + 1"})
        for name, meaning in MEANINGS.items()
        if hasattr(meaning, column)
    }
    oracle = PySpark(Oracle(meanings={**MEANINGS, **meanings}))
    oracle.examine([question for name in OPERATORS for question in questions(name)])
    return oracle


@pytest.fixture
def as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What seems to violate is not shrunk: the two judges disagree about it as it is."""

    def unshrunk(subject: Subject, scenario: Scenario, invariant: str, difference: str) -> Shrunk:
        return Shrunk(scenario=scenario, runs=0)

    monkeypatch.setattr("cutproof.harness.search.worker.shrink_on", unshrunk)


def is_the_harness_that_failed(done: Verified) -> bool:
    return done.exit_code is ExitCode.HARNESS_FAILED and done.summary.oracle.disagreements > 0


def one_more(value: int | None) -> int | None:
    return None if value is None else value + 1


def with_other_rows(kind: type[Machine]) -> type[Machine]:
    class Wrong(kind):  # type: ignore[misc, valid-type]
        def take(self, row: Row, side: int) -> Iterable[Row]:
            return [(key, one_more(value), tag, tag2) for key, value, tag, tag2 in super().take(row, side)]

    return Wrong


def with_other_state(kind: type[Machine]) -> type[Machine]:
    class Wrong(kind):  # type: ignore[misc, valid-type]
        def entries(self) -> list[Entry]:
            return [(side, key, one_more(a), b) for side, key, a, b in super().entries()]

    return Wrong


def with_other_panes(monkeypatch: pytest.MonkeyPatch, *, emitted: int, held: int) -> None:
    """Have every window's rows, or its state, be of another value."""

    class Wrong(WindowMachine):
        def entries(self) -> list[Entry]:
            return [(start, key, (value or 0) + held, tags) for start, key, value, tags in super().entries()]

        def _emitted(self, pane: Pane) -> Emitted:
            origin, (key, value, tags, start) = super()._emitted(pane)
            return origin, (key, (value or 0) + emitted, tags, start)

    def machine(operator: Window, *, strict: bool) -> Wrong:
        return Wrong(operator)

    monkeypatch.setattr("cutproof.properties.quick_checker.expected.timed_machine", machine)


def plant(monkeypatch: pytest.MonkeyPatch, name: str, wrong: type[Machine]) -> None:
    """Have every machine of the operator be a wrong one."""
    true = semantics.machine

    def machine(operator: AnyOperator) -> Machine:
        if operator != OPERATORS[name]:
            return true(operator)
        made = true(operator)
        made.__class__ = wrong
        return made

    # of batches nothing is asked where rows follow what was applied: there the quick checker has the only word
    modules = ("quick_checker.expected",) if name == "batch" else ("quick_checker.expected", "reconstruct.replay")
    for module in modules:
        monkeypatch.setattr(f"cutproof.properties.{module}.machine", machine)


def test_every_meaning_is_asked() -> None:
    assert set(OPERATORS) == set(MEANINGS)


def asked_about(name: str) -> int:
    return sum(len(decode(question)) for question in questions(name))


def test_pyspark_computes_all_that_it_is_asked() -> None:
    assert rightly()[1] == sum(asked_about(name) for name in OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_without_an_error_both_agree(name: str) -> None:
    done = without_an_error(name)
    assert done.exit_code is ExitCode.HELD
    # where rows follow what was applied, nothing is asked of windows and batches, nor of rules in a rescaled job
    some = isinstance(OPERATORS[name], (Batch, Window, Rules))
    assert SCENARIOS // 2 < asked_about(name) <= SCENARIOS if some else asked_about(name) == SCENARIOS
    assert (done.summary.oracle.workloads, done.summary.oracle.disagreements) == (0, 0), "each is known by now"


@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("name", OPERATORS)
def test_wrong_rows_of_the_quick_checker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(OPERATORS[name], Window):
        with_other_panes(monkeypatch, emitted=1, held=0)
    else:
        plant(monkeypatch, name, with_other_rows(type(semantics.machine(OPERATORS[name]))))
    assert is_the_harness_that_failed(verified(name, rightly()[0]))


@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("name", STATEFUL)
def test_wrong_state_of_the_quick_checker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(OPERATORS[name], Window):
        with_other_panes(monkeypatch, emitted=0, held=1)
    else:
        plant(monkeypatch, name, with_other_state(type(semantics.machine(OPERATORS[name]))))
    assert is_the_harness_that_failed(verified(name, rightly()[0]))


@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("name", OPERATORS)
def test_wrong_rows_of_pyspark(name: str) -> None:
    assert is_the_harness_that_failed(verified(name, wrongly("value")))


@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("name", STATEFUL)
def test_wrong_state_of_pyspark(name: str) -> None:
    assert is_the_harness_that_failed(verified(name, wrongly("a")))
