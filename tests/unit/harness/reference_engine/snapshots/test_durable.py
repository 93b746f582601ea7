"""A directory of snapshots appears under its name when all that is in it is on the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutproof.harness.reference_engine.snapshots.beginning import leave
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from unit.harness.reference_engine.snapshots.continuing import left, stopped
from unit.harness.reference_engine.snapshots.stores import tool


class Disk:
    """What is synced, by inode: a rename changes no bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: set[int] = set()
        self.folders: set[Path] = set()
        """synced since the last name in them was made"""
        self.unsynced: dict[str, list[Path]] = {}
        """by directory that appeared: what was not on the disk then"""
        monkeypatch.setattr(os, "fsync", self.sync)
        monkeypatch.setattr(os, "replace", self._counted(os.replace))
        monkeypatch.setattr(os, "rename", self._counted(os.rename))

    def sync(self, descriptor: int) -> None:
        self.synced.add(os.fstat(descriptor).st_ino)
        self.folders.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def _counted(self, rename: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def renamed(source: Any, target: Any) -> None:
            if Path(source).is_dir():
                inside = [Path(source), *Path(source).rglob("*")]
                self.unsynced[Path(target).name] = [path for path in inside if not self._has(path)]
            rename(source, target)
            self.folders.discard(Path(target).parent)

        return renamed

    def _has(self, path: Path) -> bool:
        if path.is_dir():
            return path in self.folders or not any(path.iterdir())
        return path.stat().st_ino in self.synced


@pytest.mark.parametrize("of", ["virtual time", "processes"])
def test_a_run_leaves_its_directory_when_all_of_it_is_durable(
    of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = left(tmp_path / "first", SimulatedSubject(), stopped(snapshot_format="incremental"))
    disk = Disk(monkeypatch)
    if of == "processes":  # which have had a directory for their store
        shutil.rmtree(tmp_path / "first/run")
        leave(tmp_path / "kept", result.scenario, result.history, tmp_path / "first")
    else:
        left(tmp_path / "kept", SimulatedSubject(), stopped(snapshot_format="incremental"))
    assert disk.unsynced == {"kept": []}
    assert tmp_path in disk.folders, "its name is on the disk too"


def test_a_fork_appears_when_all_of_it_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path / "kept", SimulatedSubject(), stopped(snapshot_format="incremental"))
    disk = Disk(monkeypatch)
    assert tool("fork", tmp_path / "kept", "newest", tmp_path / "forked", "--to", "native")[0] == 0
    assert disk.unsynced == {"forked": []}
    assert tmp_path in disk.folders
