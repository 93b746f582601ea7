"""What is named for the dealing of tests is there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import sharing

ROOT = Path(__file__).parents[2]


def test_every_file_that_is_named_is_there() -> None:
    together = [file for files in sharing.TOGETHER.values() for file in files]
    named = [*together, *(one for one in sharing.LONG if one not in sharing.TOGETHER), *sharing.APART]
    assert [one for one in named if not _is_there(*one.partition("::")[::2])] == []


def _is_there(path: str, test: str) -> bool:
    return (ROOT / path).exists() and (not test or f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"))


def test_what_shares_the_session_is_scheduled_together_and_first() -> None:
    assert sharing.scope_of("tests/unit/spark/test_late_windows.py::test_it") == sharing.SPARK
    assert sharing.rank("tests/unit/spark/test_late_windows.py::test_it") == 0
    assert sharing.rank("tests/unit/core/operators/test_timers.py::test_it") == len(sharing.LONG)


def test_what_measures_the_same_is_scheduled_together() -> None:
    (page, report) = sharing.TOGETHER[sharing.ARITHMETIC]
    assert sharing.scope_of(f"{page}::test_it") == sharing.scope_of(f"{report}::test_it") == sharing.ARITHMETIC


def test_a_test_that_is_named_is_scheduled_apart_from_its_file_with_all_its_parameters() -> None:
    file = sharing.SOUND.partition("::")[0]
    assert sharing.scope_of(f"{sharing.SOUND}[A01]") == sharing.scope_of(f"{sharing.SOUND}[A03]") == sharing.SOUND
    assert sharing.scope_of(f"{file}::test_another") == file
    assert sharing.rank(f"{sharing.SOUND}[A01]") < sharing.rank(f"{file}::test_another")


@pytest.mark.parametrize("dist", ["no", "load", "loadscope", "loadgroup", "worksteal", "each", "loadfile"])
def test_how_tests_are_scheduled_is_ours_to_say_by_file_alone(dist: str, pytestconfig: pytest.Config) -> None:
    where = str(ROOT / "tests" / "conftest.py")
    made = pytestconfig.hook.pytest_xdist_make_scheduler.get_hookimpls()
    (hook,) = [one.function for one in made if getattr(one.plugin, "__file__", "") == where]
    options = {"dist": dist, "tx": ["2*popen"], "px": [], "maxprocesses": None}
    scheduler = hook(SimpleNamespace(option=SimpleNamespace(**options), getvalue=options.get), None)
    assert (type(scheduler).__name__ if scheduler else None) == ("FileScheduling" if dist == "loadfile" else None)
