"""The decisions as replacement parts: named, replaceable one by one, and they tell whether they were reached."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cutproof.reference_impl.core import decisions
from cutproof.reference_impl.core.decisions.part import Part
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.postponed import Postponed
from cutproof.reference_impl.core.decisions.snapshots.naming import Naming
from cutproof.reference_impl.core.decisions.tasks import Copying, CutStep, SourceCut
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated, require
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.defects import DEFECTS
from unit.core.machines import barrier, deliver, row, sent, source, take, transactional, trigger, up, work


class Silent(SourceCut):
    """A wrong variant: no barrier follows the snapshot."""

    def steps(self) -> tuple[CutStep | Postponed[CutStep], ...]:
        self.reached = True
        return (CutStep.record_position,)


def test_one_decision_is_replaced_and_the_others_stand() -> None:
    silent = Silent()
    parts = Parts(source_cut=silent)
    assert parts.source_cut is silent
    assert type(parts.naming) is Naming


def test_a_decision_that_does_not_exist_cannot_be_replaced() -> None:
    with pytest.raises(AttributeError, match="no decision is called 'sauce_cut'"):
        Parts(sauce_cut=Part())


def test_the_wrong_code_is_reached_when_it_runs_and_not_before() -> None:
    parts = Parts(source_cut=Silent())
    task = up(source(3, parts=parts))
    assert not parts.reached
    assert (0, barrier(1)) not in sent(deliver(task, trigger(1)))
    assert parts.reached


def test_the_engine_as_it_stands_reaches_no_wrong_code() -> None:
    task = up(source(3))
    deliver(task, trigger(1))
    assert not task.parts.reached


def methods(part: type) -> set[str]:
    return {name for name, value in vars(part).items() if callable(value) and not name.startswith("_")}


def test_each_decision_is_replaced_by_a_defect() -> None:
    """What no defect replaces belongs to the code that uses it."""
    decisions = {(name, one) for name, part in vars(Parts()).items() for one in methods(type(part))}
    replaced = {
        (name, one)
        for defect in DEFECTS.values()
        for name, part in defect.replacements().items()
        for one in methods(type(part))
    }
    assert len(replaced) > 60
    assert decisions - replaced == set()


NOT_TO_BE_USED = {
    "Capture.waits": "ended",
    "Fencing.addressed": "newest",
    "GlobalCommitting.up_to": "notified",
    "LocalRecovery.may_forget": "received",
    "Naming.identity": "attempt",
    "Redistribution.read": "share",
    "Redistribution.shared": "share",
}
"""What a decision is given and must not use: to leave it aside is what is decided."""


def test_a_decision_uses_what_it_is_given() -> None:
    """An argument that only a defect uses says nothing to who reads the engine."""
    files = Path(decisions.__file__).parent.glob("**/*.py")
    parts = [one for path in files for one in ast.parse(path.read_text()).body if isinstance(one, ast.ClassDef)]
    unused = {
        f"{part.name}.{method.name}": argument.arg
        for part in parts
        for method in part.body
        if isinstance(method, ast.FunctionDef) and not is_protocol(part)
        for argument in (*method.args.args[1:], *method.args.kwonlyargs)
        if argument.arg not in {one.id for one in ast.walk(method) if isinstance(one, ast.Name)}
    }
    assert len(parts) > 30
    assert unused == NOT_TO_BE_USED


def is_protocol(part: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in part.bases)


def test_two_runs_share_no_decision() -> None:
    first, second = vars(Parts()), vars(Parts())
    assert first.keys() == second.keys()
    assert all(first[name] is not second[name] for name in first)


def test_names_differ_for_everything_that_can_differ() -> None:
    names = Naming()
    handles = {names.handle(*one) for one in ((1, 1, "a-0", 1), (2, 1, "a-0", 1), (1, 2, "a-0", 1), (1, 1, "a-0", 2))}
    assert len(handles) == 4
    taken = {names.transaction(*one) for one in ((1, "s-0", 1, 1), (1, "s-0", 1, 2), (1, "s-0", 2, 1))}
    assert len(taken) == 3


def test_each_transaction_of_a_sink_has_the_next_serial() -> None:
    class BySerial(Naming):
        def transaction(self, job: int, task: TaskId, attempt: AttemptId, serial: int) -> str:
            return f"number {serial}"

    sink = TaskBuilder(Config(), Parts(naming=BySerial())).transactional_sink(transactional().spec)
    up(sink)
    names = [work(sink).current.name]
    for checkpoint in (4, 6):
        take(sink, row(1, 1))
        take(sink, barrier(checkpoint))
        names.append(work(sink).current.name)
    assert names == ["number 1", "number 2", "number 3"]


def test_a_copy_is_deep_where_values_grow() -> None:
    heap = {1: [1], 2: 5}
    copy = Copying().copy(heap)
    heap[1].append(2)
    heap[2] = 6
    assert copy == {1: [1], 2: 5}


def test_a_requirement_survives_optimisation() -> None:
    require(True, "never said")
    with pytest.raises(ProtocolViolated, match="said"):
        require(False, "said")
