"""The file of a toy pipeline, changed as a test asks; and which engines of real ones are there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

NEEDS_BYTEWAX = pytest.mark.skipif(
    importlib.util.find_spec("bytewax") is None, reason="bytewax is not installed: pip install 'cutproof[bytewax]'"
)
"""Its wheels end with CPython 3.12; `tox` installs it."""

TOY = Path(__file__).with_name("toy.py")
FILE = """
format = "cutproof-pipeline/1"
name = "toy"

[run]
start = ["{python}", "TOY", "{input}", "{state}/toy.db", "careful"]
ends = false
timeout_s = 5
settle_s = 0.4
restart_after_ms = 20

[feed]
records_per_file = 8
every_ms = 20

[read]
format = "sqlite"
path = "{state}/toy.db"
query = "SELECT key, n AS value, 0 AS tag FROM rows"
every_ms = 30

[computes]
steps = [{ kind = "count" }]

[restored]
log = "^restored"

[aims.a-file-is-done]
query = "SELECT count(*) FROM done"
database = "{state}/toy.db"
"""


def toy(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the file with each (old, new) replaced; an old text that is not there is an error of the test."""
    text = FILE.replace("TOY", str(TOY))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "toy.toml"
    path.write_text(text, encoding="utf-8")
    return path
