"""The page of the nights, and what CI servers read beside it, written from a bank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ...reports.nights.files import files_of
from ...reports.nights.model import Failure, Night
from ...reports.nights.view import view_of
from ..scenario.files import write_whole
from .bank import Bank
from .contents import demand_bank


def pages_of_bank(folder: Path) -> tuple[Path, ...]:
    """Write the page of a bank's nights into the bank, and return the paths of the files.

    Raises UsageError if this is no bank or a job has it open, and OSError if it cannot be written.
    """
    demand_bank(folder)
    with Bank(folder) as bank:
        return write_pages(bank.nights, bank.failures.values(), bank=folder, folder=folder)


def write_pages(nights: Sequence[Night], failures: Iterable[Failure], *, bank: Path, folder: Path) -> tuple[Path, ...]:
    """Write the files of `reports.nights.files` into a folder, each in one step, and return their paths.

    The nights come in the order of the bank.  Raises OSError if the folder cannot be written.
    """
    from ... import __version__

    folder.mkdir(parents=True, exist_ok=True)
    view = view_of(nights, failures, bank=bank.resolve().name, version=__version__)
    contents = files_of(view)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return tuple(folder / name for name in contents)
