"""Copies of the stores of a run, from each of which jobs are forked once the run is over.

While the stores are copied, every process is stopped.  So a copy is what the processes would find if all of them died
at that moment.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from ....faults.plan import AtRest
from ....reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from ....reference_impl.processes.disk.durable import Temporaries
from ....reference_impl.processes.disk.files import COPIES, DiskFiles, DiskJobs
from ....reference_impl.processes.network.frames import Echo
from ...scenario.model import Fork, Scenario, kind_of
from ..subjects.past import Past
from .context import Context
from .jobs import Jobs
from .layout import COORDINATOR

FOLDER = "copies"


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """The stores of a run at a moment, and the snapshots from which a command forks jobs."""

    command: int
    root: Path
    by_reference: bool
    at_us: int
    job: JobRecord
    """of the latest job"""
    retained: tuple[int, ...]
    wanted: tuple[int, ...]
    users: tuple[int, ...] = ()
    """the copies that a user has, from which jobs are forked too"""


class StoresOfFork(msgspec.Struct, frozen=True, kw_only=True):
    """The stores with which a fork begins: as if one snapshot were the last that completed.

    With `from_copy` it is a user's copy, and the stores have no other snapshot, and no file but those of the user.
    """

    copy: Copy
    checkpoint: int
    from_copy: bool = False

    @property
    def records(self) -> tuple[CompletedCheckpoint, ...]:
        known = DiskFiles(self.copy.root / COPIES if self.from_copy else self.copy.root).survey()[0]
        return tuple(
            one.in_another_place()
            for one in known
            if (one.checkpoint == self.checkpoint if self.from_copy else self._is_kept(one.checkpoint))
        )

    def _is_kept(self, checkpoint: int) -> bool:
        return checkpoint in self.copy.retained and checkpoint <= self.checkpoint

    def write(self, root: Path, *, whole_files: bool) -> None:
        _copy(self.copy.root, root, by_reference=self.copy.by_reference)
        if self.from_copy:
            _take_from_user(root)
        files, left = DiskFiles(root), {one.checkpoint: one for one in self.records}
        for record in files.survey()[0]:
            if record.checkpoint not in left:
                files.discard((), record.checkpoint)
            elif record.moved:
                files.store(left[record.checkpoint])
        DiskJobs(root).save(self.copy.job)


def stores_of_forks(copy: Copy) -> list[StoresOfFork]:
    """Those of each job that is forked from this copy."""
    own = [StoresOfFork(copy=copy, checkpoint=one) for one in copy.wanted]
    return own + [StoresOfFork(copy=copy, checkpoint=one, from_copy=True) for one in copy.users]


class Forking(msgspec.Struct, frozen=True, kw_only=True):
    """What a forked job begins with."""

    past: Past
    stores: StoresOfFork


class Copies:
    """The copies of one run, in the order in which they were taken."""

    def __init__(self, context: Context, scenario: Scenario, jobs: Jobs) -> None:
        self._context = context
        self._scenario = scenario
        self._jobs = jobs
        self._has_files = scenario.engine.snapshot_store == "files"
        self.taken: list[Copy] = []
        self._requested: dict[int, None] = {}

    def request(self, number: int) -> None:
        """Copy the stores for a command once the coordinator has done the step in which it is."""
        self._requested[number] = None
        coordinator = self._context.processes.current(COORDINATOR)
        if coordinator is None:
            self.echoed(number)
        else:
            coordinator.send(Echo(self._context.clock.tick(), -1 - number))

    def echoed(self, number: int) -> None:
        """The coordinator has done that step, or is dead."""
        if number in self._requested:
            self._context.processes.stand_still()
            try:
                self._take(number)
            finally:
                self._context.processes.move_again()

    def at_the_end(self, *, is_at_rest: bool) -> None:
        """Copy the stores for what is still requested, and for each command that forks jobs at rest, while all
        processes are stopped."""
        for number in list(self._requested):
            self._take(number)
        for number, command in enumerate(self._scenario.commands):
            if is_at_rest and isinstance(command, Fork) and isinstance(command.trigger, AtRest):
                self._take(number)

    def unapplied(self) -> list[str]:
        """The commands for which there was no snapshot, in words."""
        forked = {copy.command for copy in self.taken}
        return [
            f"command {number}: {kind_of(command)}"
            for number, command in enumerate(self._scenario.commands)
            if isinstance(command, Fork) and number not in forked
        ]

    def _take(self, number: int) -> None:
        self._requested.pop(number, None)
        command = self._scenario.commands[number]
        assert isinstance(command, Fork)
        retained = tuple(self._jobs.restorable()) if self._has_files else ()
        wanted = self._jobs.named(command.snapshot, retained)
        users = self._users(retained) if command.snapshot == "each" and not command.by_reference else ()
        if not wanted and not users:
            return
        config, clock = self._context.config, self._context.clock
        root = config.folder / FOLDER / str(len(self.taken))
        _copy(config.store, root, by_reference=command.by_reference)
        self.taken.append(
            Copy(
                command=number,
                root=root,
                by_reference=command.by_reference,
                at_us=clock.tick() - self._context.begun_us,
                job=self._jobs.record(),
                retained=retained,
                wanted=wanted,
                users=users,
            )
        )

    def _users(self, retained: tuple[int, ...]) -> tuple[int, ...]:
        """The copies that a user has.  If the sources' logs forget, only of snapshots that are retained as well."""
        copies, _ = self._jobs.copies()
        inputs = self._scenario.workload.inputs
        forgets = self._scenario.engine.trims_logs or not all(one.rewindable for one in inputs)
        return tuple(one for one in copies or () if one in retained or not forgets)


def _take_from_user(root: Path) -> None:
    """Put the user's copies in the place of the snapshots of a store."""
    own, users = DiskFiles(root), DiskFiles(root / COPIES)
    for ours, theirs in ((own.snapshots, users.snapshots), (own.records, users.records)):
        shutil.rmtree(ours)
        theirs.rename(ours)
    shutil.rmtree(root / COPIES)


def _copy(source: Path, target: Path, *, by_reference: bool) -> None:
    """Copy a store.  By reference the files of snapshots are linked, and the file system counts who needs them."""
    snapshots = DiskFiles(source).snapshots

    def copy(file: str, to: str) -> str:
        if by_reference and snapshots in Path(file).parents:
            os.link(file, to)
            return to
        return shutil.copy2(file, to)

    shutil.copytree(
        source,
        target,
        ignore=shutil.ignore_patterns(f"{Temporaries.FOLDER}*"),
        copy_function=copy,
        dirs_exist_ok=True,
    )
