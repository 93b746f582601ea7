"""Settings: from a file, then from the environment, then from options.

The file is the nearest cutproof.toml, or pyproject.toml with a table `[tool.cutproof]`,
from the working folder upwards.  A later source overrides an earlier one.  An unknown key
is an error that names the nearest known key.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..scenario.reading import toml_of
from .exit_codes import UsageError

SETTINGS: tuple[str, ...] = (
    "scenarios",
    "time",
    "seed",
    "profile",
    "subject",
    "workers",
    "runs",
    "workload",
    "input",
    "defect",
    "out",
    "stop-at-first",
    "known-failures",
    "keep-histories",
    "shrink-time",
    "guarantee",
    "tolerance",
    "limit",
    "exact",
    "quiet",
    "verbose",
)
"""the settings, with the names of their options"""

PATHS = frozenset({"input", "out", "known-failures"})
"""settings that are paths; in a file they are relative to the file's folder"""

WORKLOAD_FILES = (".toml", ".json")
"""what the name of a workload file ends with; any other workload is a built-in one"""

VALID = "valid TOML"
PREFIX = "CUTPROOF_"
ENVIRONMENT_ONLY = frozenset(
    {"CUTPROOF_DEBUG", "CUTPROOF_NETWORK", "CUTPROOF_POSTGRES", "CUTPROOF_TIME_SCALE", "CUTPROOF_TOXIPROXY"}
)
"""variables that are not settings: whether tracebacks are shown, and where servers are (docs/settings.md)"""


class Setting(msgspec.Struct, frozen=True):
    """A value, and its source in words."""

    value: Any
    source: str


Settings = dict[str, Setting]


def load(folder: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """All settings from the file and the environment; raises UsageError for an unknown key."""
    return {**from_file(folder), **from_environment(environ)}


def from_file(folder: Path) -> Settings:
    """The settings of the nearest file from the folder upwards; empty if there is no file."""
    for place in [folder, *folder.parents]:
        own = place / "cutproof.toml"
        if own.is_file():
            return _settings(toml_of(own, VALID), own)
        project = place / "pyproject.toml"
        if project.is_file():
            tools = toml_of(project, VALID).get("tool", {})
            table = tools.get("cutproof") if isinstance(tools, dict) else None
            if table is not None:
                return _settings(table, project)
    return {}


def from_environment(environ: Mapping[str, str]) -> Settings:
    found: Settings = {}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in ENVIRONMENT_ONLY:
            continue
        key = variable.removeprefix(PREFIX).lower().replace("_", "-")
        if key not in SETTINGS:
            known = [PREFIX + name.upper().replace("-", "_") for name in SETTINGS]
            hint = nearest(variable, [*known, *sorted(ENVIRONMENT_ONLY)])
            raise UsageError(f"unknown environment variable {variable}{hint}")
        found[key] = Setting(environ[variable], variable)
    return found


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` with the nearest known word, or the list of all known words."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are: {', '.join(known)}"


def _settings(table: object, path: Path) -> Settings:
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.cutproof is not a table")
    found: Settings = {}
    for name, value in table.items():
        key = name.replace("_", "-")
        if key not in SETTINGS:
            raise UsageError(f"{path}: unknown setting {name!r}{nearest(key, SETTINGS)}")
        if isinstance(value, (dict, list)):
            raise UsageError(f"{path}: {name} takes one value, not a {'table' if isinstance(value, dict) else 'list'}")
        if _is_path(key, value):
            value = str(path.parent / str(value))
        found[key] = Setting(value, f"{path.name}, {name}")
    return found


def _is_path(key: str, value: object) -> bool:
    """Whether the value names a file or a folder: the number of scenarios may be a folder of them instead."""
    if key == "workload":
        return str(value).endswith(WORKLOAD_FILES)
    if key == "scenarios":
        return isinstance(value, str) and not value.isdecimal()
    return key in PATHS
