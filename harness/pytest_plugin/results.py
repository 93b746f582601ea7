"""Where the verifications of a test leave their results until the plugin puts them into the test's report.

The plugin imports this and not what verifies: an environment's every test run imports the plugin.
"""

from __future__ import annotations

from typing import Any

import pytest

RESULTS: pytest.StashKey[list[Any]] = pytest.StashKey()
"""The results since the last report, as plain values that can travel; there once a test has verified something."""
