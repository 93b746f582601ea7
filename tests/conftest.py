"""What all tests share: how Hypothesis runs here, one Spark session for a whole run, the servers of process runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cutproof.harness.progress import Silent
from cutproof.harness.services import toxiproxy

# The same examples in every run: a red build is red again. The search that looks for new ones is `cutproof verify`.
settings.register_profile("tests", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that uses the session carries the marker; under xdist one worker takes them all and starts Spark once."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.spark)
            if config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def toxiproxy_server() -> Path:
    """The Toxiproxy server, got first where there is none: for tests whose runs may disturb a channel."""
    return toxiproxy.ensure(Silent())


@pytest.fixture(scope="session", autouse=True)
def place_of_kept_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests' runs on processes save is not put beside the user's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
        yield
