"""What exit code 1 means is said in the same words wherever it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.cli import verify

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("place", ["README.md", "docs/settings.md", "harness/runtime/exit_codes.py", "verify --help"])
def test_how_many_judges_saw_a_violation_is_reported_everywhere(place: str) -> None:
    text = verify.EXAMPLES if place == "verify --help" else (ROOT / place).read_text()
    plain = " ".join(text.replace("[", "").replace("](docs/format.md#two-judges)", "").split())
    assert "violated: both judges saw it, or one where PySpark is not asked about it" in plain
