"""The rows of docs/defects.md: those of planted defects follow from the registry.

Run as a script it writes them anew; every other row is left as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from cutproof.reference_impl.defects import DEFECTS, Defect

PAGE = Path(__file__).parents[3] / "docs" / "defects.md"
ROW = re.compile(r"^\| ([A-Z]\d\d) \| (?!\d+ of 10 )(.+?) \| (.+?) \| (.+) \|$", flags=re.MULTILINE)
RATE = re.compile(
    r"^\| ([A-Z]\d\d) \| (\d+) of 10 \| ([^|]+) \| (?:([0-3]) of 3|not tried) \| ([^|]+) \|$", flags=re.MULTILINE
)


def planted_row(defect: Defect) -> str:
    """What the page says of a planted defect."""
    variants = [type(part) for part in defect.replacements().values()]
    named = " and ".join(f"[`{variant.__name__}`]({_file_of(variant)})" for variant in variants)
    return f"| {defect.id} | {defect.upstream} | {defect.title} | *planted*: {named}, must violate {defect.invariant} |"


def statuses(page: str) -> list[tuple[str, str]]:
    """(id, status) of every row, in the page's order."""
    return [(found[1], found[4]) for found in ROW.finditer(page)]


def on_processes(page: str) -> list[tuple[str, int, str]]:
    """(id, runs of ten that show it, kind of difference) of every defect, in the page's order."""
    return [(found[1], int(found[2]), found[3]) for found in RATE.finditer(page)]


def as_shrunk(page: str) -> list[tuple[int, str]]:
    """(runs of three that the shrunk file shows it in, what became of the others) where it was tried, in order."""
    return [(int(found[4]), found[5]) for found in RATE.finditer(page) if found[4]]


def renewed(page: str) -> str:
    """The page with the rows of planted defects as the registry has them."""
    return ROW.sub(lambda found: planted_row(DEFECTS[found[1]]) if found[1] in DEFECTS else found[0], page)


def _file_of(variant: type) -> str:
    return "../" + "/".join(variant.__module__.split(".")[1:]) + ".py"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
