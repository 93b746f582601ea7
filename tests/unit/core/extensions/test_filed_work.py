"""The work of an operator with its state in files: after each step it reports flushes, and begins a compaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cutproof.reference_impl.core.extensions.filed_work import FiledWork
from cutproof.reference_impl.core.extensions.operator_work import OperatorWork
from cutproof.reference_impl.core.operators.operators import Map
from cutproof.reference_impl.core.vocabulary.effects import Compact, Effect, MemtableFlushed
from cutproof.reference_impl.core.vocabulary.events import Compacted, Ticked
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from unit.core.machines import ONE_OUT, row, spec
from unit.core.neighbours import Told

DONE = Told("the step")
STEPS: dict[str, Callable[[FiledWork], list[Effect]]] = {
    "on_record": lambda work: work.on_record(row(1, 10), 0),
    "on_time": lambda work: work.on_time(5),
    "on_tick": lambda work: work.on_tick(Ticked(5)),
    "on_end": lambda work: work.on_end(),
    "on_restored": lambda work: work.on_restored(),
    "snapshot": lambda work: work.snapshot(CheckpointId(1)),
}


class Files:
    """State that says what a test has it say."""

    flushed, is_due, is_merged = 0, False, False

    def take_flushes(self) -> int:
        flushed, self.flushed = self.flushed, 0
        return flushed

    def begin_compaction(self) -> bool:
        return self.is_due

    def end_compaction(self) -> None:
        self.is_merged, self.is_due = True, False


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def work(files: Files, monkeypatch: pytest.MonkeyPatch) -> FiledWork:
    """Each step of the operator itself has one effect."""
    for step in STEPS:
        monkeypatch.setattr(OperatorWork, step, lambda *_: [DONE])
    state: Any = files
    return FiledWork(spec("op-0", gates=(0,), outputs=ONE_OUT), Map(lambda key, value: (key, value)), state)


@pytest.mark.parametrize("step", STEPS)
def test_each_step_says_behind_its_effects_what_became_of_the_files(work: FiledWork, files: Files, step: str) -> None:
    assert STEPS[step](work) == [DONE]
    files.flushed = 2
    assert STEPS[step](work) == [DONE, MemtableFlushed(), MemtableFlushed()]
    assert STEPS[step](work) == [DONE], "a flush is reported once"
    files.flushed, files.is_due = 1, True
    assert STEPS[step](work) == [DONE, MemtableFlushed(), Compact()]


def test_a_merge_that_is_done_replaces_its_inputs_and_the_next_may_begin(work: FiledWork, files: Files) -> None:
    handler = work.also_takes()[Compacted]
    assert handler(Compacted()) == []
    assert files.is_merged
    files.flushed = 1
    assert handler(Compacted()) == [MemtableFlushed()]


def test_it_takes_what_any_operator_takes_besides(work: FiledWork) -> None:
    assert work.also_takes().keys() == {*OperatorWork.also_takes(work), Compacted}
