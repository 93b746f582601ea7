"""What the tests of pages share: one browser a file, which opens the file's `report` afresh for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.chromium import Page, browse


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browse() as page:
        yield page


@pytest.fixture
def page(browser: Page, report: Path) -> Page:
    """The report at a desk, in light, freshly opened."""
    browser.resize(1280)
    browser.prefer()
    browser.open(report)
    return browser
