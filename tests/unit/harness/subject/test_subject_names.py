"""Subjects by name: the built one, one's own, and what is refused in one line."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from cutproof.harness.reference_engine.services import places
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import Capabilities


class Engine:
    """A subject in shape only."""

    name = "mine"
    capabilities = Capabilities()

    def run(self, scenario: object, *, timeline: bool = False) -> None:
        return None


class Misspelt(Engine):
    capabilities = Capabilities(faults={"kill-tsk"})


class Unexpected(Engine):
    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return Capabilities(rescale=True)  # type: ignore[call-arg]


class Listed(Engine):
    capabilities = ["kill-task"]  # type: ignore[assignment]  # noqa: RUF012


class Needy(Engine):
    def __init__(self, address: str) -> None:
        self.address = address


@pytest.fixture(autouse=True)
def _own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("their_engine")
    vars(module).update(Misspelt=Misspelt, Unexpected=Unexpected, Listed=Listed)
    vars(module).update(Engine=Engine, Needy=Needy, ready=Engine(), number=5, make_number=lambda: 5)
    monkeypatch.setitem(__import__("sys").modules, "their_engine", module)
    return


@pytest.mark.parametrize("name", ["their_engine:Engine", "their_engine:ready"])
def test_a_class_is_called_and_a_subject_is_taken_as_it_is(name: str) -> None:
    assert subject_called(name).name == "mine"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("simulatd", "there is no subject 'simulatd'; did you mean 'simulated'?"),
        ("no_such_module:Engine", "cannot be imported"),
        ("their_engine:Engin", "has no 'Engin'; did you mean 'Engine'?"),
        ("their_engine:Needy", "cannot be called without arguments"),
        ("their_engine:number", "neither a Subject nor a callable that returns one"),
        ("their_engine:Misspelt", "declares the fault 'kill-tsk', which does not exist; did you mean 'kill-task'?"),
        ("their_engine:Unexpected", "Unexpected keyword argument 'rescale'; did you mean 'rescales'?"),
        ("their_engine:Listed", "the capabilities of their_engine:Listed are a list; they have to be"),
        ("their_engine:make_number", "is no Subject: it lacks name, capabilities, run"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_line(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        subject_called(name)
    assert reason in str(caught.value)


def test_a_module_that_breaks_as_it_is_imported_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "from cutproof import Capabilities\n\nclass Engine:\n    capabilities = Capabilities(fault={'kill-task'})\n"
    (tmp_path / "breaking_engine.py").write_text(text)
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        subject_called("breaking_engine:Engine")
    assert "cannot be imported: Unexpected keyword argument 'fault'; did you mean 'faults'?" in str(caught.value)


def test_the_reference_engine_as_processes_is_imported_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str | None, Path]] = []
    module = types.ModuleType("cutproof.harness.reference_engine.subjects.processes")
    vars(module).update(ProcessesSubject=lambda defect, keep: asked.append((defect, keep)) or Engine())
    monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    assert subject_called("processes", "A01").name == "mine"
    assert asked == [("A01", places.runs())], "what its runs leave is saved in the named place"
    with pytest.raises(UsageError, match="there is no defect 'Z99'"):
        subject_called("processes", "Z99")


def test_a_defect_is_not_planted_in_another_engine() -> None:
    with pytest.raises(UsageError, match="does not go with a subject of your own"):
        subject_called("their_engine:Engine", "A01")
