"""What the end-to-end tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that also PostgreSQL can enter, which may run as somebody else: pytest's are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="cutproof-test-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)
