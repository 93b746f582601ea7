"""Which tests share the Spark session of a run, and which files take long."""

from __future__ import annotations

SPARK = "spark"
WITH_SPARK = (
    "tests/end_to_end/test_committed_where_it_lies.py",
    "tests/end_to_end/test_planted_errors.py",
    "tests/end_to_end/test_streaming_and_batch.py",
    "tests/end_to_end/test_verbs.py",
    "tests/unit/spark/",
)
"""Files, and folders, with tests that use the fixture `spark`."""

LONG = (
    SPARK,
    "tests/defects/test_on_processes.py",
    "tests/conformance/test_conformance.py",
    "tests/conformance/test_regions.py",
    "tests/conformance/test_local.py",
    "tests/conformance/test_unaligned.py",
    "tests/end_to_end/test_interruption.py",
    "tests/end_to_end/test_nothing_left.py",
    "tests/end_to_end/test_processes.py",
    "tests/end_to_end/test_attacks.py",
    "tests/end_to_end/test_bad_input.py",
)
"""What takes a worker longest comes first, so that no worker is left with it when the others are done."""


def scope_of(nodeid: str) -> str:
    """What a test is dealt out with: its file, or `SPARK`."""
    file = nodeid.partition("::")[0]
    return SPARK if file.startswith(WITH_SPARK) else file


def turn(nodeid: str) -> int:
    """A test's place among the others, as a key to sort by."""
    scope = scope_of(nodeid)
    return LONG.index(scope) if scope in LONG else len(LONG)
