"""What all tests share: how Hypothesis runs, how xdist distributes tests, one Spark session, the servers of runs."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import java_classes
import sharing
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.toxiproxy import program as toxiproxy
from cutproof.properties.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same examples in every run: a red build is red again. The search that looks for new ones is `cutproof verify`.
settings.register_profile("tests", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("tests")


GARBAGE = 20_000
"""objects that are made until garbage is collected (Python: 700): what tests share is visited seldom"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that uses the Spark session carries the marker; among several workers what takes long comes first."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            if sharing.scope_of(item.nodeid) != sharing.SPARK:
                raise pytest.UsageError(f"{item.nodeid} uses the fixture `spark`: name its file in tests/sharing.py")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: sharing.rank(item.nodeid))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests and all modules stay to the end: no collection of garbage visits them again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 20)


def pytest_configure(config: pytest.Config) -> None:
    """Among several workers, the process that hands out the tests has an archive made which their Sparks share."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        return
    sharing_classes = contextlib.ExitStack()
    folder = Path(sharing_classes.enter_context(tempfile.TemporaryDirectory(prefix="cutproof-tests-")))
    making = java_classes.make(folder)
    java_classes.share(folder, os.environ)
    sharing_classes.callback(making.wait)
    sharing_classes.callback(making.terminate)
    config.add_cleanup(sharing_classes.close)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """None, which is xdist's own way, unless files are to be distributed as a whole."""
    if config.option.dist != "loadfile":
        return None
    from scheduling import FileScheduling

    return FileScheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One for all tests of a process: a JVM takes long to start, and longer to be quick."""
    yield session.session()
    session.stop()


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
