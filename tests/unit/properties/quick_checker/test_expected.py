"""Expected rows and states, against a brute force that works each prefix through by itself."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cutproof.properties.model.workload import KEYED, Row, Workload
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.quick_checker.expected import compute
from cutproof.properties.reconstruct.lineage import INFINITE
from cutproof.properties.semantics.classes import classes
from unit.properties.histories import counting, run
from unit.properties.meanings import Entries, apply
from unit.properties.shapes import drawn

Cut = tuple[int, dict[int, int]]
Entry = tuple[int, int | None, int | None, int]


def brute_force(
    workload: Workload, positions: dict[int, int], merge: random.Random
) -> tuple[Counter[Row], dict[str, Counter[Entry]]]:
    """The rows and states of a prefix, its splits merged at random."""
    held: dict[str, Entries] = {node.name: [] for node in workload.nodes}
    left = {split: list(records[: positions[split]]) for split, _, records in workload.splits()}
    origins = {split: source.name for split, source, _ in workload.splits()}
    out: Counter[Row] = Counter()

    def push(sender: str, row: Row) -> None:
        if sender == workload.output:
            out[row] += 1
            return
        node = next(node for node in workload.nodes if sender in node.inputs)
        for made in apply(node.operator, held[node.name], node.inputs.index(sender), row):
            push(node.name, made)

    while any(left.values()):
        split = merge.choice([split for split, records in left.items() if records])
        key, value, tag = left[split].pop(0)
        push(origins[split], (key, value, tag, 0))
    return out, {node.name: Counter(held[node.name]) for node in workload.nodes if isinstance(node.operator, KEYED)}


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_classes_m_and_s_do_not_depend_on_the_merge(seed: int, merge: random.Random) -> None:
    workload, topology = drawn(seed)
    cuts: list[Cut] = []
    at = {split: 0 for split, _, _ in workload.splits()}
    for number in range(3):
        at = {split: merge.randint(at[split], len(records)) for split, _, records in workload.splits()}
        cuts.append((number, at))
    found = compute(workload, cuts)
    grades = classes(workload, topology)
    ends = {split: len(records) for split, _, records in workload.splits()}
    rows: Counter[Row] = Counter()
    for number, positions in [*cuts, (INFINITE, ends)]:
        expected, states = brute_force(workload, positions, merge)
        rows.update(found.rows[number])
        if grades[workload.output] != "H":
            assert rows == expected
        for name, state in states.items():
            if grades[name] != "H" and number < INFINITE:
                assert Counter(found.states[number][name]) == state


@given(st.integers(0, 10_000))
def test_a_replay_of_what_was_applied_comes_to_the_same(seed: int) -> None:
    workload, topology = drawn(seed)
    case = Case(workload, topology, run((workload, topology), seed=seed, steps=60))
    assert case.expected.replay.strange == []
    replayed = case.expected.replay.sink_rows(case.lineage)
    if case.class_ != "H":
        for epoch in case.lineage.checkpoints:
            assert Counter(replayed.get(epoch, ())) == Counter(case.expected.rows()[epoch])
    assert case.rows_are_known is False or case.committed + case.pending == case.expected.rows_up_to(case.closing.epoch)
    for checkpoint in case.lineages.completed:
        for name, state in case.expected.states(checkpoint).items():
            assert Counter(case.expected.replay.entries(name, checkpoint)) == state


def test_the_last_rows_are_those_of_the_last_epochs() -> None:
    workload, topology = counting(per_split=6, splits=2)
    case = Case(workload, topology, run((workload, topology), seed=3))
    every = [record[0] for _, _, records in workload.splits() for record in records]
    assert case.expected.last_rows(INFINITE) == {key: (key, n, 0, 0) for key, n in Counter(every).items()}
    assert case.expected.last_rows(-1) == {}
    first = case.lineage.checkpoints[0]
    counts = {key: max(row[1] or 0 for row in case.expected.rows_up_to(first) if row[0] == key) for key in (0, 1)}
    assert {key: row[1] for key, row in case.expected.last_rows(first).items()} == counts


def test_a_cut_off_the_lineage_has_a_state_too() -> None:
    toy_case = counting(per_split=9)
    for seed in range(40):
        case = Case(*toy_case, run(toy_case, seed=seed))
        for checkpoint in case.lineages.completed.keys() - set(case.lineage.checkpoints):
            held = Counter(entry for state in case.states(checkpoint).values() for entry in state.entries)
            assert case.expected.states(checkpoint)["count"] == held
