"""The page of the nights, and what CI servers read beside it, written from a bank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...reports.nights.files import files_of
from ...reports.nights.model import Failure, Night
from ...reports.nights.view import view_of
from ..scenario.files import write_whole
from .bank import locked
from .contents import contents_of, demand_bank


def pages_of_bank(folder: Path, complain: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """Write the page of a bank's nights into the bank, and return the paths of the files.

    Nothing else of the bank is changed: what cannot be read is left to the next night, which tells it.  `complain` is
    called with it too, in one line each.  Raises UsageError if this is no bank or a job has it open, and OSError if the
    page cannot be written.
    """
    demand_bank(folder)
    with locked(folder, shared=True):
        found = contents_of(folder)
        for broken in found.broken:
            complain(broken.words)
        return write_pages(found.in_order, found.failures.values(), bank=folder, folder=folder)


def write_pages(nights: Sequence[Night], failures: Iterable[Failure], *, bank: Path, folder: Path) -> tuple[Path, ...]:
    """Write the files of `reports.nights.files` into a folder, each in one step, and return their paths.

    The nights come in the order of the bank.  Raises OSError if the folder cannot be written.
    """
    from ..runtime.version import package_version

    folder.mkdir(parents=True, exist_ok=True)
    view = view_of(nights, failures, bank=bank.resolve().name, version=package_version())
    contents = files_of(view)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return tuple(folder / name for name in contents)
