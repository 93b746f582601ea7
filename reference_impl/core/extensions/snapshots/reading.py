"""What a task reads before it starts: its snapshot or those of another layout, and the log elements they refer to."""

from __future__ import annotations

from collections.abc import Sequence

from ...decisions.parts import Parts
from ...decisions.snapshots.redistribution import Share
from ...job.task_spec import TaskSpec
from ...vocabulary.effects import Effect, Fetch, Load
from ...vocabulary.errors import expect
from ...vocabulary.events import SnapshotLoaded
from ...vocabulary.ids import CheckpointId
from ...vocabulary.messages import Deploy, Element, Piece
from ...vocabulary.state import TaskState
from ..in_flight_data.in_flight import InFlight, with_rows
from ..rescaling.rescale import Gathering
from .snapshot_files import SnapshotFiles


class Reading:
    """The reading of one task; each method returns what to read next, and nothing once `state` is complete."""

    def __init__(self, spec: TaskSpec, parts: Parts, files: SnapshotFiles) -> None:
        self._spec = spec
        self._parts = parts
        self._files = files
        self._checkpoint: CheckpointId | None = None
        """the one that is restored"""
        self.state: TaskState | None = None
        """None: the task starts without a snapshot"""
        self._gathering: Gathering | None = None
        """the states of another layout read so far, while there is one"""

    def begin(self, message: Deploy) -> list[Effect]:
        self._checkpoint = message.checkpoint
        if message.pieces:
            unchanged = message.handle is not None or message.state is not None
            return self._gather(message.pieces, message.senders, unchanged=unchanged)
        if message.handle is not None:
            return [Load(message.handle)]
        return self._complete(message.state)

    def _gather(self, pieces: Sequence[Piece], senders: Sequence[Sequence[Piece]], *, unchanged: bool) -> list[Effect]:
        """Read the states of all old subtasks one after the other, then take the subtask's share.  In an `unchanged`
        layout that is its own state, and all items of unions."""
        spec, part = self._spec, self._parts.redistribution
        share = Share(
            subtask=spec.subtask,
            parallelism=spec.parallelism,
            key_groups=spec.key_groups,
            splits=spec.splits,
            gates=spec.gates,
            partitioning=spec.partitioning,
            unchanged=unchanged,
        )
        own = pieces[spec.subtask] if unchanged else None
        self._gathering = Gathering(part.read(pieces, share), share, own, senders)
        return self._go_on(self._gathering)

    def _go_on(self, gathering: Gathering) -> list[Effect]:
        handle = gathering.next_handle()
        if handle is not None:
            return [Load(handle)]
        if fetch := self._fetch(gathering.with_in_flight):
            return fetch
        self._gathering = None
        self.state = gathering.state(self._parts.redistribution)
        return []

    def loaded(self, event: SnapshotLoaded) -> list[Effect]:
        """A snapshot has been read."""
        if self._gathering is None:
            if event.files and self._checkpoint is not None:
                self._files.restored(self._checkpoint, event.files, event.keyed)
            return self._complete(event.state)
        self._gathering.take(event.state)
        return self._go_on(self._gathering)

    def fetched(self, elements: Sequence[Sequence[Element]]) -> list[Effect]:
        """The elements of references have been read."""
        if self._gathering is None:
            self.state = with_rows(expect(self.state, TaskState), iter(elements))
            return []
        self._gathering.take_referred_to(elements)
        return self._go_on(self._gathering)

    def restored(self, checkpoint: CheckpointId, state: TaskState, now: TaskState) -> list[Effect]:
        """The task has restored `state`, and is in the state `now`.  Elements that were in flight at an unaligned
        checkpoint of a former job are put back like any others, although no barrier of this job overtakes."""
        return InFlight(self._parts.capture).restored(checkpoint, state, now)

    def _complete(self, state: TaskState | None) -> list[Effect]:
        self.state = state
        return self._fetch([state] if state is not None else [])

    def _fetch(self, states: Sequence[TaskState]) -> list[Effect]:
        """Read the parts of logs to which states refer, if there are any."""
        refs = self._parts.persisting.read_back(states)
        return [Fetch(refs)] if refs else []
