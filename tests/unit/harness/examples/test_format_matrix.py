"""The matrix of formats (SNAP-6): each cell is found in runs of the engine, and is the one of docs/snapshots.md."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.examples.snapshots.format_matrix import BACKENDS, COLUMNS, FORMATS, UNIFIED, cell, unified
from cutproof.harness.examples.trials import Trials
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Fork, Scenario
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import History

PAGE = (Path(__file__).parents[4] / "docs" / "snapshots.md").read_text(encoding="utf-8")
NAMES = [*(column.name for column in COLUMNS), UNIFIED]


def documented(format_name: str, column: str) -> str:
    header = f"| format | {' | '.join(NAMES)} |\n"
    assert header in PAGE
    table = PAGE.partition(header)[2]
    row = re.search(rf"^\| {format_name} \| (.*) \|$", table, flags=re.MULTILINE)
    assert row is not None
    return row[1].split(" | ")[NAMES.index(column)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("column", COLUMNS, ids=[column.name for column in COLUMNS])
def test_a_cell_is_what_the_engine_shows(column, format_name: str, backend: str) -> None:  # type: ignore[no-untyped-def]
    assert cell(Trials(SimulatedSubject()), column, format_name, backend) == documented(format_name, column.name)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_job_with_the_other_backend_begins_with_it(format_name: str, backend: str) -> None:
    assert unified(format_name, backend) == documented(format_name, UNIFIED)


class Defective:
    """The engine with a defect, or with other settings."""

    name = "defective"
    capabilities = Capabilities()

    def __init__(self, defect: str | None, **engine: object) -> None:
        self._subject, self._engine = SimulatedSubject(defect), engine

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        engine = msgspec.structs.replace(scenario.engine, **self._engine)
        commands = tuple(one for one in scenario.commands if isinstance(one, Fork) or not self._engine.get("memory"))
        changed = msgspec.structs.replace(scenario, engine=engine, commands=commands)
        return self._subject.run(changed, timeline=timeline)


@pytest.mark.parametrize(
    ("column", "defect", "engine"),
    [
        ("user-controlled", "P13", {}),
        ("side effects", None, {"savepoints": "without-side-effects"}),
        ("recovery", None, {"savepoints": "without-side-effects"}),
        ("recovery", "F03", {}),
        ("rescaling", "P11", {"trims_logs": True}),
    ],
)
def test_on_another_engine_the_cell_is_another_one(column: str, defect: str | None, engine: dict[str, object]) -> None:
    (found,) = (one for one in COLUMNS if one.name == column)
    assert cell(Trials(Defective(defect, **engine)), found, "incremental", "heap") == "no"
