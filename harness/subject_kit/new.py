"""Writes a folder with a working adapter of a toy engine, its tests and a checklist."""

from __future__ import annotations

import importlib.util
import keyword
import shutil
import sys
from pathlib import Path

from ..runtime.exit_codes import UsageError

TEMPLATE = Path(__file__).with_name("template")
NAME = "NAME"
"""the word that stands for the folder's name in the files of the template"""


def write_new(name: str, where: Path) -> list[Path]:
    """Write the folder `name`, a Python package; returns its files.

    Raises UsageError if the name is no identifier, or if there is a file, a folder or a module of this name already.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be a Python package: take letters, digits and _, and no digit first")
    folder = where / name
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is there already; nothing was written")
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        raise UsageError(f"Python has a module {name!r} already, which the folder would hide; take another name")
    folder.mkdir()
    try:
        return [_written(source, folder, name) for source in sorted(TEMPLATE.iterdir()) if source.is_file()]
    except BaseException:
        shutil.rmtree(folder)
        raise


def _written(source: Path, folder: Path, name: str) -> Path:
    target = folder / source.name
    target.write_text(source.read_text(encoding="utf-8").replace(NAME, name), encoding="utf-8")
    return target
