"""Operators of one's own, from end to end: run, judged, broken, refused (OPS-4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import ClassVar, cast

import msgspec
import pytest

from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.functions.operators import user_operator
from cutproof.harness.reference_engine.subjects import process_job
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.model import Resume, Scenario
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import run
from cutproof.harness.workloads.user_functions import UserFunction, entries_of, known
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Input, Node, Sum, Topology, User, Workload, problems
from cutproof.properties.semantics.user_functions import CounterpartFailed, UserMachine, user_problems
from cutproof.reference_impl.core.operators.user_functions import (
    Context,
    Function,
    Out,
    Taken,
    UserOperator,
    value_of,
)
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.messages import Record
from unit.core.machines import opened
from unit.user_examples import examples_known


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions of the documents, known as a user makes them known."""
    with examples_known(monkeypatch):
        yield


def workload(name: str, *, delay: int = 40) -> Workload:
    """Sixty records in two splits, each key in one of them, out of order by up to thirty."""
    random = Random(3)
    splits = tuple(
        tuple((random.randrange(3) * 2 + split, random.randrange(20), random.getrandbits(40)) for _ in range(30))
        for split in (0, 1)
    )
    times = tuple(tuple(10 * number + random.randrange(-15, 15) for number in range(30)) for _ in (0, 1))
    timed, ordered, clocked = name in ("silence", "last-call"), name == "top-two", name == "headcount"
    operator = User(function=name, timed=timed, ordered=ordered, clocked=clocked)
    source = Input(name="source", splits=splits, times=times, delay=delay)
    return Workload(name=name, inputs=(source,), nodes=(Node(name="mine", operator=operator, inputs=("source",)),))


@pytest.mark.parametrize("name", ["silence", "top-two", "last-call", "turns", "headcount"])
def test_no_run_of_a_correct_function_is_accused(name: str) -> None:
    subject, held = SimulatedSubject(), Counter[str]()
    draw = scenario_of(Drawing(capabilities=subject.capabilities, workload=workload(name)))
    for index in range(25):
        verdicts = run(subject, draw(3, index)).judgement.verdicts
        assert not [verdict for verdict in verdicts.values() if isinstance(verdict, Violated)]
        held.update(invariant for invariant, verdict in verdicts.items() if isinstance(verdict, Holds))
    assert min(held[one] for one in ("exactly-once", "no-data-loss", "consistent-cut", "restored-state")) > 10
    assert (held["drain"] > 10) is (name in ("silence", "last-call", "headcount"))


def rescaled_everywhere(scenario: Scenario) -> Scenario:
    """Each resume lays the whole job out anew: two wide, then three, then two."""
    names = list(scenario.topology.parallelism)
    wide = iter((2, 3, 2, 3))
    commands = tuple(
        msgspec.structs.replace(one, parallelism=dict.fromkeys(names, next(wide))) if isinstance(one, Resume) else one
        for one in scenario.commands
    )
    first = msgspec.structs.replace(scenario.topology, parallelism=dict.fromkeys(names, 3))
    return msgspec.structs.replace(scenario, topology=first, commands=commands)


@pytest.mark.parametrize("name", ["last-call", "turns"])
def test_what_belongs_to_no_key_survives_another_parallelism(name: str) -> None:
    subject, held, changed_width = SimulatedSubject(), Counter[str](), 0
    drawing = Drawing(capabilities=subject.capabilities, workload=workload(name), templates=("laid-out-anew",))
    draw = scenario_of(drawing)
    for index in range(24):
        result = run(subject, rescaled_everywhere(draw(5, index)))
        assert not result.judgement.violated
        changed_width += len({layout.parallelism["mine"] for layout in result.case.jobs.layouts.values()}) > 1
        held.update(name for name, verdict in result.judgement.verdicts.items() if isinstance(verdict, Holds))
    assert changed_width > 5
    assert min(held[one] for one in ("no-data-loss", "consistent-cut", "restored-state")) > 1


class Forgetful(Function):
    """Numbers the records of a key, and hands nothing over."""

    owns_state = True

    def __init__(self) -> None:
        self.seen: Counter[int | None] = Counter()

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        self.seen[record.key] += 1
        yield self.seen[record.key], record.tag, 0


def test_a_function_that_forgets_is_caught() -> None:
    known(
        [
            UserFunction(
                name="top-two",
                function=Forgetful,
                expected=lambda records, _: [(number, one.tag, 0) for number, one in enumerate(records, 1)],
                spark=lambda records: records,
                ordered=True,
            )
        ]
    )
    subject = SimulatedSubject()
    draw = scenario_of(Drawing(capabilities=subject.capabilities, workload=workload("top-two")))
    violated = [run(subject, draw(3, index)).judgement.violated for index in range(12)]
    assert any("exactly-once" in found for found in violated)


def test_a_node_states_what_its_function_is() -> None:
    from silence import SILENCE
    from top_two import TOP_TWO

    assert SILENCE.node("source") == Node(
        name="silence", operator=User(function="silence", timed=True), inputs=("source",)
    )
    assert TOP_TWO.node("a", name="best").operator == User(function="top-two", ordered=True)


def test_a_scenario_names_functions_and_loads_none() -> None:
    subject = SimulatedSubject()
    draw = scenario_of(Drawing(capabilities=subject.capabilities, workload=workload("os:system")))
    with pytest.raises(SubjectFailed, match=r"no user function 'os:system'; make it known with --function"):
        subject.run(draw(3, 0))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("silence", "is named package.module:NAME, not 'silence'"),
        ("nowhere:X", "the function nowhere:X cannot be imported"),
        ("silence:SILENT", "silence has no 'SILENT'; did you mean 'SILENCE'?"),
        ("silence:GAP", "silence:GAP is no cutproof.UserFunction"),
    ],
)
def test_an_entry_that_leads_nowhere_is_refused_in_one_line(entry: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        known([entry])
    assert words in str(raised.value)


def test_one_that_lives_in_this_process_is_not_sent_to_others() -> None:
    from silence import SILENCE

    assert entries_of(["silence:SILENCE"]) == ("silence:SILENCE",)
    with pytest.raises(UsageError, match=r"worker processes cannot import silence; name it as package\.module"):
        entries_of([SILENCE])


def test_the_processes_of_a_job_receive_where_its_functions_are() -> None:
    subject = SimulatedSubject()
    scenario = scenario_of(Drawing(capabilities=subject.capabilities, workload=workload("silence")))(3, 0)
    described = process_job.describe(scenario, None, 1)
    job = process_job.make_job(described)
    assert [spec.role for spec in job.graph.operators] == ["source", "operator", "sink"]
    assert msgspec.json.decode(described)["functions"] == ["silence:SILENCE"]
    from silence import SILENCE

    known([SILENCE])
    with pytest.raises(Refused, match="'silence' exists only in this process"):
        process_job.describe(scenario, None, 1)


def test_a_function_cannot_have_both_kinds_of_state() -> None:
    from silence import SILENCE

    class Both(SILENCE.function):  # type: ignore[misc, name-defined]
        owns_state = True

    with pytest.raises(UsageError, match="silence declares states and owns its state"):
        known([msgspec.structs.replace(SILENCE, function=Both)])


def test_a_timer_asks_for_event_time_and_for_no_late_records() -> None:
    assert list(user_problems(workload("silence"))) == []
    assert list(user_problems(workload("top-two", delay=0))) == []
    (late,) = user_problems(workload("silence", delay=5))
    assert "mine has timers, and records may come late for it" in late
    (source,) = workload("silence").inputs
    untimed = msgspec.structs.replace(workload("silence"), inputs=(msgspec.structs.replace(source, times=()),))
    assert "mine has timers, and an input of it has no event time" in " ".join(user_problems(untimed))


def test_a_keyed_operator_does_not_stand_before_timers() -> None:
    made = workload("silence")
    total = Node(name="total", operator=Sum(), inputs=("source",))
    behind = msgspec.structs.replace(made, nodes=(total, msgspec.structs.replace(made.nodes[0], inputs=("total",))))
    assert "the keyed operator total stands before a window" in problems(behind, Topology(parallelism={}, edges=()))


def test_a_counterpart_that_takes_a_row_away_is_reported_by_name() -> None:
    from top_two import TOP_TWO

    known([msgspec.structs.replace(TOP_TWO, expected=lambda records, _: [(len(records), 0, 0)])])
    worker = UserMachine(User(function="top-two"), strict=True)
    worker.take_at((1, 2, 3, 0), 0, 0)
    with pytest.raises(CounterpartFailed, match=r"`expected` of top-two takes the row \(1, 0, 0\) of key 1 away"):
        worker.take_at((1, 2, 3, 0), 0, 0)


def test_a_counterpart_that_raises_is_reported_by_name() -> None:
    from top_two import TOP_TWO

    known([msgspec.structs.replace(TOP_TWO, expected=lambda records, _: 1 // 0)])
    with pytest.raises(CounterpartFailed, match="`expected` of top-two raised ZeroDivisionError"):
        UserMachine(User(function="top-two")).take_at((1, 2, 3, 0), 0, 0)
    with pytest.raises(CounterpartFailed, match="user function 'other' has no counterparts by which it could be"):
        UserMachine(User(function="other")).take_at((1, 2, 3, 0), 0, 0)


class Late(Function):
    """A headcount that is told a while too late."""

    clocked = True
    states: ClassVar = {"count": value_of(int), "tags": value_of(int)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        from headcount import WHILE_US

        if context.get("count") is None:
            context.wake_at(context.now + WHILE_US + 600)
        context.put("count", (context.get("count") or 0) + 1)
        context.put("tags", (context.get("tags") or 0) + record.tag)
        yield from ()

    def on_clock(self, time: int, context: Context) -> Iterator[Out]:
        yield context.get("count"), context.get("tags"), 0
        context.clear("count")
        context.clear("tags")


def test_a_function_that_is_woken_at_another_moment_is_caught() -> None:
    from headcount import HEADCOUNT

    known([msgspec.structs.replace(HEADCOUNT, function=Late)])
    subject = SimulatedSubject()
    draw = scenario_of(Drawing(capabilities=subject.capabilities, workload=workload("headcount")))
    violated = [run(subject, draw(3, index)).judgement.violated for index in range(12)]
    assert any("exactly-once" in found for found in violated)


def test_a_function_goes_by_one_time_alone_and_reports_it() -> None:
    from headcount import HEADCOUNT
    from silence import SILENCE

    class Both(SILENCE.function):  # type: ignore[misc, name-defined]
        clocked = True

    with pytest.raises(UsageError, match="silence goes by event time and by processing time"):
        known([msgspec.structs.replace(SILENCE, function=Both)])
    with pytest.raises(UsageError, match="silence is unknown to PySpark"):
        known([msgspec.structs.replace(SILENCE, spark=HEADCOUNT.spark)])
    assert HEADCOUNT.node("source").operator == User(function="headcount", clocked=True)
    worker = user_operator("silence")()
    with pytest.raises(Refused, match="silence calls `wake_at`, and is not declared as `clocked`"):
        Context(cast(UserOperator, worker), 1).wake_at(5)


def test_at_the_end_each_wake_is_reported_once_and_none_that_is_asked_for_then() -> None:
    class Again(Function):
        clocked = True

        def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
            context.wake_at(context.now + 5)
            yield from ()

        def on_clock(self, time: int, context: Context) -> Iterator[Out]:
            yield time, 0, 0
            context.wake_at(time + 5)

    worker = opened(UserOperator("again", Again))
    assert list(worker.on_clock(100, [])) == []
    worker.apply(Record(1, 1, 1, 0, 0), 0)
    assert worker.alarms.pending() == [(105, 1, 0)]
    worker.alarms.drop((105, 1, 0))
    assert [row.value for row in worker.on_clock(107, [(105, 1, 0)])] == [105]
    assert worker.alarms.pending() == [(110, 1, 0)]
    assert [row.value for row in worker.on_clock(1 << 62, [(110, 1, 0)])] == [110]
    assert worker.alarms.pending() == []
