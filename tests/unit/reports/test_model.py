from __future__ import annotations

import json

import msgspec
import pytest

from cutproof.reports.model import InvariantCounts, Summary
from unit.reports import stories

PROMISED = json.loads("""
{"format": "cutproof-summary/1", "version": "1", "subject": "simulated", "profile": "default", "seed": 7,
 "scenarios": {"run": 1000, "held": 998, "violated": 0, "unknown": 2},
 "invariants": {"exactly-once": {"can_show": 900, "holds": 898, "violated": 0, "unknown": 102}, "consistent-cut": {}},
 "faults": {"kill-task": {"planned": 700, "fired": 660, "phases": {"running": 300, "aligning": 90}}},
 "commands": {"stop-with-savepoint": {"planned": 200, "finished": 190, "drain": 95}},
 "checkpoints": {"completed": 5000, "aborted": 300}, "recoveries": 900, "records": {"read": 0, "committed": 0},
 "oracle": {"engine": "pyspark 4.3.0", "workloads": 800, "expected_rows": 45000, "queries": 9, "disagreements": 0},
 "seconds": {"total": 0.0, "start": 0.0, "draw": 0.0, "run": 0.0, "oracle": 0.0, "judge": 0.0, "report": 0.0},
 "scenarios_per_second": 0.0,
 "counterexamples": [{"id": "a", "invariant": "exactly-once", "scenario": "counterexamples/a.json", "story": "one",
                      "replay": "cutproof replay a", "size": {"tasks": 2, "records": 3, "faults": 1},
                      "seconds_to_find": 0.0, "seconds_to_shrink": 0.0}]}
""")
"""The format as it is documented."""


def _contains(whole: object, part: object) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(map(_contains, whole, part)) and len(whole) == len(part)
    return whole == part


def test_the_documented_summary_is_read_and_written_back_whole() -> None:
    summary = msgspec.convert(PROMISED, Summary)
    assert summary.invariants["exactly-once"].can_show == 900
    assert _contains(msgspec.to_builtins(summary), PROMISED)


def test_a_summary_survives_its_json() -> None:
    summary = stories.summary()
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_values_are_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError):
        InvariantCounts(1)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        InvariantCounts().holds = 3  # type: ignore[misc]
