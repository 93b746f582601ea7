"""Which jobs are kept from Spark because their numbers could leave 64 bits, and which are not."""

from __future__ import annotations

import pytest

from cutproof.properties.model.workload import AnyOperator, FlatMap, Input, Join, Map, Node, Sum, Workload
from cutproof.properties.spark.bounds import problem
from cutproof.properties.spark.tables import Apply, Cut, OracleJob

TAG = 1 << 40


def job(*operators: AnyOperator, records: int = 100, value: int = 7, tag: int = TAG) -> OracleJob:
    names = ["left", "right"] if any(isinstance(operator, Join) for operator in operators) else ["left"]
    inputs = tuple(Input(name=name, splits=(((1, value, tag),) * records,)) for name in names)
    nodes = []
    for number, operator in enumerate(operators):
        nodes.append(Node(name=f"n{number}", operator=operator, inputs=tuple(names)))
        names = [f"n{number}"]
    workload = Workload(name="bounded", inputs=inputs, nodes=tuple(nodes))
    return OracleJob(id="bounded", workload=workload, cuts=(Cut(name=1, positions=(records,) * len(inputs)),))


def applied(one: OracleJob, **taken: list[int]) -> OracleJob:
    """The job with so many records taken by a node on each of its lines."""
    for node, counts in taken.items():
        one.applies[node] = tuple(
            Apply(origin=0, epoch=0, lineage=lineage) for lineage, count in enumerate(counts) for _ in range(count)
        )
    return one


def test_sums_of_sums_of_tags_fit_and_a_third_does_not() -> None:
    assert problem(job(Sum(), Sum())) == ""
    assert problem(job(Sum(), Sum(), Sum(), Sum())) == "numbers may leave 64 bits at n3"


@pytest.mark.parametrize(
    ("operators", "records", "where"),
    [
        ((Map(multiply=1 << 61),), 1, "n0"),
        ((Map(multiply=1 << 60),), 1, ""),
        ((FlatMap(fan=3), Sum()), 1 << 10, ""),
        ((Join(), Sum()), 1 << 11, ""),
        ((Join(), Sum()), 1 << 12, "n1"),
    ],
)
def test_each_operator_adds_to_the_bound(operators: tuple[AnyOperator, ...], records: int, where: str) -> None:
    found = problem(job(*operators, records=records))
    assert found == (f"numbers may leave 64 bits at {where}" if where else "")


def test_records_taken_again_count_and_those_of_other_lineages_do_not() -> None:
    assert problem(applied(job(Sum(), Sum()), n0=[3_000], n1=[3_000])) != ""
    assert problem(applied(job(Sum(), Sum()), n0=[2_000, 2_000, 1_500], n1=[2_000, 2_000, 1_500])) == ""


def test_pairs_of_a_join_are_at_most_those_of_what_it_took() -> None:
    few = applied(job(Join(), Sum(), records=100, tag=1 << 53), n0=[60], n1=[900])
    assert problem(few) == ""
    many = applied(job(Join(), Sum(), records=2, tag=1 << 53), n0=[100], n1=[1_100])
    assert problem(many) == "numbers may leave 64 bits at n1"


def test_an_input_too_large_and_a_cut_too_short() -> None:
    assert problem(job(value=1 << 63)) == "a number of the input leaves 64 bits"
    short = OracleJob(id="short", workload=job().workload, cuts=(Cut(name=1, positions=()),))
    assert problem(short) == "a cut does not have one position for each of the 1 splits"
