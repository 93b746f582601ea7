"""docs/processes.md against the code: every fault has its row, names and numbers are those that are there."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

from cutproof.faults.plan import KINDS
from cutproof.harness.reference_engine.services import places
from cutproof.harness.reference_engine.subjects import processes
from cutproof.harness.runtime.config import ENVIRONMENT_ONLY
from cutproof.reference_impl.processes.launching import launcher
from cutproof.reference_impl.processes.network import frames

DOCS = Path(__file__).parents[3] / "docs"
TEXT = (DOCS / "processes.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    text = TEXT.partition(f"## {title}\n")[2]
    assert text, title
    return re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]


def test_every_fault_has_one_row_that_states_what_counts_as_fired() -> None:
    rows = re.findall(r"^\| (`.+?`) \| .+ \| .+ \|$", _section("Faults"), flags=re.MULTILINE)
    documented = Counter(kind for row in rows for kind in re.findall(r"`([\w-]+)`", row))
    assert documented == Counter(list(KINDS))


def test_every_toxic_of_the_table_is_one_of_toxiproxys() -> None:
    from cutproof.faults.injectors.toxics import WIRE

    named = set(re.findall(r"Toxiproxy: (\w+)", _section("Faults"))) - {"the"}  # "the proxy is disabled"
    assert named == {name for name, _, _ in WIRE.values()}


def test_the_time_scale_is_the_one_of_the_code() -> None:
    section = _section("One run")
    assert f"by a factor, {processes.SCALE}: one virtual µs takes {processes.SCALE} µs" in " ".join(section.split())
    assert f"`{processes.SCALE_VARIABLE}` (1 to {processes.LARGEST_SCALE})" in section


def test_variables_that_it_names_are_known_and_all_that_processes_have_are_named() -> None:
    named = set(re.findall(r"`(CUTPROOF_\w+)", TEXT))
    assert named == ENVIRONMENT_ONLY - {"CUTPROOF_DEBUG"}


def test_the_settings_page_names_every_variable_that_is_no_setting() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(CUTPROOF_\w+)", page, flags=re.MULTILINE)) == ENVIRONMENT_ONLY


def test_frames_that_it_names_are_frames() -> None:
    row = re.search(r"^\| data \| .+? \| (.+?) \|", TEXT, flags=re.MULTILINE)
    assert row is not None
    named = set(re.findall(r"`(\w+)`", row[1]))
    assert named <= {kind.__name__ for kind in frames.DataFrame.__args__}
    assert len(named) == 9
    assert "`Reached`" in TEXT
    assert frames.Reached in frames.SupervisionFrame.__args__


@pytest.mark.parametrize("entry", ["node", "coordinator"])
def test_what_it_lists_is_what_the_launcher_starts(entry: str) -> None:
    module, _, function = launcher.ENTRIES[entry].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert (f"`{module}`" if entry == "node" else f"`.{entry}`") in TEXT


def test_the_named_place_is_where_the_page_states(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert places.runs() == tmp_path / "cutproof" / "runs"
    assert "in `cutproof/runs`" in TEXT


def test_both_stores_begin_with_the_argument_that_the_page_states_they_have() -> None:
    assert "Both files begin with the argument why no zombie escapes" in TEXT
    for name in ("database.py", "sqlite_store.py"):
        source = (DOCS.parent / "reference_impl" / "processes" / "stores" / name).read_text(encoding="utf-8")
        assert "Why no zombie escapes a fence." in source.partition('"""\n\nfrom')[0]


def test_the_verbs_and_options_that_it_shows_are_there() -> None:
    from cutproof.harness.cli.entry import VERBS

    shown = re.findall(r"^cutproof (\w+)", TEXT, flags=re.MULTILINE)
    assert set(shown) == {"verify", "replay", "defects"}
    assert set(shown) <= set(VERBS)
