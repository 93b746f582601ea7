"""The place where verifications leave their results until the plugin puts them into the test's report.

It is a module of its own, so that the plugin, which every test run imports, need not import the verifier.
"""

from __future__ import annotations

from typing import Any

import pytest

RESULTS: pytest.StashKey[list[Any]] = pytest.StashKey()
"""the results since the last report, as plain values that can be sent; it exists once a test has verified something"""
