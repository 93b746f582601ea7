"""What the tests of pages share: one browser a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser.chromium import Page, browse


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browse() as page:
        yield page
