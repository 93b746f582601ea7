"""What PySpark computes of a user's function, compared with its pure counterpart; an error in either is seen
(OPS-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from cutproof.harness.reference_engine.functions import SHIPPED
from cutproof.harness.workloads.user_functions import UserFunction, known
from cutproof.properties.model.workload import AnyOperator, Count, Filter, Input, Node, Sum, User, Workload
from cutproof.properties.quick_checker.expected import compute
from cutproof.properties.semantics.user_functions import CounterpartFailed, counterpart, judge_by
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.tables import Cut, OracleJob, QuickResult
from unit.user_examples import examples_known

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with examples_known(monkeypatch):
        yield


LAST, TURNS = User(function="last-call", timed=True), User(function="turns")
SILENT, BEST = User(function="silence", timed=True), User(function="top-two", ordered=True)


def drawn_job(seed: int, *operators: AnyOperator) -> OracleJob:
    """Two splits of thirty records, three cuts and the end, through a chain of operators."""
    random = Random(seed)
    splits = tuple(
        tuple(
            (random.choice([None, 1, 2, 3]), random.choice([None, *range(20)]), random.getrandbits(40))
            for _ in range(30)
        )
        for _ in (0, 1)
    )
    times = tuple(tuple(10 * number + random.randrange(-15, 15) for number in range(30)) for _ in (0, 1))
    nodes: list[Node] = []
    for number, operator in enumerate(operators):
        nodes.append(Node(name=f"n{number}", operator=operator, inputs=(nodes[-1].name if nodes else "source",)))
    source = Input(name="source", splits=splits, times=times, delay=40)
    marks = [sorted(random.randrange(31) for _ in range(3)) for _ in (0, 1)]
    cuts = [Cut(name=10 + index, positions=tuple(at[index] for at in marks)) for index in range(3)]
    workload = Workload(name="mine", inputs=(source,), nodes=tuple(nodes))
    return OracleJob(id=f"job-{seed}", workload=workload, cuts=(*cuts, Cut(name=99, positions=(30, 30))))


def quick(job: OracleJob) -> QuickResult:
    cuts = [(cut.name, dict(enumerate(cut.positions))) for cut in job.cuts]
    return QuickResult(rows=compute(job.workload, cuts, rest=False).rows)


def differences(*jobs: OracleJob) -> list[int]:
    """How many rows differ, job by job."""
    answers = Oracle().judge_batch(jobs, {job.id: quick(job) for job in jobs})
    assert not any(answer.problem for answer in answers)
    return [len(answer.disagreements) for answer in answers]


def jobs() -> list[OracleJob]:
    chains: tuple[tuple[AnyOperator, ...], ...] = (
        (SILENT,),
        (Filter(modulus=3), BEST, Filter(modulus=2)),
        (SILENT, Count()),
        (Sum(), BEST, Count()),
        (LAST, Count()),
        (Filter(modulus=3), TURNS),
    )
    return [drawn_job(seed, *chains[seed % len(chains)]) for seed in range(6)]


def test_both_counterparts_of_the_examples_agree() -> None:
    asked = jobs()
    assert differences(*asked) == [0] * len(asked)
    assert all(any(rows for rows in quick(job).rows.values()) for job in asked)


@pytest.mark.parametrize(
    ("operator", "change"),
    [
        (SILENT, {"expected": lambda records, time: [(one.time, one.tag, 0) for one in records if one.time < time]}),
        (BEST, {"expected": lambda records, time: [(one.value, one.tag, 0) for one in records]}),
        (SILENT, {"spark": lambda records: records.where("time < watermark").withColumnRenamed("time", "at")}),
        (BEST, {"spark": lambda records: records.where("n <= 2")}),
    ],
)
def test_an_error_in_either_counterpart_disagrees(operator: User, change: dict[str, Callable[..., Any]]) -> None:
    true = counterpart(operator.function)
    changed = msgspec.structs.replace(true, **change)
    module = {"silence": ("silence", "SILENCE"), "top-two": ("top_two", "TOP_TWO")}[operator.function]
    function: UserFunction = getattr(__import__(module[0]), module[1])
    known([msgspec.structs.replace(function, expected=changed.expected, spark=changed.spark)])
    assert all(differences(*(drawn_job(seed, operator) for seed in range(1))))


def test_a_table_without_the_columns_of_a_row_is_refused() -> None:
    known([msgspec.structs.replace(__import__("top_two").TOP_TWO, spark=lambda records: records.select("key"))])
    with pytest.raises(CounterpartFailed, match="`spark` of top-two gives no column scope, value, tag, tag2"):
        differences(drawn_job(1, BEST))


ASKED = [function for function in SHIPPED if not function.function.clocked]


def shipped_jobs() -> list[OracleJob]:
    """Each function alone, then amid others."""
    single = [drawn_job(seed, one.operator) for seed, one in enumerate(ASKED)]
    return single + [drawn_job(10 + seed, Filter(), one.operator, Count()) for seed, one in enumerate(ASKED)]


def test_both_counterparts_of_the_shipped_functions_agree_and_an_error_in_one_is_seen() -> None:
    asked = shipped_jobs()
    assert differences(*asked) == [0] * len(asked)
    assert all(any(rows for rows in quick(job).rows.values()) for job in asked)
    for function in ASKED:
        true = counterpart(function.name)
        judge_by(msgspec.structs.replace(true, expected=lambda *of, all_of=true.expected: list(all_of(*of))[1:]))
    assert all(differences(*asked))
