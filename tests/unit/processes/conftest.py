"""What tests of processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from unit.processes.ends import Ends
from unit.processes.numbered_rig import Rig


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a data channel; closed behind each test."""
    made = Ends()
    yield made
    made.close()


@pytest.fixture
def rig(ends: Ends, tmp_path: Path) -> Iterator[Rig]:
    """Both ends of a numbered data channel; closed behind each test."""
    made = Rig(ends, tmp_path, Parts().local_recovery)
    yield made
    made.close()
