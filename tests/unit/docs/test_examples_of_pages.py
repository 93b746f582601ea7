"""What the pages show can be typed: each command line is accepted, each file is read, each Python block is compiled."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
import tomllib
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli.entry import VERBS
from cutproof.harness.cli.terminal.options import add_common
from cutproof.harness.reference_engine.defects import DEFECTS
from cutproof.harness.runtime.config import from_file
from cutproof.harness.search import known_failures
from cutproof.harness.subject.abilities import demand
from cutproof.harness.user_pipelines import description
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.places import PLACES
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.workloads import inputs
from cutproof.properties.model.workload import AnyOperator

ROOT = Path(__file__).parents[3]
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "tests/README.md"])
}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(rf"(?:\w+=\S+ )*(?:\.venv/bin/)?cutproof ((?:{'|'.join(VERBS)})\b.*)")
IDS = {*DEFECTS, "ID", "ID…"}
"""what `defects run` may be followed by, with the words that stand for ids of the reader's"""
ORDERS = "customer,price,shop,placed_at\nann,34.48,n,2024-01-01T00:00:00\n,,s,2024-01-01T00:01:00\n"


def _blocks(text: str, kind: str) -> list[str]:
    """The contents of the fenced blocks whose first line names the kind."""
    return [body for what, body in BLOCK.findall(text) if what.partition(" ")[0] == kind]


def _commands(text: str) -> list[str]:
    """The command lines of a page, in blocks and in running text, without the command's name.

    Running text also names verbs without their arguments; these are no commands.
    """
    lines = [line.strip() for body in _blocks(text, "") for line in body.splitlines()]
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
    found = [match[1] for line in lines if (match := COMMAND.fullmatch(line))]
    return found + [match[1] for span in spans if (match := COMMAND.fullmatch(span)) and " " in match[1]]


def _options(command: str) -> argparse.Namespace:
    """What the command line's own parser makes of the command; raises ValueError if it refuses it."""
    verb, *words = shlex.split(command, comments=True)
    module = importlib.import_module(f"cutproof.harness.cli.{verb}")
    parser = argparse.ArgumentParser(prog=f"cutproof {verb}", exit_on_error=False)
    module.configure(parser)
    add_common(parser)
    options, rest = parser.parse_known_args(words)
    unknown = [*rest, *(sorted({*options.ids} - IDS) if verb == "defects" else [])]
    if unknown:
        raise ValueError(f"cutproof {command}: unknown {unknown}")
    return options


@pytest.mark.parametrize(
    ("document", "command"), [(name, command) for name, text in DOCUMENTS.items() for command in _commands(text)]
)
def test_a_command_is_accepted(document: str, command: str) -> None:
    assert command.partition(" ")[0] in VERBS
    _options(command)


def test_the_pages_commands_are_found() -> None:
    found = {name: len(_commands(text)) for name, text in DOCUMENTS.items()}
    assert found["README.md"] > 20
    assert sum(found.values()) >= 60
    assert {name for name, number in found.items() if number >= 3} >= {
        f"docs/{name}.md" for name in ("workloads", "processes", "defects", "spilling", "format")
    }


@pytest.mark.parametrize(
    "command",
    ["verify --scenaros 5", "verify --profile nightl", "check --expected a.csv", "defects run --all  hunt every one"],
)
def test_a_wrong_command_would_be_seen(command: str) -> None:
    with pytest.raises((ValueError, argparse.ArgumentError, SystemExit)):
        _options(command)


@pytest.mark.parametrize("document", [name for name, text in DOCUMENTS.items() if _blocks(text, "python")])
def test_python_blocks_are_python(document: str) -> None:
    for body in re.findall(r"^( *)```python\n(.*?)^ *```$", DOCUMENTS[document], flags=re.MULTILINE | re.DOTALL):
        assert ast.parse("\n".join(line.removeprefix(body[0]) for line in body[1].splitlines())).body


@pytest.mark.parametrize("document", [name for name, text in DOCUMENTS.items() if _blocks(text, "json")])
def test_json_blocks_are_json(document: str) -> None:
    for body in _blocks(DOCUMENTS[document], "json"):
        assert msgspec.json.decode(body)


def test_the_engine_of_the_readme_can_be_loaded() -> None:
    (source,) = [body for body in _blocks(DOCUMENTS["README.md"], "python") if "class MyEngine" in body]
    names: dict[str, object] = {}
    exec(compile(source, "README.md", "exec"), names)
    engine = names["MyEngine"]
    assert isinstance(engine, type)
    demand(engine().capabilities, engine.name)


def test_the_workload_file_of_the_page_can_be_loaded(tmp_path: Path) -> None:
    (text,) = _blocks(DOCUMENTS["docs/workloads.md"], "toml")
    (tmp_path / "workload.toml").write_text(text)
    (tmp_path / "orders.csv").write_text(ORDERS)
    loaded = inputs.load(inputs.read_description(tmp_path / "workload.toml"), tmp_path)
    assert loaded.keys == ("ann",)
    assert [value for split in loaded.workload.inputs[0].splits for _, value, _ in split] == [3448, None]
    assert loaded.topology is not None
    assert (loaded.topology.parallelism["spent"], loaded.topology.parallelism["sink"]) == (3, 1)


def test_every_operator_of_the_table_can_be_written_so() -> None:
    kinds = set()
    for written in re.findall(r"^\| `(\{ kind = .+? \})`", DOCUMENTS["docs/workloads.md"], flags=re.MULTILINE):
        operator = msgspec.convert(tomllib.loads(f"operator = {written}")["operator"], AnyOperator)
        kinds.add(msgspec.to_builtins(operator)["kind"])
    every = {one.__struct_config__.tag for one in AnyOperator.__args__}
    assert kinds == every


def test_the_settings_files_of_the_page_are_read(tmp_path: Path) -> None:
    blocks = [(what.split()[1], body) for what, body in BLOCK.findall(DOCUMENTS["docs/settings.md"]) if " " in what]
    assert [name for name, _ in blocks] == ["cutproof.toml", "pyproject.toml"]
    for name, body in blocks:
        place = tmp_path / name.partition(".")[0]
        place.mkdir()
        (place / name).write_text(body)
        assert len(from_file(place)) == body.count(" = ")


def test_the_known_failures_of_the_page_are_read(tmp_path: Path) -> None:
    (text,) = _blocks(DOCUMENTS["docs/known-failures.md"], "toml")
    (tmp_path / "known.toml").write_text(text)
    cause = known_failures.Cause(
        invariant="exactly-once",
        difference="repeated row",
        point="commit-requested",
        subject="my_package.my_engine:MyEngine",
    )
    assert "ENGINE-123" in known_failures.read(tmp_path / "known.toml").reason(cause)


def test_what_the_tests_page_installs_is_what_tox_does() -> None:
    installed = re.search(r"^pip install -e \. (.+)$", DOCUMENTS["tests/README.md"], flags=re.MULTILINE)
    deps = (ROOT / "tox.ini").read_text(encoding="utf-8").partition("deps =")[2].partition("pass_env")[0]
    assert installed is not None
    assert set(installed[1].split()) == set(re.findall(r"^ +([\w-]+)", deps, flags=re.MULTILINE))


def test_the_tox_environments_that_the_pages_name_are_there() -> None:
    text = (ROOT / "tox.ini").read_text(encoding="utf-8")
    named = {name for page in DOCUMENTS.values() for name in re.findall(r"`tox -e ([\w-]+)`", page)}
    assert named == {"browser", "bench", "cluster", "engines", "mutation"}
    assert named <= set(re.findall(r"^\[testenv:([\w-]+)\]$", text, flags=re.MULTILINE))
    # To tox, a first word with a colon is the name of an environment to which the rest is limited.
    assert re.findall(r"^description = [\w-]+: .*$", text, flags=re.MULTILINE) == []


def test_the_pipeline_file_of_its_page_can_be_used_and_every_entry_is_explained(tmp_path: Path) -> None:
    page = DOCUMENTS["docs/pipelines.md"]
    names = []
    for text in _blocks(page, "toml"):
        (tmp_path / "pipeline.toml").write_text(text)
        names.append(read_pipeline(tmp_path / "pipeline.toml").name)
    assert names == ["counts", "sums", "orders", "through-a-queue"]
    parts = (
        description.PipelineFile,
        description.Needs,
        description.Role,
        description.Proxy,
        description.Run,
        description.Commands,
        description.Commits,
        description.Computes,
        description.Feed,
        description.Read,
        description.Aim,
    )
    fields = {field for part in parts for field in part.__struct_fields__} - {"format", "name", "about"}
    named = set(re.findall(r"`\[?(?:aims\.)?(\w+)", page)) | set(re.findall(r"\[(\w+)\]", page))
    assert fields - named - {"aims"} == set()
    assert set(re.findall(r"^\| `([\w-]+)` \| (?:nothing else|a JDK|`pip)", page, flags=re.MULTILINE)) == set(SHIPPED)
    assert {place for place in PLACES if f"`{{{place}}}`" not in page} == set()
