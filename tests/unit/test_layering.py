"""The rules of docs/architecture.md, held against every source file, and each shown that it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit import layering
from unit.layering import RULES, RULES_OVER_ALL, Rule, RuleOverAll

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for top in [ROOT / "__init__.py", *(ROOT / folder for folder in (*layering.ROOMS, "benchmarks", "tests"))]
    for path in ([top] if top.is_file() else top.rglob("*.py"))
)


def test_all_rooms_are_looked_at() -> None:
    assert {path.split("/")[0] for path in SOURCES} >= {*layering.ROOMS, "__init__.py", "tests"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sources_keep(rule: Rule) -> None:
    offences = [line for path in SOURCES for line in rule(path, (ROOT / path).read_text(encoding="utf-8"))]
    assert offences == []


@pytest.mark.parametrize("rule", RULES_OVER_ALL, ids=lambda rule: rule.__name__)
def test_the_sources_keep_together(rule: RuleOverAll) -> None:
    assert rule({path: (ROOT / path).read_text(encoding="utf-8") for path in SOURCES}) == []


OFFENCES: list[tuple[Rule, str, str]] = [
    (layering.rooms_import_only_what_they_may, "properties/invariants/order.py", "from ...harness import scenario"),
    (layering.rooms_import_only_what_they_may, "properties/invariants/order.py", "from ... import faults"),
    (
        layering.rooms_import_only_what_they_may,
        "faults/injectors/simulated.py",
        "from ...reference_impl.core import ids",
    ),
    (layering.rooms_import_only_what_they_may, "reports/model.py", "from ..faults.points import POINTS"),
    (layering.rooms_import_only_what_they_may, "reports/model.py", "def f():\n    from ..harness.run import run"),
    (
        layering.rooms_import_only_what_they_may,
        "reference_impl/core/protocol/task.py",
        "from ....properties.workload import Row",
    ),
    (layering.rooms_import_each_other_relatively, "harness/subject/run.py", "import cutproof.properties"),
    (layering.rooms_import_each_other_relatively, "harness/subject/run.py", "from cutproof.properties import history"),
    (layering.nobody_imports_tests_or_everything, "harness/subject/run.py", "from ...tests.unit import layering"),
    (layering.nobody_imports_tests_or_everything, "harness/subject/run.py", "import tests.support"),
    (layering.nobody_imports_tests_or_everything, "tests/unit/test_x.py", "from cutproof.properties import *"),
    (
        layering.only_the_reference_engine_folder_imports_the_engine,
        "harness/cli/main.py",
        "def f():\n    from ...reference_impl.defects import DEFECTS",
    ),
    (
        layering.only_the_reference_engine_folder_imports_the_engine,
        "harness/search/systems.py",
        "if TYPE_CHECKING:\n    from ...reference_impl.core.ids import TaskId",
    ),
    (
        layering.folders_of_the_core_import_only_what_they_may,
        "reference_impl/core/decisions/commits.py",
        "if TYPE_CHECKING:\n    from ..protocol.sink import TransactionalSink",
    ),
    (
        layering.folders_of_the_core_import_only_what_they_may,
        "reference_impl/core/decisions/parts.py",
        "from ..protocol.barrier_alignment import Alignment",
    ),
    (
        layering.folders_of_the_core_import_only_what_they_may,
        "reference_impl/core/protocol/checkpoints.py",
        "from ..lifecycle.closing import Closing",
    ),
    (
        layering.folders_of_the_core_import_only_what_they_may,
        "reference_impl/core/vocabulary/ids.py",
        "from ...driver.ports import Loop",
    ),
    (layering.only_the_spark_room_imports_pyspark, "harness/judge.py", "from pyspark.sql import SparkSession"),
    (layering.only_the_spark_room_imports_pyspark, "properties/invariants/order.py", "import pyspark"),
    (layering.only_the_spark_room_imports_pyspark, "properties/invariants/order.py", "from ..spark import session"),
    (layering.only_the_search_imports_hypothesis, "harness/subject/run.py", "from hypothesis import strategies"),
    (layering.only_the_search_imports_hypothesis, "properties/invariants/order.py", "import hypothesis"),
    *(
        (layering.names_are_parsed_in_few_files, "reference_impl/core/job/topology.py", source)
        for source in (
            'operator = task.rpartition("-")[0]',
            'sender, _, receiver = channel.partition(">")',
            'job, *_ = handle.split("/")',
            'job = handle.split(sep="/", maxsplit=1)[0]',
            'identity = transaction.partition("#")[0]',
            'EPOCH = "#"\nidentity = transaction.partition(EPOCH)[0]',
            'run, *_ = prepared.rsplit("|", 3)',
            'task = name.rpartition("@")[0]',
        )
    ),
    (
        layering.names_are_parsed_in_few_files,
        "reference_impl/core/vocabulary/ids.py",
        'job, *_ = handle.split("/")',
    ),
    (layering.pure_code_imports_nothing_worldly, "reference_impl/core/protocol/task.py", "import time"),
    (
        layering.pure_code_imports_nothing_worldly,
        "reference_impl/core/protocol/task.py",
        'import importlib\nclosing = importlib.import_module("cutproof.reference_impl.core.lifecycle.closing")',
    ),
    (
        layering.pure_code_imports_nothing_worldly,
        "reference_impl/core/decisions/commits.py",
        "def f(name):\n    from importlib import import_module\n    return import_module(name)",
    ),
    (
        layering.pure_code_calls_nothing_unstable,
        "reference_impl/core/decisions/commits.py",
        'sink = __import__("cutproof.reference_impl.core.protocol.sink")',
    ),
    (layering.pure_code_imports_nothing_worldly, "reference_impl/core/protocol/task.py", "from os import path"),
    (layering.pure_code_imports_nothing_worldly, "reference_impl/core/decisions.py", "import random"),
    (layering.pure_code_imports_nothing_worldly, "reference_impl/simulated/world.py", "import random"),
    (layering.pure_code_calls_nothing_unstable, "reference_impl/core/operators/operators.py", "group = hash(key) % 16"),
    (layering.pure_code_calls_nothing_unstable, "reference_impl/simulated/world.py", "print(1)"),
    (layering.pure_code_iterates_no_set, "reference_impl/core/a.py", "for x in {1, 2}: f(x)"),
    (layering.pure_code_iterates_no_set, "reference_impl/core/a.py", "waiting = set()\nfor x in waiting: f(x)"),
    (layering.pure_code_iterates_no_set, "reference_impl/core/a.py", "def f(s: frozenset[int]): return [x for x in s]"),
    (
        layering.pure_code_iterates_no_set,
        "reference_impl/core/a.py",
        "class A:\n s: set[int]\n def f(self): return list(self.s)",
    ),
    (layering.pure_code_iterates_no_set, "reference_impl/core/a.py", "s = set()\nprint(*s)"),
    (layering.pure_code_iterates_no_set, "reference_impl/core/a.py", "s = set()\ns.pop()"),
    (layering.pure_code_iterates_no_set, "reference_impl/core/a.py", "s = set()\nfor x in s - t: f(x)"),
    *(
        (
            layering.nothing_is_decided_by_the_text_of_an_error,
            "harness/search/search.py",
            f"def f():\n try: g()\n except Broken as broken:\n  {decides}",
        )
        for decides in (
            'if "refused" in str(broken): h()',
            'if str(broken) == "refused": h()',
            'if str(broken).startswith("refused"): h()',
            'if broken.args[0].endswith("refused"): h()',
            'return re.search("refused", str(broken))',
            'if one_line(broken).startswith("refused"): h()',
            'return str(broken).partition(": ")[0]',
            "return REFUSED.fullmatch(str(broken))",
            'text = " ".join(str(broken).split())\n  if any(word in text for word in REFUSED): h()',
        )
    ),
    (layering.fields_of_the_core_have_no_sentinels, "reference_impl/core/a.py", 'class A:\n    peer: str = ""'),
    (layering.fields_of_the_core_have_no_sentinels, "reference_impl/core/a.py", "class A:\n    position: int = -1"),
    (layering.fields_of_the_core_have_no_sentinels, "reference_impl/core/a.py", "LAST = CheckpointId(0)"),
    (layering.no_file_is_too_long, "harness/subject/run.py", "pass\n" * 601),
]


@pytest.mark.parametrize(("rule", "path", "source"), OFFENCES)
def test_a_planted_offence_is_found(rule: Rule, path: str, source: str) -> None:
    assert len(rule(path, source)) == 1


def test_every_rule_has_a_planted_offence() -> None:
    assert {rule for rule, _, _ in OFFENCES} == set(RULES)


def test_what_an_error_says_may_be_passed_on() -> None:
    source = "def f():\n try: g()\n except Broken as error: raise Failed(f'{str(error)}: {len(error.args)}') from None"
    assert not layering.nothing_is_decided_by_the_text_of_an_error("harness/search/search.py", source)


@pytest.mark.parametrize("path", layering.TEXTS_OF_ERRORS_ARE_READ_IN)
def test_who_may_ask_what_an_error_says_does(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(layering.TEXTS_OF_ERRORS_ARE_READ_IN, path)
    assert layering.nothing_is_decided_by_the_text_of_an_error(path, (ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", layering.NAMES_ARE_PARSED_IN)
def test_who_may_take_names_apart_does(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for separator in layering.NAMES_ARE_PARSED_IN[path]:
        fewer = layering.NAMES_ARE_PARSED_IN[path].replace(separator, "")
        monkeypatch.setitem(layering.NAMES_ARE_PARSED_IN, path, fewer)
        assert layering.names_are_parsed_in_few_files(path, (ROOT / path).read_text(encoding="utf-8")), separator
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("reports/model.py", "from ..faults.plan import Fault\nfrom ..properties import history\nfrom . import svg"),
        ("harness/reference_engine/a.py", "from ...reference_impl.core import ids\nfrom ..run import run"),
        ("reference_impl/core/vocabulary/ids.py", 'sender, _, receiver = channel.partition(">")'),
        ("harness/subject/run.py", "pass\n" * 600),
        ("harness/search/search.py", "import hypothesis"),
        (
            "properties/spark/session/session.py",
            "from pyspark.sql import SparkSession\nfrom ...model import workload",
        ),
        ("reference_impl/driver/perturbations.py", "import random"),
        ("reference_impl/core/lifecycle/coordinator.py", "from ..extensions.enumerator import SplitAssignment"),
        ("reference_impl/core/a.py", "s = {1}\nfor x in sorted(s): f(x)\nok = any(x > 1 for x in s)\nd = {}\nd.pop(1)"),
        ("harness/subject/run.py", "import time\nfor x in {1, 2}: print(hash(x))"),
    ],
)
def test_what_is_allowed_is_not_accused(path: str, source: str) -> None:
    assert [line for rule in RULES for line in rule(path, source)] == []


IMPORT_EACH_OTHER: list[dict[str, str]] = [
    {"harness/a.py": "from .b import b", "harness/b.py": "from .a import a"},
    {"harness/a.py": "from . import b", "harness/b.py": "from . import a"},
    {"properties/a.py": "from .b import b", "properties/b.py": "if TYPE_CHECKING:\n    from .a import A"},
    {
        "reference_impl/driver/ports.py": "if TYPE_CHECKING:\n    from .stores import Stores",
        "reference_impl/driver/stores.py": "from .ports import World",
    },
    {
        "reference_impl/simulated/a.py": "from ..driver.b import b",
        "reference_impl/driver/b.py": "from ..simulated.a import A",
    },
    {"harness/a.py": "from .x.b import b", "harness/x/b.py": "def f():\n    from ..a import a"},
    {
        "harness/a.py": "from .x import x",
        "harness/x/__init__.py": "from .b import b",
        "harness/x/b.py": "from .. import a",
    },
    {
        "properties/a.py": "import msgspec\nfrom .b import b",
        "properties/b.py": "from .c import c",
        "properties/c.py": "from .a import a",
    },
    {"reference_impl/core/a.py": "from .b import b", "reference_impl/core/b.py": "from .a import a"},
    {
        "__init__.py": "if TYPE_CHECKING:\n    from .harness.a import A",
        "harness/a.py": "def f():\n    from .. import __version__",
    },
]


@pytest.mark.parametrize("sources", IMPORT_EACH_OTHER)
def test_a_planted_circle_is_found(sources: dict[str, str]) -> None:
    (circle,) = layering.no_modules_import_each_other_in_a_circle(sources)
    assert all(path in circle for path in sources), "the line names whom it goes through"


@pytest.mark.parametrize(
    "sources",
    [
        {"harness/a.py": "from .b import b\nfrom .c import c", "harness/b.py": "from .c import c", "harness/c.py": ""},
        {"harness/x/__init__.py": "from .a import a", "harness/x/a.py": "from .b import b", "harness/x/b.py": ""},
        {"harness/a.py": "from ..properties.a import a", "properties/a.py": "from .b import a", "properties/b.py": ""},
        {"tests/a.py": "from .b import b", "tests/b.py": "from .a import a"},
    ],
)
def test_what_is_no_circle_there_is_not_accused(sources: dict[str, str]) -> None:
    assert layering.no_modules_import_each_other_in_a_circle(sources) == []


def in_the_core(**sources: str) -> dict[str, str]:
    """Sources by their paths, of which `__` stands for a slash."""
    return {f"{layering.CORE}{name.replace('__', '/')}.py": source for name, source in sources.items()}


FOLDERS_IMPORT_EACH_OTHER: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (
        in_the_core(
            job__topology="from ..operators.operators import Operator",
            job__key_groups="",
            operators__operators="",
            operators__operator_state="def f():\n    from ..job.key_groups import owner",
        ),
        ("core/job", "core/operators"),
    ),
    (
        in_the_core(
            operators__operators="from ..backends.heap import HeapState",
            backends__heap="",
            backends__opening="if TYPE_CHECKING:\n    from ..decisions.parts import Parts",
            decisions__parts="",
            decisions__event_time="from ..operators.timers import Timer",
            operators__timers="",
        ),
        ("core/operators", "core/backends", "core/decisions"),
    ),
    (
        in_the_core(
            extensions__snapshots__reading="from ..rescaling.rescale import Gathering",
            extensions__snapshots__shared_files="",
            extensions__rescaling__rescale="from ..in_flight_data import in_flight",
            extensions__in_flight_data__in_flight="",
            extensions__in_flight_data__barrier_options="from ..snapshots.shared_files import SharedFiles",
        ),
        ("extensions/snapshots", "extensions/rescaling", "extensions/in_flight_data"),
    ),
    (
        in_the_core(
            decisions__checkpointing="from .snapshots.compatibility import refusal",
            decisions__snapshots__compatibility="",
            decisions__snapshots__naming="from ..checkpointing import Cleanup",
        ),
        ("decisions/checkpointing.py", "decisions/snapshots"),
    ),
]


@pytest.mark.parametrize(("sources", "parts"), FOLDERS_IMPORT_EACH_OTHER)
def test_a_planted_circle_of_folders_is_found_though_no_files_form_one(
    sources: dict[str, str], parts: tuple[str, ...]
) -> None:
    assert layering.no_modules_import_each_other_in_a_circle(sources) == []
    (circle,) = layering.folders_of_the_core_import_each_other_in_no_circle(sources)
    assert all(part in circle for part in parts)


def test_a_base_of_a_folder_may_lie_beside_it() -> None:
    sources = in_the_core(
        decisions__part="",
        decisions__parts="from .part import Part\nfrom .snapshots.naming import Naming",
        decisions__snapshots__naming="from ..part import Part",
    )
    assert layering.folders_of_the_core_import_each_other_in_no_circle(sources) == []


@pytest.mark.parametrize(("folder", "other"), [("job", "operators"), ("vocabulary", "job"), ("decisions", "protocol")])
def test_the_table_of_the_core_cannot_allow_a_circle(folder: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layering.CORE_MAY_IMPORT, folder, (*layering.CORE_MAY_IMPORT[folder], other))
    (circle,) = layering.folders_of_the_core_may_import_each_other_in_no_circle({})
    assert f"{folder} imports {other}" in circle
