"""The folder that `cutproof subject new` writes: it works, and nothing that is there is overwritten."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cutproof.harness.cli.entry import verb_parser
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.subject_kit.new import NAME, TEMPLATE, write_new

pytest_plugins = ["pytester"]

STUB = """
    from cutproof.harness.pytest_plugin import verifier
    from cutproof.harness.search.oracle import Examined

    class Agrees:
        def start(self): pass
        def wait(self): pass
        def examine(self, questions): return Examined(engine="stub", workloads=len(questions))

    verifier.PySpark = Agrees
"""
FILES = ["README.md", "__init__.py", "adapter.py", "engine.py", "test_engine.py"]


def test_the_folder_has_all_files_and_is_called_by_its_name(tmp_path: Path) -> None:
    written = write_new("mine", tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in (tmp_path / "mine").iterdir()) == FILES
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert NAME not in text
        assert text == (TEMPLATE / path.name).read_text(encoding="utf-8").replace(NAME, "mine")


def test_the_commands_of_its_readme_are_accepted(tmp_path: Path) -> None:
    write_new("mine", tmp_path)
    text = (tmp_path / "mine" / "README.md").read_text()
    commands = re.findall(r"^cutproof (.*)$", text, re.MULTILINE)
    commands += re.findall(r"`cutproof ([^`]*\bmine\.[^`]*)`", text)
    assert len(commands) >= 5
    for command in commands:
        verb, *words = shlex.split(command, comments=True)
        options = verb_parser(verb).parse_args(words)
        subject = options.name if verb == "subject" else options.subject
        assert subject in ("mine.adapter:Engine", "mine.adapter:BrokenEngine")


def test_a_toy_is_readable() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in TEMPLATE.glob("*.py")}
    assert all(length < 450 for length in lengths.values()), lengths
    assert "import cutproof" not in (TEMPLATE / "engine.py").read_text(encoding="utf-8")
    assert "from cutproof" not in (TEMPLATE / "engine.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_there_is_not_overwritten(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "mine"
    if kind == "folder":
        place.mkdir()
        (place / "adapter.py").write_text("precious")
    elif kind == "file":
        place.write_text("precious")
    else:
        place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="mine is there already; nothing was written"):
        write_new("mine", tmp_path)
    if kind == "folder":
        assert [(path.name, path.read_text()) for path in place.iterdir()] == [("adapter.py", "precious")]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["", "9mine", "my-engine", "a/b", "..", "class", "my engine"])
def test_a_name_that_python_cannot_import_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a Python package"):
        write_new(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "cutproof", "antigravity", "made_by_hand"])
def test_a_module_is_not_hidden(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "made_by_hand", ModuleType("made_by_hand"))
    with pytest.raises(UsageError, match=f"Python has a module '{name}' already"):
        write_new(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_could_not_be_written_whole_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, *_: object, **__: object) -> int:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        write_new("mine", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_its_tests_pass_and_its_planted_bug_is_found(pytester: pytest.Pytester) -> None:
    write_new("mine", pytester.path)
    pytester.makeconftest(STUB)
    installed = any(point.name == "cutproof" for point in importlib.metadata.entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "cutproof.harness.pytest_plugin.plugin"]
    result = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", "mine")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*60 scenarios on toy, seed 0: 60 held, 0 violated*", "*exactly-once violated*broken*"]
    )
