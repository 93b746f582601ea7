"""A command is killed or interrupted behind each of its steps on the disk, it is repeated, and the power fails at any
moment: each snapshot that is not to be deleted can be restored, and what a command has said to be done is done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.reference_engine.snapshots.directory import Directory
from cutproof.reference_impl.processes.disk.files import DiskFiles
from unit.harness.reference_engine.snapshots.power import Disk, File, Watched, may_be
from unit.harness.reference_engine.snapshots.stores import COMMANDS, directories, states, tool, tree, words

LOG = "job-1/log/op0-0-1/0"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `directories`; the snapshot that is changed has a log too."""
    folder = directories(tmp_path_factory.mktemp("made"))
    store = folder / "store"
    (store / "logs" / LOG).mkdir(parents=True)
    (store / "logs" / LOG / "00000001").write_bytes(b"elements")
    first, *_ = DiskFiles(store).listed()
    DiskFiles(store).store(msgspec.structs.replace(first, logs=(LOG,)))
    return folder


class Expected:
    """What a command is to leave of the snapshots, whatever disturbs it."""

    def __init__(self, command: str, made: Path, folder: Path) -> None:
        self.kind = COMMANDS[command][0]
        self.store = folder / "store"
        self.target = folder / ("other" if "OTHER" in COMMANDS[command] else "target")
        self.places = (self.store, folder / "other", folder / "target")
        copied(made, folder)
        before = {root: list(states(root)) for root in self.places if root.exists()}
        self._kept = before
        self._numbers = sorted({number for numbers in before.values() for number in numbers})
        self.first, newest = min(before[self.store]), max(before[self.store])
        self.changed = newest if "newest" in COMMANDS[command] else self.first
        self.words = words(command, folder, self.first)
        self._known: dict[bytes | None, dict[str, bytes]] = {}
        """by the bytes of a record: the files of its snapshot"""
        self._learn()
        assert tool(*self.words)[0] == 0
        self._learn()
        self.after = tree(folder)
        shutil.rmtree(folder)

    def _learn(self) -> None:
        for root in self.places:
            if not root.exists():
                continue
            directory = Directory(root)
            for number, record in directory.records.items():
                names = [f"snapshots/{name}" for name in directory.needed(record)]
                names += [f"logs/{log}/00000001" for log in record.logs]
                files = {name: (root / name).read_bytes() for name in names}
                assert self._known.setdefault(self._record(root, number).read_bytes(), files) == files

    def stays(self, disk: Disk, root: Path, number: int) -> bool:
        """Whether a snapshot is there whichever state of the disk survives."""
        return None not in disk.may_be(self._record(root, number))

    def problems(self, disk: Disk) -> Iterator[str]:
        """At any moment each snapshot that may survive is whole, and none is lost."""
        for root in self.places:
            for number in self._numbers:
                yield from self._not_whole(disk, root, number)
        for root, numbers in self._kept.items():
            for number in numbers:
                places = [root]
                if (root, number) == (self.store, self.first) and self.kind in ("delete", "move"):
                    places = [root, self.target] if self.kind == "move" else []
                if places and not any(self.stays(disk, place, number) for place in places):
                    yield f"snapshot {number} may be lost"

    def _not_whole(self, disk: Disk, root: Path, number: int) -> Iterator[str]:
        what = f"snapshot {number} may survive in {root.name}"
        for top in disk.may_be(root):
            for record in may_be(top, f"records/chk-{number}"):
                if record is None:
                    continue
                files = self._known.get(record.data if isinstance(record, File) else None)
                if files is None:
                    yield f"{what} with a torn record"
                    continue
                for name, data in files.items():
                    if not all(isinstance(one, File) and one.data == data for one in may_be(top, name)):
                        yield f"{what} without {name}"

    def not_done(self, disk: Disk) -> Iterator[str]:
        """When the command has said that it is done, it is done for certain."""
        yield from self.problems(disk)
        found = disk.may_be(self._record(self.store, self.changed))
        if self.kind in ("delete", "move") and found != [None]:
            yield f"snapshot {self.changed} may come back"
        if self.kind in ("move", "fork") and not self.stays(disk, self.target, self.changed):
            yield f"the copy of snapshot {self.changed} may be lost"
        if self.kind == "convert":
            now = self.after[f"store/records/chk-{self.changed}"]
            if [one.data for one in found if isinstance(one, File)] != [now]:
                yield f"snapshot {self.changed} may be as it was"

    @staticmethod
    def _record(root: Path, number: int) -> Path:
        return root / f"records/chk-{number}"


def copied(folder: Path, to: Path) -> None:
    """By links: the tool writes into no file that is there."""
    shutil.copytree(folder, to, copy_function=os.link)


def run(expected: Expected, disk: Disk, on_change: Callable[[], None] = lambda: None) -> tuple[int, list[str]]:
    """The command, on a disk whose power may fail at any moment: its exit code, and what may be lost then."""
    found: list[str] = []

    def checked() -> None:
        found.extend(expected.problems(disk))
        on_change()

    with Watched(disk, checked):
        code = tool(*expected.words)[0]
    found.extend(expected.not_done(disk) if code == 0 else expected.problems(disk))
    return code, list(dict.fromkeys(found))


@pytest.mark.parametrize("command", ["convert to canonical", "delete", "move to a new one", "move to another", "fork"])
def test_no_snapshot_is_lost_with_the_power_if_a_killed_command_is_repeated(
    command: str, made: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    expected = Expected(command, made, folder)
    copied(made, folder)
    disk = Disk(folder)
    left: list[Disk] = []

    def keep() -> None:
        copied(folder, tmp_path / f"{len(left)}")
        left.append(disk.copied())

    assert run(expected, disk, keep) == (0, [])
    assert len(left) > 4
    for step, then in enumerate(left):
        shutil.rmtree(folder)
        os.rename(tmp_path / f"{step}", folder)
        assert run(expected, then) == (0, []), f"killed behind step {step}"
        assert tree(folder) == expected.after, f"killed behind step {step}"


@pytest.mark.parametrize("command", ["convert to canonical", "delete", "move to another"])
def test_no_snapshot_is_lost_with_the_power_if_a_command_is_interrupted(
    command: str, made: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    expected = Expected(command, made, folder)
    for step in range(1_000):
        copied(made, folder)
        disk = Disk(folder)
        done = 0

        def interrupt(step: int = step) -> None:
            nonlocal done
            done += 1
            if done == step + 1:
                raise KeyboardInterrupt

        where = f"interrupted behind step {step}"
        assert run(expected, disk, interrupt) == (130 if done > step else 0, []), where
        assert run(expected, disk) == (0, []), where
        assert tree(folder) == expected.after, where
        shutil.rmtree(folder)
        if done <= step:
            break
    assert step > 4
