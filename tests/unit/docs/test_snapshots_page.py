"""docs/snapshots.md against the engine: its figures in virtual time are measured again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cutproof.harness.subject.names import subject_called

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "snapshots.md").read_text(encoding="utf-8")


@pytest.fixture
def stall(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import stall

    yield stall
    for name in ("stall", "measure"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("keys", [1_000, 4_000])
def test_the_stalls_are_those_of_the_page(keys: int, stall: object) -> None:
    subject = subject_called("simulated")
    found = [stall.measured(subject, keys, mode) for mode in stall.MODES]  # type: ignore[attr-defined]
    (size,) = {bytes_ for _, bytes_ in found}
    still, going = (f"{us / 1_000:.3f} ms" for us, _ in found)
    assert f"| {keys:,} | {size / 1_000:.0f} KB | {still} | {going} |" in PAGE
