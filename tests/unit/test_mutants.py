"""The mutants that `tox -e mutation` draws are what they claim to be."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import mutation
from mutants import draw, mutants

ROOT = Path(__file__).parents[2]

SOURCE = '''"""Header: 3."""
LIMIT: int = 5

class Gate(Base, frozen=True):
    size: int = 1

    def step(self, n: int) -> "list[int]":
        """Doc."""
        if n < LIMIT and n is not None:
            self.count = n
            self.log(f"µ {n + 1} took")
        kept = n
        while kept not in (1,):
            kept -= 2
        if not n:
            raise ValueError(f"{n} is less than {1}")
        return [x for x in (True,) if x]
'''


def changed(kind: str) -> list[str]:
    before = SOURCE.splitlines()
    found = [each.source.splitlines() for each in mutants("a.py", SOURCE) if f":{kind}:" in each.address]
    return [next(new.strip() for new, old in zip(after, before, strict=True) if new != old) for after in found]


def test_conditions_are_negated() -> None:
    assert changed("negate") == [
        "if not (n < LIMIT and n is not None):",
        "while not (kept not in (1,)):",
        "if not (not n):",
        "return [x for x in (True,) if not (x)]",
    ]


def test_statements_with_an_effect_are_dropped() -> None:
    assert changed("drop") == ["pass"] * 4
    first = next(each for each in mutants("a.py", SOURCE) if each.address == "a.py:Gate.step:drop:1")
    assert (first.line, first.diff(SOURCE).splitlines()[2:4]) == (
        10,
        ["-            self.count = n", "+            pass"],
    )


def test_constants_are_changed_but_not_in_messages_annotations_or_class_options() -> None:
    assert changed("constant") == [
        "LIMIT: int = 6",
        "size: int = 2",
        "while kept not in (2,):",
        "kept -= 3",
        "return [x for x in (False,) if x]",
    ]


def test_comparisons_are_changed() -> None:
    assert changed("compare") == [
        "if n <= LIMIT and n is not None:",
        "if n < LIMIT and n is None:",
        "while kept in (1,):",
    ]


def test_every_mutant_of_the_real_sources_parses_and_has_an_address_of_its_own() -> None:
    found = mutation.candidates(())
    assert len(found) > 5_000
    assert len({each.address for each in found}) == len(found)
    for mutant in draw(found, seed="parse", count=50):
        ast.parse(mutant.source)


def test_mutants_are_drawn_from_every_folder_and_each_has_tests_near() -> None:
    paths = mutation.mutated_files()
    folders = {str(Path(path).parent) for path in paths}
    assert {"reference_impl/core", "properties/model", "properties/invariants/parts"} <= folders
    assert not {"properties/spark", "properties/checking"} & folders
    near = {folder: mutation.nearest_tests(ROOT, f"{folder}/a.py") for folder in folders}
    assert near["reference_impl/core"] == "tests/unit/core"
    assert near["properties/invariants/parts"] == "tests/unit/properties/invariants/parts"
    assert near["properties/model"] == "tests/unit/properties"
    nearest, rest = mutation.test_files(ROOT, "properties/reconstruct/lineage.py")
    assert nearest[0] == "tests/unit/properties/reconstruct/test_lineage.py"
    assert "tests/unit/core/protocol/test_task.py" in rest
    assert not set(nearest) & set(rest)


def test_what_is_known_to_be_equivalent_is_a_mutant() -> None:
    known = tomllib.loads((ROOT / "tests/equivalent-mutants.toml").read_text(encoding="utf-8"))
    assert not set(known) - {each.address for each in mutation.candidates([name.partition(":")[0] for name in known])}


def test_the_draw_is_a_function_of_the_seed_and_stable_under_edits_elsewhere() -> None:
    found = mutants("a.py", SOURCE)
    drawn = draw(found, seed="1", count=6)
    assert drawn == draw(list(reversed(found)), seed="1", count=6)
    assert drawn != draw(found, seed="2", count=6)
    moved = mutants("a.py", "import os\n\n" + SOURCE)
    assert [each.address for each in draw(moved, seed="1", count=6)] == [each.address for each in drawn]
