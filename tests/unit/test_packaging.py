"""What pyproject.toml lists by hand is what the folders hold."""

from __future__ import annotations

import sys
import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest

import cutproof
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.reading import read_pipeline
from unit.layering import ROOMS, imported

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FILES = sorted(
    path.relative_to(ROOT)
    for room in ROOMS
    for path in (ROOT / room).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)


def test_every_folder_is_a_listed_package() -> None:
    folders = {path.parent for path in FILES if path.suffix == ".py"}
    assert SETUPTOOLS["packages"] == ["cutproof", *sorted(".".join(["cutproof", *folder.parts]) for folder in folders)]
    assert [folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()] == []


def test_every_data_file_is_package_data() -> None:
    globs = SETUPTOOLS["package-data"]["cutproof"]
    data = [path.as_posix() for path in FILES if path.suffix != ".py"]
    assert data, "the sample of flights at least"
    assert [name for name in data if not any(fnmatch(name, glob) for glob in globs)] == []


def test_only_the_public_face_stands_at_the_root() -> None:
    assert [path.name for path in ROOT.glob("*.py")] == ["__init__.py"]


REQUIREMENTS = [
    *PROJECT["project"]["dependencies"],
    *(one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra),
]


IMPORTED_AS = {"confluent-kafka": "confluent_kafka", "toxiproxy-python": "toxiproxy"}


def name_of(requirement: str) -> str:
    return requirement.split(">")[0].split("[")[0]


def test_everything_imported_is_declared() -> None:
    declared = {IMPORTED_AS.get(name, name) for name in map(name_of, REQUIREMENTS)}
    # The program of a pipeline has packages that its file names: they are fetched, apart from those of cutproof.
    needed = (one for shipped in SHIPPED.values() for one in read_pipeline(shipped.path).file.needs.python)
    declared |= {one.partition("==")[0].split("[")[0] for one in needed}
    wanted = {
        name.split(".")[0]
        for path in FILES
        if path.suffix == ".py"
        for _, name in imported(path.as_posix(), (ROOT / path).read_text(encoding="utf-8"))
    } - {*sys.stdlib_module_names, "cutproof"}
    # py4j is a part of pyspark's face, markupsafe of jinja2's.
    assert wanted - {"py4j", "markupsafe"} <= declared


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs/decisions/0002-dependencies.md").read_text(encoding="utf-8")
    names = [name_of(requirement) for requirement in REQUIREMENTS]
    assert [name for name in names if f"**{name}**" not in reasons] == []


@pytest.mark.parametrize(
    "target", [PROJECT["project"]["scripts"]["cutproof"], PROJECT["project"]["entry-points"]["pytest11"]["cutproof"]]
)
def test_entry_points_resolve(target: str) -> None:
    module, _, name = target.partition(":")
    loaded = import_module(module)
    assert not name or callable(getattr(loaded, name))


def test_one_version() -> None:
    # Sources that are on the path without being installed have no version, and say so.
    assert cutproof.__version__ in {PROJECT["project"]["version"], "unknown (not installed)"}
