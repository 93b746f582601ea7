"""The documents' examples: on the reference engine all that the text says shows, and on another history it does not."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from cutproof.harness.examples import EXAMPLES, Example
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History
from unit.harness.example_runs import looked_up


def _history(name: str) -> History:
    return SimulatedSubject().run(EXAMPLES[name].scenario, timeline=True)


def _not_shown(example: Example, history: History) -> set[str]:
    return {claim.text.split(",")[0] for claim in looked_up(example, history) if not claim.shown}


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_holds_and_all_that_the_text_states_shows(name: str) -> None:
    example, history = EXAMPLES[name], _history(name)
    assert judge(example.scenario.workload, example.scenario.topology, history).outcome == "held"
    assert history.unapplied == []
    assert [claim for claim in looked_up(example, history) if not claim.shown] == []


def _move_barriers(history: History) -> None:
    for channel in history.channels:
        channel.barriers = [(checkpoint, before + 1) for checkpoint, before in channel.barriers]


def _forget_states(history: History) -> None:
    for stored in history.stored:
        stored.state = '{"positions":{},"entries":[],"transactions":[]}'


def _forget_store(history: History) -> None:
    history.stored = []


def _complete_at_once(history: History) -> None:
    for completed in history.completed:
        completed.order = 0


def _forget_time(history: History) -> None:
    history.timeline = []


def _commit_twice(history: History) -> None:
    history.committed += history.committed[:1]


@pytest.mark.parametrize(
    ("name", "alter", "number"),
    [
        ("single-input-barrier", _move_barriers, 2),
        ("single-input-barrier", _forget_states, 1),
        ("single-input-barrier", _complete_at_once, 1),
        ("two-input-alignment", _forget_time, 4),
        ("two-input-alignment", _move_barriers, 2),
        ("barriers-in-stream", _forget_time, 1),
        ("barriers-in-stream", _move_barriers, 1),
        ("barriers-in-stream", _forget_states, 1),
        ("snapshot-contents", _forget_states, 2),
        ("snapshot-contents", _forget_store, 3),
        ("stateless-parse", _commit_twice, 1),
        ("greater-than-previous", _commit_twice, 1),
        ("greater-than-previous", _forget_states, 1),
    ],
)
def test_a_claim_that_the_history_does_not_bear_out_is_not_shown(
    name: str, alter: Callable[[History], None], number: int
) -> None:
    history = _history(name)
    alter(history)
    assert len(_not_shown(EXAMPLES[name], history)) == number


def test_without_blocking_nothing_is_aligned_and_with_it_nothing_slips() -> None:
    aligned, unblocked = EXAMPLES["two-input-alignment"], EXAMPLES["unblocked-alignment"]
    assert len(_not_shown(aligned, _history("unblocked-alignment"))) >= 2
    assert len(_not_shown(unblocked, _history("two-input-alignment"))) == len(unblocked.claims)


def test_an_example_without_its_trouble_does_not_show_it() -> None:
    quiet = msgspec.structs.replace(EXAMPLES["two-input-alignment"].scenario, faults=())
    history = SimulatedSubject().run(quiet, timeline=True)
    assert _not_shown(EXAMPLES["two-input-alignment"], history) != set()
