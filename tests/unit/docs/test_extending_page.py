"""docs/extending.md: the files that it sends a reader to are those where things of that kind are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import dedent

import pytest

from cutproof.reference_impl.defects import DEFECTS

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")

EXAMPLES = {
    "An operator of the project": ("greater", {"properties/semantics/classes.py"}),
    "A fault": (
        "stall.?channel|def stall|RESTORING",
        {
            "reference_impl/processes/supervision.py",
            "reference_impl/driver/arms.py",
            "harness/reference_engine/orchestrator/injectors/waiting.py",
            "harness/reference_engine/merging/failures.py",
        },
    ),
    "An invariant": (r"consistent.cut|def check\(|class History|Mutation", set()),
    "A defect": ("class Part|DEFECTS", set()),
}
"""by section: something of its kind that every file it names must mention, and files that need not"""


def _section(title: str) -> str:
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def _files(section: str) -> list[Path]:
    links = re.findall(r"\]\(\.\./([^)#]+\.py)\)", section)
    return [ROOT / link for link in dict.fromkeys(links)]


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_files_of_a_section_know_one_of_its_kind(title: str) -> None:
    probe, others = EXAMPLES[title]
    files = [file for file in _files(_section(title)) if file.relative_to(ROOT).as_posix() not in others]
    assert files
    strangers = [file.name for file in files if not re.search(probe, file.read_text(encoding="utf-8"), re.IGNORECASE)]
    assert strangers == []


def test_the_defect_on_the_page_is_one_of_the_code() -> None:
    block = re.search(r"```python\n(.+?) *```", _section("A defect"), flags=re.DOTALL)
    assert block is not None
    assert dedent(block[1]) == inspect.getsource(type(DEFECTS["I03"].replacements()["committing"]))


def test_the_tests_that_it_names_are_there() -> None:
    named = re.findall(r"`(unit/[\w/]+\.py)`", TEXT)
    assert named
    assert [name for name in named if not (ROOT / "tests" / name).is_file()] == []


COUNTED = ("", "one", "two", "three", "four", "five", "six", "seven")


@pytest.mark.parametrize(
    "title", ["An operator of the project", "A fault", "A protocol point", "An invariant", "A defect"]
)
def test_the_architecture_page_counts_the_steps_that_are_here(title: str) -> None:
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    anchor = title.lower().replace(" ", "-")
    row = re.search(rf"^\| \[[^\]]+\]\(extending\.md#{anchor}\) \| (\w+) \|", architecture, flags=re.MULTILINE)
    assert row is not None
    steps = re.findall(r"^(\d)\. ", _section(title), flags=re.MULTILINE)
    assert steps == [str(number + 1) for number in range(COUNTED.index(row[1]))]
