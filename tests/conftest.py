"""What all tests share: how Hypothesis runs here, and one Spark session for a whole run."""

from __future__ import annotations

import pytest
from hypothesis import settings

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
