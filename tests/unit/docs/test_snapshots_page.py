"""docs/snapshots.md against the engine: its figures in virtual time are measured again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.harness.subject.names import subject_called

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "snapshots.md").read_text(encoding="utf-8")


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in ("stall", "stop", "documents", "measure"):
        sys.modules.pop(name, None)


@pytest.fixture
def stall(benchmarks: None) -> object:
    import stall

    return stall


@pytest.mark.parametrize("keys", [1_000, 4_000])
def test_the_stalls_are_those_of_the_page(keys: int, stall: object) -> None:
    subject = subject_called("simulated")
    found = [stall.measured(subject, keys, mode) for mode in stall.MODES]  # type: ignore[attr-defined]
    (size,) = {bytes_ for _, bytes_ in found}
    still, going = (f"{us / 1_000:.3f} ms" for us, _ in found)
    assert f"| {keys:,} | {size / 1_000:.0f} KB | {still} | {going} |" in PAGE


def test_the_picture_shows_the_stalls_of_the_page(stall: object) -> None:
    rows = re.findall(r"^\| [\d,]+ \| (\d+) KB \| ([\d.]+) ms \| ([\d.]+) ms \|$", PAGE, re.MULTILINE)
    assert len(rows) == len(stall.KEYS)  # type: ignore[attr-defined]
    shown = {
        mode: [(float(row[0]), float(row[at])) for row in rows]
        for at, mode in enumerate(stall.MODES, 1)  # type: ignore[attr-defined]
    }
    assert (ROOT / "docs" / "stall.svg").read_text(encoding="utf-8") == stall.picture(shown)  # type: ignore[attr-defined]


def test_the_stops_are_those_of_the_page(benchmarks: None) -> None:
    import stop

    found = [f"{one.value:.3f} ms" for one in stop.in_virtual_time()]
    for at, keys in enumerate(stop.KEYS):
        canonical, native, incremental = found[3 * at : 3 * at + 3]
        assert f"| {keys:,} | {canonical} | {native} | {incremental} |" in PAGE
