"""One body of tests for every subject: what is added here is asked of all that is asked below."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cutproof.harness.subject import Subject
from cutproof.harness.subject_names import subject_called

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=["simulated"])
def subject(request: pytest.FixtureRequest) -> Subject:
    return subject_called(request.param)
