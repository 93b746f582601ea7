"""One body of tests for every subject: what is added here is asked of all that is asked below."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import Subject, close


@pytest.fixture(scope="session", params=["simulated", "processes"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    if request.param == "processes":
        request.getfixturevalue("toxiproxy_server")
    made = subject_called(request.param)
    yield made
    close(made)
