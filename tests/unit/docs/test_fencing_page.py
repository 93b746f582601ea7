"""docs/fencing.md against the code: whatever can be under way has a row that says by what it is fenced."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from cutproof.reference_impl.core.vocabulary import effects, events, status_changes
from cutproof.reference_impl.core.vocabulary.messages import AnyControl
from cutproof.reference_impl.processes.network.frames import ControlFrame, DataFrame, SupervisionFrame

PAGE = Path(__file__).parents[3] / "docs" / "fencing.md"
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)}
CONTROL, LATER, UNASKED, FRAMES = (
    SECTIONS[name]
    for name in (
        "Control messages",
        "Effects that are answered, or done, later",
        "Events that nobody asked for",
        "Frames between processes",
    )
)
FENCES = {CONTROL: 2, LATER: 2, UNASKED: 2}
"""in which column, counted from 0, the fence stands; else in the last"""


def rows(section: str) -> dict[str, str]:
    """By type, the cell that says by what it is fenced."""
    found: dict[str, str] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if named := re.fullmatch(r"`(\w+)`", cells[0]):
            assert named[1] not in found, "each once"
            found[named[1]] = cells[FENCES.get(section, -1)]
    return found


def kinds(base: type) -> dict[str, type]:
    """What the module of `base` derives from it; tests have some of their own."""
    return {kind.__name__: kind for kind in base.__subclasses__() if kind.__module__ == base.__module__}


def named(union: Any) -> dict[str, type]:
    return {kind.__name__: kind for kind in get_args(union)}


MESSAGES = named(AnyControl)
AT_ONCE = re.search(r"done at once[^:]*: ([^.]*)\.", LATER)
FRAME_KINDS = {**named(ControlFrame), **named(DataFrame), **named(SupervisionFrame)}


def test_every_control_message_has_a_row() -> None:
    assert sorted(rows(CONTROL)) == sorted(MESSAGES)


def test_every_control_message_is_fenced_by_job_and_attempt() -> None:
    assert [name for name, fence in rows(CONTROL).items() if not fence.startswith("`job`, `attempt`")] == []


def test_every_effect_is_done_at_once_or_has_a_row() -> None:
    assert AT_ONCE is not None
    at_once = re.findall(r"`(\w+)`", AT_ONCE[1])
    assert sorted([*at_once, *rows(LATER)]) == sorted({**kinds(effects.Effect), **kinds(status_changes.StatusChange)})


def test_every_event_answers_an_effect_or_has_a_row() -> None:
    answers = dict.fromkeys(re.findall(r"`(\w+)`", LATER))
    asked = [name for name in kinds(events.Event) if name in answers and name not in rows(UNASKED)]
    assert sorted([*asked, *rows(UNASKED)]) == sorted(kinds(events.Event))


def test_every_frame_has_a_row() -> None:
    assert sorted(rows(FRAMES)) == sorted(FRAME_KINDS)


@pytest.mark.parametrize(
    ("kind", "fence"),
    [
        *((MESSAGES[name], fence) for name, fence in rows(CONTROL).items()),
        *((kinds(effects.Effect)[name], fence) for name, fence in rows(LATER).items()),
        *((FRAME_KINDS[name], fence) for name, fence in rows(FRAMES).items()),
    ],
    ids=lambda one: one.__name__ if isinstance(one, type) else "",
)
def test_what_fences_it_is_a_field_of_it(kind: type[msgspec.Struct], fence: str) -> None:
    fields = [name.partition(".")[0] for name in re.findall(r"`([a-z_.]+)`", fence)]
    assert fields or re.search(r"\b(its|asker)\b", fence)
    assert set(fields) <= set(kind.__struct_fields__)


def test_a_message_without_a_row_would_be_seen() -> None:
    assert "Deploy" not in rows(CONTROL.replace("| `Deploy` |", "| Deploy |"))
