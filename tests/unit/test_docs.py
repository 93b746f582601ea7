"""What the documents promise is there: links lead somewhere, and CI runs what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cutproof.properties.model.verdict import INVARIANTS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "tests/README.md"]
)
PACKAGES = ("faults", "harness", "properties", "reference_impl", "reports")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    here = ROOT / document
    text = here.read_text(encoding="utf-8")
    dead = []
    for link in LINK.findall(text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (here.parent / name) if name else here
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text(encoding="utf-8"))):
            dead.append(link)
    assert dead == []


def test_every_decision_is_listed() -> None:
    listed = set(LINK.findall((ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in (ROOT / "docs/decisions").glob("0*.md")}


def test_ci_runs_what_the_readme_states() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci/run").read_text(encoding="utf-8").replace(" --quiet", "")
    commands = re.findall(r"^python3 -m venv .+$", readme, flags=re.MULTILINE)
    assert len(commands) == 2
    assert [command for command in commands if command not in script] == []


def test_what_ci_runs_by_name_is_there() -> None:
    named = re.findall(r"tox -e (\S+)", "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".ci").iterdir()))
    sections = re.findall(r"^\[testenv:(\w+)\]$", (ROOT / "tox.ini").read_text(encoding="utf-8"), flags=re.MULTILINE)
    environments = [name for names in named for name in names.split(",")]
    assert "cluster" in environments
    assert [name for name in environments if name not in sections] == []


def _folders_of_code() -> list[str]:
    """Every folder of the package that has more files than its `__init__.py`."""
    files = [path for top in PACKAGES for path in (ROOT / top).rglob("*.py") if path.name != "__init__.py"]
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in files})


def _unnamed(folders: list[str], page: str) -> list[str]:
    """Folders that have neither a row of their own nor are named in their parent's row."""
    table = [line for line in page.splitlines() if line.startswith("| `")]
    rows = {name: row for row in table for name in re.findall(r"`([\w/]+)`", row.split(" | ")[0])}
    return [
        name
        for name in folders
        if name not in rows and f"`{name.rpartition('/')[2]}/`" not in rows.get(name.rpartition("/")[0], "")
    ]


def test_the_architecture_page_names_every_folder() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    folders = _folders_of_code()
    assert len(folders) > 30
    assert _unnamed(folders, page) == []


def test_a_folder_without_a_row_would_be_seen() -> None:
    page = "| `harness/cli` | the command line; `new/` has more | |"
    assert _unnamed(["harness/cli", "harness/cli/new", "harness/other"], page) == ["harness/other"]


def test_the_first_output_that_the_readme_shows_has_a_row_for_each_invariant() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split("<!-- verify: begin -->")[1].split("<!-- verify: end -->")[0]
    table = shown.split("invariant ")[1].split("\n\n")[0].splitlines()[1:]
    assert tuple(row.split()[0] for row in table) == INVARIANTS
