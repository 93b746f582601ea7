"""One Toxiproxy server for the tests of a file, one of a test's own, and what stands behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.faults.injectors.toxiproxy import Proxy
from unit.faults.proxies import NAME, Echo, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("toxiproxy"), "shared")
    try:
        started.up()
        yield started
    finally:
        started.kill()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server that the test may kill or stop."""
    started = Server(tmp_path, "own")
    try:
        started.up()
        yield started
    finally:
        started.kill()


@pytest.fixture
def echo() -> Iterator[Echo]:
    answering = Echo()
    yield answering
    answering.close()


@pytest.fixture
def proxy(server: Server, echo: Echo) -> Iterator[Proxy]:
    made = server.control.proxy(NAME, echo.port)
    yield made
    made.delete()
