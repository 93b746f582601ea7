"""What tests of processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unit.processes.ends import Ends


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a data channel; closed behind each test."""
    made = Ends()
    yield made
    made.close()
