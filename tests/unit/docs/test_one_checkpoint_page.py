"""docs/one-checkpoint.md names the files and methods that one checkpoint goes through, as a trace of calls has them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.properties.model.workload import Count, Edge, Input, Node, Topology, Workload
from cutproof.reference_impl import core
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary import messages as m
from cutproof.reference_impl.core.vocabulary.events import (
    Answered,
    Arrived,
    JobSaved,
    Received,
    RecordStored,
    TimerFired,
)
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval

PAGE = Path(__file__).parents[3] / "docs" / "one-checkpoint.md"
CORE = Path(core.__file__).parent
VALUES = ("vocabulary", "job")
"""folders of values: what machines exchange, and what a job is"""
FILES_AT_MOST = 8
METHODS_AT_MOST = 40
"""how many methods a reader has to read"""
FUNCTIONS_AT_MOST = 80
"""how many functions of the protocol run, with those that need not be read"""
IN_THE_CORE_AT_MOST = 200
"""the same of the whole core"""
FOLLOWED = 2
"""the checkpoint that is followed: the first one that another preceded"""


def scenario() -> Scenario:
    halves = tuple(tuple((number % 7, number, split << 32 | number) for number in range(200)) for split in range(2))
    return Scenario(
        name="one checkpoint",
        workload=Workload(
            name="one checkpoint",
            inputs=(Input(name="source", splits=halves),),
            nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
        ),
        topology=Topology(
            parallelism={"source": 2, "count": 2, "sink": 1},
            edges=(
                Edge(sender="source", receiver="count", partitioning="hash"),
                Edge(sender="count", receiver="sink", partitioning="rebalance"),
            ),
        ),
        engine=Engine(),
    )


class Walk:
    """The code of the core that runs in steps for one checkpoint: (file, method) in the order of the first calls."""

    def __init__(self) -> None:
        self.called: dict[tuple[str, str], None] = {}
        self._checkpoint = 1
        """the checkpoint that the next tick is for"""
        self._is_at_tasks = False
        self._steps: list[FrameType] = []

    def __call__(self, frame: FrameType, what: str, _: Any) -> None:
        if what == "return" and self._steps and self._steps[-1] is frame:
            self._steps.pop()
        if what != "call":
            return
        code = frame.f_code
        if code.co_name == "step" and "event" in frame.f_locals and self._belongs(frame.f_locals["event"]):
            self._steps.append(frame)
        path = Path(code.co_filename)
        if self._steps and path.is_relative_to(CORE):
            self.called.setdefault((path.relative_to(CORE).as_posix(), code.co_qualname))

    def _belongs(self, event: Any) -> bool:
        if isinstance(event, RecordStored):
            self._checkpoint = event.checkpoint + 1
            return bool(event.checkpoint == FOLLOWED)
        if isinstance(event, TimerFired):
            return isinstance(event.timeout, CheckpointInterval) and self._checkpoint == FOLLOWED
        if isinstance(event, Received):
            return getattr(event.message, "checkpoint", None) == FOLLOWED
        if isinstance(event, Arrived):
            belongs = isinstance(event.element, m.Barrier) and event.element.checkpoint == FOLLOWED
            self._is_at_tasks = self._is_at_tasks or belongs
            return belongs
        if isinstance(event, JobSaved):
            return self._checkpoint == FOLLOWED
        return isinstance(event, Answered) and self._is_at_tasks and self._checkpoint <= FOLLOWED + 1


@pytest.fixture(scope="module")
def walk() -> Walk:
    run = Run(scenario(), Parts(), timeline=False)
    walk = Walk()
    before = sys.getprofile()
    sys.setprofile(walk)
    try:
        history = run.history()
    finally:
        sys.setprofile(before)
    assert [one.checkpoint for one in history.completed][:FOLLOWED] == [1, FOLLOWED]
    return walk


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def linked(text: str, folder: str) -> set[str]:
    return set(re.findall(rf"\(\.\./reference_impl/core/({folder}/(?:\w+/)?\w+\.py)\)", text))


METHOD = re.compile(r"`((?:[A-Z]\w+)\.\w+)`")


def read(text: str) -> list[str]:
    """The methods of the column *Read*."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return [method for cells in rows for method in METHOD.findall(cells[3])]


def test_what_is_read_stands_in_at_most_eight_files(walk: Walk, text: str) -> None:
    file_of = {method: file for file, method in walk.called}
    files = {file_of[method] for method in read(text)}
    assert len(files) <= FILES_AT_MOST
    assert files == linked(text, "protocol")


def test_what_is_read_is_short(walk: Walk, text: str) -> None:
    assert len(set(read(text))) <= METHODS_AT_MOST
    assert len(functions(walk, "protocol/")) <= FUNCTIONS_AT_MOST
    assert len(functions(walk)) <= IN_THE_CORE_AT_MOST


def test_no_other_file_of_the_protocol_takes_part(walk: Walk, text: str) -> None:
    assert {file for file, _ in walk.called if file.startswith("protocol/")} == linked(text, "protocol")


def functions(walk: Walk, folder: str = "") -> list[str]:
    """The functions and methods of a folder that run, without the comprehensions and lambdas in them."""
    return [method for file, method in walk.called if file.startswith(folder) and not method.endswith(">")]


FOLDERS = ("backends", "decisions", "operators", "lifecycle", "extensions")


def test_what_these_files_ask_is_named(walk: Walk, text: str) -> None:
    files = {file for file, _ in walk.called if file.split("/")[0] not in (*VALUES, "protocol")}
    named = {file for folder in FOLDERS for file in linked(text, folder)}
    assert files == named - {"decisions/parts.py"}


def test_how_many_files_take_part_is_said(walk: Walk, text: str) -> None:
    others, everything = re.search(
        r"ask (\d+) other files.*values, (\d+)\s+files of the core", text, flags=re.S
    ).groups()  # type: ignore[union-attr]
    files = {file for file, _ in walk.called}
    assert int(everything) == len(files)
    assert int(others) == len([file for file in files if file.split("/")[0] not in (*VALUES, "protocol")])


def test_how_many_functions_run_is_said(walk: Walk, text: str) -> None:
    of_protocol, of_core = re.search(
        r"(\d+)\s+functions\s+of\s+the\s+eight\s+files.*?(\d+)\s+of\s+the\s+core", text, flags=re.S
    ).groups()  # type: ignore[union-attr]
    assert int(of_protocol) == len(functions(walk, "protocol/"))
    assert int(of_core) == len(functions(walk))


def test_each_method_is_called_in_this_order(walk: Walk, text: str) -> None:
    first = {method: number for number, (_, method) in enumerate(walk.called)}
    methods = list(dict.fromkeys(METHOD.findall(text)))
    assert len(methods) > 25
    assert [method for method in methods if method not in first] == []
    places = [first[method] for method in methods]
    assert places == sorted(places)
