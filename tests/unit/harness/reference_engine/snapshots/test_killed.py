"""A command is killed before each of its steps on the disk: nothing is half written, and the repeated command ends as
an undisturbed one."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutproof.reference_impl.processes.disk.files import DiskFiles
from unit.harness.reference_engine.snapshots.stores import COMMANDS, directories, states, tool, tree, words
from unit.processes.disks import die, end, forked

STEPS = ("mkdir", "replace", "rename", "unlink", "rmdir")
"""All by which a command changes what others see.  A sync changes nothing as long as the machine has power."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return directories(tmp_path_factory.mktemp("made"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here cuts the power, so syncs need not take any time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def dying_before(step: int) -> None:
    """From now on this process dies before that change of the disk."""
    done = 0

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **more: Any) -> Any:
            nonlocal done
            done += 1
            if done > step:
                die()
            return change(*args, **more)

        return instead

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_leaves_all_or_nothing_and_is_repeated(command: str, made: Path, tmp_path: Path) -> None:
    before = states(made / "store")
    first = min(before)
    shutil.copytree(made, tmp_path / "whole")
    assert tool(*words(command, tmp_path / "whole", first))[0] == 0
    aim = tree(tmp_path / "whole")
    for step in range(1_000):
        folder = shutil.copytree(made, tmp_path / str(step))
        asked = words(command, folder, first)

        def killed(asked: list[str] = asked, step: int = step) -> None:
            dying_before(step)
            assert tool(*asked)[0] == 0

        ended = end(forked(killed))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        where = f"{command}, killed before step {step}"
        check_whole(folder, before, first, command, where)
        assert tool(*asked)[0] == 0, where
        assert tree(folder) == aim, where
        assert not list(folder.glob(".*")), where
        shutil.rmtree(folder)
    assert step > 4


def check_whole(folder: Path, before: dict[int, Any], first: int, command: str, where: str) -> None:
    """Every snapshot that is there is whole, and none is lost."""
    store = folder / "store"
    there = states(store)
    gone = first not in there and COMMANDS[command][0] in ("delete", "move")
    assert there == ({number: one for number, one in before.items() if number != first} if gone else before), where
    target = folder / ("other" if "OTHER" in COMMANDS[command] else "target")
    if gone and COMMANDS[command][0] == "move":
        assert states(target)[first] == before[first], where
    elif target.name == "target" and target.exists():
        assert list(states(target)), where


def test_what_an_interrupted_command_left_is_told_and_deleted_by_the_next(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "copy")
    store = folder / "store"
    first = min(states(store))

    def killed() -> None:
        dying_before(8)
        tool("convert", store, first, "--to", "native")

    assert end(forked(killed)) == -signal.SIGKILL
    assert tool("list", store)[1]["unfinished"] == f"convert {first}"
    assert any("/native/" in name for name in tree(store))
    assert tool("delete", store, first)[0] == 0
    found = tool("list", store)[1]
    assert (found["unfinished"], found["unneeded_files"]) == (None, 0)
    assert DiskFiles(store).unsynced() == []
