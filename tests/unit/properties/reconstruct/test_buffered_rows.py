"""What batches hold back is taken from what came through, and from nothing else (OPS-2)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cutproof.properties.model.history import StoredState
from cutproof.properties.model.workload import (
    SINK,
    Batch,
    Count,
    Filter,
    FlatMap,
    Input,
    Map,
    Node,
    Row,
    Tally,
    Topology,
    Workload,
    problems,
)
from cutproof.properties.reconstruct.buffered_rows import (
    batches,
    behind_batches,
    buffered_at,
    counts_in,
    emitted_rows,
    still_to_come,
    waiting,
)


def chain(*operators: object) -> Workload:
    names = ["source", *(f"op{number}" for number in range(len(operators)))]
    nodes = zip(names, names[1:], operators, strict=False)
    return Workload(
        name="chain",
        inputs=(Input(name="source", splits=((),)),),
        nodes=tuple(Node(name=name, operator=operator, inputs=(before,)) for before, name, operator in nodes),  # type: ignore[arg-type]
    )


def held(*rows: Row) -> StoredState:
    texts = [f"[{key},{value},{tag},{tag2},{number << 8},0]" for number, (key, value, tag, tag2) in enumerate(rows)]
    return StoredState(listed=[("rows", text) for text in texts])


def row(number: int) -> Row:
    return (number, number, 0, 0)


def test_who_holds_back_and_who_stands_behind() -> None:
    made = chain(Count(), Batch(), Filter())
    assert batches(made) == ("op1",)
    assert behind_batches(made) == {"op2", SINK}
    assert behind_batches(chain(Batch())) == {SINK}
    assert behind_batches(chain(Count())) == set()


def test_what_waits_is_read_with_its_origin() -> None:
    assert list(waiting(held((1, 2, 3, 4), (5, 6, 7, 8)))) == [((1, 2, 3, 4), 0), ((5, 6, 7, 8), 256)]
    assert list(waiting(StoredState(listed=[("others", '"text"')]))) == [], "a user's own items are no rows"
    assert counts_in(StoredState(shared=[("counts", "[null,3]"), ("others", "1")])) == [(0, None, 3, 0)]


def test_what_waits_is_what_it_will_be_at_the_sink() -> None:
    made = chain(Batch(), Map(add=1), FlatMap(fan=2))
    states = {"op0-0": held((1, 0, 7, 0)), "op0-1": held((2, 1, 8, 0)), "op1-0": held((9, 9, 9, 9))}
    assert buffered_at(made, states, "op0") == Counter([(1, 0, 7, 0), (2, 1, 8, 0)])
    assert still_to_come(made, states) == Counter([(1, 1, 7, 0), (2, 2, 8, 0), (2, 3, 8, 0)])


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=4), st.data())
def test_every_row_comes_out_once_in_the_first_epoch_in_which_it_is_not_held(
    came: list[list[int]], data: st.DataObject
) -> None:
    through = {epoch: [row(number) for number in numbers] for epoch, numbers in enumerate(came, 1)}
    kept: dict[int, Counter[Row]] = {}
    there: list[Row] = []
    for epoch, rows in through.items():
        there += rows
        keeps = data.draw(st.lists(st.sampled_from(range(len(there))), unique=True) if there else st.just([]))
        kept[epoch] = Counter(there[index] for index in keeps)
        there = list(kept[epoch].elements())
    out = emitted_rows({**through, 99: [row(4)]}, tuple(through), kept)
    before: Counter[Row] = Counter()
    for epoch, rows in through.items():
        assert Counter(out[epoch]) == before + Counter(rows) - kept[epoch]
        before = kept[epoch]
    assert Counter(out[99]) == before + Counter([row(4)])


def test_what_is_declared_held_and_never_came_is_taken_from_nothing() -> None:
    assert emitted_rows({1: [row(1)]}, (1,), {1: Counter([row(2)])}) == {1: [row(1)]}


def test_nothing_keyed_stands_behind_a_batch_and_a_batch_has_room() -> None:
    nowhere = Topology(parallelism={}, edges=())
    assert "the keyed operator op2 stands behind a batch" in problems(chain(Batch(), Filter(), Tally()), nowhere)
    assert "op0 has a size below 1" in problems(chain(Batch(size=0)), nowhere)
