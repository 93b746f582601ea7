"""The manual's examples: its settings, workload and known failures are read, its options exist, its tests parse."""

from __future__ import annotations

import ast
import datetime
import re
from pathlib import Path

import pytest

from cutproof.harness.cli.entry import VERBS, verb_parser
from cutproof.harness.cli.terminal.options import apply_settings
from cutproof.harness.pytest_plugin import plugin
from cutproof.harness.runtime.config import SETTINGS, from_file
from cutproof.harness.search import known_failures
from cutproof.harness.search.known_failures import Cause
from cutproof.harness.workloads import inputs

DOCS = Path(__file__).parents[4] / "docs"
FENCE = re.compile(r"^```(\w*) ?([\w.-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(document: str, language: str) -> list[tuple[str, str]]:
    """(file name, text) of a document's fenced blocks in a language."""
    found = FENCE.findall((DOCS / document).read_text(encoding="utf-8"))
    blocks = [(name, text) for kind, name, text in found if kind == language]
    assert blocks
    return blocks


@pytest.mark.parametrize(("name", "text"), examples("settings.md", "toml"))
def test_settings_files_are_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    settings = from_file(tmp_path)
    assert len(settings) == text.count(" = ")
    parser = verb_parser("verify")
    apply_settings(parser, settings)
    assert vars(parser.parse_args([])).items() >= {"quiet": False}.items()


def test_every_setting_is_listed_with_the_verbs_that_have_it() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w, ]+) \|", (DOCS / "settings.md").read_text(), re.MULTILINE)
    listed = {name: VERBS if verbs == "all" else verbs.split(", ") for name, verbs in rows}
    assert set(listed) == set(SETTINGS)
    for verb in VERBS:
        options = verb_parser(verb).options
        assert {name for name in SETTINGS if name in options} == {
            name for name, verbs in listed.items() if verb in verbs
        }, verb


def test_the_workload_file_loads(tmp_path: Path) -> None:
    ((name, text),) = examples("workloads.md", "toml")
    (tmp_path / name).write_text(text)
    rows = ["customer,price,shop,placed_at", "ann,12.34,north,2026-01-01T10:00:00", "bob,,south,2026-01-01T10:01:00"]
    (tmp_path / "orders.csv").write_text("\n".join(rows) + "\n")
    loaded = inputs.load(inputs.read_description(tmp_path / name), tmp_path)
    assert [node.name for node in loaded.workload.nodes] == ["dear", "spent"]
    assert loaded.keys == ("ann", "bob")
    assert [[record[:2] for record in split] for split in loaded.workload.inputs[0].splits] == [
        [(0, 1234)],
        [(1, None)],
    ]
    assert loaded.topology is not None
    assert dict(loaded.topology.parallelism) == {"orders": 2, "dear": 2, "spent": 3, "sink": 1}


def test_every_operator_of_the_table_is_one(tmp_path: Path) -> None:
    operators = re.findall(r"^\| `(\{ kind = .+? \})` \|", (DOCS / "workloads.md").read_text(), re.MULTILINE)
    assert len(operators) == 18
    for operator in operators:
        both = any(f'"{kind}"' in operator for kind in ("join", "union", "rules"))
        two = 'inputs = ["a", "b"]' if both else 'inputs = ["a"]'
        described = "\n".join(f'[[inputs]]\nname = "{name}"\nkey = "k"\nvalue = "v"' for name in "ab")
        text = f'format = "cutproof-workload/1"\nname = "x"\n{described}\n[[steps]]\nname = "s"\n{two}\n'
        (tmp_path / "x.toml").write_text(f"{text}operator = {operator}\n")
        (step,) = inputs.read_description(tmp_path / "x.toml").steps
        assert type(step.operator).__struct_config__.tag in operator


def test_known_failures_are_known(tmp_path: Path) -> None:
    ((name, text),) = examples("known-failures.md", "toml")
    assert name == known_failures.FILE
    (tmp_path / name).write_text(text)
    known = known_failures.read(tmp_path / name, datetime.date(2026, 1, 1))
    cause = Cause(
        invariant="exactly-once",
        difference="repeated row",
        point="commit-requested",
        subject="my_package.my_engine:MyEngine",
    )
    assert known.reason(cause).startswith("ENGINE-123")


@pytest.mark.parametrize(("name", "text"), examples("pytest.md", "python"))
def test_tests_of_the_manual_parse(name: str, text: str) -> None:
    assert any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.parse(text).body)


def test_the_plugins_options_are_listed() -> None:
    source = Path(plugin.__file__ or "").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(--cutproof-[\w-]+) ", (DOCS / "pytest.md").read_text(), re.MULTILINE)
    assert listed == re.findall(r'addoption\("(--cutproof-[\w-]+)"', source)
