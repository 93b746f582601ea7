"""What tests share across files, and which take long: their distribution to the workers follows from it."""

from __future__ import annotations

SPARK = "spark"
WITH_SPARK = (
    "tests/end_to_end/test_committed_in_place.py",
    "tests/end_to_end/test_planted_errors.py",
    "tests/end_to_end/test_streaming_and_batch.py",
    "tests/end_to_end/test_user_pipelines.py",
    "tests/end_to_end/test_verbs.py",
    "tests/cluster/test_check_plans.py",
    "tests/cluster/test_spark_pool.py",
    "tests/cluster/test_tables_in_parallel.py",
    "tests/unit/spark/",
)
"""Files, and folders, with tests that use the fixture `spark`."""

ARITHMETIC = "arithmetic"
TOGETHER = {
    SPARK: WITH_SPARK,
    ARITHMETIC: (
        "tests/unit/docs/test_spilling_page.py",
        "tests/unit/harness/examples/pipelines/test_pipeline_report.py",
    ),
}
"""Files that one worker gets together: they share the Spark session, or the figures that `measured.py` measures."""

VIOLATED = "tests/defects/test_on_processes.py::test_its_invariant_is_violated_with_the_defect"
SOUND = "tests/defects/test_on_processes.py::test_without_the_defect_it_holds_and_is_exercised"
TEMPLATES = "tests/conformance/test_conformance.py::test_drawn_scenarios_of_every_template"
APART = (VIOLATED, SOUND, TEMPLATES)
"""Tests that are distributed apart from the rest of their file, for all that they share is quick to start."""

LONG = (
    SPARK,
    VIOLATED,
    SOUND,
    TEMPLATES,
    "tests/conformance/test_conformance.py",
    "tests/conformance/test_regions.py",
    "tests/conformance/test_unaligned.py",
    "tests/conformance/test_local.py",
    "tests/end_to_end/test_nothing_left.py",
    "tests/end_to_end/test_attacks.py",
    "tests/end_to_end/test_interruption.py",
    "tests/end_to_end/test_processes.py",
    ARITHMETIC,
)
"""What takes a worker longest comes first, so that no worker is left with it when the others are done."""


def scope_of(nodeid: str) -> str:
    """What a test is distributed with: its file, several files, or its own parameters alone."""
    file, _, test = nodeid.partition("::")
    own_scope = f"{file}::{test.partition('[')[0]}"
    if own_scope in APART:
        return own_scope
    return next((name for name, files in TOGETHER.items() if file.startswith(files)), file)


def rank(nodeid: str) -> int:
    """A test's place among the others, as a key to sort by."""
    scope = scope_of(nodeid)
    return LONG.index(scope) if scope in LONG else len(LONG)
