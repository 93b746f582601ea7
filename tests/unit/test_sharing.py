"""What is named for the dealing of tests is there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import sharing

ROOT = Path(__file__).parents[2]


def test_every_file_that_is_named_is_there() -> None:
    named = [one for one in (*sharing.WITH_SPARK, *sharing.LONG) if one != sharing.SPARK]
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_what_shares_the_session_is_dealt_out_together_and_first() -> None:
    assert sharing.scope_of("tests/unit/spark/test_late.py::test_it") == sharing.SPARK
    assert sharing.turn("tests/unit/spark/test_late.py::test_it") == 0
    assert sharing.turn("tests/unit/core/test_timers.py::test_it") == len(sharing.LONG)


@pytest.mark.parametrize("dist", ["no", "load", "loadscope", "loadgroup", "worksteal", "each", "loadfile"])
def test_how_tests_are_dealt_out_is_ours_to_say_by_file_alone(dist: str, pytestconfig: pytest.Config) -> None:
    where = str(ROOT / "tests" / "conftest.py")
    made = pytestconfig.hook.pytest_xdist_make_scheduler.get_hookimpls()
    (hook,) = [one.function for one in made if getattr(one.plugin, "__file__", "") == where]
    options = {"dist": dist, "tx": ["2*popen"], "px": [], "maxprocesses": None}
    scheduler = hook(SimpleNamespace(option=SimpleNamespace(**options), getvalue=options.get), None)
    assert (type(scheduler).__name__ if scheduler else None) == ("Dealing" if dist == "loadfile" else None)
