"""One body of tests for every subject: what is added here is asked of all that is asked below."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.harness.subject import Subject, close
from cutproof.harness.subject_names import subject_called

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", params=["simulated", "processes"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "processes":
        request.getfixturevalue("toxiproxy_server")
    made = subject_called(request.param)
    yield made
    close(made)
