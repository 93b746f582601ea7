"""docs/protocol.md against the code: modules, tests, tables and examples are those that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cutproof.harness.reference_engine.subjects.transitions import TRANSITIONS
from cutproof.reference_impl.core.protocol.barrier_alignment import TABLE
from unit.docs.alignment_tables import PAGE, moves, renewed, tables
from unit.docs.examples_tables import example_rows
from unit.docs.stage_tables import renewed as renewed_stages
from unit.docs.stage_tables import table as table_of_stages

ROOT = Path(__file__).parents[3]
TEXT = PAGE.read_text(encoding="utf-8")
RULE = re.compile(r"^### ((?:ABS|CL|UNA|OPS|FIN|SNAP)-\d+) (.+)$", flags=re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")

BUILT = {
    *(f"ABS-{number}" for number in range(1, 19)),
    *(f"CL-{number}" for number in range(1, 6)),
    *(f"UNA-{number}" for number in range(1, 10)),
    *(f"OPS-{number}" for number in (1, 2, 3, 4, 5, 6)),
    *(f"FIN-{number}" for number in range(1, 10)),
    *(f"SNAP-{number}" for number in range(1, 8)),
}


def _sections() -> dict[str, str]:
    """The text of each rule by its id."""
    parts = re.split(r"^#{2,3} ", TEXT, flags=re.MULTILINE)
    return {part.split()[0]: part for part in parts if re.match(r"[A-Z]+-\d+ ", part)}


def test_what_is_built_stands_once() -> None:
    ids = [found[1] for found in RULE.finditer(TEXT)]
    assert sorted(ids) == sorted(BUILT)


@pytest.mark.parametrize("rule", sorted(BUILT))
def test_a_rule_names_its_code_and_its_tests(rule: str) -> None:
    section = _sections()[rule]
    assert re.search(r"^- Code: .*\]\(\.\./", section, flags=re.MULTILINE)
    assert TEST.search(section)


@pytest.mark.parametrize(("file", "name"), sorted(set(TEST.findall(TEXT))))
def test_a_named_test_is_there(file: str, name: str) -> None:
    source = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(", source, flags=re.MULTILINE)


def test_the_tables_of_alignment_are_those_of_the_code() -> None:
    assert [table for table in tables() if table not in TEXT] == []
    assert renewed(TEXT) == TEXT


def test_the_transitions_that_the_simulated_engine_counts_have_the_names_of_the_page() -> None:
    named = set()
    for table in tables()[:-1]:
        state, *relations = table.splitlines()[0].strip("| ").split(" | ")
        for line in table.splitlines()[2:]:
            signal, *moves_there = [cell.strip() for cell in line.strip("|").split("|")]
            cells = zip(relations, moves_there, strict=True)
            named |= {f"{state.lower()}: {signal}, {relation}" for relation, move in cells if move}
    named |= {f"{state}: end of a channel" for state in ("flowing", "aligning", "counting")}
    assert named == TRANSITIONS
    assert len(named) == len(TABLE)


def test_a_table_that_differs_from_the_code_is_renewed() -> None:
    stale = TEXT.replace("| `cancel_alignment` |", "| `ignore` |")
    assert stale != TEXT
    assert renewed(stale) == TEXT


def test_the_table_of_a_jobs_stages_is_that_of_the_code() -> None:
    assert table_of_stages() in TEXT
    assert renewed_stages(TEXT) == TEXT
    stale = TEXT.replace("| `Saving` |  | `Deploying`, ", "| `Saving` |  | `Working`, ")
    assert stale != TEXT
    assert renewed_stages(stale) == TEXT


def test_every_move_is_explained() -> None:
    explained = re.findall(r"^- (`\w+`(?:, `\w+`)*): ", TEXT, flags=re.MULTILINE)
    assert {name for group in explained for name in re.findall(r"\w+", group)} == moves()


def test_the_examples_are_those_of_the_code() -> None:
    assert example_rows() in TEXT
