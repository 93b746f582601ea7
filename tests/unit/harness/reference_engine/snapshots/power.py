"""A disk whose power may fail: which states of it survive, computed from what a process does and in which order.

A name that is made, replaced or deleted survives for certain once its folder is synced; until then its folder may have
what it had, each name by itself.  The bytes of a file survive once it is synced; until then they may be anything.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class File:
    """`data`: the bytes that survive; None if they may be anything."""

    data: bytes | None = None


@dataclass
class Folder:
    """`names`: what may be under each name after a loss of power, or None; the last one is there now."""

    names: dict[str, list[Node | None]] = field(default_factory=dict)


Node = File | Folder


def may_be(top: Node | None, path: str) -> list[Node | None]:
    """What may be under a path below a folder after a loss of power, if that folder is there."""
    found = [top]
    for part in path.split("/"):
        found = [one for node in found for one in _named(node, part)]
    return found


class Disk:
    """What is below a folder.  All that is there at first survives."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._content = _read(top)

    def may_be(self, path: Path) -> list[Node | None]:
        """What may be there after a loss of power."""
        return may_be(self._content, path.relative_to(self._top).as_posix())

    def copied(self) -> Disk:
        return copy.deepcopy(self)

    # -- what a process does -------------------------------------------------------------

    def make_folder(self, path: Path) -> None:
        self._put(path, Folder())

    def delete(self, path: Path) -> None:
        self._put(path, None)

    def rename(self, source: Path, target: Path) -> None:
        node = self._now(source)
        self._put(target, node if node is not None else File())
        self._put(source, None)

    def sync(self, path: Path) -> None:
        if path.is_dir():
            node = self._now(path)
            assert isinstance(node, Folder)
            node.names = {name: [may[-1]] for name, may in node.names.items() if may[-1] is not None}
            return
        if self._now(path) is None:  # nobody has seen when it was made
            self._put(path, File())
        node = self._now(path)
        assert isinstance(node, File)
        node.data = path.read_bytes()

    def has(self, path: Path) -> bool:
        return path.is_relative_to(self._top)

    def _now(self, path: Path) -> Node | None:
        node: Node | None = self._content
        for part in path.relative_to(self._top).parts:
            node = _named(node, part)[-1]
        return node

    def _put(self, path: Path, node: Node | None) -> None:
        folder = self._now(path.parent)
        assert isinstance(folder, Folder)
        folder.names.setdefault(path.name, [None]).append(node)


def _named(node: Node | None, name: str) -> list[Node | None]:
    return node.names.get(name, [None]) if isinstance(node, Folder) else [None]


def _read(path: Path) -> Node:
    if path.is_dir():
        return Folder({one.name: [_read(one)] for one in path.iterdir()})
    return File(path.read_bytes())


class Watched:
    """While it is entered, all that this process does to a disk is done to its model too, and `on_change` is called
    behind each change, before anything can sync it.  A folder that is made is no change by itself.  No sync takes any
    time."""

    def __init__(self, disk: Disk, on_change: Callable[[], None]) -> None:
        self._disk = disk
        self._on_change = on_change
        self._make_folder = os.mkdir
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> None:
        changes: dict[str, Callable[..., None]] = {
            "mkdir": self._disk.make_folder,
            "unlink": self._disk.delete,
            "rmdir": self._disk.delete,
            "replace": self._disk.rename,
            "rename": self._disk.rename,
        }
        for name, change in changes.items():
            self._patch.setattr(os, name, self._watched(getattr(os, name), change))
        for name in ("fsync", "fdatasync"):
            self._patch.setattr(os, name, self._sync)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _watched(self, real: Callable[..., None], change: Callable[..., None]) -> Callable[..., None]:
        def instead(*paths: Any, **how: Any) -> None:
            folder = how.get("dir_fd")
            real(*paths, **how)
            names = [one for one in paths if not isinstance(one, int)]
            found = [_opened(folder) / one if folder is not None else Path(os.path.abspath(one)) for one in names]
            if self._disk.has(found[0]):
                change(*found)
                if real is not self._make_folder:
                    self._on_change()

        return instead

    def _sync(self, descriptor: int) -> None:
        if self._disk.has(_opened(descriptor)):
            self._disk.sync(_opened(descriptor))


def _opened(descriptor: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
